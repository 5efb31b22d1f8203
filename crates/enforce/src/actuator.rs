//! The actuator on Linux: moves the pages of running processes that a controller decided to move.

use crate::Holder;
use crate::freezer::{Freezer, Stalls};
use crate::mover::{Batch, CHUNK, Cause, Moved, Mover, Target, present};
use nodewise_control::{Actuator, BatchResult, PageResult};
use nodewise_linux::pages::Scope;
use nodewise_linux::{Host, clock};
use nodewise_machine::parse_list;
use nodewise_placement::Move;
use nodewise_profile::{BASE_PAGE_SHIFT, BASE_PAGE_SIZE, PageNumber};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Longest time that a call should take. A thread that accesses a page during its move waits for the whole call at
/// most.
const LONGEST_CALL: Duration = Duration::from_millis(10);
/// Largest number of shared pages that are known.
const MOST_SHARED: usize = 1 << 20;
/// Smallest number of 4 KiB pages per call: with fewer, the additional calls cost more than the shorter waits save.
const LEAST_CHUNK: usize = 64;

/// Actuator that has the kernel move the pages.
#[derive(Debug)]
pub struct Linux {
    mover: Mover,
    /// The kernel's number of each logical node.
    nodes: Vec<u32>,
    /// log2 of the base pages in a page that decisions are made for.
    page_shift: u32,
    /// The process of each ordinal, while it is balanced.
    processes: HashMap<u16, u32>,
    /// The pages that are moved although other processes map them: which addresses of each.
    shared: HashMap<PageNumber, Range<u64>>,
    /// Holds moved pages on their new nodes.
    holder: Option<Holder>,
    /// Stops processes while their pages are moved.
    freezer: Option<Freezer>,
    /// The number of 4 KiB pages that a call may move to take less than [`LONGEST_CALL`], estimated from earlier calls.
    chunk: usize,
    longest_call: Duration,
    /// Pages whose state the kernel did not report after a recent move; they may have moved.
    hidden: HashSet<PageNumber>,
}

/// Consecutive moves of one process.
struct Group<'a> {
    process: u16,
    pid: u32,
    moves: &'a [Move],
}

impl Linux {
    /// An actuator for a machine with these nodes (the kernel's numbers), with decisions on pages of `1 << page_shift`
    /// base pages.
    #[must_use]
    pub fn new(nodes: Vec<u32>, page_shift: u32, holder: Option<Holder>) -> Self {
        Self {
            mover: Mover::new(0),
            nodes,
            page_shift,
            processes: HashMap::new(),
            shared: HashMap::new(),
            holder,
            freezer: None,
            chunk: LEAST_CHUNK,
            longest_call: Duration::ZERO,
            hidden: HashSet::new(),
        }
    }

    /// Stops a process around each batch of its moves. Batches are small, so each stop is short.
    #[must_use]
    pub fn with_freeze(mut self) -> Self {
        self.freezer = Some(Freezer::default());
        self
    }

    /// Has a page moved although other processes map it, for them as well; without `CAP_SYS_NICE` the kernel refuses. `extent`: the
    /// addresses of the page that are moved, as a huge page may contain mappings that are not shared; `None` ends that.
    pub fn set_shared(&mut self, page: PageNumber, extent: Option<Range<u64>>) {
        if self.shared.len() >= MOST_SHARED {
            self.shared.clear(); // each is set again with its next sample
        }
        match extent {
            Some(extent) => self.shared.insert(page, extent),
            None => self.shared.remove(&page),
        };
    }

    /// How long processes were stopped; `None` if they are not.
    #[must_use]
    pub fn stalls(&self) -> Option<Stalls> {
        self.freezer.as_ref().map(Freezer::stalls)
    }

    /// Duration of the longest call that moved pages.
    #[must_use]
    pub fn longest_call(&self) -> Duration {
        self.longest_call
    }

