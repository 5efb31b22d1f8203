//! The sharing graph of threads: sparse, weighted, undirected.

use crate::formulas::mix;
use nodewise_analysis::{Entry, Histogram};
use nodewise_profile::PageNumber;

/// A page with at most this many threads joins each pair of them.
const MAX_PAIRED_THREADS: usize = 64;

/// A page with more threads joins each of them with this many others.
const PARTNERS_PER_THREAD: usize = 16;

/// Largest number of pairs waiting to be merged; 16 bytes each.
const MAX_WAITING_PAIRS: usize = 1 << 22;

/// Up to this number of threads, sums are kept in a matrix.
const MAX_MATRIX_THREADS: usize = 1024;

/// An undirected graph of threads, with the amount that each pair shares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharingGraph {
    /// `edges[offsets[v]..offsets[v + 1]]` are the edges of vertex v.
    offsets: Vec<usize>,
    /// Neighbour and weight, ascending by neighbour.
    edges: Vec<(u32, f64)>,
    /// Number of threads that each vertex stands for.
    sizes: Vec<u32>,
}

impl SharingGraph {
    /// A graph of single threads, from pairs in any order. Equal pairs add up; a thread shares nothing with itself.
    #[must_use]
    pub fn of_pairs(threads: usize, pairs: impl IntoIterator<Item = (u32, u32, f64)>) -> Self {
        let mut sums = Sums::default();
        for (a, b, weight) in pairs.into_iter().filter(|(a, b, w)| a != b && *w > 0.0) {
            sums.add(a, b, weight);
        }
        Self::assembled(vec![1; threads], &sums.merged())
    }

    /// What the threads of a histogram share, by `numbers[thread]`: on each page, two threads share the smaller of
    /// their access counts (see [`nodewise_analysis::SharingMatrix`]). A page used by more than 64 threads joins each
    /// of them with only 16 others: its neighbours in order, and some chosen by the page's number, with weights scaled
    /// to the same sum. So memory and time are proportional to the histogram.
    #[must_use]
    pub fn of(histogram: &Histogram, numbers: &[u32]) -> Self {
        let threads = numbers.iter().max().map_or(0, |n| *n as usize + 1);
        let pages = histogram.iter().map(|page| (page.page, page.entries));
        if threads <= MAX_MATRIX_THREADS {
            return Self::from_matrix(threads, pages, numbers);
        }
        let mut sums = Sums::default();
        for (page, entries) in pages {
            join(page, entries, &mut |a, b, weight| {
                sums.add(numbers[a], numbers[b], weight);
            });
        }
        Self::assembled(vec![1; threads], &sums.merged())
    }

    fn from_matrix<'a>(
        threads: usize,
        pages: impl Iterator<Item = (PageNumber, &'a [Entry])>,
        numbers: &[u32],
    ) -> Self {
        let mut cells = vec![0.0; threads * threads];
        for (page, entries) in pages {
            join(page, entries, &mut |a, b, weight| {
                let (a, b) = (numbers[a] as usize, numbers[b] as usize);
                cells[a.min(b) * threads + a.max(b)] += weight;
            });
        }
        let pair = |i: usize| ((i / threads) as u32, (i % threads) as u32, cells[i]);
        let pairs = (0..cells.len()).map(pair).filter(|(a, b, w)| a != b && *w > 0.0);
        Self::assembled(vec![1; threads], &pairs.collect::<Vec<_>>())
    }

    /// A graph from distinct pairs in ascending order, with the smaller vertex first.
    pub(super) fn assembled(sizes: Vec<u32>, pairs: &[(u32, u32, f64)]) -> Self {
        let mut offsets = vec![0; sizes.len() + 1];
        for (a, b, _) in pairs {
            offsets[*a as usize + 1] += 1;
            offsets[*b as usize + 1] += 1;
        }
        for v in 0..sizes.len() {
            offsets[v + 1] += offsets[v];
        }
        let mut next = offsets.clone();
        let mut edges = vec![(0, 0.0); pairs.len() * 2];
        // The larger vertex's list first receives its smaller neighbours: both passes keep the lists ascending.
        for &(a, b, weight) in pairs {
            edges[next[b as usize]] = (a, weight);
            next[b as usize] += 1;
        }
        for &(a, b, weight) in pairs {
            edges[next[a as usize]] = (b, weight);
            next[a as usize] += 1;
        }
        Self {
            offsets,
            edges,
            sizes,
        }
    }

    /// Number of vertices in the graph.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// Whether there are no vertices.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// The neighbours of a vertex, ascending, with what they share.
    #[must_use]
    pub fn neighbours(&self, vertex: usize) -> &[(u32, f64)] {
        &self.edges[self.offsets[vertex]..self.offsets[vertex + 1]]
    }

    /// The share of all communication that stays inside parts; 1 where there is none.
    #[must_use]
    pub fn kept_inside(&self, parts: &[u32]) -> f64 {
        let (mut all, mut inside) = (0.0, 0.0);
        for v in 0..self.len() {
            for (u, weight) in self.neighbours(v) {
                all += weight;
                inside += if parts[v] == parts[*u as usize] {
                    *weight
                } else {
                    0.0
                };
            }
        }
        if all > 0.0 { inside / all } else { 1.0 }
    }

    /// The subgraph of some vertices, which ascend.
    pub(super) fn induced(&self, members: &[u32]) -> Self {
        let mut at = vec![u32::MAX; self.len()];
        members.iter().zip(0..).for_each(|(v, i)| at[*v as usize] = i);
        let (mut offsets, mut edges) = (vec![0], Vec::new());
        for v in members {
            let all = self.neighbours(*v as usize).iter();
            edges.extend(
                all.map(|(u, w)| (at[*u as usize], *w))
                    .filter(|e| e.0 != u32::MAX),
            );
            offsets.push(edges.len());
        }
        Self {
            offsets,
            edges,
            sizes: members.iter().map(|v| self.sizes[*v as usize]).collect(),
        }
    }

