//! Branch and bound over all placements that may be among the best ones.
//!
//! Bandwidth depends on the sets of nodes, not on which of equally large clusters has which set. So sets are
//! enumerated by descending bound, and assigned to clusters afterwards, the set of most bandwidth to the heaviest.

use super::bound::{self, Bound};
use super::equivalence::Classes;
use super::problem::{Problem, Set};
use std::ops::Range;

/// Node sets for all multi-node clusters, and their bandwidth.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Arrangement {
    /// By slot; sets of equally large clusters may be exchanged.
    pub sets: Vec<Set>,
    /// C_bw of each set.
    pub bandwidth: Vec<f64>,
    /// Weighted bandwidth of fixed clusters.
    pub rest: f64,
    /// P_wbw when the heaviest clusters have the sets of most bandwidth.
    pub weighted: f64,
}

impl Arrangement {
    /// Sorts the sets of each run by bandwidth, as the run's clusters are sorted by weight: no other assignment has a
    /// higher objective.
    pub fn new(problem: &Problem<'_>, sets: &[Set], bandwidth: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..sets.len()).collect();
        for run in problem.runs() {
            order[run].sort_by(|a, b| bandwidth[*b].total_cmp(&bandwidth[*a]));
        }
        let fixed = problem.fixed.iter().zip(&bandwidth[sets.len()..]);
        let rest: f64 = fixed.map(|(c, b)| problem.clusters[*c].weight * b).sum();
        let sorted: Vec<f64> = order.iter().map(|s| bandwidth[*s]).collect();
        let wide: f64 = sorted
            .iter()
            .enumerate()
            .map(|(slot, b)| problem.weight(slot) * b)
            .sum();
        Self {
            sets: order.iter().map(|s| sets[*s]).collect(),
            bandwidth: sorted,
            rest,
            weighted: wide + rest,
        }
    }

    /// P_wbw where slot s has set `assignment[s]`, MB/s.
    pub fn objective(&self, problem: &Problem<'_>, assignment: &[usize]) -> f64 {
        let slots = assignment.iter().enumerate();
        self.rest
            + slots
                .map(|(slot, set)| problem.weight(slot) * self.bandwidth[*set])
                .sum::<f64>()
    }
}

/// State of a branch and bound.
pub(super) struct Enumeration<'a> {
    problem: &'a Problem<'a>,
    classes: Classes<'a>,
    bound: Bound<'a>,
    /// By run: sets of its size, each with its bound, the highest first.
    candidates: Vec<Vec<(f64, Set)>>,
    runs: Vec<Range<usize>>,
    /// By slot: the most that all slots after its run can add.
    beyond: Vec<f64>,
    fixed: f64,
    /// Placements are kept if their objective is at least this share of the best, 0 to 1.
    keep: f64,
    best: f64,
    kept: Vec<Arrangement>,
    sets: Vec<Set>,
    bandwidth: Vec<f64>,
    /// Number of branches that may still be taken.
    effort: usize,
}

/// The result of a branch and bound.
pub(super) struct Enumerated {
    /// Arrangements within `keep` of the best; the known ones given at the start included.
    pub kept: Vec<Arrangement>,
    /// Whether all arrangements that were asked for were found.
    pub complete: bool,
    /// Classes whose bandwidth was computed.
    pub computed: usize,
}

impl<'a> Enumeration<'a> {
    /// `None` if there are too many sets of the clusters' sizes.
    pub fn new(problem: &'a Problem<'a>, most_sets: f64) -> Option<Self> {
        let runs = problem.runs();
        let nodes = problem.nodes.len();
        let sizes = runs.iter().map(|r| problem.size(r.start));
        if sizes
            .clone()
            .any(|size| super::problem::choose(nodes, size) > most_sets)
        {
            return None;
        }
        let mut bound = Bound::new(problem.channels);
        let candidates: Vec<_> = sizes.map(|size| candidates(problem, size, &mut bound)).collect();
        let mut beyond = vec![0.0; problem.wide.len()];
        let mut sum = 0.0;
        for (run, candidates) in runs.iter().zip(&candidates).rev() {
            beyond[run.clone()].fill(sum);
            let highest = candidates.first().map_or(0.0, |c| c.0);
            sum += run
                .clone()
                .map(|slot| problem.weight(slot) * highest)
                .sum::<f64>();
        }
        Some(Self {
            fixed: bound::fixed(problem, &mut bound),
            bound,
            classes: Classes::new(problem),
            candidates,
            runs,
            beyond,
            problem,
            keep: 1.0,
            best: 0.0,
            kept: Vec::new(),
            sets: Vec::new(),
            bandwidth: Vec::new(),
            effort: 0,
        })
    }

