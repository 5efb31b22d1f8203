//! Identifiers of nodes and CPUs.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! kernel_number {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as a table index.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<$name> for usize {
            fn from(number: $name) -> Self {
                number.index()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

kernel_number! {
    /// A memory node. A machine's nodes are numbered 0..N without gaps; those of hosts with gaps are renumbered when
    /// read, and [`crate::Node::os_index`] keeps the kernel's number.
    NodeId,
    /// A logical CPU, by the number that Linux gives it.
    CpuId,
}
