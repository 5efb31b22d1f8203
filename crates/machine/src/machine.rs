//! The machine: everything about the hardware that a placement decision can depend on.

use crate::{CpuId, NodeId};

/// A memory node: a controller with its memory, and the CPUs next to it (none for CXL or HBM).
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The number the kernel uses.
    pub os_index: u32,
    /// Its CPUs, ascending.
    pub cpus: Vec<CpuId>,
    /// Memory, bytes.
    pub memory: u64,
    /// What the controller delivers to its own CPUs, MB/s (10⁶ bytes).
    pub bandwidth: f64,
}

/// Index into [`Machine::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkId(pub u32);

/// A directed link between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Where data comes from.
    pub from: NodeId,
    /// Where data goes.
    pub to: NodeId,
    /// MB/s in this direction.
    pub bandwidth: f64,
}

/// How data travels from a memory node to a reading CPU node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Route {
    /// The links data crosses, from memory to reader; empty when local.
    pub links: Vec<LinkId>,
    /// What one reader gets over this route alone, MB/s: may be less than its narrowest link.
    pub bandwidth: f64,
}

/// A NUMA machine. Matrices are indexed `[cpu_node][memory_node]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Short name, as given to `--machine`.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Base page size, bytes.
    pub page_size: u64,
    /// Nodes by [`NodeId`].
    pub nodes: Vec<Node>,
    /// Idle load latency, nanoseconds.
    pub latency_ns: Vec<Vec<f64>>,
    /// Directed links; empty when nobody knows them.
    pub links: Vec<Link>,
    /// Routes, same shape as the latency matrix.
    pub routes: Vec<Vec<Route>>,
    /// Shared by all nodes when set: a backplane's total, MB/s.
    pub backplane: Option<f64>,
    /// Where figures come from and which are assumptions: `(field, text)`.
    pub sources: Vec<(String, String)>,
}

impl Machine {
    /// How many memory nodes there are: the N of the papers.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// All nodes.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Nodes that have CPUs.
    pub fn cpu_nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.node_ids().filter(|n| !self.nodes[n.index()].cpus.is_empty())
    }

    /// All CPUs, ascending, each with its node.
    #[must_use]
    pub fn cpus(&self) -> Vec<(CpuId, NodeId)> {
        let mut all: Vec<_> = self
            .node_ids()
            .flat_map(|n| self.nodes[n.index()].cpus.iter().map(move |&c| (c, n)))
            .collect();
        all.sort_unstable();
        all
    }

    /// Idle latency of a load by a CPU of `reader` from `memory`, nanoseconds.
    #[must_use]
    pub fn latency(&self, reader: NodeId, memory: NodeId) -> f64 {
        self.latency_ns[reader.index()][memory.index()]
    }

    /// The route of data from `memory` to `reader`.
    #[must_use]
    pub fn route(&self, reader: NodeId, memory: NodeId) -> &Route {
        &self.routes[reader.index()][memory.index()]
    }

    /// The largest remote latency over the smallest local one: Diener's NUMA factor; 1 on one node.
    #[must_use]
    pub fn numa_factor(&self) -> f64 {
        let cells = || {
            self.cpu_nodes()
                .flat_map(|r| self.node_ids().map(move |m| (r == m, self.latency(r, m))))
        };
        let local = cells().filter(|c| c.0).map(|c| c.1).fold(f64::INFINITY, f64::min);
        cells().map(|c| c.1).fold(local, f64::max) / local
    }
}
