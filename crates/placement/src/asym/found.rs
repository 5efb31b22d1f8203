//! What a search found.

use super::NodePlacement;
use super::enumeration::Arrangement;
use super::naming::{Names, fewest_bytes, ways};
use super::problem::Problem;
use super::seating::placement;
use nodewise_machine::NodeId;
use std::cmp::Reverse;

/// Placements that are all compared for what they move, at most.
const COMPARED: f64 = 20_000.0;

/// How many placements there are and how many were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Placements that differ in which nodes a cluster has: N! / (∏ n! · (N − ∑ n)!).
    pub possible: f64,
    /// Of these, so many had their bandwidth computed, each for its whole class of equals.
    pub evaluated: f64,
}

impl Counts {
    pub(super) fn new(possible: f64, evaluated: usize) -> Self {
        let evaluated = (evaluated as f64).min(possible);
        Self { possible, evaluated }
    }

    /// The share of computations saved, 0 to 1 (AsymSched 4.3: 67 to 99 %): the others are equal to one that was
    /// computed, obviously bad, or out of reach of the effort.
    #[must_use]
    pub fn saved(&self) -> f64 {
        if self.possible > 0.0 {
            1.0 - self.evaluated / self.possible
        } else {
            0.0
        }
    }
}

/// What a search found.
#[derive(Debug)]
pub struct Found<'a> {
    /// A placement of the highest weighted bandwidth.
    pub best: NodePlacement,
    /// Its P_wbw, MB/s.
    pub weighted: f64,
    /// What no placement exceeds; `weighted` where that is the best.
    pub upper_bound: f64,
    /// Whether none is better.
    pub exact: bool,
    /// Whether [`Found::good`] has all.
    pub all_good_known: bool,
    /// How much was looked at.
    pub counts: Counts,
    pub(super) problem: Problem<'a>,
    pub(super) kept: Vec<Arrangement>,
    pub(super) keep: f64,
}

impl Found<'_> {
    /// From this P_wbw on a placement is good enough: 90 % of the best (AsymSched 4.2, step 3).
    #[must_use]
    pub fn good_enough(&self) -> f64 {
        self.weighted * self.keep
    }

    /// How far the best may be from the best there is, as a share of the latter.
    #[must_use]
    pub fn gap(&self) -> f64 {
        if self.upper_bound > 0.0 {
            1.0 - self.weighted / self.upper_bound
        } else {
            0.0
        }
    }

    /// The good placements, each with its P_wbw, one after the other as they are asked for. Clusters of one
    /// node are where they move least; all are there if the search was exact.
    pub fn good(&self) -> impl Iterator<Item = (NodePlacement, f64)> + '_ {
        let runs = self.problem.runs();
        let least = self.good_enough() * (1.0 - 1e-9);
        self.kept.iter().flat_map(move |arrangement| {
            let named = Names::new(runs.clone(), arrangement.sets.len());
            let worth = move |names: &[usize]| arrangement.worth(&self.problem, names);
            let good = named
                .map(move |names| (worth(&names), names))
                .filter(move |(w, _)| *w >= least);
            good.map(move |(worth, names)| (placement(&self.problem, arrangement, &names), worth))
        })
    }

    /// Of the good placements the one that moves least memory, of equals the best; with its P_wbw. Where
    /// there are too many to compare, one that moves little.
    #[must_use]
    pub fn least_moved(&self) -> (NodePlacement, f64) {
        if let Some(current) = self.current() {
            return current;
        }
        let best = || (self.best.clone(), self.weighted);
        if self.best.memory_to_move(self.problem.clusters) == 0 {
            return best();
        }
        let cost = |(placement, worth): &(NodePlacement, f64)| {
            (
                placement.memory_to_move(self.problem.clusters),
                Reverse(worth.to_bits()),
            )
        };
        let least = if ways(&self.problem.runs()) * self.kept.len() as f64 <= COMPARED {
            self.good().min_by_key(cost)
        } else {
            self.kept.iter().map(|a| self.little_moved(a)).min_by_key(cost)
        };
        least.unwrap_or_else(best)
    }

    pub(super) fn little_moved(&self, arrangement: &Arrangement) -> (NodePlacement, f64) {
        let names = fewest_bytes(&self.problem, arrangement, self.good_enough() * (1.0 - 1e-9));
        let worth = arrangement.worth(&self.problem, &names);
        (placement(&self.problem, arrangement, &names), worth)
    }

    /// Where clusters are, if that is a good placement.
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
        let apart = taken.windows(2).all(|w| w[0] != w[1]) && taken.iter().all(|n| nodes.contains(n));
        let placement = NodePlacement::current(clusters);
        let whole = moving().all(|c| c.at.len() == c.nodes);
        let worth = super::weighted_bandwidth(channels, clusters, &placement);
        (apart && whole && worth >= self.good_enough() * (1.0 - 1e-9)).then_some((placement, worth))
    }
}
