//! The quick sum: what the nodes of each cluster could exchange if nobody else were about.

use super::problem::Problem;
use super::state::State;
use crate::formulas::SplitMix;
use nodewise_machine::{Channels, Flow, NodeId};

/// One in so many nodes is looked at for an exchange.
const RIVALS: usize = 8;
/// Exchanges that are judged for a node.
const PARTNERS: usize = 16;

/// What a flow gets for its share of capacity: less the more channels it takes up, which others may want.
fn spread(channels: &Channels, flow: &Flow) -> f64 {
    let way = channels.way(flow.reader, flow.memory).iter();
    1.0 / way.map(|c| 1.0 / channels.capacity[*c as usize]).sum::<f64>()
}

/// What there is to sum. Slots are those of the problem, and one more for nodes that no wide cluster has.
pub(super) struct Quick<'a> {
    problem: &'a Problem<'a>,
    /// By pair of nodes: what they exchange, both ways.
    pairs: Vec<f64>,
    /// By slot.
    pub weights: Vec<f64>,
}

impl<'a> Quick<'a> {
    pub fn new(problem: &'a Problem<'a>) -> Self {
        let nodes = &problem.nodes;
        let one_way = |reader: NodeId, memory: NodeId| match reader == memory {
            true => 0.0,
            false => spread(problem.channels, &Flow { reader, memory }),
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

    /// Clusters grown one after the other from a node, each time by the one that exchanges most with those
    /// there; the first time from the best nodes, later from any.
    pub fn grown(&self, nth: usize, chance: &mut SplitMix) -> State {
        let n = self.problem.nodes.len();
        let mut left: Vec<usize> = (0..n).collect();
        let mut slots = vec![Vec::new(); self.problem.wide.len() + 1];
        let mut order: Vec<usize> = (0..self.problem.wide.len()).collect();
        if nth > 1 {
            for i in (1..order.len()).rev() {
                order.swap(i, chance.below(i + 1));
            }
        }
        for slot in order {
            let first = match nth {
                0 => self.widest(&left, &left),
                _ => chance.below(left.len()),
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
    pub fn table(&self, state: &State) -> Vec<f64> {
        let of = |node: usize| {
            let slots = state.slots.iter();
            slots.map(move |members| members.iter().map(|m| self.pair(node, *m)).sum::<f64>())
        };
        (0..state.owner.len()).flat_map(of).collect()
    }

    /// What exchanging two nodes adds to the quick sum.
    fn gain(&self, state: &State, table: &[f64], a: usize, b: usize) -> f64 {
        let width = self.weights.len();
        let (s, t) = (state.slot(a), state.slot(b));
        let between = self.pair(a, b);
        self.weights[s] * (table[b * width + s] - between - table[a * width + s])
            + self.weights[t] * (table[a * width + t] - between - table[b * width + t])
    }

    /// Two nodes have been exchanged: the table follows.
    pub fn exchanged(&self, state: &State, table: &mut [f64], a: usize, b: usize) {
        let width = self.weights.len();
        let (t, s) = (state.slot(a), state.slot(b));
        for node in 0..state.owner.len() {
            let shift = self.pair(node, b) - self.pair(node, a);
            table[node * width + s] += shift;
            table[node * width + t] -= shift;
        }
    }

    /// Exchanges nodes while the quick sum grows by more than rounding; a round a node at most.
    pub fn settle(&self, state: &mut State) {
        let n = state.owner.len();
        let mut table = self.table(state);
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let least = 1e-9 * most(&self.weights) * most(&table);
        for _ in 0..n {
            let mut grew = false;
            for a in 0..n {
                for b in a + 1..n {
                    let (s, t) = (state.slot(a), state.slot(b));
                    if s == t || self.gain(state, &table, a, b) <= least {
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

    /// Two nodes to exchange: any one, and of a few others the one that the quick sum likes best.
    pub fn likely(&self, state: &State, table: &[f64], chance: &mut SplitMix) -> Option<(usize, usize)> {
        let n = state.owner.len();
        let a = chance.below(n);
        let s = state.slot(a);
        let others = (0..1 + n / RIVALS).map(|_| chance.below(n));
        let others =
            others.filter(|b| state.slot(*b) != s && self.weights[s] + self.weights[state.slot(*b)] > 0.0);
        let gains = others.map(|b| (self.gain(state, table, a, b), b));
        let best = gains.max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some((a, best.1))
    }

    /// Nodes to exchange this one with, the best by the quick sum first.
    pub fn partners(&self, state: &State, table: &[f64], a: usize) -> Vec<usize> {
        let s = state.slot(a);
        let others = (0..state.owner.len()).filter(|b| {
            let t = state.slot(*b);
            s != t && self.weights[s] + self.weights[t] > 0.0
        });
        let mut all: Vec<(f64, usize)> = others.map(|b| (self.gain(state, table, a, b), b)).collect();
        all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        all.truncate(PARTNERS);
        all.into_iter().map(|(_, b)| b).collect()
    }
}
