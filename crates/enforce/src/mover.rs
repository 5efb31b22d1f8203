//! Moves pages of a running process between nodes, in parallel and in chunks, whatever the process does meanwhile
//! (Lepers et al., AsymSched, section 4.3, "Fast memory migration").

mod chunk;
mod kernel;
mod ledger;
mod moved;
mod order;
mod plan;
mod queue;
mod refusal;
mod run;
mod stayed;
mod stock;
#[cfg(test)]
mod tests;

pub use moved::{Batch, Moved, PairMoved};
pub(crate) use plan::present;
pub use plan::{Pair, Plan, Target};
pub use run::Run;
pub use stayed::{Cause, Stayed};
pub use stock::migrate_pages;

use crate::{EnforceError, Host, HostNode};
use chunk::carry_out;
use kernel::{Kernel, Linux};
use ledger::Ledger;
use nodewise_linux::affinity;
use nodewise_linux::pages::Scope;
use nodewise_machine::CpuId;
use order::Order;
use queue::Queue;
use std::borrow::Borrow;
use std::collections::BTreeSet;

/// Pages of 4 KiB that a call moves by default; measurements are in `docs/migrate.md`.
pub const CHUNK: usize = 4096;
/// Pages per call in AsymSched (section 4.3).
pub const CHUNK_ASYMSCHED: usize = 30_000;
/// Default number of workers for each pair of nodes; several, as one CPU copies less than a link carries.
const WORKERS_PER_PAIR: usize = 4;

/// Moves pages with several threads, each bound to the node that its pages go to.
#[derive(Clone, Debug)]
pub struct Mover {
    nodes: Vec<HostNode>,
    workers: usize,
    chunk: usize,
    scope: Scope,
}

