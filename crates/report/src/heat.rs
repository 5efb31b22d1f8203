//! The page × thread figure of one object, aggregated so that any object fits a screen and a file.

use nodewise_analysis::{Affinity, Entry, PageView, thread_numbers};
use nodewise_placement::{Context, Mapping};
use nodewise_profile::ObjectId;
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
    /// The numbers of its threads: their OpenMP numbers where they have one.
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
    pub fn new(context: &Context<'_>, object: ObjectId, mappings: &[&Mapping]) -> Option<Self> {
        let histogram = context.histogram;
        let pages: Vec<usize> = (0..histogram.len())
            .filter(|&i| histogram.objects[i] == object)
            .collect();
        let (rows, row_of) = rows(&thread_numbers(context.profile), context.affinity);
        let (columns, nodes) = (pages.len().min(Self::COLUMNS), context.machine.node_count());
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
        for column in 0..columns {
            for &page in &pages[group(column, columns, pages.len())] {
                map.add(column, &row_of, histogram.page(page), context.affinity, mappings);
            }
        }
        (columns > 0).then_some(map)
    }

    fn add(
        &mut self,
        column: usize,
        row_of: &[usize],
        page: PageView<'_>,
        affinity: &Affinity,
        mappings: &[&Mapping],
    ) {
        let cell = |entry: &Entry| row_of[entry.thread.index()] * self.columns + column;
        for entry in page.entries {
            self.accesses[cell(entry)] += entry.accesses();
        }
        for ((local, homes), mapping) in self.local.iter_mut().zip(&mut self.homes).zip(mappings) {
            let home = mapping.nodes[page.index];
            homes[home.index() * self.columns + column] += 1;
            for entry in page.entries.iter().filter(|e| affinity.node(e.thread) == home) {
                local[cell(entry)] += entry.accesses();
            }
        }
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

/// Threads ordered by node and number, each node's split into as many rows as fit; and the row of
/// each thread of the profile.
fn rows(numbers: &[u32], affinity: &Affinity) -> (Vec<HeatRow>, Vec<usize>) {
    let node = |thread: &usize| affinity.nodes[*thread];
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by_key(|t| (node(t), numbers[*t]));
    let per_row = numbers.len().div_ceil(HeatMap::ROWS).max(1);
    let (mut rows, mut row_of) = (Vec::new(), vec![0; numbers.len()]);
    for group in order
        .chunk_by(|a, b| node(a) == node(b))
        .flat_map(|n| n.chunks(per_row))
    {
        group.iter().for_each(|t| row_of[*t] = rows.len());
        let threads = group.iter().map(|t| numbers[*t]).collect();
        rows.push(HeatRow {
            threads,
            node: node(&group[0]).0,
        });
    }
    (rows, row_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_analysis::Histogram;
    use nodewise_machine::{CpuId, Machine, NodeId};
    use nodewise_profile::{PageNumber, Profile, Thread, ThreadId};
    use proptest::prelude::*;

    /// The figure of object `shown` where page `p` of object 1 is accessed by thread `p % threads`,
    /// `p + 1` times, and lives on node `p % 4`.
    fn map(pages: usize, threads: usize, shown: u32) -> Option<HeatMap> {
        let thread = |p: usize| ThreadId((p % threads) as u32);
        let histogram = Histogram {
            shift: 0,
            pages: (0..pages as u64).map(PageNumber).collect(),
            objects: vec![ObjectId(1); pages],
            offsets: (0..=pages as u64).collect(),
            entries: (0..pages)
                .map(|p| Entry {
                    reads: p as u64 + 1,
                    thread: thread(p),
                    ..Entry::default()
                })
                .collect(),
            threads,
        };
        // Numbered backwards: the profile's order is not the team's.
        let numbered = |t: usize| Thread {
            openmp: Some((threads - 1 - t) as u32),
            ..Thread::default()
        };
        let profile = Profile {
            threads: (0..threads).map(numbered).collect(),
            ..Profile::default()
        };
        let affinity = Affinity {
            name: "scatter".into(),
            cpus: (0..threads as u32).map(CpuId).collect(),
            nodes: (0..threads).map(|t| NodeId((t % 4) as u32)).collect(),
        };
        let machine = Machine::named("xeon-x7550").unwrap();
        let context = Context {
            profile: &profile,
            histogram: &histogram,
            affinity: &affinity,
            machine: &machine,
        };
        let nodes = (0..pages).map(|p| NodeId((p % 4) as u32)).collect();
        HeatMap::new(
            &context,
            ObjectId(shown),
            &[&Mapping {
                policy: "interleave".into(),
                nodes,
            }],
        )
    }

    proptest! {
        #[test]
        fn every_access_and_every_page_is_counted_once(pages in 1usize..2000, threads in 1usize..200) {
            let map = map(pages, threads, 1).unwrap();
            prop_assert_eq!(map.accesses.iter().sum::<u64>(), (pages * (pages + 1) / 2) as u64);
            prop_assert_eq!(map.homes[0].iter().sum::<u64>(), pages as u64);
            prop_assert_eq!(map.rows.iter().map(|r| r.threads.len()).sum::<usize>(), threads);
            prop_assert!(map.columns <= HeatMap::COLUMNS);
            prop_assert!(map.local[0].iter().zip(&map.accesses).all(|(l, a)| l <= a));
        }

        #[test]
        fn rows_ascend_by_node_then_by_the_number_in_the_team(threads in 1usize..200) {
            let map = map(4, threads, 1).unwrap();
            let order: Vec<_> = map.rows.iter().flat_map(|r| r.threads.iter().map(|t| (r.node, *t))).collect();
            prop_assert!(order.is_sorted());
        }
    }

    #[test]
    fn a_thread_has_its_accesses_in_the_row_of_its_number() {
        let map = map(2, 2, 1).unwrap();
        let row = map.rows.iter().position(|r| r.threads == [1]).unwrap();
        assert_eq!(map.row_totals(row), (1, vec![1]));
    }

    #[test]
    fn an_object_nobody_accessed_has_no_figure() {
        assert_eq!(map(4, 2, 7), None);
    }
}
