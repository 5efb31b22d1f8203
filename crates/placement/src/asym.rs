//! Placement of clusters of threads on nodes: AsymSched (Lepers, Quéma and Fedorova, "Thread and Memory Placement
//! on NUMA Systems: Asymmetry Matters", USENIX ATC 2015, 4.2 and 4.3).
//!
//! Threads that share data form a [`Cluster`]; a placement gives each cluster nodes of its own; the best one
//! has the highest weighted bandwidth, the sum over clusters of weight × bandwidth between its nodes. The
//! bandwidth of a cluster is that of every ordered pair of its nodes, max-min fair with all clusters' data on
//! the links at once, so it depends on which nodes the cluster has, not on their order.

mod bandwidth;
mod bound;
mod cluster;
mod enumeration;
mod equal_shares;
mod equivalence;
mod local_search;
mod node_assignment;
mod packing;
mod pairwise;
mod problem;
mod result;
mod search;
mod set_assignment;
mod state;
mod traffic;

#[cfg(test)]
mod properties;

pub use bandwidth::{Bandwidth, cluster_bandwidth, weighted_bandwidth};
pub use cluster::{clusters_from_counters, clusters_from_sharing};
pub use result::{Counts, SearchResult};
pub use search::{Options, search};
pub use traffic::{ThreadTraffic, weight};

use nodewise_machine::NodeId;

/// Threads that share data, of one application (AsymSched 4.2, step 1).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cluster {
    /// Number of the application that the threads belong to.
    pub application: u32,
    /// Numbers of its threads, grouped by virtual node.
    pub threads: Vec<u32>,
    /// Number of nodes that it needs, called virtual nodes.
    pub nodes: usize,
    /// End of each virtual node's threads in `threads`; empty: equal blocks, up to one thread.
    pub ends: Vec<usize>,
    /// Weight of its bandwidth in the objective: [`weight`] of its remote accesses, or a priority; 0 to 10¹².
    pub weight: f64,
    /// Current nodes: most threads of virtual node i run on `at[i]`; empty before it is placed.
    pub at: Vec<NodeId>,
    /// Current node of each thread; empty: that of its virtual node.
    pub on: Vec<NodeId>,
    /// Bytes by node of its application's memory that move with it. With several clusters, each byte belongs to one of them.
    pub resident: Vec<u64>,
    /// Whether it must stay: its application sets its own affinity, or may not be moved now.
    pub fixed: bool,
}

/// A node that threads may be put on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The node that takes the threads.
    pub node: NodeId,
    /// Capacity in threads: the usable CPUs.
    pub threads: usize,
}

/// The node of each virtual node of each cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodePlacement {
    /// Nodes as `places[cluster][virtual node]`.
    pub places: Vec<Vec<NodeId>>,
}

impl NodePlacement {
    /// The placement that clusters have now.
    #[must_use]
    pub fn current(clusters: &[Cluster]) -> Self {
        let places = clusters.iter().map(|c| c.at.clone()).collect();
        Self { places }
    }

    /// P_mm: bytes that have to move for this placement, those on nodes that clusters leave (AsymSched, Table 4).
    #[must_use]
    pub fn memory_to_move(&self, clusters: &[Cluster]) -> u64 {
        let pairs = clusters.iter().zip(&self.places);
        pairs.map(|(cluster, to)| cluster.bytes_leaving(to)).sum()
    }
}

impl Cluster {
    /// The distinct nodes that the cluster's threads run on now.
    #[must_use]
    pub fn occupied_nodes(&self) -> Vec<NodeId> {
        bandwidth::distinct(self.at.iter().chain(&self.on))
    }

    /// Bytes on current nodes that are not among `to`.
    #[must_use]
    pub fn bytes_leaving(&self, to: &[NodeId]) -> u64 {
        let left = self.occupied_nodes().into_iter().filter(|n| !to.contains(n));
        left.map(|n| self.resident_on(n)).sum()
    }

    fn resident_on(&self, node: NodeId) -> u64 {
        self.resident.get(node.index()).copied().unwrap_or(0)
    }
}

/// Clusters that cannot be formed or placed: one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AsymError(pub(crate) String);
