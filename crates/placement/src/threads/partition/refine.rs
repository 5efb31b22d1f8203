//! Refinement: pairs of parts exchange vertices while the cost falls, with exact sizes at the end.

use super::parts::Parts;
use crate::threads::SharingGraph;

/// Largest number of rounds over all pairs of parts.
const MAX_ROUNDS: usize = 8;
/// Largest number of consecutive moves without gain between two parts; half as many if there are more parts.
const MAX_MOVES_WITHOUT_GAIN: usize = 96;

/// Improves `places`. With single threads each part ends with exactly its size. With vertices of several threads, a
/// part deviates by at most the largest vertex, unless it did so at the start.
pub(super) fn refine(graph: &SharingGraph, parts: &Parts, places: Vec<u32>) -> Vec<u32> {
    let mut refinement = Refinement::new(graph, parts, places);
    refinement.even_out();
    let count = parts.count();
    // When each part last changed, and when each pair was last tried.
    let (mut changed, mut tried) = (vec![1usize; count], vec![0usize; count * count]);
    for time in 2..MAX_ROUNDS + 2 {
        let before = changed.clone();
        for p in 0..count {
            for q in p + 1..count {
                if changed[p].max(changed[q]) <= tried[p * count + q] {
                    continue;
                }
                tried[p * count + q] = time;
                if refinement.exchange(p as u32, q as u32) {
                    // Later than all tries of this round, including this one.
                    (changed[p], changed[q]) = (time + 1, time + 1);
                }
            }
        }
        if changed == before {
            break;
        }
    }
    refinement.places
}

struct Refinement<'a> {
    graph: &'a SharingGraph,
    parts: &'a Parts,
    places: Vec<u32>,
    /// What vertex v shares with part p, `[v * parts + p]`.
    shared: Vec<f64>,
    filled: Vec<i64>,
    /// Each vertex's position in the current pair.
    at: Vec<u32>,
    /// What each vertex shares with each other one, `[v * vertices + u]`, for dense graphs: a pair of parts has only
    /// few of a vertex's neighbours.
    matrix: Option<Vec<f64>>,
}

impl<'a> Refinement<'a> {
    fn new(graph: &'a SharingGraph, parts: &'a Parts, places: Vec<u32>) -> Self {
        let count = parts.count();
        let (mut shared, mut filled) = (vec![0.0; graph.len() * count], vec![0; count]);
        for v in 0..graph.len() {
            filled[places[v] as usize] += i64::from(graph.size(v));
            for (u, weight) in graph.neighbours(v) {
                shared[v * count + places[*u as usize] as usize] += weight;
            }
        }
        Self {
            graph,
            parts,
            shared,
            filled,
            at: vec![NOT_IN_PAIR; places.len()],
            places,
            matrix: (count > 2).then(|| graph.matrix()).flatten(),
        }
    }

    fn excess(&self, part: u32) -> i64 {
        self.filled[part as usize] - i64::from(self.parts.sizes[part as usize])
    }

    /// The gain of moving a vertex to another part.
    fn saving(&self, vertex: usize, to: u32) -> f64 {
        let count = self.parts.count();
        let row = |p: u32| &self.parts.costs[p as usize * count..][..count];
        let costs = row(self.places[vertex]).iter().zip(row(to));
        let shared = &self.shared[vertex * count..][..count];
        shared
            .iter()
            .zip(costs)
            .map(|(s, (here, there))| s * (here - there))
            .sum()
    }

    fn put(&mut self, vertex: usize, to: u32) {
        let (count, from) = (self.parts.count(), self.places[vertex]);
        let size = i64::from(self.graph.size(vertex));
        self.filled[from as usize] -= size;
        self.filled[to as usize] += size;
        self.places[vertex] = to;
        for (u, weight) in self.graph.neighbours(vertex) {
            let row = &mut self.shared[*u as usize * count..][..count];
            row[from as usize] -= weight;
            row[to as usize] += weight;
        }
    }

    /// Moves the cheapest vertices from parts above their size to parts below it.
    fn even_out(&mut self) {
        loop {
            let tolerated = i64::from(self.graph.largest()) - 1;
            let parts = 0..self.parts.count() as u32;
            let Some(full) = parts.clone().find(|p| self.excess(*p) > tolerated) else {
                return;
            };
            let short: Vec<u32> = parts.filter(|p| self.excess(*p) < 0).collect();
            let members = (0..self.places.len()).filter(|v| self.places[*v] == full);
            let fits =
                |v: usize, to: u32| self.excess(to) + i64::from(self.graph.size(v)) <= tolerated.max(0);
            let moves = members.flat_map(|v| short.iter().map(move |to| (v, *to)));
            let best = moves
                .filter(|(v, to)| fits(*v, *to))
                .map(|(v, to)| (v, to, self.saving(v, to)))
                .reduce(|best, next| if next.2 > best.2 { next } else { best });
            let Some((vertex, to, _)) = best else { return };
            self.put(vertex, to);
        }
    }

    /// One pass of Kernighan and Lin between two parts: moves each vertex at most once, in descending order of gain,
    /// from the fuller part first; then undoes the moves after the best state. Returns whether the cost fell.
    fn exchange(&mut self, p: u32, q: u32) -> bool {
        let mut pair = Pair::new(self, [p, q]);
        let moves = pair.pass(self);
        pair.forget(&mut self.at);
        for &v in &moves {
            self.put(v, if self.places[v] == p { q } else { p });
        }
        !moves.is_empty()
    }
}

