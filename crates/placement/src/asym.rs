//! Which nodes clusters of threads get: AsymSched (Lepers, Quéma and Fedorova, "Thread and Memory Placement
//! on NUMA Systems: Asymmetry Matters", USENIX ATC 2015, 4.2 and 4.3).
//!
//! Threads that share data form a [`Cluster`]; a placement gives each cluster nodes of its own; the best one
//! has the highest weighted bandwidth, the sum over clusters of weight × bandwidth between its nodes. The
//! bandwidth of a cluster is that of every ordered pair of its nodes, max-min fair with all clusters' data on
//! the links at once, so it depends on which nodes the cluster has, not on their order.

mod bandwidth;
mod bound;
mod cluster;
mod descent;
mod enumeration;
mod equivalence;
mod forming;
mod found;
mod naming;
mod problem;
mod quick;
mod search;
mod seating;
mod shares;
mod state;

#[cfg(test)]
mod laws;

pub use bandwidth::{Bandwidth, cluster_bandwidth, weighted_bandwidth};
pub use cluster::{Crew, clusters_from_counters, clusters_from_sharing, weight};
pub use found::{Counts, Found};
pub use search::{Options, search};

use nodewise_machine::NodeId;

/// Threads that share data, of one application (AsymSched 4.2, step 1).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cluster {
    /// Whose threads they are.
    pub application: u32,
    /// Their numbers, virtual node by virtual node.
    pub threads: Vec<u32>,
    /// How many nodes it needs: its virtual nodes.
    pub nodes: usize,
    /// Where each virtual node's threads end in `threads`; empty: blocks that differ by one at most.
    pub ends: Vec<usize>,
    /// What its bandwidth counts for: [`weight`] of its remote accesses, or a priority; 0 to 10¹².
    pub weight: f64,
    /// Where it is now: most threads of virtual node i at `at[i]`; empty when it is nowhere yet.
    pub at: Vec<NodeId>,
    /// Where each of its threads runs now; empty: where its virtual node is.
    pub on: Vec<NodeId>,
    /// Bytes by node, of its application's memory, that go with it from the nodes it leaves. Of an application with
    /// several clusters, a byte goes with one of them.
    pub resident: Vec<u64>,
    /// It stays where it is: its application pins itself, or may not be moved now.
    pub fixed: bool,
}

/// A node that threads may be put on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which.
    pub node: NodeId,
    /// How many threads it takes: its CPUs that may be used.
    pub threads: usize,
}

/// Which node each of a cluster's virtual nodes is put on: `places[cluster][virtual node]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodePlacement {
    /// By cluster, then by virtual node.
    pub places: Vec<Vec<NodeId>>,
}

impl NodePlacement {
    /// Where clusters are now.
    #[must_use]
    pub fn current(clusters: &[Cluster]) -> Self {
        let places = clusters.iter().map(|c| c.at.clone()).collect();
        Self { places }
    }

    /// P_mm: bytes that have to move for this placement, those of the nodes that clusters leave (AsymSched,
    /// Table 4).
    #[must_use]
    pub fn memory_to_move(&self, clusters: &[Cluster]) -> u64 {
        let pairs = clusters.iter().zip(&self.places);
        pairs.map(|(cluster, to)| cluster.leaves(to)).sum()
    }
}

impl Cluster {
    /// The nodes that any of its threads is on, each once.
    #[must_use]
    pub fn stands_on(&self) -> Vec<NodeId> {
        distinct(self.at.iter().chain(&self.on))
    }

    /// Bytes on the nodes that it leaves for these.
    #[must_use]
    pub fn leaves(&self, to: &[NodeId]) -> u64 {
        let left = self.stands_on().into_iter().filter(|n| !to.contains(n));
        left.map(|n| self.resident_on(n)).sum()
    }

    fn resident_on(&self, node: NodeId) -> u64 {
        self.resident.get(node.index()).copied().unwrap_or(0)
    }
}

/// Each node once, in the order they come.
fn distinct<'a>(nodes: impl Iterator<Item = &'a NodeId>) -> Vec<NodeId> {
    let mut once = Vec::new();
    for node in nodes {
        if !once.contains(node) {
            once.push(*node);
        }
    }
    once
}

/// Clusters that cannot be formed or placed: one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AsymError(pub(crate) String);
