//! Histograms of slices, in parts, from rows that ascend by page.
//!
//! The rows of a slice ascend by their first page. A sweep over the pages that keeps the set of rows covering the
//! current page therefore yields each page once, in order.

use crate::histogram::{Entry, Histogram, sum_by_thread};
use nodewise_profile::{Access, PageNumber};

/// Approximate number of cells in a part of a slice: a part stays in the cache while every visitor reads it.
pub(crate) const PART_CELLS: usize = 1 << 16;

/// A histogram under construction from rows that ascend by page, handed on in parts.
pub(crate) struct Sweep {
    out: Histogram,
    shift: u32,
    /// Rows whose runs of pages cover page `at`.
    active: Vec<Access>,
    at: u64,
    /// The active rows as cells, one for each thread.
    cells: Vec<Entry>,
}

/// Callback for a finished part of the histogram.
type Emit<'e> = dyn FnMut(&Histogram) + 'e;

impl Sweep {
    pub fn new(threads: usize, shift: u32) -> Self {
        Self {
            out: Histogram::empty(threads, 0),
            shift,
            active: Vec::new(),
            at: 0,
            cells: Vec::new(),
        }
    }

    pub fn add(&mut self, row: &Access, emit: &mut Emit<'_>) {
        if row.page.0 != self.at {
            debug_assert!(row.page.0 > self.at, "rows ascend by page");
            self.advance(row.page.0, emit);
        }
        self.active.push(*row);
    }

    /// Emits all covered pages below `limit`, in stretches in which the set of active rows is constant.
    fn advance(&mut self, limit: u64, emit: &mut Emit<'_>) {
        let end = |a: &Access| a.page.0 + u64::from(a.len);
        while !self.active.is_empty() && self.at < limit {
            let stop = self.active.iter().map(end).fold(limit, u64::min);
            self.gather();
            for page in (self.at..stop).map(PageNumber) {
                if self.out.entries.len() >= PART_CELLS && !self.is_within_last(page) {
                    self.flush(emit);
                }
                self.out.push(page, self.active[0].object, &self.cells);
            }
            self.at = stop;
            self.active.retain(|a| end(a) > stop);
        }
        self.at = limit;
    }

    /// Whether a base page belongs to the same large page as the last emitted one.
    fn is_within_last(&self, page: PageNumber) -> bool {
        let large = |page: &PageNumber| page.align_down(self.shift);
        self.out.pages.last().map(large) == Some(large(&page))
    }

    fn flush(&mut self, emit: &mut Emit<'_>) {
        if !self.out.is_empty() {
            self.out.coarsen(self.shift);
            emit(&self.out);
            self.out.clear();
        }
    }

    fn gather(&mut self) {
        self.cells.clear();
        self.cells.extend(self.active.iter().map(cell));
        sum_by_thread(&mut self.cells);
    }

    /// Emits the remaining pages; the next row may start at any page.
    pub fn finish(&mut self, emit: &mut Emit<'_>) {
        self.advance(u64::MAX, emit);
        self.flush(emit);
        self.at = 0;
    }
}

fn cell(row: &Access) -> Entry {
    Entry {
        reads: row.reads,
        writes: row.writes,
        lines: u32::try_from(row.lines).unwrap_or(u32::MAX),
        thread: row.thread,
    }
}
