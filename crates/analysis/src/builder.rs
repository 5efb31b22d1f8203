//! From the stream of rows to histograms: one per slice, or one over the whole run.
//!
//! Rows of a slice ascend by their first page, so a sweep over pages with the set of runs that
//! cover the current one yields each page once, in order.

use crate::histogram::{Entry, Histogram};
use crate::merge::Merger;
use nodewise_profile::{Access, AccessSource, PageNumber, SliceId};

impl Histogram {
    /// The histogram over a whole run, at pages of `1 << shift` base pages: 0 for 4 KiB, 9 for 2 MiB.
    ///
    /// # Errors
    /// When the source cannot be read to its end.
    pub fn build<S: AccessSource>(source: &S, threads: usize, shift: u32) -> Result<Self, S::Error> {
        let mut merger = Merger::default();
        for_each_slice(source, threads, 0, |_, histogram| merger.add(histogram))?;
        let whole = merger.finish().unwrap_or_else(|| Self::empty(threads, 0));
        Ok(whole.coarsened(shift))
    }
}

/// Calls `visit` with the histogram of each slice that has accesses, ascending.
///
/// # Errors
/// When the source cannot be read to its end.
pub fn for_each_slice<S: AccessSource>(
    source: &S,
    threads: usize,
    shift: u32,
    mut visit: impl FnMut(SliceId, Histogram),
) -> Result<(), S::Error> {
    let mut open: Option<(SliceId, Sweep)> = None;
    source.visit(&mut |rows| {
        for row in rows.iter().filter(|r| r.len > 0) {
            if open.as_ref().is_none_or(|(slice, _)| *slice != row.slice) {
                let next = (row.slice, Sweep::new(threads));
                if let Some((slice, sweep)) = open.replace(next) {
                    visit(slice, sweep.finish().coarsened(shift));
                }
            }
            if let Some((_, sweep)) = &mut open {
                sweep.add(row);
            }
        }
    })?;
    if let Some((slice, sweep)) = open {
        visit(slice, sweep.finish().coarsened(shift));
    }
    Ok(())
}

/// A histogram of base pages under construction from rows that ascend by page.
struct Sweep {
    out: Histogram,
    /// Rows whose runs cover page `at`.
    active: Vec<Access>,
    at: u64,
    /// The active rows as cells, one per thread.
    cells: Vec<Entry>,
}

impl Sweep {
    fn new(threads: usize) -> Self {
        let out = Histogram::empty(threads, 0);
        Self {
            out,
            active: Vec::new(),
            at: 0,
            cells: Vec::new(),
        }
    }

    fn add(&mut self, row: &Access) {
        if row.page.0 != self.at {
            debug_assert!(row.page.0 > self.at, "rows ascend by page");
            self.advance(row.page.0);
        }
        self.active.push(*row);
    }

    /// Emits all covered pages below `limit`, in stretches over which the active rows are the same.
    fn advance(&mut self, limit: u64) {
        let end = |a: &Access| a.page.0 + u64::from(a.len);
        while !self.active.is_empty() && self.at < limit {
            let stop = self.active.iter().map(end).fold(limit, u64::min);
            self.gather();
            for page in self.at..stop {
                self.out
                    .push(PageNumber(page), self.active[0].object, &self.cells);
            }
            self.at = stop;
            self.active.retain(|a| end(a) > stop);
        }
        self.at = limit;
    }

    fn gather(&mut self) {
        self.cells.clear();
        self.cells.extend(self.active.iter().map(cell));
        sum_by_thread(&mut self.cells);
    }

    fn finish(mut self) -> Histogram {
        self.advance(u64::MAX);
        self.out
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
            let mut sum = BTreeMap::new();
            let mut slices = Vec::new();
            for_each_slice(&source, 4, 0, |slice, histogram| {
                slices.push(slice);
                for (key, (r, w, l)) in flat(&histogram) {
                    let cell: &mut (u64, u64, u64) = sum.entry(key).or_default();
                    *cell = (cell.0 + r, cell.1 + w, cell.2 + l);
                }
            }).unwrap();
            prop_assert!(slices.is_sorted_by(|a, b| a < b));
            prop_assert_eq!(sum, flat(&Histogram::build(&source, 4, 0).unwrap()));
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
