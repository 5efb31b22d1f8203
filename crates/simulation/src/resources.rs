//! The machine as a list of capacity-limited resources: controllers, links, narrow routes, backplane.

use nodewise_machine::{Channels, Machine, NodeId};

/// Resources in one list: controllers first (by node), then links (by link), then the rest.
pub(crate) struct Resources {
    /// Bytes a nanosecond, by resource.
    pub capacity: Vec<f64>,
    /// Idle latency `[reader * nodes + memory]`, nanoseconds.
    pub idle_ns: Vec<f64>,
    /// The resources that data from memory to reader cross, `[reader * nodes + memory]`.
    fetch: Vec<Vec<u32>>,
    /// The resources that a line written back from a CPU's node to memory crosses, `[writer * nodes + memory]`.
    write_back: Vec<Vec<u32>>,
    /// The controller of each node.
    controllers: Vec<u32>,
    /// Share of the lines of each node that its memory-side cache has; 1 without one.
    pub hits: Vec<f64>,
    /// Number of memory nodes in use.
    pub nodes: usize,
    /// Number of resources before the links.
    pub before_links: usize,
}

/// MB/s to bytes a nanosecond.
fn per_ns(megabytes_per_second: f64) -> f64 {
    megabytes_per_second * 1e-3
}

impl Resources {
    pub fn new(machine: &Machine) -> Self {
        Self::on(machine, &machine.node_ids().collect::<Vec<_>>())
    }

    /// All resources of a machine, with some of its nodes numbered 0, 1, …
    pub fn on(machine: &Machine, at: &[NodeId]) -> Self {
        let channels = Channels::of(machine);
        let before_links = machine.node_count();
        let controllers = machine.nodes.iter().map(|n| n.bandwidth);
        let capacity = controllers
            .chain(channels.capacity.iter().copied())
            .map(per_ns)
            .collect();
        let with_controller = |(to, from): (NodeId, NodeId), memory: NodeId| {
            let way = channels.way(to, from);
            let mut all = vec![memory.0];
            all.extend(way.iter().map(|c| c + before_links as u32));
            all
        };
        let pairs = || {
            at.iter()
                .flat_map(|cpu| at.iter().map(move |memory| (*cpu, *memory)))
        };
        Self {
            idle_ns: pairs().map(|(c, m)| machine.latency(c, m)).collect(),
            fetch: pairs().map(|(c, m)| with_controller((c, m), m)).collect(),
            write_back: pairs().map(|(c, m)| with_controller((m, c), m)).collect(),
            controllers: at.iter().map(|n| n.0).collect(),
            capacity,
            hits: vec![1.0; at.len()],
            nodes: at.len(),
            before_links,
        }
    }

    /// With these shares of hits, on a machine whose figures are those with its memory-side caches.
    pub fn with_hits(mut self, hits: Vec<f64>) -> Self {
        self.hits = hits;
        self
    }

    /// The resources that a fetch by `reader` from `memory` crosses, the controller first.
    pub fn fetch(&self, reader: usize, memory: usize) -> &[u32] {
        &self.fetch[reader * self.nodes + memory]
    }

    /// Nanoseconds per byte copied from one memory to another, without contention.
    pub fn copy_ns(&self, from: usize, to: usize) -> f64 {
        let narrowest = self
            .copy(from, to)
            .map(|r| self.capacity[r as usize])
            .filter(|c| *c > 0.0)
            .reduce(f64::min);
        narrowest.map_or(0.0, |capacity| 1.0 / capacity)
    }

    /// The resources that a copy from one memory to another crosses: both controllers and the route between them.
    pub fn copy(&self, from: usize, to: usize) -> impl Iterator<Item = u32> + '_ {
        self.fetch(to, from).iter().copied().chain([self.controllers[to]])
    }

    /// The mean idle latency between different nodes, nanoseconds; 0 on one node.
    pub fn remote_ns(&self) -> f64 {
        let pairs = self.nodes * self.nodes - self.nodes;
        let local: f64 = self.idle_ns.iter().step_by(self.nodes + 1).sum();
        (self.idle_ns.iter().sum::<f64>() - local) / pairs.max(1) as f64
    }

    /// The resources that a write-back by `writer` to `memory` crosses, the controller first.
    pub fn write_back(&self, writer: usize, memory: usize) -> &[u32] {
        &self.write_back[writer * self.nodes + memory]
    }
}
