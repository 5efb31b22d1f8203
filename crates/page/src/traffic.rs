//! Access matrices between nodes under each mapping.

use crate::sums::Pages;
use nodewise_analysis::{Affinity, NodeCounts};
use nodewise_machine::NodeId;
use rayon::prelude::*;

/// Numbers of accesses, `[cpu_node][memory_node]`.
pub type Matrix = Vec<Vec<u64>>;

/// Number of pages that a thread processes at a time.
const CHUNK: usize = 1 << 15;

/// The matrix of each mapping, with threads placed by `affinity`.
#[must_use]
pub fn matrices(pages: &Pages, affinity: &Affinity, mappings: &[&[u8]]) -> Vec<Matrix> {
    let nodes = pages.shape.nodes;
    let zero = || vec![0u64; mappings.len() * nodes * nodes];
    let chunk = |mut sums: Vec<u64>, start: usize| {
        let mut counts = NodeCounts::new(nodes);
        for index in start..pages.histogram.len().min(start + CHUNK) {
            let counts = counts.load(pages.histogram.page(index).entries, affinity);
            for (mapping, sums) in mappings.iter().zip(sums.chunks_mut(nodes * nodes)) {
                let home = usize::from(mapping[index]);
                for node in counts.touched() {
                    sums[node.index() * nodes + home] += counts.of(NodeId(node.0));
                }
            }
        }
        sums
    };
    let starts: Vec<usize> = (0..pages.histogram.len()).step_by(CHUNK).collect();
    let sums = starts.into_par_iter().fold(zero, chunk).reduce(zero, added);
    let matrix = |sums: &[u64]| sums.chunks(nodes.max(1)).map(<[u64]>::to_vec).collect();
    sums.chunks((nodes * nodes).max(1)).map(matrix).collect()
}

/// Adds two partial sums.
pub fn added(mut sums: Vec<u64>, more: Vec<u64>) -> Vec<u64> {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    sums
}

/// The share of accesses on the diagonal; 1 if there are no accesses.
#[must_use]
pub fn local_fraction(matrix: &Matrix) -> f64 {
    let local: u64 = matrix.iter().enumerate().map(|(node, row)| row[node]).sum();
    match matrix.iter().flatten().sum::<u64>() {
        0 => 1.0,
        all => local as f64 / all as f64,
    }
}
