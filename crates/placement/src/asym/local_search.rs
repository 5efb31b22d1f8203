//! Local search where there are too many placements to enumerate.
//!
//! Neighbouring placements differ by an exchange of two nodes. Hill climbing on a cheap objective, the sum of pairwise
//! bandwidths without contention ([`PairwiseSum`]), gives several local optima. The best is improved by simulated
//! annealing, first on an approximation that divides channels equally ([`EqualShares`]), then on the max-min fair
//! bandwidth, and finally by hill climbing on the latter.

use super::Bandwidth;
use super::enumeration::Arrangement;
use super::equal_shares::EqualShares;
use super::pairwise::PairwiseSum;
use super::problem::{Problem, Set};
use super::state::State;
use crate::formulas::SplitMix;
use std::collections::VecDeque;
use std::ops::Range;

/// Local optima of the pairwise sum that are kept.
const STARTS: usize = 4;
/// Simulated annealing on the equal-shares approximation, from the best placement so far.
const ANNEALING: Annealing = Annealing {
    effort_share: 0.3,
    start_temperature: 0.8,
    end_temperature: 0.02,
    exact: false,
};
/// Simulated annealing on the max-min fair bandwidth, from the best placement so far. The rest of the effort is for
/// hill climbing.
const EXACT_ANNEALING: Annealing = Annealing {
    effort_share: 0.15,
    start_temperature: 0.5,
    end_temperature: 0.02,
    exact: true,
};
/// An exchange that loses more than this by equal shares, in units of temperature, is rejected without computing the
/// max-min fair bandwidth.
const REJECTION_MARGIN: f64 = 3.0;

/// The schedule of a simulated annealing; the temperature falls geometrically.
struct Annealing {
    /// Share of the whole effort that it may spend, 0 to 1.
    effort_share: f64,
    /// Temperature at the start, as a share of the objective per node.
    start_temperature: f64,
    /// Temperature at the end, in the same unit.
    end_temperature: f64,
    /// Whether the objective is the max-min fair bandwidth; otherwise it is the equal-shares approximation.
    exact: bool,
}

/// State of one search.
pub(super) struct LocalSearch<'a> {
    problem: &'a Problem<'a>,
    pairwise: PairwiseSum<'a>,
    equal_shares: EqualShares<'a>,
    bandwidth: Bandwidth<'a>,
    runs: Vec<Range<usize>>,
    bandwidths: Vec<f64>,
    random: SplitMix,
    /// Effort left, in channels crossed by flows.
    pub effort: usize,
    /// The search stops at this objective: the upper bound, with a margin for rounding.
    enough: f64,
    /// Placements whose max-min fair bandwidth was computed.
    pub computed: usize,
}

impl<'a> LocalSearch<'a> {
    pub fn new(problem: &'a Problem<'a>, seed: u64, effort: usize, upper_bound: f64) -> Self {
        Self {
            problem,
            pairwise: PairwiseSum::new(problem),
            equal_shares: EqualShares::new(problem),
            bandwidth: Bandwidth::new(problem.channels),
            runs: problem.runs(),
            bandwidths: Vec::new(),
            random: SplitMix(seed),
            effort,
            enough: upper_bound * (1.0 - 1e-9),
            computed: 0,
        }
    }

    /// Runs the search: the best placement found first, then other candidates met on the way.
    pub fn run(&mut self) -> Vec<Arrangement> {
        let mut found = self.local_optima();
        found.truncate(STARTS);
        let all = self.effort as f64;
        for schedule in [ANNEALING, ANNEALING, EXACT_ANNEALING, EXACT_ANNEALING] {
            if found[0].0 >= self.enough {
                break;
            }
            let state = self.anneal(
                found[0].1.clone(),
                &schedule,
                (all * schedule.effort_share) as usize,
            );
            found.push((self.value(&state), state));
            found.sort_by(|a, b| b.0.total_cmp(&a.0));
        }
        let (objective, best) = &mut found[0];
        *objective = self.climb(best, self.enough, (0..best.owner.len()).collect());
        found.iter().map(|(_, state)| self.arrangement(state)).collect()
    }

