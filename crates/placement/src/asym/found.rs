//! What a search found.

use super::enumeration::Arrangement;
use super::problem::{Problem, members};
use super::{Cluster, NodePlacement};
use nodewise_machine::NodeId;
use std::cmp::Reverse;

/// How many placements there are and how many were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Placements that differ in which nodes a cluster has: N! / (∏ n! · (N − ∑ n)!).
    pub possible: f64,
    /// Of these, so many had their bandwidth computed, each for its whole class of equals.
    pub evaluated: f64,
    /// The others: equal to one that was, obviously bad, or out of reach of the effort.
    pub skipped: f64,
}

impl Counts {
    pub(super) fn new(possible: f64, evaluated: usize) -> Self {
        let evaluated = (evaluated as f64).min(possible);
        Self {
            possible,
            evaluated,
            skipped: possible - evaluated,
        }
    }

    /// The share of computations saved, 0 to 1 (AsymSched 4.3: 67 to 99 %).
    #[must_use]
    pub fn saved(&self) -> f64 {
        if self.possible > 0.0 {
            self.skipped / self.possible
        } else {
            0.0
        }
    }
}

/// What a search found.
#[derive(Debug)]
pub struct Found<'a> {
    /// The placement of the highest weighted bandwidth; of equals the one that moves least memory.
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
            let worth = move |names: &[usize]| self.worth(arrangement, names);
            let good = named
                .map(move |names| (worth(&names), names))
                .filter(move |(w, _)| *w >= least);
            good.map(move |(worth, names)| (self.placement(arrangement, &names), worth))
        })
    }

    /// P_wbw where slot s has set `names[s]`.
    pub(super) fn worth(&self, arrangement: &Arrangement, names: &[usize]) -> f64 {
        let slots = names.iter().enumerate();
        arrangement.rest
            + slots
                .map(|(s, set)| self.problem.weight(s) * arrangement.bandwidth[*set])
                .sum::<f64>()
    }

    /// Of the good placements the one that moves least memory, of equals the best; with its P_wbw.
    #[must_use]
    pub fn least_moved(&self) -> (NodePlacement, f64) {
        let cost = |(placement, worth): &(NodePlacement, f64)| {
            (
                placement.memory_to_move(self.problem.clusters),
                Reverse(worth.to_bits()),
            )
        };
        let own = self.current().into_iter();
        own.chain(self.good())
            .min_by_key(cost)
            .unwrap_or_else(|| (self.best.clone(), self.weighted))
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

    /// Slot s gets set `names[s]`, narrow clusters what is left.
    pub(super) fn placement(&self, arrangement: &Arrangement, names: &[usize]) -> NodePlacement {
        placement(&self.problem, arrangement, names)
    }
}

pub(super) fn placement(problem: &Problem<'_>, arrangement: &Arrangement, names: &[usize]) -> NodePlacement {
    let clusters = problem.clusters;
    let mut places: Vec<Vec<NodeId>> = vec![Vec::new(); clusters.len()];
    for &c in &problem.fixed {
        places[c].clone_from(&clusters[c].at);
    }
    let mut left = problem.nodes.clone();
    for (slot, set) in names.iter().enumerate() {
        let nodes: Vec<NodeId> = members(arrangement.sets[*set])
            .map(|i| problem.nodes[i])
            .collect();
        left.retain(|n| !nodes.contains(n));
        let cluster = problem.wide[slot];
        places[cluster] = clusters[cluster].seated(nodes);
    }
    seat_narrow(problem, left, &mut places);
    NodePlacement { places }
}

/// Those that can stay do, of several on one node the one with most memory there.
fn seat_narrow(problem: &Problem<'_>, mut left: Vec<NodeId>, places: &mut [Vec<NodeId>]) {
    let clusters = problem.clusters;
    let here = |c: &usize| clusters[*c].at.first().copied();
    let bytes = |c: &usize| here(c).map(|n| clusters[*c].resident_on(n));
    let mut order = problem.narrow.clone();
    order.sort_by_key(|c| Reverse(bytes(c)));
    let mut moving = Vec::new();
    for c in order {
        match left.iter().position(|n| Some(*n) == here(&c)) {
            Some(at) => places[c] = vec![left.remove(at)],
            None => moving.push(c),
        }
    }
    for (c, node) in moving.into_iter().zip(left) {
        places[c] = vec![node];
    }
}

/// Every way of giving each slot a set of its size: permutations within runs, the first one in order.
struct Names {
    runs: Vec<std::ops::Range<usize>>,
    next: Option<Vec<usize>>,
}

impl Names {
    fn new(runs: Vec<std::ops::Range<usize>>, slots: usize) -> Self {
        let next = Some((0..slots).collect());
        Self { runs, next }
    }
}

impl Iterator for Names {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let names = self.next.take()?;
        let mut after = names.clone();
        let advanced = self
            .runs
            .iter()
            .any(|run| next_permutation(&mut after[run.clone()]));
        self.next = advanced.then_some(after);
        Some(names)
    }
}

/// The next in lexicographic order; the first again, and false, after the last.
fn next_permutation(names: &mut [usize]) -> bool {
    let Some(at) = (1..names.len()).rev().find(|i| names[i - 1] < names[*i]) else {
        names.reverse();
        return false;
    };
    let with = (at..names.len())
        .rev()
        .find(|i| names[*i] > names[at - 1])
        .unwrap_or(at);
    names.swap(at - 1, with);
    names[at..].reverse();
    true
}

impl Cluster {
    /// Whether it would be on other nodes there.
    #[must_use]
    pub fn moves(&self, to: &[NodeId]) -> bool {
        self.at != to
    }
}
