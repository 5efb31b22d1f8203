//! What the hardware is: nodes, CPUs, memory controllers, directed links, routes.
//!
//! **Purpose.** One [`Machine`] value that analysis, placement and simulation share, whether it came
//! from a file in `machines/`, from this host's sysfs, or from a test.
//!
//! **Constraints.** Pure: sysfs is read from an injected root; every figure carries its source.
//!
//! **Non-goals.** Measuring (see the `topo` command), the state of a running system.

mod ids;
mod machine;

pub use ids::{CpuId, NodeId};
pub use machine::{Link, LinkId, Machine, Node, Route};
