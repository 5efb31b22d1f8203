//! Which thread runs where: the input that every locality figure depends on.

use nodewise_machine::{CpuId, NodeId};
use nodewise_profile::ThreadId;

/// Thread to CPU and node, for every thread of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Affinity {
    /// How it was made, as reports print it: `compact`, `file:bind.toml`.
    pub name: String,
    /// By [`ThreadId`].
    pub cpus: Vec<CpuId>,
    /// By [`ThreadId`].
    pub nodes: Vec<NodeId>,
}

impl Affinity {
    /// The node a thread runs on.
    #[must_use]
    pub fn node(&self, thread: ThreadId) -> NodeId {
        self.nodes[thread.index()]
    }
}
