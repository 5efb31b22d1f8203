//! Takes in samples: which node accessed which page, where the pages are, and who moved them there.

use super::Session;
use crate::event::{Event, Found, MovedPages};
use crate::mover::Mover;
use crate::ranking::Ranking;
use crate::touched_pages::{Touched, asked, new_pages};
use nodewise_linux::{clock, pages};
use nodewise_machine::NodeId;
use nodewise_observe::faults::Kind;
use nodewise_placement::Reason;
use nodewise_profile::{BASE_PAGE_SHIFT, Migration, PageNumber};
use std::collections::BTreeMap;
use std::time::Duration;

impl Session {
    /// Reads new samples, within the observing budget.
    pub(super) fn look(&mut self) {
        self.watch.look(Duration::ZERO);
        let began = clock::own_cpu_time();
        self.take_in_all();
        self.watch.charge(clock::own_cpu_time() - began);
        if let Some(scan) = &self.scan {
            self.watch.adapt_scans(scan);
        }
    }

    fn take_in_all(&mut self) {
        let now = self.now();
        let _ = self.subscribers.tell(now, &Event::Sampled(&self.watch));
        let overdrawn = self.watch.overdrawn();
        let mut touched: BTreeMap<u16, Vec<Touched>> = BTreeMap::new();
        for touch in self.watch.touches() {
            if touch.kind == Kind::First && !overdrawn {
                self.holding.memory_grows();
            }
            // Beside DAMON's counts of all pages, single faults have no weight.
            let (fault, sampled) = (touch.fault, touch.kind.is_sample() && self.heat.is_none());
            let node = self.topology.node_of_cpu(fault.cpu).filter(|_| sampled);
            if let Some((process, pid)) = touch.process.and_then(|p| Some((p, self.watch.pid(p)?))) {
                let shared = self.shared.as_mut();
                let owned = shared.and_then(|shared| shared.owner(process, pid, now, fault.address));
                let (owner, address) = match &owned {
                    Some(owned) => (owned.process, owned.address),
                    None => (process, fault.address),
                };
                touched.entry(owner).or_default().push(Touched {
                    address,
                    pid,
                    tid: fault.tid,
                    time_ns: fault.time_ns,
                    node,
                    // Shared memory that one process touches first may be in use by others.
                    first: touch.kind == Kind::First && owned.as_ref().is_none_or(|owned| owned.new),
                    shared: owned.map(|owned| owned.extent),
                });
            }
        }
        if self.watch.left_processes_out() && !std::mem::replace(&mut self.said_left_out, true) {
            self.tell(&Event::Notice(
                "65535 processes are balanced; more are not, until some of them end",
            ));
        }
        for (process, touches) in touched {
            self.take_in(process, &touches);
        }
        for process in self.watch.retired() {
            let pages = PageNumber::all_of(*process);
            self.mover.end_process(*process, &pages);
            self.unconfirmed.forget_all(&pages);
            self.tracker.forget(pages);
            if let Some(shared) = &mut self.shared {
                shared.forget(*process);
            }
        }
        for failure in self.watch.take_failures() {
            self.tell(&Event::Notice(&failure.to_string()));
        }
        for pid in self.watch.ends() {
            self.kernel_moves.forget(*pid);
            if let Some(threads) = &mut self.threads {
                threads.forget(*pid);
            }
        }
    }

