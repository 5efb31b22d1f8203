//! Max-min fair bandwidth of flows that share a machine's links and controllers.

use crate::{Filling, Machine, NodeId, Route};

/// All that carries data between nodes, each with its width: links first, by [`crate::LinkId`]; then
/// routes that carry less than their narrowest link; then the backplane.
#[derive(Clone, Debug, PartialEq)]
pub struct Channels {
    /// Capacity of each channel, MB/s.
    pub capacity: Vec<f64>,
    /// What data cross from memory to reader, `[reader * nodes + memory]`; nothing when local.
    ways: Vec<Vec<u32>>,
    nodes: usize,
}

/// Data on their way from the memory of one node to a reader on another. What is written goes the other
/// way: its flow has the writer as its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Flow {
    /// Where data are read.
    pub reader: NodeId,
    /// Where they come from.
    pub memory: NodeId,
}

impl Channels {
    /// The channels of a machine. Controllers are none: they carry local data too.
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

    /// Nodes of the machine.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes
    }

    /// The channels that data cross from `memory` to `reader`; none when local.
    #[must_use]
    pub fn way(&self, reader: NodeId, memory: NodeId) -> &[u32] {
        &self.ways[reader.index() * self.nodes + memory.index()]
    }

    /// MB/s of each of `flows` when all move at once, none limited by anything but channels: rates rise
    /// together until a channel is full, whose flows stay at that rate (progressive filling, Bertsekas
    /// and Gallager, Data Networks, 6.5.2). Local flows are infinite.
    #[must_use]
    pub fn max_min(&self, flows: &[Flow]) -> Vec<f64> {
        let mut filling = Filling::new(self);
        filling.fill(flows);
        filling.rates
    }
}

/// Links of a remote route, and the route itself where it carries less than its narrowest link. A route
/// without known links counts if it carries less than the controllers at its ends.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flow(memory: u32, reader: u32) -> Flow {
        Flow {
            reader: NodeId(reader),
            memory: NodeId(memory),
        }
    }

    fn machine_a() -> Channels {
        Channels::of(&Machine::named("machine-a").unwrap())
    }

    #[test]
    fn a_flow_alone_gets_what_its_route_gives() {
        let machine = Machine::named("machine-a").unwrap();
        let channels = Channels::of(&machine);
        for (memory, reader) in [(0, 1), (3, 0), (0, 3), (7, 3), (3, 7), (1, 4)] {
            let alone = channels.max_min(&[flow(memory, reader)])[0];
            assert_eq!(alone, machine.route(NodeId(reader), NodeId(memory)).bandwidth);
        }
        assert_eq!(channels.max_min(&[flow(2, 2)]), [f64::INFINITY]);
    }

    #[test]
    fn a_shared_link_is_shared_and_who_is_held_back_elsewhere_leaves_the_rest() {
        // 0 → 3 goes over 2 and shares 0 → 2 (4,329) with the flow that ends there.
        assert_eq!(machine_a().max_min(&[flow(0, 2), flow(0, 3)]), [2164.5, 2164.5]);
        // 0 → 1 (5,598) carries 0 → 7 too, whose route gives 1,909.
        let rates = machine_a().max_min(&[flow(0, 7), flow(0, 1)]);
        assert_eq!(rates.iter().sum::<f64>(), 5598.0);
        assert!((rates[0] - 1909.0).abs() < 1.0, "{rates:?}");
    }

    proptest! {
        #[test]
        fn no_flow_could_have_more_but_from_one_that_has_less(
            flows in proptest::collection::vec((0u32..8, 0u32..8), 1..60)
        ) {
            let channels = machine_a();
            let flows: Vec<Flow> = flows.into_iter().map(|(m, r)| flow(m, r)).collect();
            let rates = channels.max_min(&flows);
            let mut load = vec![0.0; channels.capacity.len()];
            let mut most = vec![0.0f64; load.len()];
            for (flow, rate) in flows.iter().zip(&rates) {
                for c in channels.way(flow.reader, flow.memory) {
                    load[*c as usize] += rate;
                    most[*c as usize] = most[*c as usize].max(*rate);
                }
            }
            for (load, capacity) in load.iter().zip(&channels.capacity) {
                prop_assert!(*load <= capacity * (1.0 + 1e-6));
            }
            for (flow, rate) in flows.iter().zip(&rates).filter(|(f, _)| f.reader != f.memory) {
                let bottleneck = |c: &u32| {
                    let c = *c as usize;
                    load[c] >= channels.capacity[c] * (1.0 - 1e-6) && *rate >= most[c] * (1.0 - 1e-6)
                };
                let way = channels.way(flow.reader, flow.memory);
                prop_assert!(way.iter().any(bottleneck), "{flow:?} at {rate} has no bottleneck");
            }
        }

        #[test]
        fn the_order_of_flows_does_not_matter(
            flows in proptest::collection::vec((0u32..8, 0u32..8), 1..20), turn in 0usize..20
        ) {
            let channels = machine_a();
            let mut flows: Vec<Flow> = flows.into_iter().map(|(m, r)| flow(m, r)).collect();
            let before = channels.max_min(&flows);
            let by = turn % flows.len();
            flows.rotate_left(by);
            let mut after = channels.max_min(&flows);
            after.rotate_right(by);
            for (a, b) in before.iter().zip(&after) {
                prop_assert!(a == b || (a - b).abs() < 1e-6 * a);
            }
        }
    }
}
