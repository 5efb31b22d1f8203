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
mod found;
mod naming;
mod problem;
mod quick;
mod search;
mod seating;
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
    /// Their numbers, ascending.
    pub threads: Vec<u32>,
    /// How many nodes it needs.
    pub nodes: usize,
    /// What its bandwidth counts for: [`weight`] of its remote accesses, or a priority; not negative.
    pub weight: f64,
    /// Where it is now: virtual node i at `at[i]`; empty when it is nowhere yet.
    pub at: Vec<NodeId>,
    /// Bytes by node, of its application's memory, that go with it from the nodes it leaves.
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
    /// Bytes on the nodes that it leaves for these.
    #[must_use]
    pub fn leaves(&self, to: &[NodeId]) -> u64 {
        let left = self.at.iter().filter(|n| !to.contains(n));
        left.map(|n| self.resident_on(*n)).sum()
    }

    fn resident_on(&self, node: NodeId) -> u64 {
        self.resident.get(node.index()).copied().unwrap_or(0)
    }
}

/// Clusters that cannot be formed or placed: one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AsymError(pub(crate) String);