    /// Adapts the size of calls to the duration of the last ones.
    fn fit(&mut self, batches: &[Batch]) {
        let took = |b: &Batch| Duration::from_nanos(b.end_ns - b.begin_ns);
        self.longest_call = batches.iter().map(took).fold(self.longest_call, Duration::max);
        let fits = |b: &Batch| {
            (b.pages as f64 * LONGEST_CALL.as_secs_f64() / took(b).as_secs_f64().max(1e-9)) as usize
        };
        // Half of what would fit, as calls of equal size differ in duration.
        if let Some(fits) = batches.iter().filter(|b| b.pages > 0).map(fits).min() {
            self.chunk = (fits / 2).min(self.chunk * 2).clamp(LEAST_CHUNK, CHUNK);
        }
    }

    /// Sets the process of an ordinal.
    pub fn set_process(&mut self, ordinal: u16, pid: u32) {
        self.processes.insert(ordinal, pid);
    }

    /// Forgets the process of an ordinal: pages of it that are still to be moved are gone.
    pub fn end_process(&mut self, ordinal: u16) {
        self.processes.remove(&ordinal);
        self.shared.retain(|page, _| page.process() != ordinal);
    }

    /// The holder of pages, if there is one.
    pub fn holder(&mut self) -> Option<&mut Holder> {
        self.holder.as_mut()
    }

    /// Pages whose node the moves since the last call could not determine: before Linux 6.6 the kernel reports nothing
    /// on a page that is protected for sampling until its next access.
    pub fn take_hidden(&mut self) -> HashSet<PageNumber> {
        std::mem::take(&mut self.hidden)
    }

    fn target(&self, each: &Move) -> Target {
        let start = each.page.virtual_number() << BASE_PAGE_SHIFT;
        let whole = start..start + (BASE_PAGE_SIZE << self.page_shift);
        let extent = self.shared.get(&each.page).unwrap_or(&whole);
        Target {
            address: extent.start,
            pages: (extent.end - extent.start) >> BASE_PAGE_SHIFT,
            node: self.nodes[each.to.index()],
        }
    }

    /// Makes the moves, except those to nodes that the process may not use: a single such page would make the kernel
    /// refuse all of them.
    fn move_group(&mut self, group: &Group<'_>) -> Vec<PageResult> {
        let targets: Vec<Target> = group.moves.iter().map(|m| self.target(m)).collect();
        let usable = usable_nodes(&Host::default(), group.pid);
        let may = |t: &Target| usable.as_ref().is_none_or(|nodes| nodes.contains(&t.node));
        let allowed: Vec<Target> = targets.iter().copied().filter(may).collect();
        let mut results = self.move_allowed(group, &allowed).into_iter();
        let result = |t: &Target| {
            may(t)
                .then(|| results.next())
                .flatten()
                .unwrap_or(PageResult::Denied)
        };
        targets.iter().map(result).collect()
    }

    fn move_allowed(&mut self, group: &Group<'_>, targets: &[Target]) -> Vec<PageResult> {
        let at_once = match self.freezer {
            Some(_) => (self.chunk >> self.page_shift).max(1),
            None => targets.len().max(1),
        };
        targets
            .chunks(at_once)
            .flat_map(|part| self.move_batch(group, part))
            .collect()
    }

    /// Moves a batch. Companions are asked only after their program has been resumed.
    fn move_batch(&mut self, group: &Group<'_>, targets: &[Target]) -> Vec<PageResult> {
        let pid = group.pid;
        self.mover.set_chunk(self.chunk);
        let work = || self.mover.move_pages(pid, targets);
        let moved = match &mut self.freezer {
            Some(freezer) => freezer.around(pid, work),
            None => work(),
        };
        let Ok(mut moved) = moved else {
            return vec![PageResult::Denied; targets.len()];
        };
        self.fit(&moved.batches);
        self.move_by_companion(pid, targets, &mut moved);
        let came = |(target, home): (&Target, &Option<u32>)| *home == Some(target.node);
        let there: Vec<bool> = targets.iter().zip(&moved.homes).map(came).collect();
        self.hold(pid, targets, &there);
        let mut results = results(targets, &there, &moved);
        self.find_hidden(group, targets, &mut results);
        results
    }