/// Position of a vertex that is not in the current pair.
const NOT_IN_PAIR: u32 = u32::MAX;
/// The bit of a position that tells the side.
const SIDE_BIT: u32 = 1 << 31;

/// Two parts during their exchange.
struct Pair {
    parts: [u32; 2],
    vertices: [Vec<usize>; 2],
    /// The gain of moving each vertex to the other part; -∞ once it has moved.
    saves: [Vec<f64>; 2],
}

impl Pair {
    fn new(all: &mut Refinement<'_>, parts: [u32; 2]) -> Self {
        let mut pair = Self {
            parts,
            vertices: [Vec::new(), Vec::new()],
            saves: [Vec::new(), Vec::new()],
        };
        for (v, place) in all.places.iter().enumerate() {
            if let Some(side) = parts.iter().position(|p| p == place) {
                all.at[v] = pair.vertices[side].len() as u32 | (SIDE_BIT * side as u32);
                pair.vertices[side].push(v);
                pair.saves[side].push(all.saving(v, parts[1 - side]));
            }
        }
        pair
    }

    fn forget(&self, at: &mut [u32]) {
        self.vertices.iter().flatten().for_each(|v| at[*v] = NOT_IN_PAIR);
    }

    /// The moves up to the best state.
    fn pass(&mut self, all: &Refinement<'_>) -> Vec<usize> {
        let tolerated = i64::from(all.graph.largest()) - 1;
        let uneven = |e: [i64; 2]| (e[0].abs().max(e[1].abs()) - tolerated).max(0);
        let mut excess = self.parts.map(|p| all.excess(p));
        let least = 1e-9 * self.saves.iter().flatten().map(|s| s.abs()).sum::<f64>();
        let (mut saved, mut best) = (0.0, (uneven(excess), 0.0));
        let (mut order, mut kept) = (Vec::new(), 0);
        let max_without_gain = MAX_MOVES_WITHOUT_GAIN / (all.parts.count() - 1).min(2);
        if all.parts.count() > 2 && uneven(excess) == 0 && !self.promises() {
            return order;
        }
        while order.len() < kept + max_without_gain {
            let Some((side, at)) = self.next(excess) else {
                break;
            };
            let vertex = self.vertices[side][at];
            saved += self.saves[side][at];
            let size = i64::from(all.graph.size(vertex));
            excess[side] -= size;
            excess[1 - side] += size;
            self.lift(all, side, at);
            order.push(vertex);
            let now = (uneven(excess), saved);
            if now.0 < best.0 || (now.0 == best.0 && now.1 > best.1 + least) {
                (best, kept) = (now, order.len());
            }
        }
        order.truncate(kept);
        order
    }

    /// Whether some exchange of two vertices could lower the cost, ignoring what the two share.
    fn promises(&self) -> bool {
        let most =
            |side: usize| largest(&self.saves[side]).map_or(f64::NEG_INFINITY, |at| self.saves[side][at]);
        most(0) + most(1) > 0.0
    }

    /// The next vertex to move: the one with the largest gain on the side above its size; on either side if they are
    /// even.
    fn next(&self, excess: [i64; 2]) -> Option<(usize, usize)> {
        let best = |side: usize| largest(&self.saves[side]).map(|at| (side, at));
        let saves = |(side, at): (usize, usize)| self.saves[side][at];
        match (excess[0] - excess[1]).signum() {
            1 => best(0),
            -1 => best(1),
            _ => [best(0), best(1)]
                .into_iter()
                .flatten()
                .reduce(|a, b| if saves(b) > saves(a) { b } else { a }),
        }
    }

    /// Moves a vertex to the other side, and updates the gains of its neighbours.
    fn lift(&mut self, all: &Refinement<'_>, side: usize, at: usize) {
        let [p, q] = self.parts.map(|p| p as usize);
        let twice = 2.0 * all.parts.costs[p * all.parts.count() + q];
        let vertex = self.vertices[side][at];
        self.saves[side][at] = f64::NEG_INFINITY;
        if let Some(matrix) = &all.matrix {
            let row = &matrix[vertex * all.places.len()..][..all.places.len()];
            for (its, change) in [(side, twice), (1 - side, -twice)] {
                let each = self.vertices[its].iter().zip(&mut self.saves[its]);
                each.for_each(|(u, saves)| *saves += change * row[*u]);
            }
            return;
        }
        for (u, weight) in all.graph.neighbours(vertex) {
            let position = all.at[*u as usize];
            if position != NOT_IN_PAIR {
                let its = (position / SIDE_BIT) as usize;
                let change = if its == side { twice } else { -twice };
                self.saves[its][(position % SIDE_BIT) as usize] += change * weight;
            }
        }
    }
}

/// The index of the largest value, the first among equals; `None` if all are -∞.
fn largest(values: &[f64]) -> Option<usize> {
    let mut lanes = [f64::NEG_INFINITY; 8];
    let greater = |a: f64, b: f64| if a > b { a } else { b };
    let chunks = values.chunks_exact(lanes.len());
    let mut most = chunks
        .remainder()
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, greater);
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = greater(*lane, *value);
        }
    }
    most = lanes.into_iter().fold(most, greater);
    (most > f64::NEG_INFINITY).then(|| values.iter().position(|v| *v == most))?
}
