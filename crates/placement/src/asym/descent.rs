//! Good placements where there are too many to look at: local search from many starts.
//!
//! What two nodes exchange with nobody else about is quickly summed, and following it leads near good
//! placements; there, each exchange of two nodes is judged by what all clusters really get.

use super::Bandwidth;
use super::enumeration::Arrangement;
use super::problem::{Problem, Set};
use super::quick::{Chance, Quick};
use super::state::State;
use std::collections::VecDeque;
use std::ops::Range;

/// Local optima of the quick sum that are followed further.
const STARTS: usize = 4;
/// What an exchange may cost when annealing begins, as a share of what a node's exchanges are worth on average.
const HOT: f64 = 0.8;
/// The same when it ends.
const COLD: f64 = 0.02;
/// What one annealing may spend on a pair of nodes.
const WALK: usize = 250;

/// One search.
pub(super) struct Descent<'a> {
    problem: &'a Problem<'a>,
    quick: Quick<'a>,
    bandwidth: Bandwidth<'a>,
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

impl<'a> Descent<'a> {
    pub fn new(problem: &'a Problem<'a>, seed: u64, effort: usize, upper_bound: f64) -> Self {
        Self {
            problem,
            quick: Quick::new(problem),
            bandwidth: Bandwidth::new(problem.channels),
            runs: problem.runs(),
            got: Vec::new(),
            chance: Chance(seed),
            effort,
            enough: upper_bound * (1.0 - 1e-9),
            computed: 0,
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
        let mut best = found[0].clone();
        let mut from = best.clone();
        while self.effort > 0 && best.0 < self.enough {
            let done = self.anneal(from);
            if done.0 > best.0 {
                best = done;
            }
            // Elsewhere there may be better ones.
            let state = self.quick.grown(2, &mut self.chance);
            from = (self.value(&state), state);
        }
        found.push(best);
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
            let mut state = self.quick.grown(nth, &mut self.chance);
            self.quick.settle(&mut state);
            // A quick sum over all pairs is not for nothing either.
            self.effort = self.effort.saturating_sub(state.owner.len().pow(2));
            let worth = self.value(&state);
            if found.iter().all(|(w, _)| *w != worth) {
                found.push((worth, state));
            }
            if worth >= self.enough || nth >= 4 && (before - self.effort > budget || self.effort == 0) {
                break;
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found
    }

    /// Exchanges nodes while that is worth it and not enough: those in the queue, and then those whose
    /// clusters have changed, each with the few partners that the quick sum likes best. What that comes to.
    fn climb(&mut self, state: &mut State, enough: f64, mut queue: VecDeque<usize>) -> f64 {
        let mut worth = self.value(state);
        let mut table = self.quick.table(state);
        let mut waits = vec![false; state.owner.len()];
        queue.iter().for_each(|node| waits[*node] = true);
        while let Some(a) = queue.pop_front() {
            waits[a] = false;
            for b in self.quick.partners(state, &table, a) {
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
                self.quick.exchanged(state, &mut table, a, b);
                let changed = [state.slot(a), state.slot(b)];
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

    /// Exchanges nodes at random, at first also where that costs something, later only where it costs ever
    /// less (simulated annealing): the best on the way, climbed to its top.
    fn anneal(&mut self, (mut worth, mut state): (f64, State)) -> (f64, State) {
        let mut best = (worth, state.clone());
        let mut table = self.quick.table(&state);
        let n = state.owner.len() as f64;
        let walk = WALK * state.owner.len().pow(2);
        let last = self.effort < 2 * walk;
        let walk = if last { self.effort * 7 / 8 } else { walk };
        let end = self.effort - walk;
        while self.effort > end && best.0 < self.enough {
            let done = 1.0 - (self.effort - end) as f64 / walk as f64;
            let heat = best.0 / n * HOT * (COLD / HOT).powf(done);
            self.effort -= 1;
            let Some((a, b)) = self.quick.likely(&state, &table, &mut self.chance) else {
                continue;
            };
            state.swap(a, b);
            let now = self.value(&state);
            if now < worth + heat * self.chance.share().ln() {
                state.swap(a, b);
                continue;
            }
            worth = now;
            self.quick.exchanged(&state, &mut table, a, b);
            if worth > best.0 {
                best = (worth, state.clone());
            }
        }
        best.0 = self.climb(&mut best.1, self.enough, (0..state.owner.len()).collect());
        best
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
            let weighed = got.iter().zip(&self.quick.weights[run.clone()]);
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
        let fixed = problem.fixed_nodes.iter().map(Vec::as_slice);
        let wide = state.names[..problem.wide.len()].iter().map(Vec::as_slice);
        let got = self.bandwidth.of(wide.chain(fixed));
        self.got.clear();
        self.got.extend_from_slice(got);
        self.computed += 1;
        self.effort = self.effort.saturating_sub(self.bandwidth.crossings() + 32);
    }
}
