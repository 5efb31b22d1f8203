//! Good placements where there are too many to look at: local search from many starts.
//!
//! What two nodes exchange with nobody else about is quickly summed, and following it leads near good
//! placements; there, each exchange of two nodes is judged by what all clusters really get.

use super::Bandwidth;
use super::enumeration::Arrangement;
use super::problem::{Problem, Set};
use nodewise_machine::{Channels, Flow, NodeId};
use std::collections::VecDeque;
use std::ops::Range;

/// Local optima of the quick sum that are followed further.
const STARTS: usize = 4;
/// Exchanges that are judged for a node.
const PARTNERS: usize = 12;
/// How much worse than before the next place to look from may be.
const SLACK: f64 = 0.005;

/// One search. Slots are those of the problem, and one more for nodes that no wide cluster has.
pub(super) struct Descent<'a> {
    problem: &'a Problem<'a>,
    bandwidth: Bandwidth<'a>,
    /// By pair of nodes: what they get, both ways, with nobody beside them.
    pairs: Vec<f64>,
    weights: Vec<f64>,
    runs: Vec<Range<usize>>,
    got: Vec<f64>,
    chance: Chance,
    /// What may still be spent: channels crossed by flows.
    pub effort: usize,
    /// From this on nothing is better.
    enough: f64,
    /// Fillings so far.
    pub computed: usize,
}

/// What a flow gets for its share of capacity: less the more channels it takes up, which others may want.
fn spread(channels: &Channels, flow: &Flow) -> f64 {
    let way = channels.way(flow.reader, flow.memory).iter();
    1.0 / way.map(|c| 1.0 / channels.capacity[*c as usize]).sum::<f64>()
}

/// SplitMix64.
pub(super) struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(x ^ (x >> 31)) * n as u128) >> 64) as usize
    }
}

/// Who has which node, by position.
#[derive(Clone, Debug, PartialEq)]
struct State {
    slots: Vec<Vec<usize>>,
    /// The same nodes by their names.
    names: Vec<Vec<NodeId>>,
    /// By node: its slot, and its place there.
    owner: Vec<(usize, usize)>,
}

impl State {
    fn of(slots: Vec<Vec<usize>>, nodes: &[NodeId]) -> Self {
        let mut owner = vec![(0, 0); nodes.len()];
        for (slot, members) in slots.iter().enumerate() {
            for (at, node) in members.iter().enumerate() {
                owner[*node] = (slot, at);
            }
        }
        let names = slots
            .iter()
            .map(|s| s.iter().map(|i| nodes[*i]).collect())
            .collect();
        Self { slots, names, owner }
    }

    fn swap(&mut self, a: usize, b: usize) {
        let ((s, i), (t, j)) = (self.owner[a], self.owner[b]);
        let (x, y) = (self.names[s][i], self.names[t][j]);
        (self.slots[s][i], self.names[s][i]) = (b, y);
        (self.slots[t][j], self.names[t][j]) = (a, x);
        self.owner.swap(a, b);
    }
}

impl<'a> Descent<'a> {
    pub fn new(problem: &'a Problem<'a>, seed: u64, effort: usize, upper_bound: f64) -> Self {
        let nodes = &problem.nodes;
        let between = |a: &NodeId, b: &NodeId| {
            let one = |reader: &NodeId, memory: &NodeId| Flow {
                reader: *reader,
                memory: *memory,
            };
            let rate = |flow: Flow| {
                if a == b {
                    0.0
                } else {
                    spread(problem.channels, &flow)
                }
            };
            rate(one(a, b)) + rate(one(b, a))
        };
        let weights = (0..problem.wide.len()).map(|s| problem.weight(s)).chain([0.0]);
        Self {
            pairs: nodes
                .iter()
                .flat_map(|a| nodes.iter().map(move |b| between(a, b)))
                .collect(),
            bandwidth: Bandwidth::new(problem.channels),
            weights: weights.collect(),
            runs: problem.runs(),
            got: Vec::new(),
            chance: Chance(seed),
            effort,
            enough: upper_bound * (1.0 - 1e-9),
            computed: 0,
            problem,
        }
    }

