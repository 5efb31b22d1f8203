//! Good placements where there are too many to look at: local search from many starts.
//!
//! What two nodes exchange with nobody else about is quickly summed, and following it leads near good placements.
//! From there exchanges of two nodes are judged first by equal shares of channels, which many can be in little time,
//! and then by what all clusters really get.

use super::Bandwidth;
use super::enumeration::Arrangement;
use super::problem::{Problem, Set};
use super::quick::Quick;
use super::shares::Shares;
use super::state::State;
use crate::formulas::SplitMix;
use std::collections::VecDeque;
use std::ops::Range;

/// Local optima of the quick sum that are followed further.
const STARTS: usize = 4;
/// By equal shares, from the best so far.
const WALK: Walk = Walk {
    part: 0.3,
    hot: 0.8,
    cold: 0.02,
    real: false,
};
/// By what clusters really get, from where that led. What four walks leave climbs to the top.
const REAL_WALK: Walk = Walk {
    part: 0.15,
    hot: 0.5,
    cold: 0.02,
    real: true,
};
/// What is this much worse by equal shares, in units of heat, is not looked at closely.
const HOPELESS: f64 = 3.0;

/// An annealing.
struct Walk {
    /// Its part of the effort.
    part: f64,
    /// What an exchange may cost when it begins, as a share of what a node's exchanges are worth on average.
    hot: f64,
    /// The same when it ends.
    cold: f64,
    /// Whether what clusters really get decides, or equal shares.
    real: bool,
}

/// One search.
pub(super) struct Descent<'a> {
    problem: &'a Problem<'a>,
    quick: Quick<'a>,
    shares: Shares<'a>,
    bandwidth: Bandwidth<'a>,
    runs: Vec<Range<usize>>,
    got: Vec<f64>,
    chance: SplitMix,
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
            shares: Shares::new(problem),
            bandwidth: Bandwidth::new(problem.channels),
            runs: problem.runs(),
            got: Vec::new(),
            chance: SplitMix(seed),
            effort,
            enough: upper_bound * (1.0 - 1e-9),
            computed: 0,
        }
    }

    /// The best that the effort allows, and what it came by on the way.
    pub fn run(&mut self) -> Vec<Arrangement> {
        let mut found = self.starts();
        found.truncate(STARTS);
        let all = self.effort as f64;
        for walk in [WALK, WALK, REAL_WALK, REAL_WALK] {
            if found[0].0 >= self.enough {
                break;
            }
            let state = self.anneal(found[0].1.clone(), &walk, (all * walk.part) as usize);
            found.push((self.value(&state), state));
            found.sort_by(|a, b| b.0.total_cmp(&a.0));
        }
        let (worth, best) = &mut found[0];
        *worth = self.climb(best, self.enough, (0..best.owner.len()).collect());
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
        let budget = self.effort / 16;
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
    /// less (simulated annealing): the best on the way.
    fn anneal(&mut self, mut state: State, walk: &Walk, effort: usize) -> State {
        self.shares.enter(&state);
        let (mut near, real) = (self.nearly(&state), self.value(&state));
        let mut worth = if walk.real { real } else { near };
        let mut best = (worth, state.clone());
        let mut table = self.quick.table(&state);
        let end = self.effort.saturating_sub(effort);
        while self.effort > end && !(walk.real && best.0 >= self.enough) {
            let done = 1.0 - (self.effort - end) as f64 / effort as f64;
            let a_node = best.0 / state.owner.len() as f64;
            let heat = a_node * walk.hot * (walk.cold / walk.hot).powf(done);
            self.effort = self.effort.saturating_sub(self.shares.effort());
            let Some((a, b)) = self.quick.likely(&state, &table, &mut self.chance) else {
                continue;
            };
            state.swap(a, b);
            self.shares.exchanged(&state, a, b);
            let then = self.nearly(&state);
            let now = match walk.real {
                true if then < near - HOPELESS * heat => f64::NEG_INFINITY,
                true => self.value(&state),
                false => then,
            };
            if now < worth + heat * self.chance.share().ln() {
                state.swap(a, b);
                self.shares.take_back();
                continue;
            }
            (near, worth) = (then, now);
            self.quick.exchanged(&state, &mut table, a, b);
            if worth > best.0 {
                best = (worth, state.clone());
            }
        }
        best.1
    }

    /// P_wbw with the heaviest clusters on the widest sets.
    fn value(&mut self, state: &State) -> f64 {
        self.fill(state);
        weighed(self.problem, &self.runs, &mut self.got)
    }

    /// About the same.
    fn nearly(&mut self, state: &State) -> f64 {
        weighed(self.problem, &self.runs, self.shares.got(state))
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

/// P_wbw of what slots and then fixed clusters get, the most to the heaviest of a run.
fn weighed(problem: &Problem<'_>, runs: &[Range<usize>], got: &mut [f64]) -> f64 {
    let (wide, fixed) = got.split_at_mut(problem.wide.len());
    let fixed = problem.fixed.iter().zip(fixed);
    let mut sum: f64 = fixed.map(|(c, got)| problem.clusters[*c].weight * *got).sum();
    for run in runs {
        wide[run.clone()].sort_unstable_by(|a, b| b.total_cmp(a));
    }
    for (slot, got) in wide.iter().enumerate() {
        sum += problem.weight(slot) * got;
    }
    sum
}
