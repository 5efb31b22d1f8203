//! The parts of the work that threads took: in other runs of the same command, and by numbers from shared counters.

use crate::{SiteId, ThreadId};

/// Accesses of one thread of another run to the pages of one part.
///
/// A part is what one thread of the recorded run did: the pages of which it made more than half of the accesses.
/// Threads have the same numbers as in maps: their OpenMP numbers, else by order of creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TakenPart {
    /// The other run, from 0.
    pub run: u32,
    /// The thread of the recorded run whose part it is; `None` for pages of which no thread made more than half of the
    /// accesses, or that only the other run accessed.
    pub part: Option<u32>,
    /// The thread of the other run that made the accesses.
    pub by: u32,
    /// Number of loads and stores to the part.
    pub accesses: u64,
}

/// A thread took a number from a counter that threads share, by an atomic operation or under a lock.
///
/// If the number determines the part that the thread works on, another run gives that part to another thread. What the
/// number determines is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CounterUse {
    /// The code that takes numbers.
    pub site: SiteId,
    /// The thread that took one.
    pub thread: ThreadId,
    /// Whether the thread took more than one number.
    pub again: bool,
}
