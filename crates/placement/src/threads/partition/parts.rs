//! The parts of a partition, and the cost of communication between them.

use crate::threads::SharingGraph;

/// The parts of a partition.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// Threads of each part.
    pub sizes: Vec<u32>,
    /// Cost of a unit of communication between two parts, `[part * parts + other]`: symmetric, 0 inside a part.
    pub costs: Vec<f64>,
}

impl Parts {
    /// Parts that are equally far from each other.
    #[must_use]
    pub fn equal(sizes: Vec<u32>) -> Self {
        let count = sizes.len();
        let cost = |i: usize| f64::from(u8::from(i / count != i % count));
        Self {
            costs: (0..count * count).map(cost).collect(),
            sizes,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.sizes.len()
    }

    /// The cost of all communication under a partition.
    #[must_use]
    pub fn cost(&self, graph: &SharingGraph, places: &[u32]) -> f64 {
        let row = |v: usize| &self.costs[places[v] as usize * self.count()..][..self.count()];
        let of = |v: usize| -> f64 {
            let row = row(v);
            let edges = graph.neighbours(v).iter();
            edges.map(|(u, w)| w * row[places[*u as usize] as usize]).sum()
        };
        (0..graph.len()).map(of).sum()
    }

    /// A partition into blocks of consecutive threads.
    #[must_use]
    pub fn blocks(&self) -> Vec<u32> {
        let part = |(p, size): (usize, &u32)| std::iter::repeat_n(p as u32, *size as usize);
        self.sizes.iter().enumerate().flat_map(part).collect()
    }
}
