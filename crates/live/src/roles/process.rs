//! What is known of a process whose threads are followed, and when to look at it again.

use super::places::{Places, Seated};
use nodewise_control::roles::{Known, Votes};
use nodewise_linux::{Host, affinity};
use nodewise_machine::NodeId;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Between drains of the buffers during a look, and between checks whether there are threads to look at.
pub(super) const DRAIN: Duration = Duration::from_millis(20);
/// Time from the first sign of several threads to the first look: they shall have begun to work.
const FIRST: Duration = Duration::from_millis(40);
/// Between looks while roles are not known or have just changed, and at most.
const SOON: Duration = Duration::from_millis(200);
const RARELY: Duration = Duration::from_secs(60);
/// A thread that was moved stays for so long.
const STAYS: Duration = Duration::from_secs(1);
/// What looks may cost of the program's CPU time, and what the first may cost of each thread's before any was used.
const SHARE: f64 = 0.02;
const ADVANCE: Duration = Duration::from_millis(20);
/// What a fault costs the thread that has it, reported.
const FAULT: Duration = Duration::from_nanos(1000);
/// Pages whose bits are cleared in the time that a process may be stopped for: 10 ms at 40 ns a page.
const MOST_PAGES: u64 = 250_000;

/// A process whose threads are followed, and what looks at it have shown.
pub(super) struct Process {
    threads: u64,
    /// The most that it had.
    most: u64,
    /// Since when it has more than one.
    several: Option<Instant>,
    due: Instant,
    pause: Duration,
    cpu: Duration,
    /// CPU time that looks may still take.
    credit: f64,
    resident: u64,
    seen: BTreeMap<u32, Seen>,
    /// When each thread was sent to another CPU.
    moved: BTreeMap<u32, Instant>,
    /// Whether any was in this look.
    has_changed: bool,
    ended: bool,
    /// Why it is not looked at, as far as that is known.
    why: Option<&'static str>,
}

/// On which node a thread was seen to write.
#[derive(Default)]
struct Seen {
    /// Observations since its role was last known.
    votes: Votes,
    /// The node that it belonged to before.
    before: Option<(NodeId, u32)>,
}

impl Seen {
    /// Its role: of what was seen lately, else what was known before.
    fn belongs(&self) -> Option<(NodeId, u32)> {
        self.votes.majority().or(self.before)
    }

    /// What is known is kept until something else is.
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
            several: None,
            due: now,
            pause: SOON,
            cpu: Duration::ZERO,
            credit: 0.0,
            resident: 0,
            seen: BTreeMap::new(),
            moved: BTreeMap::new(),
            has_changed: false,
            ended: false,
            why: None,
        }
    }

    /// CPU time when it was last asked for.
    pub fn cpu(&self) -> Duration {
        self.cpu
    }

    /// Since it has more than one thread.
    pub fn age(&self, now: Instant) -> Duration {
        self.several
            .map_or(Duration::ZERO, |since| now.duration_since(since))
    }

    /// It is not to be looked at any more.
    pub fn never(&mut self) {
        self.ended = true;
    }

    /// Time until it is to be checked again.
    pub fn rest(&self, now: Instant) -> Duration {
        match self.ended {
            true => RARELY,
            false if self.several.is_none() => DRAIN,
            false => self.due.saturating_duration_since(now),
        }
    }

    /// Reads how many threads and how much memory there are, and credits CPU time: whether a look is due, and can be paid for.
    pub fn look_may_begin(&mut self, host: &Host, pid: u32, now: Instant) -> bool {
        if self.ended {
            return false;
        }
        let Some(usage) = host.usage(pid) else {
            return false;
        };
        let (threads, resident) = (usage.threads, usage.resident);
        let cpu = Duration::from_nanos(usage.cpu_ns);
        self.credit += SHARE * cpu.saturating_sub(self.cpu).as_secs_f64();
        (self.cpu, self.resident) = (cpu, resident);
        if threads > self.threads {
            self.credit += threads.saturating_sub(self.most) as f64 * ADVANCE.as_secs_f64();
            (self.threads, self.most, self.pause) = (threads, threads.max(self.most), SOON);
            let soon = now + FIRST;
            self.due = self.several.map_or(soon, |_| self.due.min(soon));
            self.several.get_or_insert(now);
        }
        self.threads = threads;
        if now < self.due {
            return false;
        }
        self.due = now + DRAIN;
        let worst = resident as f64 * FAULT.as_secs_f64();
        self.why = match () {
            () if threads < 2 => None,
            () if resident > MOST_PAGES => {
                Some("it has more than 250,000 resident pages: looking at all would stop it for too long")
            }
            () if worst > self.credit => Some("a look would have cost more than 2 % of its CPU time"),
            () => None,
        };
        threads > 1 && self.why.is_none()
    }

    /// A look has begun, for which clearing took so long; what it costs at most: a fault for each page, at whatever time it
    /// is written.
    pub fn begins(&mut self, clearing: Duration, now: Instant) -> Duration {
        self.seen.values_mut().for_each(Seen::begin_anew);
        let cost = clearing + FAULT * u32::try_from(self.resident).unwrap_or(u32::MAX);
        self.credit -= cost.as_secs_f64();
        self.due = now + self.pause;
        cost
    }

    /// Why it was not looked at.
    pub fn why(&self) -> Option<&'static str> {
        self.why
    }

    /// Forgets threads that have ended: their numbers may be given again.
    pub fn keep(&mut self, alive: &[Seated]) {
        let is_alive = |tid: &u32| alive.iter().any(|t| t.tid == *tid);
        self.seen.retain(|tid, _| is_alive(tid));
        self.moved.retain(|tid, _| is_alive(tid));
    }

    /// Whether a thread's role follows from this look alone.
    pub fn is_fresh(&self, tid: u32) -> bool {
        self.seen
            .get(&tid)
            .is_some_and(|seen| seen.votes.majority().is_some())
    }

    /// A thread has written to a page on a node, which matters so much.
    pub fn saw(&mut self, tid: u32, node: NodeId, weight: f64) {
        self.seen.entry(tid).or_default().votes.add(node, weight);
    }

    /// Its threads that are on a CPU of the placement, bound.
    pub fn bound(&self, host: &Host, pid: u32, places: &Places, at: Instant) -> Vec<Seated> {
        let tids = host.names(&format!("proc/{pid}/task")).unwrap_or_default();
        let bound = tids.iter().filter_map(|tid| {
            let tid: u32 = tid.parse().ok()?;
            let [cpu] = affinity::cpus_of(tid).ok()?[..] else {
                return None;
            };
            let now = places.node(cpu)?;
            // One that may not move keeps its place.
            let stays = (!self.may_move(tid, at)).then_some((now, u32::MAX));
            let known = Known {
                belongs: stays.or_else(|| self.seen.get(&tid).and_then(Seen::belongs)),
                now,
            };
            Some(Seated { tid, cpu, known })
        });
        bound.collect()
    }

    /// Whether a thread has stayed long enough where it was sent.
    fn may_move(&self, tid: u32, now: Instant) -> bool {
        self.moved
            .get(&tid)
            .is_none_or(|since| now.duration_since(*since) >= STAYS)
    }

    /// A thread was sent to another CPU.
    pub fn moved(&mut self, tid: u32, now: Instant) {
        self.moved.insert(tid, now);
        self.has_changed = true;
    }

    /// A look is over. While nothing changes, the next is ever later.
    pub fn looked(&mut self, now: Instant) {
        self.pause = match std::mem::take(&mut self.has_changed) {
            true => STAYS,
            false => (2 * self.pause).min(RARELY),
        };
        self.due = now + self.pause;
    }
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
