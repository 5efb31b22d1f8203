//! The state of a process whose threads' roles are detected, and when to look at it again.

use super::places::{BoundThread, Places};
use nodewise_analysis::{MOST_WATCHED_PAGES, ThreadData, Votes};
use nodewise_linux::{Host, affinity, clock};
use nodewise_machine::NodeId;
use nodewise_profile::BASE_PAGE_SIZE;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Interval between reads of the fault buffers during a look, and between checks for new processes and threads.
pub(super) const DRAIN: Duration = Duration::from_millis(20);
/// Delay of the first look after a second thread was seen, so that the threads have begun to work.
const FIRST: Duration = Duration::from_millis(40);
/// The first interval between looks, also after new threads have appeared: each look that changes nothing doubles it, up to
/// the longest interval.
const SOON: Duration = Duration::from_millis(200);
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);
/// For how long a thread that was moved is not moved again.
const MOVE_COOLDOWN: Duration = Duration::from_secs(1);
/// The share of the program's CPU time that looks may cost, and the credit that each new thread adds in advance.
const SHARE: f64 = 0.02;
const INITIAL_CREDIT: Duration = Duration::from_millis(20);
/// The share of the program's CPU time that looks may cost while nothing changes, at intervals of a second or more: roles that
/// change after an hour are then found as soon as those of the first minute.
const SHARE_AT_REST: f64 = 0.002;
/// Assumed cost of a reported write fault to its thread.
const FAULT: Duration = Duration::from_nanos(1000);
/// Processes with fewer resident pages are not asked how many of these are in huge pages.
const FEW_PAGES: u64 = 10_000;
/// Pages of a huge page.
const PAGES_OF_A_HUGE: u64 = 512;

/// A process whose threads' roles are detected, with what looks have shown so far.
pub(super) struct Process {
    threads: u64,
    /// The largest number of threads that it has had.
    most: u64,
    /// When it was first seen to have more than one thread.
    multithreaded_since: Option<Instant>,
    due: Instant,
    pause: Duration,
    cpu: Duration,
    /// The largest CPU time that the last look may have cost.
    cost: Duration,
    /// CPU time that looks may still cost, seconds; negative if overdrawn.
    credit: f64,
    /// Page-table entries of its memory.
    entries: u64,
    /// Pages of its memory that are in huge pages, when they were counted, and the pause until they are counted again.
    huge: u64,
    counted: Option<Instant>,
    count_pause: Duration,
    seen: BTreeMap<u32, Seen>,
    /// When each thread was sent to another CPU.
    moved: BTreeMap<u32, Instant>,
    /// Whether a thread was moved during the current look.
    has_changed: bool,
    excluded: bool,
    /// Why it is not looked at, if known.
    why: Option<&'static str>,
}

/// The nodes that a thread was seen to write to.
#[derive(Default)]
struct Seen {
    /// Observations since its role was last settled.
    votes: Votes,
    /// The role known from earlier looks: the node, and the number of observations.
    before: Option<(NodeId, u32)>,
}

impl Seen {
    /// The thread's role by the observations of the current look, else by earlier ones, which count as none: see
    /// [`ThreadData::belongs`].
    fn belongs(&self) -> Option<(NodeId, u32)> {
        let earlier = self.before.map(|(node, _)| (node, 0));
        self.votes.majority().or(earlier)
    }

    /// Saves the role, if it is known, and starts counting anew for the next look.
    fn begin_anew(&mut self) {
        if let Some(known) = self.votes.majority() {
            self.before = Some(known);
            self.votes = Votes::default();
        }
    }
}

impl Process {
    pub fn new(now: Instant) -> Self {
        Self {
            threads: 1,
            most: 1,
            multithreaded_since: None,
            due: now,
            pause: SOON,
            cpu: Duration::ZERO,
            cost: Duration::ZERO,
            credit: 0.0,
            entries: 0,
            huge: 0,
            counted: None,
            count_pause: SOON,
            seen: BTreeMap::new(),
            moved: BTreeMap::new(),
            has_changed: false,
            excluded: false,
            why: None,
        }
    }

