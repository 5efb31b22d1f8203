//! The machine as a list of things that carry bytes: controllers, links, narrow routes, backplane.

use nodewise_machine::{Machine, NodeId};

/// Resources in one list: controllers first (by node), then links (by link), then the rest.
pub(crate) struct Resources {
    /// Bytes a nanosecond, by resource.
    pub capacity: Vec<f64>,
    /// Idle latency `[reader * nodes + memory]`, nanoseconds.
    pub idle_ns: Vec<f64>,
    /// What data from memory to reader crosses, `[reader * nodes + memory]`.
    fetch: Vec<Vec<u32>>,
    /// What a line written back from CPU node to memory crosses, `[writer * nodes + memory]`.
    write_back: Vec<Vec<u32>>,
    /// Memory nodes.
    pub nodes: usize,
}

/// MB/s to bytes a nanosecond.
fn per_ns(megabytes_per_second: f64) -> f64 {
    megabytes_per_second * 1e-3
}

impl Resources {
    pub fn new(machine: &Machine) -> Self {
        let nodes = machine.node_count();
        let mut capacity: Vec<f64> = machine.nodes.iter().map(|n| per_ns(n.bandwidth)).collect();
        capacity.extend(machine.links.iter().map(|l| per_ns(l.bandwidth)));
        let backplane = machine.backplane.map(|total| {
            capacity.push(per_ns(total));
            capacity.len() as u32 - 1
        });
        let mut path = Vec::with_capacity(nodes * nodes);
        for reader in machine.node_ids() {
            for memory in machine.node_ids() {
                let mut crossed = interconnect(machine, reader, memory, &mut capacity);
                crossed.extend(backplane.filter(|_| reader != memory));
                path.push(crossed);
            }
        }
        let with_controller = |crossed: &[u32], memory: usize| {
            let mut all = vec![memory as u32];
            all.extend(crossed);
            all
        };
        let pairs = || (0..nodes).flat_map(|cpu| (0..nodes).map(move |memory| (cpu, memory)));
        Self {
            idle_ns: machine.latency_ns.iter().flatten().copied().collect(),
            fetch: pairs()
                .map(|(c, m)| with_controller(&path[c * nodes + m], m))
                .collect(),
            write_back: pairs()
                .map(|(c, m)| with_controller(&path[m * nodes + c], m))
                .collect(),
            capacity,
            nodes,
        }
    }

    /// What a fetch by `reader` from `memory` crosses, the controller first.
    pub fn fetch(&self, reader: usize, memory: usize) -> &[u32] {
        &self.fetch[reader * self.nodes + memory]
    }

    /// Nanoseconds that a byte takes on its way from one memory to another, alone on the machine.
    pub fn copy_ns(&self, from: usize, to: usize) -> f64 {
        let narrowest = self
            .copy(from, to)
            .map(|r| self.capacity[r as usize])
            .filter(|c| *c > 0.0)
            .reduce(f64::min);
        narrowest.map_or(0.0, |capacity| 1.0 / capacity)
    }

    /// What a copy from one memory to another crosses: both controllers and the way between them.
    pub fn copy(&self, from: usize, to: usize) -> impl Iterator<Item = u32> + '_ {
        self.fetch(to, from).iter().copied().chain([to as u32])
    }

    /// The mean idle latency between different nodes, nanoseconds; 0 on one node.
    pub fn remote_ns(&self) -> f64 {
        let pairs = self.nodes * self.nodes - self.nodes;
        let local: f64 = self.idle_ns.iter().step_by(self.nodes + 1).sum();
        (self.idle_ns.iter().sum::<f64>() - local) / pairs.max(1) as f64
    }

    /// What a write-back by `writer` to `memory` crosses, the controller first.
    pub fn write_back(&self, writer: usize, memory: usize) -> &[u32] {
        &self.write_back[writer * self.nodes + memory]
    }
}

/// Links of a remote route, and the route itself where it carries less than its narrowest link. A
/// route without known links counts if it carries less than the controllers at its ends.
fn interconnect(machine: &Machine, reader: NodeId, memory: NodeId, capacity: &mut Vec<f64>) -> Vec<u32> {
    if reader == memory {
        return Vec::new();
    }
    let route = machine.route(reader, memory);
    let first_link = machine.node_count() as u32;
    let mut crossed: Vec<u32> = route.links.iter().map(|l| first_link + l.0).collect();
    let narrowest = crossed.iter().map(|&r| capacity[r as usize]).reduce(f64::min);
    let ends = capacity[reader.index()].max(capacity[memory.index()]);
    let alone = per_ns(route.bandwidth);
    if alone > 0.0 && alone < narrowest.unwrap_or(ends) * 0.999 {
        capacity.push(alone);
        crossed.push(capacity.len() as u32 - 1);
    }
    crossed
}
