//! Sharing classes (Majo & Gross 2.2 and 3.1) and the sharing matrix of pairs of threads.

use crate::{Entry, Histogram, NodeCounts};
use nodewise_profile::{ObjectKind, ThreadId};
use rayon::prelude::*;

/// How a page is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SharingClass {
    /// Stacks, thread-local storage, program and library images: placement cannot help.
    Private,
    /// Accessed by one thread.
    NonShared,
    /// Accessed by several threads of one node.
    NodeShared,
    /// Accessed by threads of more than one node, whatever the numbers of accesses.
    UniformlyShared,
}

impl SharingClass {
    /// All classes, in the order of [`SharingClass::index`].
    pub const ALL: [Self; 4] = [
        Self::Private,
        Self::NonShared,
        Self::NodeShared,
        Self::UniformlyShared,
    ];

    /// The stable name used in reports and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::NonShared => "non-shared",
            Self::NodeShared => "node-shared",
            Self::UniformlyShared => "uniformly shared",
        }
    }

    /// Position in tables by class.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The class of a page of an object of this kind; `counts` holds the page's accesses by node.
    #[must_use]
    pub fn of(kind: ObjectKind, counts: &NodeCounts) -> Self {
        if kind.is_private() {
            return Self::Private;
        }
        match (counts.threads(), counts.touched().len()) {
            (0 | 1, _) => Self::NonShared,
            (_, 1) => Self::NodeShared,
            _ => Self::UniformlyShared,
        }
    }
}

/// Thread × thread communication through shared pages, symmetric, zero on the diagonal. Each page adds the smaller of
/// two threads' access counts to their communication (after Diener, Cruz and Navaux, "Communication-based mapping using
/// shared pages", IPDPS 2013, who count page faults).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharingMatrix {
    threads: usize,
    cells: Vec<u64>,
}

impl SharingMatrix {
    /// The matrix of a histogram.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        let threads = histogram.threads;
        let zero = || vec![0u64; threads * threads];
        let cells = (0..histogram.len())
            .into_par_iter()
            .with_min_len(1 << 14)
            .fold(zero, |mut cells, page| {
                add_page(&mut cells, threads, histogram.page(page).entries);
                cells
            })
            .reduce(zero, |mut a, b| {
                a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
                a
            });
        Self { threads, cells }
    }

    /// Number of threads, the order of the matrix.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The communication between two threads, in accesses.
    #[must_use]
    pub fn between(&self, a: ThreadId, b: ThreadId) -> u64 {
        self.cells[a.index() * self.threads + b.index()]
    }
}

fn add_page(cells: &mut [u64], threads: usize, entries: &[Entry]) {
    for (i, a) in entries.iter().enumerate() {
        for b in &entries[i + 1..] {
            let common = a.accesses().min(b.accesses());
            let (a, b) = (a.thread.index(), b.thread.index());
            cells[a * threads + b] += common;
            cells[b * threads + a] += common;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Affinity;
    use crate::fixtures::histogram;
    use nodewise_machine::{CpuId, NodeId};

    fn class(kind: ObjectKind, reads: &[u64]) -> SharingClass {
        let nodes = [0, 0, 1].map(NodeId).to_vec();
        let affinity = Affinity {
            name: String::new(),
            cpus: vec![CpuId(0); 3],
            nodes,
        };
        let histogram = histogram(&[reads.to_vec()]);
        let mut counts = NodeCounts::new(2);
        SharingClass::of(kind, counts.load(histogram.page(0).entries, &affinity))
    }

    #[test]
    fn classes_follow_threads_and_nodes_not_counts() {
        assert_eq!(class(ObjectKind::Stack, &[1, 1, 1]), SharingClass::Private);
        assert_eq!(class(ObjectKind::Heap, &[0, 5, 0]), SharingClass::NonShared);
        assert_eq!(class(ObjectKind::Heap, &[1, 5, 0]), SharingClass::NodeShared);
        assert_eq!(
            class(ObjectKind::Heap, &[1000, 0, 1]),
            SharingClass::UniformlyShared
        );
    }

    #[test]
    fn threads_share_the_lesser_of_their_accesses() {
        let matrix = SharingMatrix::of(&histogram(&[vec![5, 3, 0], vec![2, 2, 9]]));
        let between = |a, b| matrix.between(ThreadId(a), ThreadId(b));
        assert_eq!(
            (between(0, 1), between(1, 0), between(0, 2), between(2, 2)),
            (5, 5, 2, 0)
        );
    }
}
