//! Good placements where there are too many to look at: local search from many starts.
//!
//! What two nodes exchange with nobody else about is quickly summed, and following it leads near good
//! placements; there, each exchange of two nodes is judged by what all clusters really get.

use super::Bandwidth;
use super::bound::alone;
use super::enumeration::Arrangement;
use super::problem::{Problem, Set};
use nodewise_machine::{Flow, NodeId};

/// One search. Slots are those of the problem, and one more for nodes that no wide cluster has.
pub(super) struct Descent<'a> {
    problem: &'a Problem<'a>,
    bandwidth: Bandwidth<'a>,
    /// By pair of nodes: what they get alone, both ways.
    pairs: Vec<f64>,
    weights: Vec<f64>,
    chance: Chance,
    /// Flows that may still be filled.
    pub effort: usize,
    /// Fillings so far.
    pub computed: usize,
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
    /// By node: its slot, and its place there.
    owner: Vec<(usize, usize)>,
}

impl State {
    fn of(slots: Vec<Vec<usize>>, nodes: usize) -> Self {
        let mut owner = vec![(0, 0); nodes];
        for (slot, members) in slots.iter().enumerate() {
            for (at, node) in members.iter().enumerate() {
                owner[*node] = (slot, at);
            }
        }
        Self { slots, owner }
    }

    fn swap(&mut self, a: usize, b: usize) {
        let ((s, i), (t, j)) = (self.owner[a], self.owner[b]);
        self.slots[s][i] = b;
        self.slots[t][j] = a;
        self.owner.swap(a, b);
    }
}

impl<'a> Descent<'a> {
    pub fn new(problem: &'a Problem<'a>, seed: u64, effort: usize) -> Self {
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
                    alone(problem.channels, &flow)
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
            chance: Chance(seed),
            effort,
            computed: 0,
            problem,
        }
    }

    /// The best that the effort allows, and what it came by on the way.
    pub fn run(&mut self) -> Vec<Arrangement> {
        let mut found = self.starts();
        found.truncate(8);
        for (_, state) in &mut found {
            self.climb(state);
        }
        let value = |this: &mut Self, state: &State| this.value(state);
        let mut best = found[0].1.clone();
        let mut most = value(self, &best);
        for (_, state) in &found {
            let worth = value(self, state);
            if worth > most {
                (most, best) = (worth, state.clone());
            }
        }
        while self.effort > 0 {
            let mut state = best.clone();
            self.shake(&mut state);
            self.climb(&mut state);
            let worth = value(self, &state);
            if worth > most * (1.0 + 1e-12) {
                (most, best) = (worth, state.clone());
            }
        }
        found.push((most, best));
        found.iter().map(|(_, state)| self.arrangement(state)).collect()
    }

    /// Local optima of the quick sum, the best by what clusters really get first.
    fn starts(&mut self) -> Vec<(f64, State)> {
        let budget = self.effort / 4;
        let before = self.effort;
        let mut found: Vec<(f64, State)> = Vec::new();
        for nth in 0.. {
            let mut state = self.grown(nth);
            self.settle(&mut state);
            let worth = self.value(&state);
            if found.iter().all(|(w, _)| *w != worth) {
                found.push((worth, state));
            }
            if nth >= 4 && before - self.effort > budget {
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
        State::of(slots, n)
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

    /// Exchanges nodes while the quick sum grows.
    fn settle(&self, state: &mut State) {
        let (n, width) = (state.owner.len(), self.weights.len());
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
                    for node in 0..n {
                        let shift = self.pair(node, b) - self.pair(node, a);
                        table[node * width + s] += shift;
                        table[node * width + t] -= shift;
                    }
                }
            }
            if !grew {
                return;
            }
        }
    }

    /// Exchanges nodes while that is worth it, those first that the quick sum likes.
    fn climb(&mut self, state: &mut State) {
        let mut worth = self.value(state);
        loop {
            let before = worth;
            for (_, a, b) in self.promising(state) {
                if state.owner[a].0 == state.owner[b].0 {
                    continue;
                }
                if self.effort == 0 {
                    return;
                }
                state.swap(a, b);
                let now = self.value(state);
                if now > worth * (1.0 + 1e-12) {
                    worth = now;
                } else {
                    state.swap(a, b);
                }
            }
            if worth <= before {
                return;
            }
        }
    }

    /// All exchanges, the best by the quick sum first.
    fn promising(&self, state: &State) -> Vec<(f64, usize, usize)> {
        let table = self.table(state);
        let n = state.owner.len();
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
        let differ = pairs.filter(|(a, b)| {
            let (s, t) = (state.owner[*a].0, state.owner[*b].0);
            s != t && self.weights[s] + self.weights[t] > 0.0
        });
        let mut all: Vec<_> = differ
            .map(|(a, b)| (self.quick_gain(state, &table, a, b), a, b))
            .collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        all
    }

    /// A few nodes exchanged at random.
    fn shake(&mut self, state: &mut State) {
        let n = state.owner.len();
        for _ in 0..2 + self.chance.below(3) {
            let (a, b) = (self.chance.below(n), self.chance.below(n));
            if state.owner[a].0 != state.owner[b].0 {
                state.swap(a, b);
            }
        }
    }

    /// P_wbw with the heaviest clusters on the widest sets.
    fn value(&mut self, state: &State) -> f64 {
        self.arrangement(state).weighted
    }

    fn arrangement(&mut self, state: &State) -> Arrangement {
        let problem = self.problem;
        let wide = &state.slots[..problem.wide.len()];
        let nodes: Vec<Vec<NodeId>> = wide
            .iter()
            .map(|s| s.iter().map(|i| problem.nodes[*i]).collect())
            .collect();
        let fixed = problem.fixed.iter().map(|c| problem.clusters[*c].at.as_slice());
        let bandwidth = self.bandwidth.of(nodes.iter().map(Vec::as_slice).chain(fixed));
        let sets: Vec<Set> = wide.iter().map(|s| s.iter().map(|i| 1 << i).sum()).collect();
        self.computed += 1;
        let flows: usize = wide.iter().map(|s| s.len() * (s.len() - 1)).sum();
        self.effort = self.effort.saturating_sub(flows + 32);
        Arrangement::new(problem, &sets, bandwidth)
    }
}
