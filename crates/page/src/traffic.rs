//! Access matrices between nodes under each mapping.

use crate::sums::Pages;
use nodewise_analysis::{Affinity, HomeCounts};

/// Numbers of accesses, `[cpu_node][memory_node]`.
pub type Matrix = Vec<Vec<u64>>;

/// The matrix of each mapping, with threads placed by `affinity`.
#[must_use]
pub fn matrices(pages: &Pages, affinity: &Affinity, mappings: &[&[u8]]) -> Vec<Matrix> {
    let counted = HomeCounts::of(&pages.histogram, affinity, mappings, pages.shape.nodes, |_| true);
    counted.iter().map(HomeCounts::of_chosen).collect()
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
