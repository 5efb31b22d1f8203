//! Which threads took which parts of the work: in other runs of the same command, and by which numbers in this one.

use crate::{SiteId, ThreadId};

/// Accesses of one thread of another run to the pages of one part.
///
/// A part is what one thread of the recorded run did: the pages of which it made more than half of the accesses. Threads
/// are numbered as maps number them: by OpenMP, else in the order of their creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TakenPart {
    /// The other run, from 0.
    pub run: u32,
    /// The thread whose part it is in the recorded run; `None` for pages of which no thread made more than half of
    /// the accesses, or that only the other run accessed.
    pub part: Option<u32>,
    /// The thread that made them in the other run.
    pub by: u32,
    /// Number of loads and stores to it.
    pub accesses: u64,
}

/// A thread has taken a number from a counter that threads share, by an atomic operation or under a lock.
///
/// If the number chooses the part that the thread works on, another run gives the part to another thread. What it chooses
/// is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    /// The code that takes numbers.
    pub site: SiteId,
    /// The thread that took one.
    pub thread: ThreadId,
    /// Whether it took more than one.
    pub again: bool,
}
