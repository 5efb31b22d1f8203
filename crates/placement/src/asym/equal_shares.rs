//! Approximate bandwidth of clusters: every channel is divided equally among the flows that cross it. Close to max-min
//! fair rates, and an order of magnitude faster to update.
//!
//! The equal share of the narrowest channel on its route is a lower bound of a flow's max-min fair rate.

use super::problem::Problem;
use super::state::State;
use nodewise_machine::{Flow, NodeId};

/// Number of channel look-ups here that take as long as one channel crossing of the max-min fair computation; converts
/// effort.
const LOOKUPS_PER_CROSSING: usize = 12;

/// Load and share of every channel, updated incrementally as nodes are exchanged.
pub(super) struct EqualShares<'a> {
    problem: &'a Problem<'a>,
    /// `width` channels for each route between free nodes, `[(reader * nodes + memory) * width]` by position; shorter
    /// routes are padded with a channel that never limits.
    assignment_count: Vec<u32>,
    width: usize,
    /// The channels of each flow of each fixed cluster.
    fixed: Vec<Vec<Vec<u32>>>,
    /// MB/s by channel; the last one is the padding channel, wide enough for all flows.
    capacity: Vec<f64>,
    /// Number of flows by channel; `share` is the rate of each, MB/s.
    load: Vec<u32>,
    share: Vec<f64>,
    /// 1 / n for each number of flows n.
    parts: Vec<f64>,
    /// MB/s by slot, then by fixed cluster.
    bandwidths: Vec<f64>,
    /// Channels that the last exchange changed, with their load and share before.
    before: Vec<(u32, u32, f64)>,
    /// Channel look-ups that one evaluation takes.
    looked_up: usize,
}

impl<'a> EqualShares<'a> {
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
            assignment_count: pairs().flat_map(padded).collect(),
            width,
            fixed,
            load: vec![0; capacity.len()],
            share: vec![f64::INFINITY; capacity.len()],
            capacity,
            parts: (0..=flows).map(|n| 1.0 / n as f64).collect(),
            bandwidths: Vec::new(),
            before: Vec::new(),
            looked_up: 0,
            problem,
        }
    }

    fn way(&self, reader: usize, memory: usize) -> std::ops::Range<usize> {
        let at = (reader * self.problem.nodes.len() + memory) * self.width;
        at..at + self.width
    }

    /// Counts the flows of a placement from scratch.
    pub fn reset(&mut self, state: &State) {
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

    /// Undoes the last exchange.
    pub fn undo(&mut self) {
        for (c, load, share) in self.before.drain(..).rev() {
            (self.load[c as usize], self.share[c as usize]) = (load, share);
        }
    }

    /// Updates loads after two nodes were exchanged.
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

    /// Adds `more` flows in each direction; `u32::MAX` (wrapping) removes one.
    fn both_ways(&mut self, a: usize, b: usize, more: u32) {
        for way in [self.way(a, b), self.way(b, a)] {
            for at in way {
                let c = self.assignment_count[at] as usize;
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

    /// Approximate bandwidth of each slot, then of each fixed cluster, MB/s.
    pub fn bandwidths(&mut self, state: &State) -> &mut [f64] {
        let least = |least: f64, c: &u32| {
            let share = self.share[*c as usize];
            if share < least { share } else { least }
        };
        let rate = |way: &[u32]| way.iter().fold(f64::INFINITY, least);
        self.bandwidths.clear();
        for slot in &state.slots[..self.problem.wide.len()] {
            let mut sum = 0.0;
            for a in slot {
                let row =
                    &self.assignment_count[self.way(*a, 0).start..][..self.problem.nodes.len() * self.width];
                let others = slot.iter().filter(|b| *b != a);
                sum += others
                    .map(|b| rate(&row[b * self.width..][..self.width]))
                    .sum::<f64>();
            }
            self.bandwidths.push(sum);
        }
        let fixed = self.fixed.iter();
        self.bandwidths
            .extend(fixed.map(|flows| flows.iter().map(|w| rate(w)).sum::<f64>()));
        &mut self.bandwidths
    }

    /// Cost of one exchange and one evaluation, in channels crossed by flows (the unit of effort).
    pub fn effort(&self) -> usize {
        10 + self.problem.wide.len() / 2 + self.looked_up / LOOKUPS_PER_CROSSING
    }
}
