//! Builds the histogram of a whole run from those of its slices, in little more memory than it takes.
//!
//! Slices are buffered until they have a quarter of the sum's cells, then merged into the sum in place, from the last
//! page down. So a merge moves at most about four cells of the sum for each cell added, and there is never a second
//! copy of the sum.

use crate::Entry;
use crate::histogram::{Histogram, sum_by_thread};
use crate::slices::{SliceVisitor, Slices};
use crate::visitor::read;
use nodewise_profile::{AccessSource, SliceId};
use std::ops::Range;

/// Buffered additions are merged when they have this part of the sum's cells …
const BUFFER_DIVISOR: usize = 4;
/// … and at least this many cells.
const MIN_BUFFERED_CELLS: usize = 1 << 16;

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
pub struct HistogramBuilder {
    sum: Histogram,
    /// Buffered slices. Each has more than twice as many cells as the next one, except the last.
    buffered: Vec<Histogram>,
    buffered_cells: usize,
}

impl Default for HistogramBuilder {
    fn default() -> Self {
        Self {
            sum: Histogram::empty(0, 0),
            buffered: Vec::new(),
            buffered_cells: 0,
        }
    }
}

impl SliceVisitor for HistogramBuilder {
    fn part(&mut self, _slice: SliceId, pages: &Histogram) {
        self.buffered_cells += pages.entries.len();
        match self.buffered.last_mut() {
            Some(last) if last.pages.last() < pages.pages.first() => last.append(pages),
            _ => {
                self.merge_last_while(|a, b| a.entries.len() <= 2 * b.entries.len());
                self.buffered.push(pages.clone());
            }
        }
        if self.buffered_cells >= MIN_BUFFERED_CELLS.max(self.sum.entries.len() / BUFFER_DIVISOR) {
            self.merge_buffered();
        }
    }
}

impl HistogramBuilder {
    /// The histogram at pages of `1 << shift` base pages, for a profile of `threads` threads.
    #[must_use]
    pub fn finish(mut self, threads: usize, shift: u32) -> Histogram {
        self.merge_buffered();
        self.sum.shrink();
        self.sum.threads = threads;
        // The object of a large page is known only when all of its base pages are.
        self.sum.coarsen(shift);
        self.sum
    }

    fn merge_buffered(&mut self) {
        self.merge_last_while(|_, _| true);
        if let Some(all) = self.buffered.pop() {
            self.sum.absorb(&all);
        }
        self.buffered_cells = 0;
    }

    /// Merges the last two buffered parts as long as `is_due` says so.
    fn merge_last_while(&mut self, is_due: fn(&Histogram, &Histogram) -> bool) {
        while let [.., a, b] = self.buffered.as_slice()
            && is_due(a, b)
            && let Some(last) = self.buffered.pop()
            && let Some(sum) = self.buffered.last_mut()
        {
            sum.absorb(&last);
        }
    }
}

impl Histogram {
    /// Adds the counts of another histogram of the same page size. A page that both have keeps its object in `self`.
    pub(crate) fn absorb(&mut self, other: &Self) {
        if self.pages.last() < other.pages.first() {
            return self.append(other);
        }
        let (pages, cells) = self.more_with(other);
        let mut gap = Gap {
            pages: self.len()..self.len() + pages,
            cells: self.entries.len()..self.entries.len() + cells,
        };
        self.pages.resize(gap.pages.end, Default::default());
        self.objects.resize(gap.pages.end, Default::default());
        self.offsets.resize(gap.pages.end + 1, gap.cells.end as u64);
        self.offsets[gap.pages.end] = gap.cells.end as u64;
        self.entries.resize(gap.cells.end, Entry::default());
        let mut both = Vec::new();
        for page in other.iter().rev() {
            let at = seek_back(&self.pages[..gap.pages.start], &page.page);
            let is_known = at < gap.pages.start && self.pages[at] == page.page;
            let begin = self.cell_of(at, &gap);
            self.move_up(&mut gap, at + usize::from(is_known));
            let (cells, object) = match is_known {
                true => {
                    both.clear();
                    both.extend_from_slice(&self.entries[begin..gap.cells.start]);
                    both.extend_from_slice(page.entries);
                    sum_by_thread(&mut both);
                    (&both[..], self.objects[at])
                }
                false => (page.entries, page.object),
            };
            gap.pages = at..gap.pages.end - 1;
            gap.cells = begin..gap.cells.end - cells.len();
            self.entries[gap.cells.end..gap.cells.end + cells.len()].copy_from_slice(cells);
            self.pages[gap.pages.end] = page.page;
            self.objects[gap.pages.end] = object;
            self.offsets[gap.pages.end] = gap.cells.end as u64;
        }
    }

