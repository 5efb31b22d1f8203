//! A cheap objective for local search: the weighted sum, over all pairs of nodes in each cluster, of the bandwidth
//! between the two without contention.

use super::problem::Problem;
use super::state::State;
use crate::formulas::SplitMix;
use nodewise_machine::{Channels, Flow, NodeId};

/// A candidate exchange is the best of 1 + nodes / `NODES_PER_CANDIDATE` random partners.
const NODES_PER_CANDIDATE: usize = 8;
/// Number of partners that hill climbing tries for a node.
const MAX_PARTNERS: usize = 16;

/// A flow's contention-free rate, MB/s: the harmonic sum of its channels' capacities, so that long routes, which take
/// up more channels, count for less.
fn solo_rate(channels: &Channels, flow: &Flow) -> f64 {
    let way = channels.way(flow.reader, flow.memory).iter();
    1.0 / way.map(|c| 1.0 / channels.capacity[*c as usize]).sum::<f64>()
}

/// The pairwise sum. There is a slot for each slot of the problem, and one more for nodes that no multi-node cluster
/// has.
pub(super) struct PairwiseSum<'a> {
    problem: &'a Problem<'a>,
    /// `[a * nodes + b]`: contention-free rate between two nodes, both directions, MB/s.
    pairs: Vec<f64>,
    /// Weight of each slot's cluster; 0 for the slot of free nodes.
    pub weights: Vec<f64>,
}

impl<'a> PairwiseSum<'a> {
    pub fn new(problem: &'a Problem<'a>) -> Self {
        let nodes = &problem.nodes;
        let one_way = |reader: NodeId, memory: NodeId| match reader == memory {
            true => 0.0,
            false => solo_rate(problem.channels, &Flow { reader, memory }),
        };
        let row = |a: &NodeId| {
            let a = *a;
            nodes.iter().map(move |b| one_way(a, *b) + one_way(*b, a))
        };
        let weights = (0..problem.wide.len()).map(|s| problem.weight(s)).chain([0.0]);
        Self {
            pairs: nodes.iter().flat_map(row).collect(),
            weights: weights.collect(),
            problem,
        }
    }

    /// A greedy start: clusters grow one after the other from one node, by the node with most bandwidth to those that
    /// the cluster has. The first start (`nth` 0) begins at the best-connected node, later ones at random nodes, and
    /// from the third on clusters grow in random order.
    pub fn greedy_start(&self, nth: usize, random: &mut SplitMix) -> State {
        let n = self.problem.nodes.len();
        let mut left: Vec<usize> = (0..n).collect();
        let mut slots = vec![Vec::new(); self.problem.wide.len() + 1];
        let mut order: Vec<usize> = (0..self.problem.wide.len()).collect();
        if nth > 1 {
            for i in (1..order.len()).rev() {
                order.swap(i, random.below(i + 1));
            }
        }
        for slot in order {
            let first = match nth {
                0 => self.closest(&left, &left),
                _ => random.below(left.len()),
            };
            slots[slot].push(left.swap_remove(first));
            while slots[slot].len() < self.problem.size(slot) {
                let next = self.closest(&left, &slots[slot]);
                slots[slot].push(left.swap_remove(next));
            }
        }
        slots[self.problem.wide.len()] = left;
        State::of(slots, &self.problem.nodes)
    }

    fn closest(&self, of: &[usize], with: &[usize]) -> usize {
        let sum = |node: &usize| -> f64 { with.iter().map(|o| self.pair(*node, *o)).sum() };
        let sums: Vec<f64> = of.iter().map(sum).collect();
        (0..of.len())
            .max_by(|a, b| sums[*a].total_cmp(&sums[*b]))
            .unwrap_or(0)
    }

    fn pair(&self, a: usize, b: usize) -> f64 {
        self.pairs[a * self.problem.nodes.len() + b]
    }

    /// `[node * slots + slot]`: the bandwidth between a node and the nodes of a slot.
    pub fn gains(&self, state: &State) -> Vec<f64> {
        let of = |node: usize| {
            let slots = state.slots.iter();
            slots.map(move |members| members.iter().map(|m| self.pair(node, *m)).sum::<f64>())
        };
        (0..state.owner.len()).flat_map(of).collect()
    }

    /// The change of the pairwise sum by an exchange of two nodes.
    fn gain(&self, state: &State, gains: &[f64], a: usize, b: usize) -> f64 {
        let width = self.weights.len();
        let (s, t) = (state.slot(a), state.slot(b));
        let between = self.pair(a, b);
        self.weights[s] * (gains[b * width + s] - between - gains[a * width + s])
            + self.weights[t] * (gains[a * width + t] - between - gains[b * width + t])
    }

    /// Updates the table after two nodes were exchanged.
    pub fn exchanged(&self, state: &State, gains: &mut [f64], a: usize, b: usize) {
        let width = self.weights.len();
        let (t, s) = (state.slot(a), state.slot(b));
        for node in 0..state.owner.len() {
            let shift = self.pair(node, b) - self.pair(node, a);
            gains[node * width + s] += shift;
            gains[node * width + t] -= shift;
        }
    }

    /// Hill climbing on the pairwise sum until it grows by rounding errors only, with at most as many rounds as nodes.
    pub fn hill_climb(&self, state: &mut State) {
        let n = state.owner.len();
        let mut gains = self.gains(state);
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let least = 1e-9 * most(&self.weights) * most(&gains);
        for _ in 0..n {
            let mut grew = false;
            for a in 0..n {
                for b in a + 1..n {
                    let (s, t) = (state.slot(a), state.slot(b));
                    if s == t || self.gain(state, &gains, a, b) <= least {
                        continue;
                    }
                    state.swap(a, b);
                    grew = true;
                    self.exchanged(state, &mut gains, a, b);
                }
            }
            if !grew {
                return;
            }
        }
    }

    /// A random node and, of a few random partners, the one whose exchange adds most to the pairwise sum.
    pub fn candidate_swap(
        &self,
        state: &State,
        gains: &[f64],
        random: &mut SplitMix,
    ) -> Option<(usize, usize)> {
        let n = state.owner.len();
        let a = random.below(n);
        let s = state.slot(a);
        let others = (0..1 + n / NODES_PER_CANDIDATE).map(|_| random.below(n));
        let others =
            others.filter(|b| state.slot(*b) != s && self.weights[s] + self.weights[state.slot(*b)] > 0.0);
        let gains = others.map(|b| (self.gain(state, gains, a, b), b));
        let best = gains.max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some((a, best.1))
    }

    /// The [`MAX_PARTNERS`] nodes to exchange this one with, by descending gain of the pairwise sum.
    pub fn best_partners(&self, state: &State, gains: &[f64], a: usize) -> Vec<usize> {
        let s = state.slot(a);
        let others = (0..state.owner.len()).filter(|b| {
            let t = state.slot(*b);
            s != t && self.weights[s] + self.weights[t] > 0.0
        });
        let mut all: Vec<(f64, usize)> = others.map(|b| (self.gain(state, gains, a, b), b)).collect();
        all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        all.truncate(MAX_PARTNERS);
        all.into_iter().map(|(_, b)| b).collect()
    }
}
