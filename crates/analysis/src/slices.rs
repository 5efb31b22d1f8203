//! The histogram of each slice, in parts: a slice may be as large as the whole run, so its histogram is never held as a
//! whole.

use crate::histogram::{Entry, Histogram, sum_by_thread};
use crate::visitor::Visitor;
use nodewise_profile::{Access, PageNumber, SliceId};

/// A consumer of slice histograms.
pub trait SliceVisitor: Send {
    /// Receives some pages of a slice, all above those that it received earlier for the same slice.
    fn part(&mut self, slice: SliceId, pages: &Histogram);

    /// Called after the last part of a slice. Slices without accesses are skipped.
    fn end_of_slice(&mut self, _slice: SliceId) {}
}

/// Builds the histogram of each slice from rows, and shows it to all consumers.
pub struct Slices<'v> {
    visitors: Vec<&'v mut dyn SliceVisitor>,
    sweep: Sweep,
    slice: Option<SliceId>,
}

impl<'v> Slices<'v> {
    /// For pages of `1 << shift` base pages and a profile of `threads` threads.
    #[must_use]
    pub fn new(threads: usize, shift: u32, visitors: Vec<&'v mut dyn SliceVisitor>) -> Self {
        Self {
            visitors,
            sweep: Sweep::new(threads, shift),
            slice: None,
        }
    }

    fn finish(&mut self) {
        let Self {
            visitors,
            sweep,
            slice,
        } = self;
        if let Some(slice) = slice.take() {
            sweep.finish(&mut |part| show(visitors, slice, part));
            visitors.iter_mut().for_each(|v| v.end_of_slice(slice));
        }
    }
}

fn show(visitors: &mut [&mut dyn SliceVisitor], slice: SliceId, part: &Histogram) {
    visitors.iter_mut().for_each(|v| v.part(slice, part));
}

impl Visitor for Slices<'_> {
    fn rows(&mut self, rows: &[Access]) {
        if self.visitors.is_empty() {
            return;
        }
        for row in rows.iter().filter(|r| r.len > 0) {
            if self.slice != Some(row.slice) {
                self.finish();
                self.slice = Some(row.slice);
            }
            let visitors = &mut self.visitors;
            self.sweep.add(row, &mut |part| show(visitors, row.slice, part));
        }
    }

    fn end(&mut self) {
        self.finish();
    }
}

/// Approximate number of cells in a part of a slice: a part stays in the cache while every visitor reads it.
const PART_CELLS: usize = 1 << 16;

/// A histogram under construction from rows that ascend by page, handed on in parts. It keeps the rows that cover the
/// current page, so that each page comes once, in order.
struct Sweep {
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
    fn new(threads: usize, shift: u32) -> Self {
        Self {
            out: Histogram::empty(threads, 0),
            shift,
            active: Vec::new(),
            at: 0,
            cells: Vec::new(),
        }
    }

    fn add(&mut self, row: &Access, emit: &mut Emit<'_>) {
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
    fn finish(&mut self, emit: &mut Emit<'_>) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;
    use nodewise_profile::{InMemory, ThreadId};

    /// Records the pages of each part, and the ends of slices.
    #[derive(Default)]
    struct Seen(Vec<(SliceId, Vec<PageNumber>)>, Vec<SliceId>);

    impl SliceVisitor for Seen {
        fn part(&mut self, slice: SliceId, pages: &Histogram) {
            assert_eq!(pages.offsets.len(), pages.len() + 1);
            self.0.push((slice, pages.pages.clone()));
        }

        fn end_of_slice(&mut self, slice: SliceId) {
            self.1.push(slice);
        }
    }

    #[test]
    fn a_large_slice_comes_in_parts_that_cut_no_page_in_two() {
        let long = |slice| Access {
            slice: SliceId(slice),
            thread: ThreadId(1),
            len: 2 * PART_CELLS as u32 + 700,
            page: PageNumber(100),
            reads: 1,
            ..Access::default()
        };
        for shift in [0, 9] {
            let mut seen = Seen::default();
            let source = InMemory::new(vec![long(1), long(4)]);
            let Ok(()) = read(&source, &mut [&mut Slices::new(2, shift, vec![&mut seen])]);
            assert_eq!(seen.1, [SliceId(1), SliceId(4)]);
            for slice in seen.0.chunk_by(|a, b| a.0 == b.0) {
                assert_eq!(slice.len(), 3);
                let pages: Vec<PageNumber> = slice.iter().flat_map(|p| p.1.clone()).collect();
                assert!(pages.is_sorted_by(|a, b| a < b));
                let last = 99 + u64::from(long(0).len);
                assert_eq!(pages.len() as u64, (last >> shift) + 1 - (100 >> shift));
            }
        }
    }
}