    /// Number of pages, and of cells, that only the other histogram has.
    fn more_with(&self, other: &Self) -> (usize, usize) {
        let (mut at, mut pages, mut cells) = (0, 0, 0);
        for page in other.iter() {
            at = self.seek(at, page.page);
            if self.pages.get(at) != Some(&page.page) {
                pages += 1;
                cells += page.entries.len();
                continue;
            }
            let mut own = self.page(at).entries.iter().peekable();
            for entry in page.entries {
                while own.next_if(|o| o.thread < entry.thread).is_some() {}
                cells += usize::from(own.next_if(|o| o.thread == entry.thread).is_none());
            }
        }
        (pages, cells)
    }

    /// Index at which the cells of a page begin that has not been moved yet; for the page behind the last of these, the
    /// beginning of the gap.
    fn cell_of(&self, page: usize, gap: &Gap) -> usize {
        match page == gap.pages.start {
            true => gap.cells.start,
            false => self.offsets[page] as usize,
        }
    }

    /// Moves the pages from `first` up to the gap to the end of the gap.
    fn move_up(&mut self, gap: &mut Gap, first: usize) {
        let begin = self.cell_of(first, gap);
        let (pages, cells) = (gap.pages.len(), gap.cells.len());
        if pages > 0 || cells > 0 {
            self.pages.copy_within(first..gap.pages.start, first + pages);
            self.objects.copy_within(first..gap.pages.start, first + pages);
            self.entries.copy_within(begin..gap.cells.start, begin + cells);
            for page in (first..gap.pages.start).rev() {
                self.offsets[page + pages] = self.offsets[page] + cells as u64;
            }
        }
        *gap = Gap {
            pages: first..first + pages,
            cells: begin..begin + cells,
        };
    }
}

/// Free space between pages that have not been moved yet and pages that are in their final position.
struct Gap {
    pages: Range<usize>,
    cells: Range<usize>,
}

/// Index of the first page that is not below `page`. The cost grows with the distance from the end.
fn seek_back<T: Ord>(pages: &[T], page: &T) -> usize {
    let mut step = 1;
    while pages.len() >= step && pages[pages.len() - step] >= *page {
        step *= 2;
    }
    let low = (pages.len() + 1).saturating_sub(step);
    let high = pages.len() - step / 2;
    low + pages[low..high].partition_point(|p| p < page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_profile::{Access, InMemory, ObjectId, PageNumber, ThreadId};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Cells = BTreeMap<(u64, u32), (u64, u64)>;

    fn histogram(cells: &Cells) -> Histogram {
        let mut out = Histogram::empty(9, 0);
        let all: Vec<_> = cells.iter().collect();
        for page in all.chunk_by(|a, b| a.0.0 == b.0.0) {
            let entry = |((_, thread), (reads, writes)): &(&(u64, u32), &(u64, u64))| Entry {
                reads: *reads,
                writes: *writes,
                lines: *reads as u32,
                thread: ThreadId(*thread),
            };
            let entries: Vec<Entry> = page.iter().map(entry).collect();
            out.push(
                PageNumber(page[0].0.0),
                ObjectId(page[0].0.0 as u32 / 10),
                &entries,
            );
        }
        out
    }

    fn cells() -> impl Strategy<Value = Cells> {
        proptest::collection::btree_map((0u64..60, 0u32..4), (0u64..9, 0u64..9), 0..60)
    }

    fn equal(a: &Histogram, b: &Histogram) -> bool {
        (&a.pages, &a.objects, &a.offsets, &a.entries) == (&b.pages, &b.objects, &b.offsets, &b.entries)
    }

    proptest! {
        #[test]
        fn a_sum_in_place_is_the_sum_cell_by_cell(a in cells(), b in cells()) {
            let mut sum = histogram(&a);
            sum.absorb(&histogram(&b));
            let mut all = a;
            for (key, (reads, writes)) in b {
                let cell = all.entry(key).or_default();
                *cell = (cell.0 + reads, cell.1 + writes);
            }
            prop_assert!(equal(&sum, &histogram(&all)));
        }

        #[test]
        fn the_order_in_which_parts_come_does_not_matter(parts in proptest::collection::vec(cells(), 1..9)) {
            let sum = |parts: &mut dyn Iterator<Item = &Cells>| {
                let mut builder = HistogramBuilder::default();
                parts.for_each(|p| builder.part(SliceId(0), &histogram(p)));
                builder.finish(9, 0)
            };
            prop_assert!(equal(&sum(&mut parts.iter()), &sum(&mut parts.iter().rev())));
        }

        #[test]
        fn seeking_back_finds_what_a_scan_finds(gaps in proptest::collection::vec(1u64..5, 0..60), page in 0u64..200) {
            let pages: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
            let scanned = pages.iter().position(|p| *p >= page).unwrap_or(pages.len());
            prop_assert_eq!(seek_back(&pages, &page), scanned);
        }
    }

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