    /// Records pages that only seem to be gone because they are protected for sampling.
    fn find_hidden(&mut self, group: &Group<'_>, targets: &[Target], results: &mut [PageResult]) {
        let gone = |i: &usize| results[*i] == PageResult::Gone;
        let gone: Vec<usize> = (0..results.len()).filter(gone).collect();
        let asked: Vec<Target> = gone.iter().map(|i| targets[*i]).collect();
        let present = present(group.pid, &asked);
        for (i, _) in gone.into_iter().zip(present).filter(|(_, there)| *there) {
            results[i] = PageResult::Busy;
            // The target may begin after the page does.
            let shift = BASE_PAGE_SHIFT + self.page_shift;
            let start = targets[i].address >> shift << shift;
            self.hidden.insert(PageNumber::of_address(group.process, start));
        }
    }

    /// Moves pages that `move_pages` does not see because a hint fault is due (before Linux 6.6), by the process's
    /// companion, and then asks the kernel which of them have arrived. To a full node it could not move them either.
    fn move_by_companion(&mut self, pid: u32, targets: &[Target], moved: &mut Moved) {
        let missing = |i: &usize| {
            moved.homes[*i] != Some(targets[*i].node)
                && moved.stayed.cause_of(targets[*i].bytes()) != Some(Cause::NoRoom)
        };
        let missing: Vec<usize> = (0..targets.len()).filter(missing).collect();
        let Some(holder) = self.holder.as_mut().filter(|_| !missing.is_empty()) else {
            return;
        };
        let wanted: Vec<Target> = missing.iter().map(|i| targets[*i]).collect();
        if !holder.move_and_hold(pid, &runs(&wanted)) {
            return;
        }
        for (i, home) in missing.into_iter().zip(self.mover.homes(pid, &wanted)) {
            moved.homes[i] = home;
        }
    }

    fn hold(&mut self, pid: u32, targets: &[Target], there: &[bool]) {
        let came = targets.iter().zip(there).filter(|(_, there)| **there);
        let came: Vec<Target> = came.map(|(target, _)| *target).collect();
        if let Some(holder) = self.holder.as_mut().filter(|_| !came.is_empty()) {
            holder.hold_moved(pid, &runs(&came));
        }
    }
}

impl Actuator for Linux {
    fn apply(&mut self, moves: &[Move]) -> BatchResult {
        let begin = Instant::now();
        let mut results = Vec::with_capacity(moves.len());
        let kind = |m: &Move| (m.page.process(), self.shared.contains_key(&m.page));
        let groups: Vec<&[Move]> = moves.chunk_by(|a, b| kind(a) == kind(b)).collect();
        for moves in groups {
            let process = moves[0].page.process();
            self.mover
                .set_scope(match self.shared.contains_key(&moves[0].page) {
                    true => Scope::Shared,
                    false => Scope::Exclusive,
                });
            let pid = self.processes.get(&process).copied();
            results.extend(pid.map_or_else(
                || vec![PageResult::Gone; moves.len()],
                |pid| self.move_group(&Group { process, pid, moves }),
            ));
        }
        let waited = self.freezer.as_mut().map_or(Duration::ZERO, Freezer::take_waited);
        let took = begin.elapsed().saturating_sub(waited);
        BatchResult {
            results,
            took_ns: clock::nanoseconds(took),
        }
    }

    fn free(&self) -> Option<Vec<u64>> {
        let page_size = BASE_PAGE_SIZE << self.page_shift;
        Host::default().spare_pages(self.nodes.iter().copied(), page_size)
    }
}