    /// Enumerates everything that reaches `keep` of the best, in at most `effort` branches. With `keep` 1, only
    /// arrangements better than all `known` ones.
    pub fn run(mut self, keep: f64, known: Vec<Arrangement>, effort: usize) -> Enumerated {
        (self.keep, self.effort) = (keep, effort);
        self.best = known.iter().map(|a| a.weighted).fold(0.0, f64::max);
        self.kept = known;
        let complete = self.descend(0, 0, 0, self.fixed);
        Enumerated {
            kept: self.kept,
            complete,
            computed: self.classes.computed(),
        }
    }

    /// The objective that an arrangement must reach to be kept, with a margin for rounding.
    fn threshold(&self) -> f64 {
        self.best * self.keep * (1.0 - 1e-9)
    }

    /// Whether a branch with this bound must be followed; with `keep` 1, only if it may be better than the best.
    fn promises(&self, bound: f64) -> bool {
        if self.keep < 1.0 {
            bound >= self.threshold()
        } else {
            self.kept.is_empty() || bound > self.best * (1.0 + 1e-9)
        }
    }

    /// Enumerates sets for this slot and all after it; false once the effort is spent.
    fn descend(&mut self, slot: usize, from: usize, taken: Set, bound: f64) -> bool {
        let Some(run) = self.runs.iter().position(|r| r.contains(&slot)) else {
            self.take();
            return true;
        };
        let weights: f64 = (slot..self.runs[run].end).map(|s| self.problem.weight(s)).sum();
        for index in from..self.candidates[run].len() {
            let (highest, set) = self.candidates[run][index];
            // Later sets of this run have no higher bounds.
            if !self.promises(bound + weights * highest + self.beyond[slot]) {
                return true;
            }
            if set & taken != 0 {
                continue;
            }
            if self.effort == 0 {
                return false;
            }
            self.effort -= 1;
            self.sets.push(set);
            let next = if slot + 1 == self.runs[run].end {
                0
            } else {
                index + 1
            };
            let added = bound + self.problem.weight(slot) * highest;
            let went = self.descend(slot + 1, next, taken | set, added);
            self.sets.pop();
            if !went {
                return false;
            }
        }
        true
    }

    /// Upper bound of P_wbw for the chosen sets and the fixed clusters together; each set counts with the heaviest weight
    /// of its run, since sets are not assigned yet.
    fn together(&mut self) -> f64 {
        let problem = self.problem;
        let heaviest = self
            .runs
            .iter()
            .flat_map(|r| r.clone().map(|_| problem.weight(r.start)));
        let each = self.sets.iter().zip(heaviest);
        let flows = each.flat_map(|(set, weight)| problem.flows_of(*set).map(move |f| (f, weight)));
        self.bound.of(flows.chain(bound::fixed_flows(problem)))
    }

    /// Evaluates the chosen sets once all slots have one.
    fn take(&mut self) {
        let highest = self.together();
        if !self.promises(highest) {
            return;
        }
        let mut bandwidth = std::mem::take(&mut self.bandwidth);
        self.classes.bandwidth(&self.sets, &mut bandwidth);
        let found = Arrangement::new(self.problem, &self.sets, &bandwidth);
        self.bandwidth = bandwidth;
        if self.promises(found.weighted) {
            self.best = self.best.max(found.weighted);
            self.kept.push(found);
        }
    }
}

/// All node sets of a size with their bounds, by descending bound.
fn candidates(problem: &Problem<'_>, size: usize, bound: &mut Bound<'_>) -> Vec<(f64, Set)> {
    let mut all = Vec::new();
    sets(problem.nodes.len(), size, 0, 0, &mut |set| {
        let flows = problem.flows_of(set).map(|f| (f, 1.0));
        all.push((bound.of(flows), set));
    });
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all
}

fn sets(nodes: usize, size: usize, from: usize, set: Set, each: &mut dyn FnMut(Set)) {
    if size == 0 {
        return each(set);
    }
    for node in from..=nodes - size {
        sets(nodes, size - 1, node + 1, set | 1 << node, each);
    }
}