    /// CPU time of the process when it was last read.
    pub fn cpu(&self) -> Duration {
        self.cpu
    }

    /// Time since it has had more than one thread.
    pub fn age(&self, now: Instant) -> Duration {
        self.multithreaded_since
            .map_or(Duration::ZERO, |since| now.duration_since(since))
    }

    /// Ends looking at this process.
    pub fn exclude(&mut self) {
        self.excluded = true;
    }

    /// Time until it should be checked again.
    pub fn rest(&self, now: Instant) -> Duration {
        match self.excluded {
            true => LONGEST_INTERVAL,
            false if self.multithreaded_since.is_none() => DRAIN,
            false => self.due.saturating_duration_since(now),
        }
    }

    /// Reads the number of threads and the resident memory, and adds the share of new CPU time to the credit. Returns
    /// whether a look is due and can be paid for.
    pub fn begin_look_if_due(&mut self, host: &Host, pid: u32, now: Instant) -> bool {
        if self.excluded {
            return false;
        }
        let Some(usage) = host.usage(pid) else {
            return false;
        };
        let threads = usage.threads;
        let cpu = Duration::from_nanos(usage.cpu_ns);
        self.credit += SHARE * cpu.saturating_sub(self.cpu).as_secs_f64();
        self.cpu = cpu;
        if threads > self.threads {
            self.credit += threads.saturating_sub(self.most) as f64 * INITIAL_CREDIT.as_secs_f64();
            if threads > self.most {
                self.count_pause = SOON;
            }
            (self.threads, self.most, self.pause) = (threads, threads.max(self.most), SOON);
            let soon = now + FIRST;
            self.due = self.multithreaded_since.map_or(soon, |_| self.due.min(soon));
            self.multithreaded_since.get_or_insert(now);
        }
        self.threads = threads;
        if now < self.due {
            return false;
        }
        self.due = now + DRAIN;
        if threads > 1 {
            let is_due = |counted| now.duration_since(counted) >= self.count_pause;
            let due = self.counted.is_none_or(is_due);
            self.count_entries(host, pid, usage.resident, due.then_some(now));
            // A look that only huge pages permit rests on their present number.
            let permitted = |entries: u64| {
                entries <= MOST_WATCHED_PAGES && entries as f64 * FAULT.as_secs_f64() <= self.credit
            };
            if !due && permitted(self.entries) && !permitted(usage.resident) {
                self.count_entries(host, pid, usage.resident, Some(now));
            }
        }
        let worst = self.entries as f64 * FAULT.as_secs_f64();
        self.why = match () {
            () if threads < 2 => None,
            () if self.entries > MOST_WATCHED_PAGES => Some(
                "it has more than 250,000 resident pages, a huge page counted as one: looking at all would stop it for too long",
            ),
            () if worst > self.credit => Some("a look would have cost more than 2 % of its CPU time"),
            () => None,
        };
        threads > 1 && self.why.is_none()
    }

    /// Estimates the page-table entries of its memory, `resident` pages; counts huge pages if `now` is given.
    fn count_entries(&mut self, host: &Host, pid: u32, resident: u64, now: Option<Instant>) {
        if resident <= FEW_PAGES {
            self.huge = 0;
        } else if let Some(now) = now {
            let began = clock::own_cpu_time();
            let bytes = host.huge_bytes(pid);
            if bytes.is_ok() {
                self.credit -= clock::own_cpu_time().saturating_sub(began).as_secs_f64();
            }
            self.huge = bytes.unwrap_or(0) / BASE_PAGE_SIZE;
            self.counted = Some(now);
            self.count_pause = (2 * self.count_pause).min(LONGEST_INTERVAL);
        }
        let huge = self.huge.min(resident);
        self.entries = resident - huge + huge.div_ceil(PAGES_OF_A_HUGE);
    }

