//! Max-min fair rates by progressive filling (Bertsekas and Gallager, *Data Networks*, 6.5.2).

use crate::{Channels, Flow};

/// Computes max-min fair rates repeatedly, and reuses the memory of one computation for the next.
///
/// Channels in use have slots. Each flow lists the slots that it crosses, each slot the flows that cross it. So the
/// cost of each level is a scan of all slots, plus the flows that stop at that level.
#[derive(Clone, Debug)]
pub struct Filling<'a> {
    channels: &'a Channels,
    /// MB/s of each flow of the last computation.
    pub rates: Vec<f64>,
    used: Vec<u32>,
    /// The slot of each channel, or [`UNUSED`].
    slot: Vec<u32>,
    slots: Vec<Slot>,
    /// For each slot, the rate at which it is full. Padded to whole blocks with infinity.
    level: Vec<f64>,
    /// For each flow, the end of its slots in `crossed`.
    crossed_ends: Vec<u32>,
    crossed: Vec<u32>,
    /// The flows of each slot, slot after slot.
    members: Vec<u32>,
    full: Vec<u32>,
    touched: Vec<u32>,
}

/// A channel that at least one flow crosses.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// Capacity that flows with fixed rates leave, MB/s.
    left: f64,
    /// Number of flows whose rates still rise, and of those that stopped at the current level.
    rising: u32,
    stopped: u32,
    /// Range of the slot's flows in `members`.
    begin: u32,
    end: u32,
}

const UNUSED: u32 = u32::MAX;
/// Number of levels that are compared together.
const BLOCK: usize = 8;

impl<'a> Filling<'a> {
    /// Working state for these channels, without flows.
    #[must_use]
    pub fn new(channels: &'a Channels) -> Self {
        Self {
            channels,
            rates: Vec::new(),
            used: Vec::new(),
            slot: vec![UNUSED; channels.capacity.len()],
            slots: Vec::new(),
            level: Vec::new(),
            crossed_ends: Vec::new(),
            crossed: Vec::new(),
            members: Vec::new(),
            full: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// The max-min fair rates of `flows` (see [`Channels::max_min`]).
    pub fn fill(&mut self, flows: &[Flow]) -> &[f64] {
        self.begin(flows);
        self.list();
        loop {
            let lowest = self.find_full();
            if lowest == f64::INFINITY {
                return &self.rates;
            }
            for at in 0..self.full.len() {
                self.stop(self.full[at], lowest);
            }
            self.rise(lowest);
        }
    }

    /// Sum, over the flows of the last computation, of the number of channels that each crosses: a measure of its cost.
    #[must_use]
    pub fn crossings(&self) -> usize {
        self.crossed.len()
    }

    fn begin(&mut self, flows: &[Flow]) {
        self.rates.clear();
        self.rates.resize(flows.len(), f64::INFINITY);
        self.used.drain(..).for_each(|c| self.slot[c as usize] = UNUSED);
        self.slots.clear();
        self.crossed.clear();
        self.crossed_ends.clear();
        for flow in flows {
            for c in self.channels.way(flow.reader, flow.memory) {
                let slot = &mut self.slot[*c as usize];
                if *slot == UNUSED {
                    *slot = self.used.len() as u32;
                    self.used.push(*c);
                    self.slots.push(Slot {
                        left: self.channels.capacity[*c as usize],
                        ..Slot::default()
                    });
                }
                self.slots[*slot as usize].rising += 1;
                self.crossed.push(*slot);
            }
            self.crossed_ends.push(self.crossed.len() as u32);
        }
    }

    fn list(&mut self) {
        let mut all = 0;
        self.level.clear();
        for slot in &mut self.slots {
            (slot.begin, slot.end) = (all, all);
            all += slot.rising;
            self.level.push(slot.left / f64::from(slot.rising));
        }
        self.level
            .resize(self.slots.len().next_multiple_of(BLOCK), f64::INFINITY);
        self.members.clear();
        self.members.resize(all as usize, 0);
        let mut begin = 0;
        for (flow, &end) in self.crossed_ends.iter().enumerate() {
            for slot in &self.crossed[begin as usize..end as usize] {
                let slot = &mut self.slots[*slot as usize];
                self.members[slot.end as usize] = flow as u32;
                slot.end += 1;
            }
            begin = end;
        }
    }

    /// Returns the lowest level, and puts all slots at that level into `full`.
    fn find_full(&mut self) -> f64 {
        let mut least = [f64::INFINITY; BLOCK];
        for block in self.level.chunks_exact(BLOCK) {
            for (least, level) in least.iter_mut().zip(block) {
                *least = if level < least { *level } else { *least };
            }
        }
        let lowest = least.into_iter().fold(f64::INFINITY, f64::min);
        let most = lowest * (1.0 + 1e-9);
        self.full.clear();
        for (nth, block) in self.level.chunks_exact(BLOCK).enumerate() {
            if block.iter().fold(false, |any, level| any | (*level <= most)) {
                let at = (0..BLOCK).filter(|i| block[*i] <= most);
                self.full.extend(at.map(|i| (nth * BLOCK + i) as u32));
            }
        }
        lowest
    }

    /// Fixes the rates of a full slot's flows.
    fn stop(&mut self, slot: u32, rate: f64) {
        let Slot { begin, end, .. } = self.slots[slot as usize];
        for flow in &self.members[begin as usize..end as usize] {
            let flow = *flow as usize;
            if self.rates[flow].is_finite() {
                continue;
            }
            self.rates[flow] = rate;
            let begin = flow.checked_sub(1).map_or(0, |f| self.crossed_ends[f]);
            for slot in &self.crossed[begin as usize..self.crossed_ends[flow] as usize] {
                let stopped = &mut self.slots[*slot as usize].stopped;
                if *stopped == 0 {
                    self.touched.push(*slot);
                }
                *stopped += 1;
            }
        }
    }

    /// Redistributes the capacity that flows stopped at this rate leave to the flows that still rise.
    fn rise(&mut self, rate: f64) {
        for at in self.touched.drain(..) {
            let slot = &mut self.slots[at as usize];
            let stopped = std::mem::take(&mut slot.stopped);
            slot.left = (slot.left - rate * f64::from(stopped)).max(0.0);
            slot.rising -= stopped;
            self.level[at as usize] = match slot.rising {
                0 => f64::INFINITY,
                rising => slot.left / f64::from(rising),
            };
        }
    }
}

impl Channels {
    /// The max-min fair rates of `flows`, MB/s, if all run at once and only channels limit them. All rates rise
    /// together; when a channel is full, its flows keep their rate (progressive filling, Bertsekas and Gallager, *Data
    /// Networks*, 6.5.2). Local flows have infinite rates.
    #[must_use]
    pub fn max_min(&self, flows: &[Flow]) -> Vec<f64> {
        let mut filling = Filling::new(self);
        filling.fill(flows);
        filling.rates
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, NodeId};
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
        // 0 → 3 goes through 2, and shares 0 → 2 (4,329) with the flow that ends there.
        assert_eq!(machine_a().max_min(&[flow(0, 2), flow(0, 3)]), [2164.5, 2164.5]);
        // 0 → 1 (5,598) also carries 0 → 7, whose route permits 1,909.
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