    /// What each pair shares, `[v * vertices + u]`, if there are few vertices and most pairs share something.
    pub(super) fn matrix(&self) -> Option<Vec<f64>> {
        let count = self.len();
        (count <= MAX_MATRIX_THREADS && self.edges.len() * 2 > count * count).then(|| {
            let mut cells = vec![0.0; count * count];
            for (v, row) in cells.chunks_exact_mut(count).enumerate() {
                self.neighbours(v).iter().for_each(|(u, w)| row[*u as usize] = *w);
            }
            cells
        })
    }

    /// Threads that a vertex stands for.
    pub(super) fn size(&self, vertex: usize) -> u32 {
        self.sizes[vertex]
    }

    /// The largest number of threads that a vertex stands for.
    pub(super) fn largest(&self) -> u32 {
        self.sizes.iter().copied().max().unwrap_or(1)
    }

    /// Number of edges, each counted from both ends.
    pub(super) fn edge_count(&self) -> usize {
        self.edges.len()
    }
}

/// Calls `add` with pairs of threads of a page and what they share.
fn join(page: PageNumber, entries: &[Entry], add: &mut impl FnMut(usize, usize, f64)) {
    let common = |a: &Entry, b: &Entry| a.accesses().min(b.accesses()) as f64;
    if entries.len() <= MAX_PAIRED_THREADS {
        for (i, a) in entries.iter().enumerate() {
            for b in &entries[i + 1..] {
                add(a.thread.index(), b.thread.index(), common(a, b));
            }
        }
        return;
    }
    let count = entries.len();
    let weight = (count - 1) as f64 / PARTNERS_PER_THREAD as f64;
    let steps = steps(page, count);
    for (i, a) in entries.iter().enumerate() {
        for step in &steps {
            let b = &entries[(i + step) % count];
            add(a.thread.index(), b.thread.index(), common(a, b) * weight);
        }
    }
}

/// The distances of each thread's partners on the circle of a page's threads; each pair occurs once.
fn steps(page: PageNumber, count: usize) -> Vec<usize> {
    let half = (count - 1) / 2;
    let mut steps = vec![1];
    let mut draw = page.0;
    while steps.len() < PARTNERS_PER_THREAD / 2 {
        draw = mix(draw);
        let step = 1 + (draw % half as u64) as usize;
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps
}

/// Sums of pairs under construction: merged ones, and those waiting to be merged.
#[derive(Default)]
struct Sums {
    merged: Vec<(u32, u32, f64)>,
    waiting: Vec<(u32, u32, f64)>,
}

impl Sums {
    fn add(&mut self, a: u32, b: u32, weight: f64) {
        self.waiting.push((a.min(b), a.max(b), weight));
        if self.waiting.len() >= MAX_WAITING_PAIRS.max(self.merged.len()) {
            self.merge();
        }
    }

    fn merge(&mut self) {
        self.merged.append(&mut self.waiting);
        // The sort is stable, so that sums are added in order of arrival.
        self.merged.sort_by_key(|(a, b, _)| (*a, *b));
        self.merged.dedup_by(|next, sum| {
            let same = (next.0, next.1) == (sum.0, sum.1);
            sum.2 += if same { next.2 } else { 0.0 };
            same
        });
    }

    fn merged(mut self) -> Vec<(u32, u32, f64)> {
        self.merge();
        self.merged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Recorded, machine};
    use nodewise_analysis::SharingMatrix;
    use nodewise_profile::ThreadId;

    #[test]
    fn few_threads_share_what_the_matrix_says() {
        let accesses = |page: u64, thread: u32| (page * 7 + u64::from(thread) * 3) % 5;
        let recorded = Recorded::new(machine(2, 4), 12, &[(40, &accesses)]);
        let numbers: Vec<u32> = (0..12).rev().collect();
        let graph = SharingGraph::of(&recorded.histogram, &numbers);
        let matrix = SharingMatrix::of(&recorded.histogram);
        for a in 0..12u32 {
            for b in 0..12u32 {
                let edges = graph.neighbours(numbers[a as usize] as usize);
                let edge = edges.iter().find(|(u, _)| *u == numbers[b as usize]);
                let expected = matrix.between(ThreadId(a), ThreadId(b)) as f64;
                assert_eq!(edge.map_or(0.0, |e| e.1), expected);
            }
        }
    }

    #[test]
    fn a_page_of_thousands_joins_few_pairs_and_keeps_the_sum() {
        let all = |_: u64, _: u32| 3;
        let recorded = Recorded::new(machine(2, 4), 3000, &[(2, &all)]);
        let numbers: Vec<u32> = (0..3000).collect();
        let graph = SharingGraph::of(&recorded.histogram, &numbers);
        assert!(graph.edge_count() <= 2 * 3000 * PARTNERS_PER_THREAD);
        for v in 0..3000 {
            let sum: f64 = graph.neighbours(v).iter().map(|e| e.1).sum();
            assert!((sum - 2.0 * 3.0 * 2999.0).abs() < 1e-6 * sum, "{sum}");
        }
    }

    #[test]
    fn pairs_add_up_whatever_their_order() {
        let graph = SharingGraph::of_pairs(3, [(2, 0, 1.0), (0, 2, 2.0), (1, 1, 9.0), (1, 2, 4.0)]);
        assert_eq!(graph.neighbours(2), [(0, 3.0), (1, 4.0)]);
        assert_eq!(graph.neighbours(1), [(2, 4.0)]);
        assert_eq!(graph.kept_inside(&[0, 1, 0]), 3.0 / 7.0);
    }
}
