//! The results that the workers of a move collect while it runs.

use super::chunk::ChunkResult;
use super::moved::{Batch, Moved, PairMoved};
use super::plan::{Pair, Plan};
use super::run::Run;
use super::stayed::Cause;
use nodewise_linux::pages::CallError;
use nodewise_linux::{affinity, clock};
use std::sync::Mutex;
use std::time::Instant;

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
        clock::nanoseconds(self.start.elapsed())
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
