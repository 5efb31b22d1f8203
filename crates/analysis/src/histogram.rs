//! The page × thread histogram over a whole run, in compressed sparse rows.

use nodewise_profile::{BASE_PAGE_SIZE, ObjectId, PageNumber, ThreadId};
use rayon::prelude::*;
use std::ops::Range;

/// Number of pages that a thread processes at a time.
pub(crate) const CHUNK: usize = 1 << 15;

/// Accesses of one thread to one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Load instructions to the page (for samples: sampled loads).
    pub reads: u64,
    /// Store instructions to the page (for samples: sampled stores).
    pub writes: u64,
    /// Lines of traffic (see [`nodewise_profile::Access::lines`]), saturating.
    pub lines: u32,
    /// The thread that made the accesses.
    pub thread: ThreadId,
}

impl Entry {
    /// Number of loads and stores.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }

    /// Adds the counts of another cell.
    pub(crate) fn absorb(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.lines = self.lines.saturating_add(other.lines);
    }
}

/// Sorts cells by thread, and adds up those of the same thread.
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

/// Page × thread counts; pages ascend, and so do threads within a page.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Page size as a shift over base pages: 0 for 4 KiB, 9 for 2 MiB.
    pub shift: u32,
    /// First base page of each page, ascending.
    pub pages: Vec<PageNumber>,
    /// The object of each page: the one that covers most of it.
    pub objects: Vec<ObjectId>,
    /// The cells of page `i` are `entries[offsets[i]..offsets[i + 1]]`, so there is one offset more than pages.
    pub offsets: Vec<u64>,
    /// Cells of all pages in the order of `pages`, ascending by thread within a page.
    pub entries: Vec<Entry>,
    /// Number of threads in the profile.
    pub threads: usize,
}

/// One page of a [`Histogram`].
#[derive(Clone, Copy, Debug)]
pub struct PageView<'a> {
    /// Index in the histogram, and in every mapping made from it.
    pub index: usize,
    /// Number of the first base page (4 KiB) in it.
    pub page: PageNumber,
    /// The object that covers most of the page.
    pub object: ObjectId,
    /// Accesses of each thread that touched the page, ascending by thread.
    pub entries: &'a [Entry],
}

impl PageView<'_> {
    /// Loads and stores by all threads.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.entries.iter().map(Entry::accesses).sum()
    }

    /// Lines of traffic by all threads.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.entries.iter().map(|e| u64::from(e.lines)).sum()
    }
}

impl Histogram {
    /// A histogram without pages, for `threads` threads and pages of 4 KiB << `shift`.
    #[must_use]
    pub fn empty(threads: usize, shift: u32) -> Self {
        Self {
            shift,
            threads,
            offsets: vec![0],
            ..Self::default()
        }
    }

    /// Appends a page above all others; `entries` must ascend by thread.
    pub(crate) fn push(&mut self, page: PageNumber, object: ObjectId, entries: &[Entry]) {
        self.pages.push(page);
        self.objects.push(object);
        self.entries.extend_from_slice(entries);
        self.offsets.push(self.entries.len() as u64);
    }

    /// Appends a histogram whose pages are all above those of this one.
    pub(crate) fn append(&mut self, more: &Self) {
        let before = self.entries.len() as u64;
        self.pages.extend_from_slice(&more.pages);
        self.objects.extend_from_slice(&more.objects);
        self.entries.extend_from_slice(&more.entries);
        self.offsets.extend(more.offsets[1..].iter().map(|o| before + o));
    }

