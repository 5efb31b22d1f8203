//! The page × thread figure of one object, aggregated so that any object fits a screen and a file.

use nodewise_analysis::{Affinity, Entry, Histogram};
use nodewise_placement::Mapping;
use nodewise_profile::{ObjectId, ThreadId};
use std::ops::Range;

/// Accesses by group of threads and group of pages, and how many of them each placement makes local.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// The policies compared: first-touch and the best.
    pub placements: Vec<String>,
    /// Threads, grouped by node and, on large machines, within a node.
    pub rows: Vec<HeatRow>,
    /// Columns: equal groups of touched pages in address order.
    pub columns: usize,
    /// Pages shown in all; untouched ones have no column.
    pub pages: u64,
    /// Accesses, `[row * columns + column]`.
    pub accesses: Vec<u64>,
    /// Local accesses, `[placement][row * columns + column]`.
    pub local: Vec<Vec<u64>>,
    /// Nodes of the machine.
    pub nodes: usize,
    /// Pages of a column by home node, `[placement][node * columns + column]`.
    pub homes: Vec<Vec<u64>>,
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeatRow {
    /// Threads in it, by their number in the profile.
    pub threads: Vec<u32>,
    /// Their node.
    pub node: u32,
}

impl HeatMap {
    /// Most columns of a figure.
    pub const COLUMNS: usize = 256;
    /// Most rows of a figure, but never less than one a node.
    pub const ROWS: usize = 64;

    /// The figure of one object under each of the mappings; `None` when it was never accessed.
    #[must_use]
    pub fn new(
        histogram: &Histogram,
        object: ObjectId,
        affinity: &Affinity,
        nodes: usize,
        mappings: &[&Mapping],
    ) -> Option<Self> {
        let pages: Vec<usize> = (0..histogram.len())
            .filter(|&i| histogram.objects[i] == object)
            .collect();
        let rows = rows(histogram.threads, affinity);
        let columns = pages.len().min(Self::COLUMNS);
        if columns == 0 {
            return None;
        }
        let cells = rows.len() * columns;
        let mut map = Self {
            placements: mappings.iter().map(|m| m.policy.clone()).collect(),
            columns,
            pages: pages.len() as u64,
            accesses: vec![0; cells],
            local: vec![vec![0; cells]; mappings.len()],
            nodes,
            homes: vec![vec![0; nodes * columns]; mappings.len()],
            rows,
        };
        let row_of = map.row_of(histogram.threads);
        for column in 0..columns {
            let group = &pages[group(column, columns, pages.len())];
            for &page in group {
                for entry in histogram.page(page).entries {
                    map.add(
                        column,
                        row_of[entry.thread.index()],
                        entry,
                        page,
                        affinity,
                        mappings,
                    );
                }
            }
            for (homes, mapping) in map.homes.iter_mut().zip(mappings) {
                group
                    .iter()
                    .for_each(|&p| homes[mapping.nodes[p].index() * columns + column] += 1);
            }
        }
        Some(map)
    }

    fn add(
        &mut self,
        column: usize,
        row: usize,
        entry: &Entry,
        page: usize,
        affinity: &Affinity,
        mappings: &[&Mapping],
    ) {
        let cell = row * self.columns + column;
        self.accesses[cell] += entry.accesses();
        for (local, mapping) in self.local.iter_mut().zip(mappings) {
            if mapping.nodes[page] == affinity.node(entry.thread) {
                local[cell] += entry.accesses();
            }
        }
    }

    fn row_of(&self, threads: usize) -> Vec<usize> {
        let mut rows = vec![0; threads];
        for (row, r) in self.rows.iter().enumerate() {
            for &thread in &r.threads {
                rows[thread as usize] = row;
            }
        }
        rows
    }

    /// Accesses of a row, and how many of them each placement makes local.
    #[must_use]
    pub fn row_totals(&self, row: usize) -> (u64, Vec<u64>) {
        let cells = row * self.columns..(row + 1) * self.columns;
        let local = self.local.iter().map(|l| l[cells.clone()].iter().sum()).collect();
        (self.accesses[cells].iter().sum(), local)
    }
}

/// Pages of a column: consecutive, sizes differ by one at most.
fn group(column: usize, columns: usize, pages: usize) -> Range<usize> {
    column * pages / columns..(column + 1) * pages / columns
}

/// Threads ordered by node; each node's threads split into as many rows as fit.
fn rows(threads: usize, affinity: &Affinity) -> Vec<HeatRow> {
    let mut order: Vec<u32> = (0..threads as u32).collect();
    order.sort_by_key(|&t| (affinity.node(ThreadId(t)), t));
    let per_row = threads.div_ceil(HeatMap::ROWS).max(1);
    order
        .chunk_by(|&a, &b| affinity.node(ThreadId(a)) == affinity.node(ThreadId(b)))
        .flat_map(|node| {
            node.chunks(per_row).map(|group| HeatRow {
                threads: group.to_vec(),
                node: affinity.node(ThreadId(group[0])).0,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::{CpuId, NodeId};
    use nodewise_profile::PageNumber;
    use proptest::prelude::*;

    /// Page `p` of object 1 is accessed by thread `p % threads`, `p + 1` times.
    fn histogram(pages: usize, threads: usize) -> Histogram {
        Histogram {
            shift: 0,
            pages: (0..pages as u64).map(PageNumber).collect(),
            objects: vec![ObjectId(1); pages],
            offsets: (0..=pages as u64).collect(),
            entries: (0..pages)
                .map(|p| Entry {
                    reads: p as u64 + 1,
                    thread: ThreadId((p % threads) as u32),
                    ..Entry::default()
                })
                .collect(),
            threads,
        }
    }

    fn affinity(threads: usize, nodes: usize) -> Affinity {
        Affinity {
            name: "scatter".into(),
            cpus: (0..threads as u32).map(CpuId).collect(),
            nodes: (0..threads).map(|t| NodeId((t % nodes) as u32)).collect(),
        }
    }

    proptest! {
        #[test]
        fn every_access_is_in_exactly_one_cell(pages in 1usize..2000, threads in 1usize..200, nodes in 1usize..9) {
            let (histogram, affinity) = (histogram(pages, threads), affinity(threads, nodes));
            let nodes = (0..pages).map(|p| NodeId((p % nodes) as u32)).collect();
            let mapping = Mapping { policy: "interleave".into(), nodes };
            let map = HeatMap::new(&histogram, ObjectId(1), &affinity, 9, &[&mapping]).unwrap();
            prop_assert_eq!(map.accesses.iter().sum::<u64>(), (pages * (pages + 1) / 2) as u64);
            let threads_shown: usize = map.rows.iter().map(|r| r.threads.len()).sum();
            prop_assert_eq!(threads_shown, threads);
            prop_assert!(map.columns <= HeatMap::COLUMNS);
            prop_assert_eq!(map.homes[0].iter().sum::<u64>(), pages as u64);
            prop_assert!(map.local[0].iter().zip(&map.accesses).all(|(l, a)| l <= a));
        }
    }

    #[test]
    fn an_object_nobody_accessed_has_no_figure() {
        assert_eq!(
            HeatMap::new(&histogram(4, 2), ObjectId(7), &affinity(2, 2), 2, &[]),
            None
        );
    }
}
