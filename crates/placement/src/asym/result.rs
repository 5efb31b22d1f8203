//! The result of a search for a placement.

use super::NodePlacement;
use super::enumeration::Arrangement;
use super::node_assignment::placement;
use super::problem::Problem;
use super::set_assignment::{SetAssignments, assignment_count, least_moved_assignment};
use nodewise_machine::NodeId;
use std::cmp::Reverse;

/// Up to this number of good placements, all are compared by the memory that they move.
const MAX_COMPARED: f64 = 20_000.0;

/// How many placements exist and how many were evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Placements that differ in which nodes a cluster has: N! / (∏ n! · (N − ∑ n)!).
    pub possible: f64,
    /// The number of these whose bandwidth was computed, each of which stands for its class of equal placements.
    pub evaluated: f64,
}

impl Counts {
    pub(super) fn new(possible: f64, evaluated: usize) -> Self {
        let evaluated = (evaluated as f64).min(possible);
        Self { possible, evaluated }
    }

    /// The share of computations saved, 0 to 1 (AsymSched 4.3: 67 to 99 %). The other placements are equal to one that
    /// was computed, obviously bad, or beyond the effort.
    #[must_use]
    pub fn saved(&self) -> f64 {
        if self.possible > 0.0 {
            1.0 - self.evaluated / self.possible
        } else {
            0.0
        }
    }
}

/// The best placement found, and the other good ones.
#[derive(Debug)]
pub struct SearchResult<'a> {
    /// A placement of the highest weighted bandwidth.
    pub best: NodePlacement,
    /// P_wbw of `best`, MB/s.
    pub weighted: f64,
    /// Upper bound of P_wbw over all placements, MB/s; equal to `weighted` where the search was exact.
    pub upper_bound: f64,
    /// Whether `best` is proven optimal.
    pub exact: bool,
    /// Whether [`SearchResult::good`] yields all good placements.
    pub all_good_known: bool,
    /// How many placements exist and how many were evaluated.
    pub counts: Counts,
    pub(super) problem: Problem<'a>,
    pub(super) kept: Vec<Arrangement>,
    pub(super) keep: f64,
}

impl SearchResult<'_> {
    /// The smallest P_wbw of a good placement, MB/s: 90 % of the best by default (AsymSched 4.2, step 3).
    #[must_use]
    pub fn good_enough(&self) -> f64 {
        self.weighted * self.keep
    }

    /// Optimality gap: how far `weighted` may be below the optimum, as a share of the upper bound, 0 to 1.
    #[must_use]
    pub fn gap(&self) -> f64 {
        if self.upper_bound > 0.0 {
            1.0 - self.weighted / self.upper_bound
        } else {
            0.0
        }
    }

    /// The good placements with their P_wbw, as a lazy iterator. Single-node clusters are placed so that they move
    /// least memory. The iterator is complete if [`SearchResult::all_good_known`].
    pub fn good(&self) -> impl Iterator<Item = (NodePlacement, f64)> + '_ {
        let runs = self.problem.runs();
        let least = self.good_enough() * (1.0 - 1e-9);
        self.kept.iter().flat_map(move |arrangement| {
            let named = SetAssignments::new(runs.clone(), arrangement.sets.len());
            let objective = move |assignment: &[usize]| arrangement.objective(&self.problem, assignment);
            let good = named
                .map(move |assignment| (objective(&assignment), assignment))
                .filter(move |(w, _)| *w >= least);
            good.map(move |(objective, assignment)| {
                (placement(&self.problem, arrangement, &assignment), objective)
            })
        })
    }

    /// The good placement that moves least memory (among equals the one with the highest P_wbw), with its P_wbw. If
    /// there are too many to compare, one found by hill climbing that moves little.
    #[must_use]
    pub fn least_moved(&self) -> (NodePlacement, f64) {
        if let Some(current) = self.current() {
            return current;
        }
        let best = || (self.best.clone(), self.weighted);
        if self.best.memory_to_move(self.problem.clusters) == 0 {
            return best();
        }
        let cost = |(placement, objective): &(NodePlacement, f64)| {
            (
                placement.memory_to_move(self.problem.clusters),
                Reverse(objective.to_bits()),
            )
        };
        let least = if assignment_count(&self.problem.runs()) * self.kept.len() as f64 <= MAX_COMPARED {
            self.good().min_by_key(cost)
        } else {
            self.kept.iter().map(|a| self.little_moved(a)).min_by_key(cost)
        };
        least.unwrap_or_else(best)
    }

    pub(super) fn little_moved(&self, arrangement: &Arrangement) -> (NodePlacement, f64) {
        let assignment =
            least_moved_assignment(&self.problem, arrangement, self.good_enough() * (1.0 - 1e-9));
        let objective = arrangement.objective(&self.problem, &assignment);
        (placement(&self.problem, arrangement, &assignment), objective)
    }

    /// The current placement, if it is a good one.
    fn current(&self) -> Option<(NodePlacement, f64)> {
        let Problem {
            clusters,
            nodes,
            channels,
            ..
        } = &self.problem;
        let moving = || clusters.iter().filter(|c| !c.fixed);
        let mut taken: Vec<NodeId> = moving().flat_map(|c| c.at.iter().copied()).collect();
        taken.sort_unstable();
        let separate = taken.windows(2).all(|w| w[0] != w[1]) && taken.iter().all(|n| nodes.contains(n));
        let placement = NodePlacement::current(clusters);
        let complete = moving().all(|c| c.at.len() == c.nodes);
        let objective = super::weighted_bandwidth(channels, clusters, &placement);
        (separate && complete && objective >= self.good_enough() * (1.0 - 1e-9))
            .then_some((placement, objective))
    }
}
