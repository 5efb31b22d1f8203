//! Data flows between nodes, and the channels of limited width that they cross.

use crate::{Machine, NodeId, Route};

/// Everything of limited bandwidth that carries data between nodes: first all links, by [`crate::LinkId`]; then routes
/// that carry less than their narrowest link; then the backplane.
#[derive(Clone, Debug, PartialEq)]
pub struct Channels {
    /// Capacity of each channel, MB/s.
    pub capacity: Vec<f64>,
    /// The channels from memory to reader, by `reader * nodes + memory`; empty for local accesses.
    ways: Vec<Vec<u32>>,
    nodes: usize,
}

/// Data moving from the memory of one node to a reader on another. Written data move in the opposite direction: their
/// flow has the writer as its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// The node where data are read.
    pub reader: NodeId,
    /// The node whose memory they come from.
    pub memory: NodeId,
}

impl Channels {
    /// The channels of a machine. Memory controllers are not channels, because they carry local data too.
    #[must_use]
    pub fn of(machine: &Machine) -> Self {
        let mut capacity: Vec<f64> = machine.links.iter().map(|l| l.bandwidth).collect();
        let pairs = || {
            machine
                .node_ids()
                .flat_map(|r| machine.node_ids().map(move |m| (r, m)))
        };
        let ends = |(r, m): (NodeId, NodeId)| {
            machine.nodes[r.index()]
                .bandwidth
                .max(machine.nodes[m.index()].bandwidth)
        };
        let mut ways: Vec<Vec<u32>> = pairs()
            .map(|(r, m)| way(machine.route(r, m), r == m, ends((r, m)), &mut capacity))
            .collect();
        if let Some(total) = machine.backplane {
            capacity.push(total);
            let remote = pairs().zip(&mut ways).filter(|((r, m), _)| r != m);
            remote.for_each(|(_, way)| way.push(capacity.len() as u32 - 1));
        }
        Self {
            capacity,
            ways,
            nodes: machine.node_count(),
        }
    }

    /// Channels of these capacities, MB/s. `ways` are the channels that data cross, by `reader * nodes + memory`.
    pub(crate) fn from_ways(capacity: Vec<f64>, ways: Vec<Vec<u32>>, nodes: usize) -> Self {
        Self {
            capacity,
            ways,
            nodes,
        }
    }

    /// Number of nodes of the machine.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes
    }

    /// The channels that data cross from `memory` to `reader`; none for a local access.
    #[must_use]
    pub fn way(&self, reader: NodeId, memory: NodeId) -> &[u32] {
        &self.ways[reader.index() * self.nodes + memory.index()]
    }
}

/// The channels of a route: its links and, if it carries less than its narrowest link, a channel for the route itself.
/// A route without known links gets a channel if it carries less than `ends`, the bandwidth of the faster controller at
/// its ends.
fn way(route: &Route, local: bool, ends: f64, capacity: &mut Vec<f64>) -> Vec<u32> {
    if local {
        return Vec::new();
    }
    let mut crossed: Vec<u32> = route.links.iter().map(|l| l.0).collect();
    let narrowest = crossed.iter().map(|&c| capacity[c as usize]).reduce(f64::min);
    if route.bandwidth > 0.0 && route.bandwidth < narrowest.unwrap_or(ends) * 0.999 {
        capacity.push(route.bandwidth);
        crossed.push(capacity.len() as u32 - 1);
    }
    crossed
}
