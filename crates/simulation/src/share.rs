//! Locality of a policy in each slice.

use nodewise_analysis::balance;
use nodewise_profile::SliceId;

/// One slice under one policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceShare {
    /// Number of the time slice.
    pub slice: SliceId,
    /// Loads and stores in the slice.
    pub accesses: u64,
    /// Accesses by the page's home node.
    pub local: u64,
    /// Pages that moved at its end.
    pub migrations: u64,
}

impl SliceShare {
    /// The share of accesses by the home node; 1 if there were none.
    #[must_use]
    pub fn local_fraction(&self) -> f64 {
        match self.accesses {
            0 => 1.0,
            all => self.local as f64 / all as f64,
        }
    }
}

/// Accesses by accessing node and home, while homes change.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    nodes: usize,
    /// `[home][accessing node]`, the order in which a page's counts are stored.
    cells: Vec<u64>,
}

impl Matrix {
    pub fn new(nodes: usize) -> Self {
        Self {
            nodes,
            cells: vec![0; nodes * nodes],
        }
    }

    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Adds a page's accesses by node.
    #[inline]
    pub fn add(&mut self, home: usize, counts: &[u64]) {
        let row = &mut self.cells[home * self.nodes..][..self.nodes];
        row.iter_mut().zip(counts).for_each(|(sum, c)| *sum += c);
    }

    /// Adds accesses to a page with copies, each read from the node that `nearest` says for its reader.
    pub fn add_copied(&mut self, nearest: &[u16], counts: &[u64]) {
        for (reader, (holder, count)) in nearest.iter().zip(counts).enumerate() {
            self.cells[usize::from(*holder) * self.nodes + reader] += count;
        }
    }

    pub fn absorb(&mut self, other: &Self) {
        self.cells
            .iter_mut()
            .zip(&other.cells)
            .for_each(|(sum, c)| *sum += c);
    }

    pub fn accesses(&self) -> u64 {
        self.cells.iter().sum()
    }

    pub fn local(&self) -> u64 {
        self.cells.iter().step_by(self.nodes + 1).sum()
    }

    /// Access balance over home nodes, 0 to 1 (Diener et al., eq. 5).
    pub fn access_balance(&self) -> f64 {
        balance(
            &self
                .cells
                .chunks(self.nodes)
                .map(|row| row.iter().sum())
                .collect::<Vec<u64>>(),
        )
    }

    /// The matrix transposed to `accesses[cpu_node][memory_node]`.
    pub fn by_reader(&self) -> Vec<Vec<u64>> {
        let nodes = self.nodes;
        let of = |reader: usize| (0..nodes).map(|home| self.cells[home * nodes + reader]).collect();
        (0..nodes).map(of).collect()
    }
}
