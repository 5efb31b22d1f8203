//! What came of it: pages moved, pages that stayed and why, and who did what when.

use super::chunk::ChunkResult;
use super::plan::{Pair, Plan, Run};
use super::stayed::{Cause, Stayed};
use nodewise_linux::affinity;
use nodewise_linux::pages::CallError;
use std::sync::Mutex;
use std::time::Instant;

/// What moved between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairMoved {
    /// The kernel's number of the node.
    pub from: u32,
    /// The kernel's number of the node.
    pub to: u32,
    /// Pages of 4 KiB that were to move.
    pub planned: u64,
    /// Those that did.
    pub pages: u64,
}

/// One chunk as a worker dealt with it. Times are since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Which worker.
    pub worker: usize,
    /// The CPU that it was on at the end.
    pub cpu: u32,
    /// The kernel's number of the node.
    pub from: u32,
    /// The kernel's number of the node.
    pub to: u32,
    /// Pages of 4 KiB in the chunk.
    pub pages: u64,
    /// Those that moved.
    pub moved: u64,
    /// Begin.
    pub begin_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// What came of a plan. Pages moved and stayed add up to those planned and those known to stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Pages of 4 KiB that moved.
    pub pages: u64,
    /// Huge pages among them that moved whole: so many huge pages.
    pub huge: u64,
    /// By pair of nodes.
    pub pairs: Vec<PairMoved>,
    /// Those that did not move.
    pub stayed: Stayed,
    /// Every chunk, by its end.
    pub batches: Vec<Batch>,
    /// Threads that took part.
    pub workers: usize,
    /// From start to end.
    pub ns: u64,
    /// Whether the process ended meanwhile.
    pub gone: bool,
    /// Where the first page that is there of each target lies now; empty for a plan.
    pub homes: Vec<Option<u32>>,
    /// Why the kernel would not go on, the process still there: what moved before has moved.
    pub refusal: Option<CallError>,
}

impl Moved {
    /// Bytes that moved.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pages << super::plan::BASE
    }

    /// Before anything has moved.
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

/// Where workers write down what they did.
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

    /// Whether there is no point in going on.
    pub fn has_ended(&self) -> bool {
        self.with(|_, end| end.is_some())
    }

    /// Whether pages have left this node.
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

    /// These found no room and will not be tried again.
    pub fn refused(&self, pairs: &[Pair]) {
        let runs = pairs.iter().flat_map(|p| &p.runs);
        self.with(|moved, _| runs.for_each(|run| moved.stayed.add(*run, Cause::NoRoom)));
    }

    /// Nobody got to these before the end.
    pub fn not_reached(&self, runs: impl Iterator<Item = Run>) {
        self.with(|moved, _| runs.for_each(|run| moved.stayed.add(run, Cause::Gone)));
    }

    /// The sum, and why it ended early.
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