    /// Removes all pages, and resets the page size to base pages.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
        self.objects.clear();
        self.entries.clear();
        self.offsets.truncate(1);
        self.shift = 0;
    }

    /// Iterates over all pages in ascending order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = PageView<'_>> + DoubleEndedIterator {
        (0..self.len()).map(|i| self.page(i))
    }

    /// The index of the first page not below `page`, searched from index `from` on. The cost grows with the distance
    /// only, so that walking along another histogram takes linear time.
    pub(crate) fn seek(&self, from: usize, page: PageNumber) -> usize {
        let mut step = 1;
        while self.pages.get(from + step - 1).is_some_and(|p| *p < page) {
            step *= 2;
        }
        let (low, high) = (from + step / 2, self.len().min(from + step));
        low + self.pages[low..high].partition_point(|p| *p < page)
    }

    /// Bytes of one page.
    #[must_use]
    pub fn page_size(&self) -> u64 {
        BASE_PAGE_SIZE << self.shift
    }

    /// Merges the base pages of a histogram into larger pages; each large page belongs to the object that covers most
    /// of it.
    #[must_use]
    pub fn coarsened(mut self, shift: u32) -> Self {
        self.coarsen(shift);
        self
    }

    /// [`Histogram::coarsened`] in place. Large pages overwrite the base pages that they consist of: there are never
    /// more of them, nor of their cells.
    pub(crate) fn coarsen(&mut self, shift: u32) {
        if shift == self.shift {
            return;
        }
        self.shift = shift;
        let mut cells = Vec::new();
        let (mut first, mut first_cell, mut to, mut to_cell) = (0, 0, 0, 0);
        while first < self.len() {
            let page = self.pages[first].align_down(shift);
            let within = self.pages[first..]
                .iter()
                .take_while(|p| p.align_down(shift) == page);
            let end = first + within.count();
            let end_cell = self.offsets[end] as usize;
            cells.clear();
            cells.extend_from_slice(&self.entries[first_cell..end_cell]);
            sum_by_thread(&mut cells);
            self.entries[to_cell..to_cell + cells.len()].copy_from_slice(&cells);
            (self.pages[to], self.objects[to]) = (page, owner(&self.objects[first..end]));
            to_cell += cells.len();
            to += 1;
            self.offsets[to] = to_cell as u64;
            (first, first_cell) = (end, end_cell);
        }
        self.pages.truncate(to);
        self.objects.truncate(to);
        self.offsets.truncate(to + 1);
        self.entries.truncate(to_cell);
        self.shrink();
    }

    /// Shrinks the vectors to their lengths.
    pub(crate) fn shrink(&mut self) {
        self.pages.shrink_to_fit();
        self.objects.shrink_to_fit();
        self.offsets.shrink_to_fit();
        self.entries.shrink_to_fit();
    }

    /// Number of accessed pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Ranges of indices of pages, disjoint and of all pages, that threads process at the same time.
    pub fn chunks(&self) -> impl IndexedParallelIterator<Item = Range<usize>> + use<> {
        let pages = self.len();
        let chunk = move |number: usize| number * CHUNK..pages.min((number + 1) * CHUNK);
        (0..pages.div_ceil(CHUNK)).into_par_iter().map(chunk)
    }

    /// The page at `index`.
    #[inline]
    #[must_use]
    pub fn page(&self, index: usize) -> PageView<'_> {
        PageView {
            index,
            page: self.pages[index],
            object: self.objects[index],
            entries: &self.entries[self.offsets[index] as usize..self.offsets[index + 1] as usize],
        }
    }
}

/// The object that occurs most often; of tied ones, the first.
fn owner(objects: &[ObjectId]) -> ObjectId {
    let mut best = (objects[0], 0);
    for stretch in objects.chunk_by(|a, b| a == b) {
        // An object's pages are contiguous, so a stretch is all of its pages inside the large page.
        if stretch.len() > best.1 {
            best = (stretch[0], stretch.len());
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn seeking_finds_what_a_scan_finds(gaps in proptest::collection::vec(1u64..5, 1..60), from in 0usize..60, page in 0u64..200) {
            let mut histogram = Histogram::empty(1, 0);
            gaps.iter().fold(0, |at, gap| {
                histogram.push(PageNumber(at + gap), ObjectId(0), &[]);
                at + gap
            });
            let from = from.min(histogram.len());
            let scanned = (from..histogram.len()).find(|i| histogram.pages[*i].0 >= page).unwrap_or(histogram.len());
            prop_assert_eq!(histogram.seek(from, PageNumber(page)), scanned);
        }
    }
}
