//! Builds histograms from the stream of rows: of each slice in parts, and of the whole run.
//!
//! Rows of a slice ascend by their first page, so a sweep over pages with the set of runs that
//! cover the current one yields each page once, in order.

use crate::histogram::{Entry, Histogram};
use crate::merge::Merger;
use crate::slices::{SliceVisitor, Slices};
use crate::visitor::read;
use nodewise_profile::{Access, AccessSource, PageNumber, SliceId};

/// Cells of a part of a slice, about: they stay in the cache while all who look at slices look at them.
pub(crate) const PART: usize = 1 << 16;

impl Histogram {
    /// The histogram over a whole run, at pages of `1 << shift` base pages: 0 for 4 KiB, 9 for 2 MiB.
    ///
    /// # Errors
    /// When the source cannot be read to its end.
    pub fn build<S: AccessSource>(source: &S, threads: usize, shift: u32) -> Result<Self, S::Error> {
        let mut builder = HistogramBuilder::default();
        read(source, &mut [&mut Slices::new(threads, 0, vec![&mut builder])])?;
        Ok(builder.finish(threads, shift))
    }
}

/// Adds slices of base pages up to the whole run.
#[derive(Default)]
pub struct HistogramBuilder(Merger);

impl HistogramBuilder {
    /// The sum at pages of `1 << shift` base pages, in a profile of so many threads.
    #[must_use]
    pub fn finish(self, threads: usize, shift: u32) -> Histogram {
        let mut whole = self.0.finish();
        whole.threads = threads;
        // Who owns a large page is known once all of its pages are.
        whole.coarsen(shift);
        whole
    }
}

impl SliceVisitor for HistogramBuilder {
    fn part(&mut self, _slice: SliceId, pages: &Histogram) {
        self.0.add(pages);
    }
}

/// A histogram under construction from rows that ascend by page, handed on in parts.
pub(crate) struct Sweep {
    out: Histogram,
    shift: u32,
    /// Rows whose runs cover page `at`.
    active: Vec<Access>,
    at: u64,
    /// The active rows as cells, one per thread.
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

    /// Emits all covered pages below `limit`, in stretches over which the active rows are the same.
    fn advance(&mut self, limit: u64, emit: &mut Emit<'_>) {
        let end = |a: &Access| a.page.0 + u64::from(a.len);
        while !self.active.is_empty() && self.at < limit {
            let stop = self.active.iter().map(end).fold(limit, u64::min);
            self.gather();
            for page in (self.at..stop).map(PageNumber) {
                if self.out.entries.len() >= PART && !self.is_within_last(page) {
                    self.flush(emit);
                }
                self.out.push(page, self.active[0].object, &self.cells);
            }
            self.at = stop;
            self.active.retain(|a| end(a) > stop);
        }
        self.at = limit;
    }

    /// Whether a page belongs to the same large page as the one before.
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

    /// Emits what is left; the next row may begin anew.
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

/// Sorts cells by thread and sums those of one thread.
pub(crate) fn sum_by_thread(cells: &mut Vec<Entry>) {
    cells.sort_unstable_by_key(|e| e.thread);
    cells.dedup_by(|next, kept| {
        let same = next.thread == kept.thread;
        if same {
            kept.absorb(next);
        }
        same
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_profile::{InMemory, ObjectId, ThreadId};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    pub(crate) fn rows() -> impl Strategy<Value = Vec<Access>> {
        let row = (0u32..3, 0u32..2, 0u32..4, 0u64..1500, 1u32..700, 0u64..9, 0u64..9).prop_map(
            |(slice, region, thread, page, len, reads, writes)| Access {
                slice: SliceId(slice),
                region: nodewise_profile::RegionId(region),
                object: ObjectId((page / 700) as u32),
                thread: ThreadId(thread),
                page: PageNumber(page),
                len: len.min(700 - (page % 700) as u32),
                reads,
                writes,
                lines: reads,
            },
        );
        proptest::collection::vec(row, 0..30)
    }

    /// (page, thread) → (reads, writes, lines), one page of one row at a time.
    fn naive(rows: &[Access], shift: u32) -> BTreeMap<(u64, u32), (u64, u64, u64)> {
        let mut cells = BTreeMap::new();
        for row in rows {
            for page in row.page.0..row.page.0 + u64::from(row.len) {
                let page = PageNumber(page).align_down(shift).0;
                let cell: &mut (u64, u64, u64) = cells.entry((page, row.thread.0)).or_default();
                *cell = (cell.0 + row.reads, cell.1 + row.writes, cell.2 + row.lines);
            }
        }
        cells
    }

    fn flat(histogram: &Histogram) -> BTreeMap<(u64, u32), (u64, u64, u64)> {
        histogram
            .iter()
            .flat_map(|p| p.entries.iter().map(move |e| (p.page.0, e)))
            .map(|(page, e)| ((page, e.thread.0), (e.reads, e.writes, u64::from(e.lines))))
            .collect()
    }

    proptest! {
        #[test]
        fn the_histogram_holds_every_access_once(rows in rows(), shift in prop_oneof![Just(0u32), Just(9)]) {
            let histogram = Histogram::build(&InMemory::new(rows.clone()), 4, shift).unwrap();
            prop_assert_eq!(flat(&histogram), naive(&rows, shift));
            prop_assert!(histogram.pages.is_sorted_by(|a, b| a < b));
            prop_assert!(histogram.iter().all(|p| p.entries.is_sorted_by(|a, b| a.thread < b.thread)));
        }

        #[test]
        fn slices_sum_to_the_whole(rows in rows(), batch in 1usize..9) {
            let source = Batched(InMemory::new(rows), batch);
            let mut sums = Sums::default();
            read(&source, &mut [&mut Slices::new(4, 0, vec![&mut sums])]).unwrap();
            prop_assert!(sums.slices.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(sums.cells, flat(&Histogram::build(&source, 4, 0).unwrap()));
        }
    }

    /// The cells of all slices, added up one by one.
    #[derive(Default)]
    struct Sums {
        cells: BTreeMap<(u64, u32), (u64, u64, u64)>,
        slices: Vec<SliceId>,
    }

    impl SliceVisitor for Sums {
        fn part(&mut self, _slice: SliceId, pages: &Histogram) {
            for (key, (r, w, l)) in flat(pages) {
                let cell = self.cells.entry(key).or_default();
                *cell = (cell.0 + r, cell.1 + w, cell.2 + l);
            }
        }

        fn end_of_slice(&mut self, slice: SliceId) {
            self.slices.push(slice);
        }
    }

    /// The same rows in small batches.
    struct Batched(InMemory, usize);

    impl AccessSource for Batched {
        type Error = std::convert::Infallible;

        fn visit(&self, visit: &mut dyn FnMut(&[Access])) -> Result<(), Self::Error> {
            self.0
                .visit(&mut |rows| rows.chunks(self.1).for_each(&mut *visit))
        }
    }

    #[test]
    fn a_large_page_belongs_to_the_object_that_covers_most_of_it() {
        let row = |object, page, len| Access {
            object: ObjectId(object),
            page: PageNumber(page),
            len,
            reads: 1,
            ..Access::default()
        };
        let rows = vec![row(1, 512, 200), row(2, 712, 312), row(2, 1024, 10)];
        let histogram = Histogram::build(&InMemory::new(rows), 1, 9).unwrap();
        assert_eq!(histogram.pages, [512, 1024].map(PageNumber));
        assert_eq!(histogram.objects, [2, 2].map(ObjectId));
        assert_eq!(histogram.page(0).entries[0].reads, 512);
    }
}