    /// The best that the effort allows, and what it came by on the way.
    pub fn run(&mut self) -> Vec<Arrangement> {
        let mut found = self.starts();
        found.truncate(STARTS);
        for (worth, state) in &mut found {
            *worth = self.climb(state, self.enough, (0..state.owner.len()).collect());
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let (mut most, mut best) = found[0].clone();
        let (mut now, mut state) = (most, best.clone());
        while self.effort > 0 && most < self.enough {
            let mut next = state.clone();
            let shaken = self.shake(&mut next);
            let worth = self.climb(&mut next, self.enough, shaken);
            if worth > now * (1.0 - SLACK) {
                (now, state) = (worth, next);
            }
            if now > most {
                (most, best) = (now, state.clone());
            } else if now < most * (1.0 - 4.0 * SLACK) {
                (now, state) = (most, best.clone());
            }
        }
        found.push((most, best));
        found.iter().map(|(_, state)| self.arrangement(state)).collect()
    }

    /// From where clusters are, if they are on free nodes of their own, as few exchanges as it finds until
    /// this much is reached.
    pub fn near(&mut self, enough: f64) -> Option<Arrangement> {
        let n = self.problem.nodes.len();
        let mut left: Vec<usize> = (0..n).collect();
        let mut slots = Vec::new();
        for (slot, cluster) in self.problem.wide.iter().enumerate() {
            let mut slots_nodes = Vec::new();
            for node in &self.problem.clusters[*cluster].at {
                let at = left.iter().position(|i| self.problem.nodes[*i] == *node)?;
                slots_nodes.push(left.swap_remove(at));
            }
            (slots_nodes.len() == self.problem.size(slot)).then(|| slots.push(slots_nodes))?;
        }
        slots.push(left);
        let mut state = State::of(slots, &self.problem.nodes);
        self.effort = self.effort.max(n * n * 20);
        self.climb(&mut state, enough, (0..n).collect());
        Some(self.arrangement(&state))
    }

    /// Local optima of the quick sum, the best by what clusters really get first.
    fn starts(&mut self) -> Vec<(f64, State)> {
        let budget = self.effort / 4;
        let before = self.effort;
        let mut found: Vec<(f64, State)> = Vec::new();
        for nth in 0.. {
            let mut state = self.grown(nth);
            self.settle(&mut state);
            // A quick sum over all pairs is not for nothing either.
            self.effort = self.effort.saturating_sub(state.owner.len().pow(2));
            let worth = self.value(&state);
            if found.iter().all(|(w, _)| *w != worth) {
                found.push((worth, state));
            }
            if worth >= self.enough || nth >= 4 && before - self.effort > budget {
                break;
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found
    }

    /// Clusters grown one after the other from a node, each time by the one that exchanges most with those
    /// there; the first time from the best nodes, later from any.
    fn grown(&mut self, nth: usize) -> State {
        let n = self.problem.nodes.len();
        let mut left: Vec<usize> = (0..n).collect();
        let mut slots = vec![Vec::new(); self.problem.wide.len() + 1];
        let mut order: Vec<usize> = (0..self.problem.wide.len()).collect();
        if nth > 1 {
            for i in (1..order.len()).rev() {
                order.swap(i, self.chance.below(i + 1));
            }
        }
        for slot in order {
            let first = match nth {
                0 => self.widest(&left, &left),
                _ => self.chance.below(left.len()),
            };
            slots[slot].push(left.swap_remove(first));
            while slots[slot].len() < self.problem.size(slot) {
                let next = self.widest(&left, &slots[slot]);
                slots[slot].push(left.swap_remove(next));
            }
        }
        slots[self.problem.wide.len()] = left;
        State::of(slots, &self.problem.nodes)
    }

    fn widest(&self, of: &[usize], with: &[usize]) -> usize {
        let sum = |node: &usize| -> f64 { with.iter().map(|o| self.pair(*node, *o)).sum() };
        let sums: Vec<f64> = of.iter().map(sum).collect();
        (0..of.len())
            .max_by(|a, b| sums[*a].total_cmp(&sums[*b]))
            .unwrap_or(0)
    }

    fn pair(&self, a: usize, b: usize) -> f64 {
        self.pairs[a * self.problem.nodes.len() + b]
    }

    /// By node and slot: what it exchanges with the nodes there, alone.
    fn table(&self, state: &State) -> Vec<f64> {
        let of = |node: usize| {
            let slots = state.slots.iter();
            slots.map(move |members| members.iter().map(|m| self.pair(node, *m)).sum::<f64>())
        };
        (0..state.owner.len()).flat_map(of).collect()
    }

    /// What exchanging two nodes adds to the quick sum.
    fn quick_gain(&self, state: &State, table: &[f64], a: usize, b: usize) -> f64 {
        let width = self.weights.len();
        let (s, t) = (state.owner[a].0, state.owner[b].0);
        let between = self.pair(a, b);
        self.weights[s] * (table[b * width + s] - between - table[a * width + s])
            + self.weights[t] * (table[a * width + t] - between - table[b * width + t])
    }

    /// Two nodes have been exchanged: the table follows.
    fn exchanged(&self, state: &State, table: &mut [f64], a: usize, b: usize) {
        let width = self.weights.len();
        let (t, s) = (state.owner[a].0, state.owner[b].0);
        for node in 0..state.owner.len() {
            let shift = self.pair(node, b) - self.pair(node, a);
            table[node * width + s] += shift;
            table[node * width + t] -= shift;
        }
    }

    /// Exchanges nodes while the quick sum grows.
    fn settle(&self, state: &mut State) {
        let n = state.owner.len();
        let mut table = self.table(state);
        loop {
            let mut grew = false;
            for a in 0..n {
                for b in a + 1..n {
                    let (s, t) = (state.owner[a].0, state.owner[b].0);
                    if s == t || self.quick_gain(state, &table, a, b) <= 1e-6 {
                        continue;
                    }
                    state.swap(a, b);
                    grew = true;
                    self.exchanged(state, &mut table, a, b);
                }
            }
            if !grew {
                return;
            }
        }
    }

    /// Exchanges nodes while that is worth it and not enough: those in the queue, and then those whose
    /// clusters have changed, each with the few partners that the quick sum likes best. What that comes to.
    fn climb(&mut self, state: &mut State, enough: f64, mut queue: VecDeque<usize>) -> f64 {
        let mut worth = self.value(state);
        let mut table = self.table(state);
        let mut waits = vec![false; state.owner.len()];
        queue.iter().for_each(|node| waits[*node] = true);
        while let Some(a) = queue.pop_front() {
            waits[a] = false;
            for b in self.partners(state, &table, a) {
                if self.effort == 0 || worth >= enough {
                    return worth;
                }
                state.swap(a, b);
                let now = self.value(state);
                if now <= worth * (1.0 + 1e-12) {
                    state.swap(a, b);
                    continue;
                }
                worth = now;
                self.exchanged(state, &mut table, a, b);
                let changed = [state.owner[a].0, state.owner[b].0];
                let wide = changed.iter().filter(|s| **s < self.problem.wide.len());
                for node in wide.flat_map(|s| &state.slots[*s]).chain([&a, &b]) {
                    if !std::mem::replace(&mut waits[*node], true) {
                        queue.push_back(*node);
                    }
                }
                break;
            }
        }
        worth
    }

    /// Nodes to exchange this one with, the best by the quick sum first.
    fn partners(&self, state: &State, table: &[f64], a: usize) -> Vec<usize> {
        let s = state.owner[a].0;
        let others = (0..state.owner.len()).filter(|b| {
            let t = state.owner[*b].0;
            s != t && self.weights[s] + self.weights[t] > 0.0
        });
        let mut all: Vec<(f64, usize)> = others.map(|b| (self.quick_gain(state, table, a, b), b)).collect();
        all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        all.truncate(PARTNERS);
        all.into_iter().map(|(_, b)| b).collect()
    }

    /// A few nodes exchanged at random: which.
    fn shake(&mut self, state: &mut State) -> VecDeque<usize> {
        let n = state.owner.len();
        let mut shaken = VecDeque::new();
        for _ in 0..2 + self.chance.below(2) {
            let (a, b) = (self.chance.below(n), self.chance.below(n));
            if state.owner[a].0 != state.owner[b].0 {
                state.swap(a, b);
                shaken.extend([a, b]);
            }
        }
        shaken
    }

    /// P_wbw with the heaviest clusters on the widest sets.
    fn value(&mut self, state: &State) -> f64 {
        self.fill(state);
        let problem = self.problem;
        let mut sum = 0.0;
        for (at, fixed) in problem.fixed.iter().enumerate() {
            sum += problem.clusters[*fixed].weight * self.got[problem.wide.len() + at];
        }
        for run in &self.runs {
            let got = &mut self.got[run.clone()];
            got.sort_unstable_by(|a, b| b.total_cmp(a));
            let weighed = got.iter().zip(&self.weights[run.clone()]);
            sum += weighed.map(|(b, w)| b * w).sum::<f64>();
        }
        sum
    }

    fn arrangement(&mut self, state: &State) -> Arrangement {
        self.fill(state);
        let wide = &state.slots[..self.problem.wide.len()];
        let sets: Vec<Set> = wide.iter().map(|s| s.iter().map(|i| 1 << i).sum()).collect();
        Arrangement::new(self.problem, &sets, &self.got)
    }

    /// What each slot, and then each fixed cluster, gets.
    fn fill(&mut self, state: &State) {
        let problem = self.problem;
        let fixed = problem.fixed.iter().map(|c| problem.clusters[*c].at.as_slice());
        let wide = state.names[..problem.wide.len()].iter().map(Vec::as_slice);
        let got = self.bandwidth.of(wide.chain(fixed));
        self.got.clear();
        self.got.extend_from_slice(got);
        self.computed += 1;
        self.effort = self.effort.saturating_sub(self.bandwidth.crossings() + 32);
    }
}
