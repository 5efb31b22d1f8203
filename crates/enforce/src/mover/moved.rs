//! Result of moving pages: pages that moved, pages that stayed and why, and the work of each thread.

use super::chunk::ChunkResult;
use super::plan::{Pair, Plan, Run};
use super::stayed::{Cause, Stayed};
use nodewise_linux::affinity;
use nodewise_linux::pages::CallError;
use std::sync::Mutex;
use std::time::Instant;

/// Pages moved from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Duration in nanoseconds.
    pub ns: u64,
    /// Whether the process ended meanwhile.
    pub gone: bool,
    /// The node of the first resident page of each target afterwards; empty if a plan was carried out.
    pub homes: Vec<Option<u32>>,
    /// Why the kernel refused to continue although the process still exists; pages may have moved before.
    pub refusal: Option<CallError>,
}

impl Moved {
    /// Bytes in the pages that moved.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pages << super::plan::BASE
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

/// Collects the results of all workers.
pub struct Ledger<'a> {
    start: Instant,
    progress: &'a (dyn Fn(u64) + Sync),
    state: Mutex<(Moved, Option<CallError>)>,
}

impl<'a> Ledger<'a> {
    pub fn new(plan: &Plan, progress: &'a (dyn Fn(u64) + Sync)) -> Self {
        Self {
            start: Instant::now(),
            progress,
            state: Mutex::new((Moved::nothing_of(plan), None)),
        }
    }

    pub fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn with<T>(&self, change: impl FnOnce(&mut Moved, &mut Option<CallError>) -> T) -> T {
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let (moved, end) = &mut *state;
        change(moved, end)
    }

    /// Whether an error has ended the move.
    pub fn has_ended(&self) -> bool {
        self.with(|_, end| end.is_some())
    }

    /// Whether pages have moved away from this node.
    pub fn has_left(&self, node: u32) -> bool {
        self.with(|moved, _| moved.pairs.iter().any(|p| p.from == node && p.pages > 0))
    }

    pub fn add(&self, worker: usize, begin_ns: u64, pair: &Pair, outcome: ChunkResult) {
        let batch = Batch {
            worker,
            cpu: affinity::current_cpu(),
            from: pair.from,
            to: pair.to,
            pages: outcome.pages,
            moved: outcome.moved,
            begin_ns,
            end_ns: self.now_ns(),
        };
        self.with(|moved, end| {
            moved.pages += outcome.moved;
            moved.huge += outcome.huge;
            moved.stayed.extend(outcome.stayed);
            let of_pair = |p: &&mut PairMoved| (p.from, p.to) == (pair.from, pair.to);
            if let Some(pair) = moved.pairs.iter_mut().find(of_pair) {
                pair.pages += outcome.moved;
            }
            moved.batches.push(batch);
            *end = end.or(outcome.end);
        });
        (self.progress)(batch.pages);
    }

    /// Records pages for which there is no room and that will not be tried again.
    pub fn refused(&self, pairs: &[Pair]) {
        let runs = pairs.iter().flat_map(|p| &p.runs);
        self.with(|moved, _| runs.for_each(|run| moved.stayed.add(*run, Cause::NoRoom)));
    }

    /// Records pages that no worker reached before the end.
    pub fn not_reached(&self, runs: impl Iterator<Item = Run>) {
        self.with(|moved, _| runs.for_each(|run| moved.stayed.add(run, Cause::Gone)));
    }

    /// The result of all workers together.
    pub fn finish(self) -> Moved {
        let ns = self.now_ns();
        let (mut moved, end) = self
            .state
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        moved.stayed.sort();
        let mut workers: Vec<usize> = moved.batches.iter().map(|b| b.worker).collect();
        workers.sort_unstable();
        workers.dedup();
        (moved.workers, moved.ns) = (workers.len(), ns);
        moved.gone = end == Some(CallError::Gone);
        moved.refusal = end.filter(|e| *e != CallError::Gone);
        moved
    }
}
