//! Builds the histogram of a whole run from the stream of rows.

use crate::histogram::Histogram;
use crate::merge::Merger;
use crate::slices::{SliceVisitor, Slices};
use crate::visitor::read;
use nodewise_profile::{AccessSource, SliceId};

impl Histogram {
    /// The histogram over a whole run, at pages of `1 << shift` base pages: 0 for 4 KiB, 9 for 2 MiB.
    ///
    /// ```
    /// # use nodewise_analysis::Histogram;
    /// # use nodewise_profile::{Access, InMemory, PageNumber, ThreadId};
    /// // Two threads read four pages each, 100 times a page; the middle two are the same.
    /// let row = |thread, page| Access {
    ///     thread: ThreadId(thread),
    ///     page: PageNumber(page),
    ///     len: 4,
    ///     reads: 100,
    ///     ..Access::default()
    /// };
    /// let histogram = Histogram::build(&InMemory::new(vec![row(0, 8), row(1, 10)]), 2, 0)?;
    /// let accesses: Vec<u64> = histogram.iter().map(|page| page.accesses()).collect();
    /// assert_eq!(accesses, [100, 100, 200, 200, 100, 100]);
    /// # Ok::<(), std::convert::Infallible>(())
    /// ```
    /// # Errors
    /// When the source cannot be read to its end.
    pub fn build<S: AccessSource>(source: &S, threads: usize, shift: u32) -> Result<Self, S::Error> {
        let mut builder = HistogramBuilder::default();
        read(source, &mut [&mut Slices::new(threads, 0, vec![&mut builder])])?;
        Ok(builder.finish(threads, shift))
    }
}

/// Accumulates the slices' histograms of base pages into the histogram of the whole run.
#[derive(Default)]
pub struct HistogramBuilder(Merger);

impl HistogramBuilder {
    /// The histogram at pages of `1 << shift` base pages, for a profile of `threads` threads.
    #[must_use]
    pub fn finish(self, threads: usize, shift: u32) -> Histogram {
        let mut whole = self.0.finish();
        whole.threads = threads;
        // The object of a large page is known only when all of its base pages are.
        whole.coarsen(shift);
        whole
    }
}

impl SliceVisitor for HistogramBuilder {
    fn part(&mut self, _slice: SliceId, pages: &Histogram) {
        self.0.add(pages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_profile::{Access, InMemory, ObjectId, PageNumber, ThreadId};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn rows() -> impl Strategy<Value = Vec<Access>> {
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

    /// (page, thread) → (reads, writes, lines), computed one page of one row at a time.
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

    /// The sum of the cells of all slices, added one by one.
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

    /// The same rows in batches of the given length.
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
