//! Initial partition of a small graph: parts grown greedily.

use super::parts::Parts;
use crate::formulas::mix;
use crate::threads::SharingGraph;

/// Fills one part after the other with the vertex that shares most with those already in it. A part's first vertex is
/// the one that shares most with all that are left; from the second seed on, a random one.
pub(super) fn initial(graph: &SharingGraph, parts: &Parts, seed: u64) -> Vec<u32> {
    let mut growth = Growth::new(graph, parts.count());
    for part in 0..parts.count() {
        growth.grow(
            part as u32,
            parts.sizes[part],
            mix(seed ^ ((part as u64) << 32)),
            seed == 0,
        );
    }
    growth.rest(parts);
    growth.places
}

struct Growth<'a> {
    graph: &'a SharingGraph,
    /// The part of each vertex; `none` while it has none.
    places: Vec<u32>,
    none: u32,
    /// What each vertex shares with those that have no part yet.
    left: Vec<f64>,
    filled: Vec<u32>,
}

impl<'a> Growth<'a> {
    fn new(graph: &'a SharingGraph, parts: usize) -> Self {
        let sum = |v| graph.neighbours(v).iter().map(|e| e.1).sum();
        Self {
            graph,
            places: vec![parts as u32; graph.len()],
            none: parts as u32,
            left: (0..graph.len()).map(sum).collect(),
            filled: vec![0; parts],
        }
    }

    fn free(&self) -> impl Iterator<Item = usize> {
        (0..self.places.len()).filter(|v| self.places[*v] == self.none)
    }

    fn grow(&mut self, part: u32, size: u32, draw: u64, first: bool) {
        let mut with = vec![0.0; self.graph.len()];
        while self.filled[part as usize] < size {
            let room = size - self.filled[part as usize];
            let fits = |v: &usize| self.graph.size(*v) <= room;
            let begins = self.filled[part as usize] == 0 && !first;
            // Most shared with the part; among equals, least shared with the remaining vertices; then the lowest
            // number.
            let better = |a: usize, b: usize| (with[b], -self.left[b]) > (with[a], -self.left[a]);
            let chosen = if begins {
                let fit: Vec<usize> = self.free().filter(fits).collect();
                (!fit.is_empty()).then(|| fit[(draw % fit.len() as u64) as usize])
            } else if self.filled[part as usize] == 0 {
                let most = |a: usize, b: usize| if self.left[b] > self.left[a] { b } else { a };
                self.free().filter(fits).reduce(most)
            } else {
                self.free()
                    .filter(fits)
                    .reduce(|a, b| if better(a, b) { b } else { a })
            };
            let Some(vertex) = chosen else { return };
            self.put(vertex, part);
            for (u, weight) in self.graph.neighbours(vertex) {
                with[*u as usize] += weight;
            }
        }
    }

    fn put(&mut self, vertex: usize, part: u32) {
        self.places[vertex] = part;
        self.filled[part as usize] += self.graph.size(vertex);
        for (u, weight) in self.graph.neighbours(vertex) {
            self.left[*u as usize] -= weight;
        }
    }

    /// Vertices that fit nowhere go to the part with most room left.
    fn rest(&mut self, parts: &Parts) {
        let left: Vec<usize> = self.free().collect();
        for vertex in left {
            let room = |p: &usize| i64::from(parts.sizes[*p]) - i64::from(self.filled[*p]);
            let roomiest = (0..parts.count()).rev().max_by_key(room).unwrap_or(0);
            self.put(vertex, roomiest as u32);
        }
    }
}
