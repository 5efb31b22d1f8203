//! Result of moving pages: pages that moved, pages that stayed and why, and the work of each thread.

use super::plan::{Pair, Plan};
use super::stayed::Stayed;
use nodewise_linux::pages::CallError;
use serde::Serialize;

/// Pages moved from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PairMoved {
    /// The kernel's number of the source node.
    pub from: u32,
    /// The kernel's number of the target node.
    pub to: u32,
    /// Pages of 4 KiB that were to move.
    pub planned: u64,
    /// Pages of 4 KiB that moved.
    pub pages: u64,
}

/// One chunk as a worker processed it. Times are nanoseconds since the start of the move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Batch {
    /// Index of the worker.
    pub worker: usize,
    /// The CPU that the worker was on at the end of the chunk.
    pub cpu: u32,
    /// The kernel's number of the source node.
    pub from: u32,
    /// The kernel's number of the target node.
    pub to: u32,
    /// Pages of 4 KiB in the chunk.
    pub pages: u64,
    /// Pages of 4 KiB that moved.
    pub moved: u64,
    /// When the worker began the chunk.
    pub begin_ns: u64,
    /// When the worker finished the chunk.
    pub end_ns: u64,
}

/// Result of carrying out a plan. Moved and stayed pages add up to the planned pages and those known to stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Pages of 4 KiB that moved.
    pub pages: u64,
    /// Number of huge pages that moved as a whole.
    pub huge: u64,
    /// Pages moved for each pair of nodes.
    pub pairs: Vec<PairMoved>,
    /// Pages that did not move.
    pub stayed: Stayed,
    /// Every chunk, in the order in which they were finished.
    pub batches: Vec<Batch>,
    /// Number of threads that took part.
    pub workers: usize,
    /// Duration of all batches together, nanoseconds of wall time.
    pub ns: u64,
    /// Whether the process ended meanwhile.
    pub gone: bool,
    /// The node of the first resident page of each target afterwards; empty if a plan was carried out.
    pub homes: Vec<Option<u32>>,
    /// Whether all resident pages of each target were on its node before; empty if a plan was carried out.
    pub already: Vec<bool>,
    /// Why the kernel refused to continue although the process still exists; pages may have moved before.
    pub refusal: Option<CallError>,
}

impl Moved {
    /// Bytes in the pages that moved.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pages << super::run::BASE
    }

    /// The result before anything has moved.
    #[must_use]
    pub fn nothing_of(plan: &Plan) -> Self {
        let pair = |p: &Pair| PairMoved {
            from: p.from,
            to: p.to,
            planned: p.pages(),
            pages: 0,
        };
        Self {
            pairs: plan.pairs.iter().map(pair).collect(),
            stayed: plan.stayed.clone(),
            ..Self::default()
        }
    }
}
