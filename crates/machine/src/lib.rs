//! The hardware model: nodes, CPUs, memory controllers, directed links, routes.
//!
//! **Purpose.** One [`Machine`] value that analysis, placement and simulation share, whether it came
//! from a file in `machines/`, from this host's sysfs, or from a test.
//!
//! **Constraints.** Pure, except that it reads the files that it is told to read; sysfs is read from an injected root.
//! Every figure has a source, and assumptions are marked as such.
//!
//! **Non-goals.** Measuring, and the state of a running system.

#![forbid(unsafe_code)]

mod assembly;
mod cache_mode;
mod error;
mod file;
mod filling;
mod firmware_mode;
mod flows;
mod hops;
mod ids;
pub mod inference;
mod library;
mod link;
mod listed;
mod machine;
mod memory_cache;
mod memory_kind;
mod routing;
mod sysfs;
mod text;
mod together;
mod validation;

pub use error::{ErrorKind, MachineError};
pub use filling::Filling;
pub use firmware_mode::machine_list;
pub use flows::{Channels, Flow};
pub use hops::HopRule;
pub use ids::{CpuId, NodeId};
pub use link::{Link, LinkId};
pub use machine::{Machine, Node, Route, Source};
pub use memory_cache::MemoryCache;
pub use memory_kind::MemoryKind;
pub use text::{format_list, parse_bytes, parse_list};
