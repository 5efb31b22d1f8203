//! Sums of histograms of equal page size, in little more memory than the sum takes.
//!
//! Additions are buffered until they have an eighth of the sum's cells, then merged into the sum in place, from the
//! last page down. So a merge moves at most about eight cells of the sum for each cell added, and there is never a
//! second copy of the sum.

use crate::histogram::sum_by_thread;
use crate::{Entry, Histogram};
use std::ops::Range;

/// Buffered additions are merged when they have this part of the sum's cells …
const BUFFER_DIVISOR: usize = 8;
/// … and at least this many cells.
const MIN_BUFFERED_CELLS: usize = 1 << 16;

/// A running sum of histograms of base pages.
pub(crate) struct Merger {
    sum: Histogram,
    /// Buffered additions. Each has more than twice as many cells as the next one, except the last.
    buffered: Vec<Histogram>,
    buffered_cells: usize,
}

impl Default for Merger {
    fn default() -> Self {
        Self {
            sum: Histogram::empty(0, 0),
            buffered: Vec::new(),
            buffered_cells: 0,
        }
    }
}

impl Merger {
    pub fn add(&mut self, more: &Histogram) {
        self.buffered_cells += more.entries.len();
        match self.buffered.last_mut() {
            Some(last) if last.pages.last() < more.pages.first() => last.append(more),
            _ => {
                self.merge_last_while(|a, b| a.entries.len() <= 2 * b.entries.len());
                self.buffered.push(more.clone());
            }
        }
        if self.buffered_cells >= MIN_BUFFERED_CELLS.max(self.sum.entries.len() / BUFFER_DIVISOR) {
            self.merge_buffered();
        }
    }

    pub fn finish(mut self) -> Histogram {
        self.merge_buffered();
        self.sum.shrink();
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
            both.clear();
            both.extend_from_slice(&self.entries[begin..gap.cells.start]);
            both.extend_from_slice(page.entries);
            sum_by_thread(&mut both);
            let object = if is_known { self.objects[at] } else { page.object };
            gap.pages = at..gap.pages.end - 1;
            gap.cells = begin..gap.cells.end - both.len();
            self.pages[gap.pages.end] = page.page;
            self.objects[gap.pages.end] = object;
            self.offsets[gap.pages.end] = gap.cells.end as u64;
            self.entries[gap.cells.end..gap.cells.end + both.len()].copy_from_slice(&both);
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
    use nodewise_profile::{ObjectId, PageNumber, ThreadId};
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
                let mut merger = Merger::default();
                parts.for_each(|p| merger.add(&histogram(p)));
                merger.finish()
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
}