/// Runs of consecutive base pages that go to the same node.
fn runs(targets: &[Target]) -> Vec<(Range<u64>, u32)> {
    let mut runs: Vec<(Range<u64>, u32)> = Vec::new();
    for target in targets {
        let first = target.address >> BASE_PAGE_SHIFT;
        match runs.last_mut() {
            Some((pages, node)) if pages.end == first && *node == target.node => pages.end += target.pages,
            _ => runs.push((first..first + target.pages, target.node)),
        }
    }
    runs
}

/// Nodes with memory that the process may use, by the kernel's numbers; `None` if unknown.
fn usable_nodes(host: &Host, pid: u32) -> Option<Vec<u32>> {
    let with_memory = parse_list(host.read("sys/devices/system/node/has_memory").ok()?.trim())?;
    let allowed = host.status(pid).ok()?.mems_allowed;
    Some(with_memory.into_iter().filter(|n| allowed.contains(n)).collect())
}

/// The result for each target. `there`: whether the target's page is on its node now.
fn results(targets: &[Target], there: &[bool], moved: &Moved) -> Vec<PageResult> {
    let otherwise = moved.refusal.map_or(PageResult::Left, |_| PageResult::Denied);
    let of = |i: usize| {
        if there[i] {
            return match moved.already[i] {
                true => PageResult::There,
                false => PageResult::Moved,
            };
        }
        match (moved.stayed.cause_of(targets[i].bytes()), moved.homes[i]) {
            (Some(Cause::NoRoom), _) => PageResult::Full,
            (Some(Cause::Shared), _) => PageResult::Shared,
            (_, None) => PageResult::Gone,
            (Some(Cause::Busy), _) => PageResult::Busy,
            _ => otherwise,
        }
    };
    (0..targets.len()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_linux::pages;
    use nodewise_machine::NodeId;
    use nodewise_placement::Reason;

    #[test]
    fn calls_are_as_large_as_keeps_them_short() {
        let batch = |pages, milliseconds: u64| Batch {
            worker: 0,
            cpu: 0,
            from: 0,
            to: 1,
            pages,
            moved: pages,
            begin_ns: 5,
            end_ns: 5 + milliseconds * 1_000_000,
        };
        let mut linux = Linux::new(vec![0, 1], 0, None);
        // The size at most doubles, however fast the call was.
        linux.fit(&[batch(64, 0)]);
        assert_eq!(linux.chunk, 128);
        (0..9).for_each(|_| linux.fit(&[batch(4096, 1)]));
        assert_eq!(linux.chunk, CHUNK);
        // The slowest call decides: 1000 pages in 20 ms are 500 in 10 ms, of which half.
        linux.fit(&[batch(1000, 1), batch(1000, 20)]);
        assert_eq!(
            (linux.chunk, linux.longest_call()),
            (250, Duration::from_millis(20))
        );
        linux.fit(&[batch(64, 900)]);
        assert_eq!(linux.chunk, LEAST_CHUNK);
        linux.fit(&[]);
        assert_eq!(linux.chunk, LEAST_CHUNK);
    }

    #[test]
    fn neighbours_with_one_goal_are_one_run() {
        let target = |page: u64, node| Target {
            address: page << 12,
            pages: 1,
            node,
        };
        let runs = runs(&[target(4, 1), target(5, 1), target(6, 0), target(8, 0)]);
        assert_eq!(runs, [(4..6, 1), (6..7, 0), (8..9, 0)]);
    }

    #[test]
    fn each_move_has_the_fate_of_its_own_page() {
        let target = |page: u64| Target {
            address: page << 12,
            pages: 1,
            node: 1,
        };
        let targets: Vec<Target> = (1..=7).map(target).collect();
        let mut moved = Moved {
            homes: vec![Some(1), Some(0), None, Some(0), Some(0), Some(0), Some(1)],
            already: vec![false, false, false, true, false, false, true],
            ..Moved::default()
        };
        // The causes are those of the last pages, not of the first ones that stayed.
        moved.stayed.add_page(5 << 12, 12, Cause::Busy);
        moved.stayed.add_page(6 << 12, 12, Cause::NoRoom);
        let there = [true, false, false, false, false, false, true];
        let expected = [
            PageResult::Moved,
            PageResult::Left,
            PageResult::Gone,
            PageResult::Left,
            PageResult::Busy,
            PageResult::Full,
            PageResult::There,
        ];
        assert_eq!(results(&targets, &there, &moved), expected);
        moved.refusal = Some(pages::CallError::NotAllowed);
        assert_eq!(results(&targets, &there, &moved)[3], PageResult::Denied);
    }

    #[test]
    fn a_node_that_may_not_be_used_denies_its_own_pages_alone() {
        let memory = vec![1u8; 4 << 12];
        let first = (memory.as_ptr() as u64).next_multiple_of(4096);
        let home = pages::query(std::process::id(), &[first]).map(|s| s[0].node());
        let Ok(Some(home)) = home else {
            return; // not permitted here
        };
        let mut linux = Linux::new(vec![home, 1000], 0, None);
        linux.set_process(0, std::process::id());
        let each = |page: u64, to| Move {
            index: 0,
            page: PageNumber::of_address(0, first + (page << 12)),
            from: NodeId(0),
            to: NodeId(to),
            reason: Reason::default(),
        };
        let outcome = linux.apply(&[each(0, 0), each(1, 1), each(2, 0)]);
        assert_eq!(
            outcome.results,
            [PageResult::There, PageResult::Denied, PageResult::There]
        );
        assert!(memory.iter().all(|b| *b == 1));
    }

    #[test]
    fn we_do_not_stand_still_for_our_own_pages() {
        let memory = vec![1u8; 2 << 12];
        let first = (memory.as_ptr() as u64).next_multiple_of(4096);
        let Ok(Some(home)) = pages::query(std::process::id(), &[first]).map(|s| s[0].node()) else {
            return; // not permitted here
        };
        let mut linux = Linux::new(vec![home], 0, None).with_freeze();
        linux.set_process(0, std::process::id());
        let each = Move {
            index: 0,
            page: PageNumber::of_address(0, first),
            from: NodeId(0),
            to: NodeId(0),
            reason: Reason::default(),
        };
        assert_eq!(linux.apply(&[each]).results, [PageResult::There]);
        assert_eq!(linux.stalls(), Some(Stalls::default()));
        assert!(memory.iter().all(|b| *b == 1));
    }

    #[test]
    fn what_is_there_and_not_shown_is_hidden_and_what_was_never_touched_is_gone() {
        let memory = vec![1u8; 3 << 12];
        let first = (memory.as_ptr() as u64).next_multiple_of(4096);
        let target = |address| Target {
            address,
            pages: 1,
            node: 0,
        };
        let group = Group {
            process: 3,
            pid: std::process::id(),
            moves: &[],
        };
        let mut linux = Linux::new(vec![0], 0, None);
        let mut results = [PageResult::Gone, PageResult::Busy, PageResult::Gone];
        let targets = [target(first), target(first + 4096), target(4096)];
        linux.find_hidden(&group, &targets, &mut results);
        // The kernel has reported explicitly that this page is busy.
        assert_eq!(results, [PageResult::Busy, PageResult::Busy, PageResult::Gone]);
        let expected = HashSet::from([PageNumber::of_address(3, first)]);
        assert_eq!(linux.take_hidden(), expected);
        assert!(linux.take_hidden().is_empty());
        assert!(memory.iter().all(|b| *b == 1));
    }

    #[test]
    fn a_process_that_is_gone_is_no_error() {
        let mut linux = Linux::new(vec![0, 1], 0, None);
        linux.set_process(0, u32::MAX >> 2);
        let each = |process| Move {
            index: 0,
            page: PageNumber::of_address(process, 0x1000),
            from: NodeId(1),
            to: NodeId(0),
            reason: Reason::default(),
        };
        let outcome = linux.apply(&[each(0), each(1)]);
        assert_eq!(outcome.count(PageResult::Moved), 0);
        assert_eq!(outcome.results.len(), 2);
    }
}
