//! What clusters get if every channel is divided equally among the flows that cross it: nearly what they really
//! get, in a fraction of the time.
//!
//! An equal share of the narrowest channel on its way is the least that a flow gets; what others leave unused there
//! comes on top of it.

use super::problem::Problem;
use super::state::State;
use nodewise_machine::{Flow, NodeId};

/// So many channels are looked up here in the time that one is crossed by flows whose rates are computed.
const FASTER: usize = 12;

/// What there is to divide, kept up to date from one exchange of two nodes to the next.
pub(super) struct Shares<'a> {
    problem: &'a Problem<'a>,
    /// `width` channels for each way between free nodes, `[(reader * nodes + memory) * width]` by position; shorter
    /// ways end with one that all flows may use.
    ways: Vec<u32>,
    width: usize,
    /// The channels of each flow of each fixed cluster.
    fixed: Vec<Vec<Vec<u32>>>,
    /// MB/s by channel; last the one that is wide enough for all.
    capacity: Vec<f64>,
    /// By channel: flows, and the share of each.
    load: Vec<u32>,
    share: Vec<f64>,
    /// One by a number of flows.
    parts: Vec<f64>,
    /// By slot, then by fixed cluster.
    got: Vec<f64>,
    /// Channels that the last exchange touched, each time with what they were before.
    before: Vec<(u32, u32, f64)>,
    /// Channels that a look at all takes.
    looked_up: usize,
}

impl<'a> Shares<'a> {
    pub fn new(problem: &'a Problem<'a>) -> Self {
        let way = |reader: NodeId, memory: NodeId| problem.channels.way(reader, memory);
        let pairs = || {
            problem
                .nodes
                .iter()
                .flat_map(|r| problem.nodes.iter().map(|m| (*r, *m)))
        };
        let width = pairs().map(|(r, m)| way(r, m).len()).max().unwrap_or(0);
        let wide = problem.channels.capacity.len() as u32;
        let padded = |(r, m)| {
            way(r, m)
                .iter()
                .copied()
                .chain(std::iter::repeat(wide))
                .take(width)
        };
        let of = |flows: &Vec<Flow>| flows.iter().map(|f| way(f.reader, f.memory).to_vec()).collect();
        let fixed: Vec<Vec<Vec<u32>>> = problem.fixed_flows.iter().map(of).collect();
        let flows = problem.nodes.len().pow(2) + fixed.iter().map(Vec::len).sum::<usize>();
        let mut capacity = problem.channels.capacity.clone();
        capacity.push(f64::INFINITY);
        Self {
            ways: pairs().flat_map(padded).collect(),
            width,
            fixed,
            load: vec![0; capacity.len()],
            share: vec![f64::INFINITY; capacity.len()],
            capacity,
            parts: (0..=flows).map(|n| 1.0 / n as f64).collect(),
            got: Vec::new(),
            before: Vec::new(),
            looked_up: 0,
            problem,
        }
    }

    fn way(&self, reader: usize, memory: usize) -> std::ops::Range<usize> {
        let at = (reader * self.problem.nodes.len() + memory) * self.width;
        at..at + self.width
    }

    /// Counts anew.
    pub fn enter(&mut self, state: &State) {
        self.load.fill(0);
        let fixed = self.fixed.iter().flatten().flatten();
        fixed.for_each(|c| self.load[*c as usize] += 1);
        for slot in &state.slots[..self.problem.wide.len()] {
            for (i, a) in slot.iter().enumerate() {
                slot[..i].iter().for_each(|b| self.both_ways(*a, *b, 1));
            }
        }
        (0..self.problem.channels.capacity.len()).for_each(|c| self.divide(c));
        let wide = &state.slots[..self.problem.wide.len()];
        let flows: usize = wide.iter().map(|s| s.len() * (s.len() - 1)).sum();
        self.looked_up = flows * self.width + self.fixed.iter().flatten().map(Vec::len).sum::<usize>();
    }

    /// The last exchange was none.
    pub fn take_back(&mut self) {
        for (c, load, share) in self.before.drain(..).rev() {
            (self.load[c as usize], self.share[c as usize]) = (load, share);
        }
    }

    /// Two nodes have been exchanged.
    pub fn exchanged(&mut self, state: &State, a: usize, b: usize) {
        self.before.clear();
        for (came, went) in [(a, b), (b, a)] {
            let slot = state.slot(came);
            if slot == self.problem.wide.len() {
                continue;
            }
            for other in state.slots[slot].iter().filter(|n| **n != came) {
                self.both_ways(went, *other, u32::MAX);
                self.both_ways(came, *other, 1);
            }
        }
    }

    /// One flow more each way, or, by wrapping around, one less.
    fn both_ways(&mut self, a: usize, b: usize, more: u32) {
        for way in [self.way(a, b), self.way(b, a)] {
            for at in way {
                let c = self.ways[at] as usize;
                if c == self.problem.channels.capacity.len() {
                    break;
                }
                self.before.push((c as u32, self.load[c], self.share[c]));
                self.load[c] = self.load[c].wrapping_add(more);
                self.divide(c);
            }
        }
    }

    fn divide(&mut self, c: usize) {
        self.share[c] = self.capacity[c] * self.parts[self.load[c] as usize];
    }

    /// What each slot gets, and then each fixed cluster.
    pub fn got(&mut self, state: &State) -> &mut [f64] {
        let least = |least: f64, c: &u32| {
            let share = self.share[*c as usize];
            if share < least { share } else { least }
        };
        let rate = |way: &[u32]| way.iter().fold(f64::INFINITY, least);
        self.got.clear();
        for slot in &state.slots[..self.problem.wide.len()] {
            let mut sum = 0.0;
            for a in slot {
                let row = &self.ways[self.way(*a, 0).start..][..self.problem.nodes.len() * self.width];
                let others = slot.iter().filter(|b| *b != a);
                sum += others
                    .map(|b| rate(&row[b * self.width..][..self.width]))
                    .sum::<f64>();
            }
            self.got.push(sum);
        }
        let fixed = self.fixed.iter();
        self.got
            .extend(fixed.map(|flows| flows.iter().map(|w| rate(w)).sum::<f64>()));
        &mut self.got
    }

    /// What an exchange and a look at all take, in channels crossed by flows whose rates are computed.
    pub fn effort(&self) -> usize {
        10 + self.problem.wide.len() / 2 + self.looked_up / FASTER
    }
}