    /// Hill climbing from the current placement until the objective is `enough`; `None` if clusters are not on distinct
    /// free nodes now. Finds placements that move little memory.
    pub fn near_current(&mut self, enough: f64) -> Option<Arrangement> {
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

    /// Local optima of the pairwise sum, by descending max-min fair objective.
    fn local_optima(&mut self) -> Vec<(f64, State)> {
        let budget = self.effort / 16;
        let before = self.effort;
        let mut found: Vec<(f64, State)> = Vec::new();
        for nth in 0.. {
            let mut state = self.pairwise.greedy_start(nth, &mut self.random);
            self.pairwise.hill_climb(&mut state);
            // The sum over all pairs counts towards the effort, too.
            self.effort = self.effort.saturating_sub(state.owner.len().pow(2));
            let objective = self.value(&state);
            if found.iter().all(|(w, _)| *w != objective) {
                found.push((objective, state));
            }
            if objective >= self.enough || nth >= 4 && (before - self.effort > budget || self.effort == 0) {
                break;
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found
    }

    /// Hill climbing: tries to exchange each queued node with its best partners by the pairwise sum, and queues the nodes
    /// of clusters that changed. Stops at `enough`; returns the objective.
    fn climb(&mut self, state: &mut State, enough: f64, mut queue: VecDeque<usize>) -> f64 {
        let mut objective = self.value(state);
        let mut gains = self.pairwise.gains(state);
        let mut waits = vec![false; state.owner.len()];
        queue.iter().for_each(|node| waits[*node] = true);
        while let Some(a) = queue.pop_front() {
            waits[a] = false;
            for b in self.pairwise.best_partners(state, &gains, a) {
                if self.effort == 0 || objective >= enough {
                    return objective;
                }
                state.swap(a, b);
                let now = self.value(state);
                if now <= objective * (1.0 + 1e-12) {
                    state.swap(a, b);
                    continue;
                }
                objective = now;
                self.pairwise.exchanged(state, &mut gains, a, b);
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
        objective
    }

    /// Simulated annealing (Metropolis acceptance); returns the best placement met.
    fn anneal(&mut self, mut state: State, schedule: &Annealing, effort: usize) -> State {
        self.equal_shares.reset(&state);
        let (mut approximate, exact) = (self.approximate(&state), self.value(&state));
        let mut objective = if schedule.exact { exact } else { approximate };
        let mut best = (objective, state.clone());
        let mut gains = self.pairwise.gains(&state);
        let end = self.effort.saturating_sub(effort);
        while self.effort > end && !(schedule.exact && best.0 >= self.enough) {
            let done = 1.0 - (self.effort - end) as f64 / effort as f64;
            let a_node = best.0 / state.owner.len() as f64;
            let temperature = a_node
                * schedule.start_temperature
                * (schedule.end_temperature / schedule.start_temperature).powf(done);
            self.effort = self.effort.saturating_sub(self.equal_shares.effort());
            let Some((a, b)) = self.pairwise.candidate_swap(&state, &gains, &mut self.random) else {
                continue;
            };
            state.swap(a, b);
            self.equal_shares.exchanged(&state, a, b);
            let then = self.approximate(&state);
            let now = match schedule.exact {
                true if then < approximate - REJECTION_MARGIN * temperature => f64::NEG_INFINITY,
                true => self.value(&state),
                false => then,
            };
            if now < objective + temperature * self.random.share().ln() {
                state.swap(a, b);
                self.equal_shares.undo();
                continue;
            }
            (approximate, objective) = (then, now);
            self.pairwise.exchanged(&state, &mut gains, a, b);
            if objective > best.0 {
                best = (objective, state.clone());
            }
        }
        best.1
    }

    /// The objective: P_wbw with the heaviest clusters on the sets of most bandwidth, MB/s.
    fn value(&mut self, state: &State) -> f64 {
        self.compute_bandwidths(state);
        weighed(self.problem, &self.runs, &mut self.bandwidths)
    }

    /// The objective by the equal-shares approximation, MB/s.
    fn approximate(&mut self, state: &State) -> f64 {
        weighed(self.problem, &self.runs, self.equal_shares.bandwidths(state))
    }

    fn arrangement(&mut self, state: &State) -> Arrangement {
        self.compute_bandwidths(state);
        let wide = &state.slots[..self.problem.wide.len()];
        let sets: Vec<Set> = wide.iter().map(|s| s.iter().map(|i| 1 << i).sum()).collect();
        Arrangement::new(self.problem, &sets, &self.bandwidths)
    }

    /// Computes the max-min fair bandwidth of each slot, then of each fixed cluster.
    fn compute_bandwidths(&mut self, state: &State) {
        let problem = self.problem;
        let fixed = problem.fixed_nodes.iter().map(Vec::as_slice);
        let wide = state.nodes[..problem.wide.len()].iter().map(Vec::as_slice);
        let bandwidths = self.bandwidth.of(wide.chain(fixed));
        self.bandwidths.clear();
        self.bandwidths.extend_from_slice(bandwidths);
        self.computed += 1;
        self.effort = self.effort.saturating_sub(self.bandwidth.crossings() + 32);
    }
}

/// P_wbw of these bandwidths of slots and then fixed clusters; within a run the largest goes to the heaviest cluster.
fn weighed(problem: &Problem<'_>, runs: &[Range<usize>], bandwidths: &mut [f64]) -> f64 {
    let (wide, fixed) = bandwidths.split_at_mut(problem.wide.len());
    let fixed = problem.fixed.iter().zip(fixed);
    let mut sum: f64 = fixed
        .map(|(c, bandwidths)| problem.clusters[*c].weight * *bandwidths)
        .sum();
    for run in runs {
        wide[run.clone()].sort_unstable_by(|a, b| b.total_cmp(a));
    }
    for (slot, bandwidths) in wide.iter().enumerate() {
        sum += problem.weight(slot) * bandwidths;
    }
    sum
}
