//! Reads the counts of many pages at once, which is faster than page by page.

use super::Observed;
use nodewise_machine::NodeId;
use nodewise_profile::PageNumber;
use std::ops::Range;

/// Consecutive pages of an [`Observed`], with their counts.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub(super) start: usize,
    pub(super) nodes: usize,
    pub(super) pages: Vec<PageNumber>,
    pub(super) homes: Vec<NodeId>,
    /// `[page * nodes + node]`: accesses to each page from each node.
    pub(super) counts: Vec<u64>,
}

/// Number of pages in a block: with eight nodes a block fits the second-level cache.
const BLOCK: usize = 2048;

impl Rows {
    /// Replaces the content by these pages.
    pub(super) fn fill<O: Observed + ?Sized>(&mut self, observed: &O, pages: Range<usize>) {
        (self.start, self.nodes) = (pages.start, observed.nodes());
        self.pages.clear();
        self.pages.extend(pages.clone().map(|i| observed.page(i)));
        self.homes.clear();
        self.homes.extend(pages.clone().map(|i| observed.home(i)));
        self.counts.resize(pages.len() * self.nodes, 0);
        let rows = self.counts.chunks_exact_mut(self.nodes.max(1));
        pages.zip(rows).for_each(|(i, row)| observed.counts(i, row));
    }

    /// Sets the home's own accesses to 0.
    pub(super) fn hide_local(&mut self) {
        let rows = self.counts.chunks_exact_mut(self.nodes.max(1));
        for (row, home) in rows.zip(&self.homes) {
            row[home.index()] = 0;
        }
    }

    /// Index after the last page.
    pub(super) fn end(&self) -> usize {
        self.start + self.len()
    }

    pub(super) fn len(&self) -> usize {
        self.homes.len()
    }

    /// Counts, by node, of page `i` of the block.
    pub(super) fn row(&self, i: usize) -> &[u64] {
        &self.counts[i * self.nodes..][..self.nodes]
    }
}

/// Calls `each` with all pages, block by block.
pub(super) fn blocks(observed: &dyn Observed, mut each: impl FnMut(&Rows)) {
    let mut rows = Rows::default();
    for start in (0..observed.len()).step_by(BLOCK) {
        observed.read(start..(start + BLOCK).min(observed.len()), &mut rows);
        each(&rows);
    }
}