impl Mover {
    /// A mover with this number of threads; 0 chooses a number. Threads are not bound if the host's nodes cannot be
    /// read.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            nodes: Host::this(&[]).map(|h| h.nodes).unwrap_or_default(),
            workers,
            chunk: CHUNK,
            scope: Scope::Exclusive,
        }
    }

    /// Sets the number of 4 KiB pages that a call moves; huge pages are not split for it.
    #[must_use]
    pub fn with_chunk(mut self, pages: usize) -> Self {
        self.set_chunk(pages);
        self
    }

    /// Sets whether pages that other processes map too are moved, which needs `CAP_SYS_NICE`.
    #[must_use]
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// As [`Mover::with_scope`], for a mover in use.
    pub fn set_scope(&mut self, scope: Scope) {
        self.scope = scope;
    }

    /// As [`Mover::with_chunk`], for a mover in use.
    pub fn set_chunk(&mut self, pages: usize) {
        self.chunk = pages.max(1);
    }

    /// Moves the resident pages of each target to its node. It is no error if the process ends, forks, unmaps memory or
    /// is stopped meanwhile. [`Moved::homes`] tells the node of each target afterwards, and [`Moved::refusal`] why the
    /// kernel refused to continue, if it did. To a full node that other targets leave comes no more than is free there then; the
    /// rest stays for want of room.
    ///
    /// # Errors
    /// We may not read the memory map of the process.
    pub fn move_pages(&self, pid: u32, targets: &[Target]) -> Result<Moved, EnforceError> {
        let (plan, already) = Plan::of_targets(pid, targets)?;
        let mut moved = self.work(&Linux::of(pid, self.scope), &plan, false, &|_| ());
        moved.already = already;
        moved.homes = self.homes(pid, targets);
        Ok(moved)
    }

    /// Carries out a plan; where a node is full, the kernel reclaims what it can. Several threads call `progress` with the number of further pages they have processed.
    ///
    /// # Errors
    /// We may not change the process, or it may not use a node.
    pub fn carry_out(&self, plan: &Plan, progress: &(dyn Fn(u64) + Sync)) -> Result<Moved, EnforceError> {
        let moved = self.work(&Linux::of(plan.pid, self.scope), plan, true, progress);
        match moved.refusal {
            Some(error) => Err(refusal::explain(plan.pid, error)),
            None => Ok(moved),
        }
    }

    /// Number of threads that work on these pairs: at most one for each chunk.
    #[must_use]
    pub fn workers<P: Borrow<Pair>>(&self, pairs: &[P]) -> usize {
        let all = || pairs.iter().map(Borrow::borrow);
        let chunks: u64 = all().map(|p| p.pages().div_ceil(self.chunk as u64)).sum();
        let cpus: usize = all().map(|p| self.cpus(&[p.to, p.from]).len()).sum();
        let wanted = match self.workers {
            0 => (pairs.len() * WORKERS_PER_PAIR).min(cpus.max(pairs.len())),
            workers => workers,
        };
        wanted.min(usize::try_from(chunks).unwrap_or(usize::MAX))
    }

    /// CPUs of the first of these nodes that has any.
    fn cpus(&self, nodes: &[u32]) -> &[CpuId] {
        let of = |node: u32| self.nodes.iter().find(|n| n.os_index == node);
        let nodes = nodes.iter().copied().filter_map(of);
        nodes
            .map(|n| n.cpus.as_slice())
            .find(|c| !c.is_empty())
            .unwrap_or(&[])
    }

    /// The node of each target now, queried from CPUs of the node it was sent to: before Linux 6.6, querying a page
    /// protected for sampling counts as an access, and an access from elsewhere may make the kernel move the page back.
    pub(crate) fn homes(&self, pid: u32, targets: &[Target]) -> Vec<Option<u32>> {
        let mut homes = vec![None; targets.len()];
        for node in targets.iter().map(|t| t.node).collect::<BTreeSet<u32>>() {
            let (indices, sent): (Vec<usize>, Vec<Target>) = targets
                .iter()
                .copied()
                .enumerate()
                .filter(|(_, t)| t.node == node)
                .unzip();
            let ask = || {
                self.bind_to(&[node]);
                plan::homes(pid, &sent)
            };
            let found = std::thread::scope(|scope| scope.spawn(ask).join()).unwrap_or_default();
            indices
                .into_iter()
                .zip(found)
                .for_each(|(i, home)| homes[i] = home);
        }
        homes
    }

    /// Binds the calling thread to the first of these nodes that has CPUs. An error is ignored: moving is only slower
    /// then.
    fn bind_to(&self, nodes: &[u32]) {
        let cpus: Vec<u32> = self.cpus(nodes).iter().map(|c| c.0).collect();
        let _ = affinity::bind_this_thread(&cpus);
    }

    /// `reclaim`: whether the kernel may be asked for more of full nodes than is free there, and reclaims memory for it.
    fn work(
        &self,
        kernel: &dyn Kernel,
        plan: &Plan,
        reclaim: bool,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Moved {
        let ledger = Ledger::new(plan, progress);
        let order = Order::of(kernel, &plan.pairs);
        let mut refused = self.round(kernel, &order.first, &ledger);
        let mut waiting: Vec<Pair> = order.then.iter().map(|p| (*p).clone()).collect();
        // Each round of two full nodes that change places makes room for the next.
        while !ledger.has_ended() {
            let (coming, over) = order.within_room(kernel, &waiting);
            if coming.is_empty() {
                break;
            }
            refused.extend(self.round(kernel, &coming, &ledger));
            waiting = over;
        }
        // At the end of the process a round records what it does not reach.
        if reclaim || ledger.has_ended() {
            refused.extend(self.round(kernel, &waiting, &ledger));
        } else {
            ledger.refused(&waiting);
        }
        // Nodes that pages have left may have room now; pages refused by other nodes are refused for good.
        let (again, full): (Vec<_>, Vec<_>) = refused.into_iter().partition(|p| ledger.has_left(p.to));
        ledger.refused(&full);
        let refused = self.round(kernel, &again, &ledger);
        ledger.refused(&refused);
        ledger.finish()
    }

    /// Tries to move each page of the pairs once; returns the pages for which there was no room.
    fn round<P: Borrow<Pair>>(&self, kernel: &dyn Kernel, pairs: &[P], ledger: &Ledger<'_>) -> Vec<Pair> {
        let queue = Queue::of(pairs, self.chunk);
        std::thread::scope(|scope| {
            for id in 0..self.workers(pairs) {
                let queue = &queue;
                scope.spawn(move || self.worker(id, kernel, queue, ledger));
            }
        });
        queue.finish(ledger)
    }

    fn worker(&self, id: usize, kernel: &dyn Kernel, queue: &Queue, ledger: &Ledger<'_>) {
        let (mut at, mut bound) = (id, None);
        while let Some((next, chunk)) = (!ledger.has_ended()).then(|| queue.next(at)).flatten() {
            at = next;
            let pair = queue.pair(at);
            if bound != Some(at) {
                bound = Some(at);
                self.bind_to(&[pair.to, pair.from]);
            }
            let begin_ns = ledger.now_ns();
            let mut outcome = carry_out(kernel, &chunk, pair.to);
            if outcome.full {
                queue.give_up(pair.to);
            }
            queue.refuse(at, std::mem::take(&mut outcome.refused));
            ledger.add(id, begin_ns, pair, outcome);
        }
    }
}
