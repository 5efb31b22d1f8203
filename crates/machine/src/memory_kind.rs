//! What a node's memory is made of.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of a node's memory, where a file or the kernel says it. Policies use latencies and bandwidths; a kind is for
/// people, and to name nodes by: `hot:dram@16G`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryKind {
    /// Memory modules at a processor's own controllers.
    Dram,
    /// High-bandwidth memory in a processor's package.
    Hbm,
    /// Memory behind a CXL link.
    Cxl,
    /// Memory of an accelerator that the kernel sees as a node.
    Device,
    /// Persistent memory that serves as main memory.
    Persistent,
}

const KINDS: [(MemoryKind, &str); 5] = [
    (MemoryKind::Dram, "dram"),
    (MemoryKind::Hbm, "hbm"),
    (MemoryKind::Cxl, "cxl"),
    (MemoryKind::Device, "device"),
    (MemoryKind::Persistent, "persistent"),
];

impl MemoryKind {
    /// Every kind of memory that a machine file can name.
    #[must_use]
    pub fn all() -> [Self; KINDS.len()] {
        KINDS.map(|k| k.0)
    }

    /// The kind of this name, as machine files write it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        KINDS.iter().find(|k| k.1 == name).map(|k| k.0)
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KINDS.iter().find(|k| k.0 == *self).map_or("", |k| k.1);
        f.pad(name)
    }
}