    /// Records that a look has begun, where clearing the bits took `clearing`. Returns the largest CPU time that the
    /// look may cost: that, and a fault for each page-table entry, whenever its memory is written.
    pub fn begins(&mut self, clearing: Duration, now: Instant) -> Duration {
        self.seen.values_mut().for_each(Seen::begin_anew);
        let cost = clearing + FAULT * u32::try_from(self.entries).unwrap_or(u32::MAX);
        self.credit -= cost.as_secs_f64();
        self.due = now + self.pause;
        self.cost = cost;
        cost
    }

    /// Why no look was made, if known.
    pub fn why(&self) -> Option<&'static str> {
        self.why
    }

    /// Drops threads that are not in `alive`, as their ids may be used again.
    pub fn keep(&mut self, alive: &[BoundThread]) {
        let is_alive = |tid: &u32| alive.iter().any(|t| t.tid == *tid);
        self.seen.retain(|tid, _| is_alive(tid));
        self.moved.retain(|tid, _| is_alive(tid));
    }

    /// Whether a thread's role is known by this look alone.
    pub fn is_fresh(&self, tid: u32) -> bool {
        self.seen
            .get(&tid)
            .is_some_and(|seen| seen.votes.majority().is_some())
    }

    /// Records that a thread wrote to a page on a node.
    pub fn saw(&mut self, tid: u32, node: NodeId, weight: f64) {
        self.seen.entry(tid).or_default().votes.add(node, weight);
    }

    /// The threads of the process that are bound to a single CPU of the placement.
    pub fn bound(&self, host: &Host, pid: u32, places: &Places, at: Instant) -> Vec<BoundThread> {
        let tids = host.names(&format!("proc/{pid}/task")).unwrap_or_default();
        let bound = tids.iter().filter_map(|tid| {
            let tid: u32 = tid.parse().ok()?;
            let [cpu] = affinity::cpus_of(tid).ok()?[..] else {
                return None;
            };
            let now = places.node(cpu)?;
            // A thread in cooldown keeps its place.
            let stays = (!self.may_move(tid, at)).then_some((now, u32::MAX));
            let known = ThreadData {
                belongs: stays.or_else(|| self.seen.get(&tid).and_then(Seen::belongs)),
                now,
            };
            Some(BoundThread { tid, cpu, known })
        });
        bound.collect()
    }

    /// Whether the thread's cooldown after its last move is over.
    fn may_move(&self, tid: u32, now: Instant) -> bool {
        self.moved
            .get(&tid)
            .is_none_or(|since| now.duration_since(*since) >= MOVE_COOLDOWN)
    }

    /// Records that a thread was moved to another CPU.
    pub fn moved(&mut self, tid: u32, now: Instant) {
        self.moved.insert(tid, now);
        self.has_changed = true;
    }

    /// The interval at which looks cost [`SHARE_AT_REST`] of the CPU time that the process has used since it has several threads.
    fn pause_at_rest(&self, now: Instant) -> Duration {
        let rate = self.cpu.as_secs_f64() / self.age(now).as_secs_f64();
        let seconds = self.cost.as_secs_f64() / (SHARE_AT_REST * rate);
        match seconds.is_finite() {
            true => Duration::from_secs_f64(seconds.min(1e6)).clamp(MOVE_COOLDOWN, LONGEST_INTERVAL),
            false => LONGEST_INTERVAL,
        }
    }

    /// Records the end of a look. The interval to the next one doubles while no thread is moved, until looks cost little.
    pub fn looked(&mut self, now: Instant) {
        self.pause = match std::mem::take(&mut self.has_changed) {
            true => MOVE_COOLDOWN,
            false => (2 * self.pause).min(self.pause_at_rest(now)),
        };
        self.due = now + self.pause;
    }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