    /// Queries the nodes of pages that have just faulted, and detects moves that we did not make.
    fn take_in(&mut self, process: u16, touches: &[Touched]) {
        let shift = BASE_PAGE_SHIFT + self.status.page_shift;
        let Some(pid) = self.watch.pid(process) else {
            return;
        };
        if let Mover::Linux(linux) = &mut self.mover {
            linux.set_process(process, pid);
        }
        let page_of = |address: u64| PageNumber::of_address(process, address >> shift << shift);
        let fresh = new_pages(touches, shift);
        let fresh: Vec<PageNumber> = fresh.into_iter().map(page_of).collect();
        self.forget_new(&fresh);
        let homes = self.homes(pid, &asked(touches, shift), page_of);
        for touch in touches {
            let page = page_of(touch.address);
            let is_absent = touch.shared.is_some() && !homes.contains_key(&page);
            match (&mut self.mover, &mut self.shared) {
                (_, Some(shared)) if is_absent => shared.set_absent(process, touch.address),
                (Mover::Linux(linux), Some(_)) => linux.set_shared(page, touch.shared.clone()),
                _ => {}
            }
        }
        let mut latencies = self.ranking.as_mut().and_then(Ranking::latencies);
        let mut samples = Vec::new();
        for touch in touches {
            let (page, Some(node)) = (page_of(touch.address), touch.node) else {
                continue;
            };
            let weight = match &mut latencies {
                Some(latencies) => latencies.weight(process, touch.address, touch.time_ns),
                None => Some(1),
            };
            samples.extend(weight.map(|weight| (page, node, weight)));
            if let Some(home) = self.tracker.home_of(page).or_else(|| homes.get(&page).copied()) {
                self.status.sampled(page, home == node);
                if let Some(threads) = &mut self.threads {
                    threads.sampled(touch.pid, touch.tid, page, home);
                }
            }
        }
        let decaying = latencies.is_some();
        self.fresh += samples
            .iter()
            .map(|(_, _, weight)| u64::from(*weight))
            .sum::<u64>();
        self.controller.sampled(&samples);
        let elsewhere = self.tracker.take_samples(&samples, decaying, &homes);
        self.status.tracked = self.tracker.tracked();
        let moved = |(page, from): (PageNumber, NodeId)| MovedPages {
            pid,
            page,
            count: 1,
            from,
            to: homes[&page],
        };
        let known = elsewhere
            .into_iter()
            .filter(|(page, _)| fresh.binary_search(page).is_err());
        let elsewhere: Vec<MovedPages> = known.map(moved).collect();
        self.found_elsewhere(pid, &elsewhere);
    }

    /// Handles pages found on another node: moved by us, the kernel or others.
    pub(super) fn found_elsewhere(&mut self, pid: u32, found: &[MovedPages]) {
        let mut kernel_moved = None;
        if found.iter().any(|moved| self.unconfirmed.contains(moved.page)) {
            kernel_moved = self.watch.count_moved(pid);
        }
        let count = self.watch.moved(pid);
        // A count that is read now and then lags behind what is found: it only tells whether the kernel moves pages.
        let size = match self.watch.reports_moves() {
            true => 1u64 << self.status.page_shift,
            false => 0,
        };
        for moved in found {
            let ours = self.unconfirmed.take_ours(moved, kernel_moved);
            if ours.is_some() {
                self.controller
                    .arrived_after_all(moved.page, moved.from, moved.to);
            }
            let policy = self.controller.policy();
            let (by, reason) = match &ours {
                Some(ours) => (policy.as_str(), ours.reason),
                None if self.kernel_moves.explain(pid, count, moved.count * size) => {
                    (Migration::KERNEL, Reason::default())
                }
                None => (Migration::UNKNOWN, Reason::default()),
            };
            self.tell(&Event::Found(Found { moved, by, reason }));
        }
    }

    /// Current nodes of pages (in a dry run: assumed ones), each given by a touched address; unknown ones are left
    /// out.
    fn homes(
        &self,
        pid: u32,
        asked: &[u64],
        page_of: impl Fn(u64) -> PageNumber,
    ) -> BTreeMap<PageNumber, NodeId> {
        let statuses = pages::query(pid, asked).unwrap_or_default();
        let nodes = statuses
            .into_iter()
            .map(|s| s.node().and_then(|n| self.topology.node(n)));
        let home = |(address, node): (&u64, Option<NodeId>)| {
            let page = page_of(*address);
            Some((page, self.mover.supposed_home(page).or(node)?))
        };
        asked.iter().zip(nodes).filter_map(home).collect()
    }

    /// Drops counts of earlier memory at the same addresses. Other parts of a huge page may be older.
    fn forget_new(&mut self, pages: &[PageNumber]) {
        if self.status.page_shift > 0 || pages.is_empty() {
            return;
        }
        if let Mover::DryRun(dry_run, _) = &mut self.mover {
            pages.iter().for_each(|p| dry_run.forget_page(*p));
        }
        let known = pages.iter().filter(|p| self.tracker.home_of(**p).is_some());
        let known: Vec<PageNumber> = known.copied().collect();
        if !known.is_empty() {
            self.tracker.forget_pages(&known);
        }
    }
}
