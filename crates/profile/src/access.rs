//! The largest table, accesses, and the two tables keyed by time: first touches and slices.

use crate::{ObjectId, PageNumber, RegionId, SiteId, SliceId, ThreadId};

/// One row: the accesses of one thread to a run of pages in one slice and one region.
///
/// The counts are **per page**: each of the `len` pages starting at `page` has exactly these
/// counts, so a row stands for `len * (reads + writes)` accesses. Runs never cross objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The time slice in which the pages were accessed.
    pub slice: SliceId,
    /// The code region that accessed them.
    pub region: RegionId,
    /// Object that owns the pages.
    pub object: ObjectId,
    /// The thread that made the accesses.
    pub thread: ThreadId,
    /// First page of the run.
    pub page: PageNumber,
    /// Number of consecutive pages, at least 1.
    pub len: u32,
    /// Load instructions executed, per page.
    pub reads: u64,
    /// Store instructions executed, per page.
    pub writes: u64,
    /// 64-byte lines newly touched since the page last entered the thread's window of recent
    /// pages, per page: an estimate of the traffic behind private caches.
    pub lines: u64,
}

impl Access {
    /// Reads and writes to each page of the run.
    #[must_use]
    pub fn accesses_per_page(&self) -> u64 {
        self.reads + self.writes
    }

    /// Accesses of the whole run.
    #[must_use]
    pub fn total(&self) -> u64 {
        u64::from(self.len) * self.accesses_per_page()
    }
}

/// The first touch of a run of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirstTouch {
    /// First page of the run.
    pub page: PageNumber,
    /// Number of consecutive pages, at least 1.
    pub len: u32,
    /// Object that owns the pages.
    pub object: ObjectId,
    /// The thread that touched the page first.
    pub thread: ThreadId,
    /// The code that touched them.
    pub site: SiteId,
    /// The slice of the touch.
    pub slice: SliceId,
    /// The region of the touch.
    pub region: RegionId,
}

/// A time slice, in nanoseconds since the recording began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// Start, nanoseconds since the recording began.
    pub start_ns: u64,
    /// End, nanoseconds since the recording began.
    pub end_ns: u64,
}

/// A source that can stream a profile's accesses.
pub trait AccessSource {
    /// What can go wrong while reading.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Calls `visit` with consecutive batches of rows. Slices ascend over the whole stream; within a slice, rows ascend
    /// by page.
    ///
    /// # Errors
    /// If the source cannot be read to its end.
    fn visit(&self, visit: &mut dyn FnMut(&[Access])) -> Result<(), Self::Error>;
}

/// Accesses held in memory, for tests and synthetic profiles.
#[derive(Clone, Debug, Default)]
pub struct InMemory(Vec<Access>);

impl InMemory {
    /// Sorts the rows into the order that [`AccessSource`] promises.
    #[must_use]
    pub fn new(mut rows: Vec<Access>) -> Self {
        rows.sort_unstable_by_key(|a| (a.slice, a.page, a.thread, a.region));
        Self(rows)
    }
}

impl AccessSource for InMemory {
    type Error = std::convert::Infallible;

    fn visit(&self, visit: &mut dyn FnMut(&[Access])) -> Result<(), Self::Error> {
        visit(&self.0);
        Ok(())
    }
}
