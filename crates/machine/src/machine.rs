//! The machine: everything about the hardware that a placement decision can depend on.

use crate::{CpuId, HopRule, Link, LinkId, MemoryCache, MemoryKind, NodeId};
use serde::Serialize;

/// A memory node: a controller with its memory, and the CPUs next to it (none for CXL memory or HBM).
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The number the kernel uses.
    pub os_index: u32,
    /// CPUs of the node, ascending.
    pub cpus: Vec<CpuId>,
    /// Memory of the node, bytes.
    pub memory: u64,
    /// Bandwidth that the controller delivers to its node's own CPUs, MB/s (10⁶ bytes).
    pub bandwidth: f64,
    /// What the memory is made of, if it is known.
    pub kind: Option<MemoryKind>,
    /// The processor package that it belongs to, if it is known.
    pub socket: Option<u32>,
    /// A cache in front of the node's memory, as HBM in cache mode.
    pub cache: Option<MemoryCache>,
}

impl Node {
    /// What its controller, or a cache in front of it that has all that is read, delivers to its node's own CPUs, MB/s.
    #[must_use]
    pub fn widest(&self) -> f64 {
        let cache = self.cache.as_ref().map_or(0.0, |c| c.bandwidth);
        self.bandwidth.max(cache)
    }
}

/// How data travels from a memory node to a reading CPU node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Route {
    /// The links that data cross from memory to reader; empty for local accesses. Written data, and requests for data,
    /// take the route of the opposite pair, which may use other links.
    pub links: Vec<LinkId>,
    /// Bandwidth of one reader that uses this route alone, MB/s; may be less than that of its narrowest link.
    pub bandwidth: f64,
}

/// A NUMA machine. Matrices are indexed `[cpu_node][memory_node]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Short name, as given to `--machine`.
    pub name: String,
    /// A description in one line, for people.
    pub title: String,
    /// Base page size, bytes.
    pub page_size: u64,
    /// All nodes, indexed by [`NodeId`].
    pub nodes: Vec<Node>,
    /// Idle load latency, nanoseconds.
    pub latency_ns: Vec<Vec<f64>>,
    /// Directed links; empty if they are unknown.
    pub links: Vec<Link>,
    /// Routes, same shape as the latency matrix.
    pub routes: Vec<Vec<Route>>,
    /// Bandwidth of consecutive links by class; pairs without a rule get that of the narrower link.
    pub hop_rules: Vec<HopRule>,
    /// Total bandwidth of a backplane that all nodes share, MB/s, if there is one.
    pub backplane: Option<f64>,
    /// The sources of figures, and which figures are assumptions.
    pub sources: Vec<Source>,
}

/// The source of a figure; reports print it unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The figure, by its name in machine files: `latency_ns`, `links`, `nodes.memory`.
    pub field: String,
    /// Paper and section, file with measurements, or the reasoning.
    pub text: String,
    /// Whether the figure is assumed: neither measured nor stated by a source.
    pub assumed: bool,
}

impl Source {
    pub(crate) fn stated(field: &str, text: &str) -> Self {
        Self {
            field: field.to_owned(),
            text: text.to_owned(),
            assumed: false,
        }
    }

    pub(crate) fn assumed(field: &str, text: &str) -> Self {
        Self {
            field: field.to_owned(),
            text: text.to_owned(),
            assumed: true,
        }
    }
}

impl Machine {
    /// Number of memory nodes: the N of the papers.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The numbers of all nodes, ascending.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Nodes that have CPUs.
    pub fn cpu_nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.node_ids().filter(|n| !self.nodes[n.index()].cpus.is_empty())
    }

    /// Whether any node's memory has a cache in front of it.
    #[must_use]
    pub fn has_memory_side_caches(&self) -> bool {
        self.nodes.iter().any(|n| n.cache.is_some())
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

    /// The nodes that data pass on the way from `memory` to `reader`, without both ends.
    #[must_use]
    pub fn via(&self, reader: NodeId, memory: NodeId) -> Vec<NodeId> {
        let links = &self.route(reader, memory).links;
        let meeting = |pair: &[LinkId]| {
            let (arrives, leaves) = (self.link_ends(pair[0]).1, self.link_ends(pair[1]).0);
            arrives
                .iter()
                .copied()
                .find(|n| leaves.contains(n))
                .unwrap_or(arrives[0])
        };
        links.windows(2).map(meeting).collect()
    }

    /// The nodes at both ends of a link. If a socket's nodes share the link, these are the nodes whose route is this
    /// link alone.
    #[must_use]
    pub fn link_ends(&self, link: LinkId) -> (Vec<NodeId>, Vec<NodeId>) {
        let pairs = self.node_ids().flat_map(|m| self.node_ids().map(move |r| (m, r)));
        let direct = pairs.filter(|&(m, r)| self.route(r, m).links == [link]);
        let shown = &self.links[link.0 as usize];
        let (mut from, mut to): (Vec<_>, Vec<_>) = direct.chain([(shown.from, shown.to)]).unzip();
        for ends in [&mut from, &mut to] {
            ends.sort_unstable();
            ends.dedup();
        }
        (from, to)
    }

    /// The largest remote latency divided by the smallest local one: the NUMA factor of Diener et al.; 1 for a single
    /// node.
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
