//! The page × thread histogram over a whole run, in compressed sparse rows.

use nodewise_profile::{ObjectId, PageNumber, ThreadId};

/// What one thread did to one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Loads.
    pub reads: u64,
    /// Stores.
    pub writes: u64,
    /// Lines of traffic (see [`nodewise_profile::Access::lines`]), saturating.
    pub lines: u32,
    /// Who.
    pub thread: ThreadId,
}

impl Entry {
    /// Loads and stores.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }
}

/// Page × thread counts; pages ascend, and so do threads within a page.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Page size as a shift over base pages: 0 for 4 KiB, 9 for 2 MiB.
    pub shift: u32,
    /// First base page of each page, ascending.
    pub pages: Vec<PageNumber>,
    /// Owner of each page: the object that covers most of it.
    pub objects: Vec<ObjectId>,
    /// `entries[offsets[i]..offsets[i + 1]]` belong to page `i`; one longer than `pages`.
    pub offsets: Vec<u64>,
    /// All cells.
    pub entries: Vec<Entry>,
    /// Number of threads in the profile.
    pub threads: usize,
}

/// One page of a [`Histogram`].
#[derive(Clone, Copy, Debug)]
pub struct PageView<'a> {
    /// Position in the histogram, and in every mapping made from it.
    pub index: usize,
    /// First base page.
    pub page: PageNumber,
    /// Owner.
    pub object: ObjectId,
    /// Who touched it, ascending by thread.
    pub entries: &'a [Entry],
}

impl Histogram {
    /// Number of pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The page at `index`.
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
