//! Who accesses which page of running programs, sampled by the kernel's hinting page faults.
//!
//! The kernel's balancing takes away the right to some pages from time to time, and the next access of each
//! faults: a sample of *pages a scan*, not of accesses. Which nodes and threads use a page it tells well, how
//! intensely it does not.

mod attaching;
mod budget;
mod following;
mod here;
mod mapped;
mod measured;
mod pace;
mod processes;
mod recorder;
mod residents;
mod traced;

pub use budget::{Budget, Costs, Rate, Spell};
pub use following::is_companion;
pub use here::{NotHere, check, sees_everybody};
pub use recorder::{Options, Progress, Recorded, Target, Tend, record};
pub use traced::Traced;

use attaching::{Threads, attach};
use following::{Following, lives};
use measured::costs;
use nodewise_linux::faults::{Fault, Record, Scope, Source};
use nodewise_linux::scan::{Held, Scan};
use nodewise_linux::{Host, ReadError, clock};
use nodewise_profile::Sampling;
use processes::Processes;
use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

/// What a fault was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The kernel asked who accesses this page: a sample.
    Hint,
    /// The page was not there before: its first touch, or its return.
    First,
    /// Another's page was copied at the first write.
    Copy,
    /// A hint or a copy.
    Unknown,
}

/// An access that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// When and who; where, and by which CPU.
    pub fault: Fault,
    /// What it was.
    pub kind: Kind,
    /// The number of the program that the process ran then; each sample has one, as long as there are any.
    pub process: Option<u16>,
}

/// What has been seen so far, and what it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Samples.
    pub hints: u64,
    /// First touches.
    pub firsts: u64,
    /// Copies on write.
    pub copies: u64,
    /// Hints or copies.
    pub unknown: u64,
    /// Records that did not fit the kernel's buffers.
    pub lost: u64,
    /// One fault of so many is reported now.
    pub period: u64,
    /// Milliseconds between the kernel's scans now, where it scans because we ask it to.
    pub scan_ms: Option<u32>,
    /// Time in which nothing was reported, to keep the budget.
    pub closed: Duration,
    /// The share of the programs' CPU time that observing took; 0 before there was any.
    pub cost: f64,
    /// What a sample costs, nanoseconds: half of it and more in the kernel, on the program's account.
    pub sample_ns: f64,
    /// Pages that the kernel moved by itself; `None` where it does not say.
    pub kernel_moved: Option<u64>,
    /// Threads that could not be watched.
    pub missed_threads: usize,
    /// Whether reads and writes are told apart.
    pub writes: bool,
}

/// CPUs up to which threads are watched one by one, each of which takes an event a CPU when it starts.
const MOST_CPUS: usize = 64;
/// Events at the start up to which they are.
const MOST_EVENTS: usize = 1024;

impl Figures {
    /// What a profile's manifest says of them.
    #[must_use]
    pub fn sampling(&self, budget: f64, minimum_samples: u32, wall: Duration) -> Sampling {
        Sampling {
            samples: self.hints,
            first_touches: self.firsts,
            copies: self.copies,
            lost: self.lost,
            period: u32::try_from(self.period).unwrap_or(u32::MAX),
            budget,
            cost: self.cost,
            sample_ns: self.sample_ns,
            minimum_samples,
            writes: self.writes,
            seconds: wall.as_secs_f64(),
        }
    }
}

/// Programs being observed.
pub struct Watch {
    host: Host,
    source: Source,
    budget: Budget,
    following: Following,
    /// The one numbering of processes: page numbers carry it. Numbers are given when first asked for.
    numbers: RefCell<Processes>,
    figures: Figures,
    records: Vec<Record>,
    touches: Vec<Touch>,
    births: Vec<(u32, u32)>,
    ends: Vec<u32>,
    executed: Vec<(u32, usize)>,
    retired: Vec<u16>,
    looked: Duration,
    /// Milliseconds between the kernel's scans as we last wanted it.
    scans_wanted: Option<u32>,
    /// A minor fault, nanoseconds.
    fault_ns: f64,
    /// Since the last look, beside it: what handling the touches took, and what the rest did.
    charged: Duration,
    upkeep: Duration,
}

impl Watch {
    /// Running processes, the children they have, and those they start from now on. `share` of their CPU time may be spent.
    ///
    /// # Errors
    /// It cannot be done here.
    pub fn of_pids(host: &Host, pids: &[u32], share: f64) -> Result<Self, NotHere> {
        check(host)?;
        all_threads(host, pids)?;
        let pids = &host.with_descendants(pids)[..];
        let tids = threads(host, pids)?;
        let one_node = host
            .names("sys/devices/system/node")
            .is_ok_and(|n| nodes(&n) == 1);
        if one_node && tids.len() == 1 {
            let because = format!(
                "process {} has one thread on one node, and the kernel samples no page that lies where its only thread runs",
                pids[0]
            );
            return Err(NotHere::new(because, ""));
        }
        let costs = costs();
        let mut attached = Attached {
            host,
            pids,
            source: crowded(host, tids.len()),
            records: Vec::new(),
        };
        if attached.source.is_none() {
            attach(&mut attached)?;
        }
        let Attached { source, records, .. } = attached;
        let source = source.ok_or_else(|| NotHere::process(host, pids[0]))?;
        let mut watch = Self::new(host, source, costs, share);
        watch.records = records;
        each_alive(host, pids, |pid| watch.following.add_running(host, pid))?;
        Ok(watch)
    }

    /// What the calling thread starts from now on: call [`Watch::follow`] with it.
    ///
    /// # Errors
    /// It cannot be done here.
    pub fn of_command(host: &Host, share: f64) -> Result<Self, NotHere> {
        check(host)?;
        let costs = costs();
        let source = crowded(host, 1).map_or_else(|| Source::of_children(1), Ok);
        let source = source.map_err(|e| NotHere::events(host, &e))?;
        Ok(Self::new(host, source, costs, share))
    }

    /// The processes of a control group (version 2), and those that come into it.
    ///
    /// # Errors
    /// It cannot be done here.
    pub fn of_group(host: &Host, folder: &Path, share: f64) -> Result<Self, NotHere> {
        check(host)?;
        let costs = costs();
        let source = Source::of_group(folder, 1).map_err(|e| NotHere::group(host, &e))?;
        let text = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        let mut watch = Self::new(host, source, costs, share);
        for pid in text.lines().filter_map(|l| l.parse().ok()) {
            // One that ends meanwhile is none.
            let _ = watch.following.add_running(host, pid);
        }
        Ok(watch)
    }

    fn new(host: &Host, source: Source, (costs, fault_ns): (Costs, f64), share: f64) -> Self {
        let adapts = source.scope() != Scope::Threads;
        let (writes, missed_threads) = (source.sees_writes(), source.missed_threads());
        Self {
            host: host.clone(),
            following: Following::new(source.scope() == Scope::Group, writes, source.sees_moves()),
            numbers: RefCell::default(),
            source,
            budget: Budget::new(share, costs, adapts),
            figures: Figures {
                writes,
                missed_threads,
                kernel_moved: Some(0),
                period: 1,
                ..Figures::default()
            },
            records: Vec::new(),
            touches: Vec::new(),
            births: Vec::new(),
            ends: Vec::new(),
            executed: Vec::new(),
            retired: Vec::new(),
            looked: clock::monotonic(),
            scans_wanted: None,
            fault_ns,
            charged: Duration::ZERO,
            upkeep: Duration::ZERO,
        }
    }

    /// Follows a program that was just started, and what it starts.
    pub fn follow(&mut self, pid: u32) {
        self.following.add_fresh(pid);
    }

    /// Says that the kernel scans every so many milliseconds because we asked: each hint fault is on our account,
    /// at the cost of a minor fault, and the budget may want [others](Watch::adapt_scans).
    pub fn own_scans(&mut self, ms: u32) {
        self.budget.own_scans(ms, self.fault_ns);
        self.scans_wanted = Some(ms);
        self.figures.scan_ms = Some(ms);
    }

    /// Hint faults cost the program time whether or not they are reported: where we asked for them, fewer are
    /// asked for while the budget is overdrawn.
    pub fn adapt_scans(&mut self, held: &Held) {
        let wanted = self.budget.rate().scan_ms;
        let before = std::mem::replace(&mut self.scans_wanted, wanted);
        // What cannot be written now could be at the start: the budget's other means remain.
        if let Some(ms) = wanted.filter(|_| wanted != before)
            && held.set(Scan::every(ms)).is_ok()
        {
            self.figures.scan_ms = Some(ms);
        }
    }

    /// Charges the budget with what the caller does about the touches.
    pub fn charge(&mut self, own: Duration) {
        self.charged += own;
    }

    /// Charges the budget with what the caller does however few touches there are.
    pub fn charge_upkeep(&mut self, own: Duration) {
        self.upkeep += own;
    }

    /// Whether more was spent than the budget allows so far.
    #[must_use]
    pub fn overdrawn(&self) -> bool {
        self.budget.savings() < 0.0
    }

    /// Waits until it is time for a look or much has happened, at most so long; whether to look.
    pub fn due(&self, limit: Duration) -> bool {
        let at = self.looked + self.budget.rate().look;
        let left = at.saturating_sub(clock::monotonic());
        self.source.wait(left.min(limit)) || left <= limit
    }

    /// Waits until much has happened, at most so long; then everything since the last call, by time.
    pub fn look(&mut self, limit: Duration) -> &[Touch] {
        self.source.wait(limit);
        let began = clock::own_cpu_time();
        self.touches.clear();
        self.births.clear();
        self.ends.clear();
        self.executed.clear();
        self.retired.clear();
        self.source.drain(&mut self.records);
        let mut samples = 0;
        for record in std::mem::take(&mut self.records) {
            samples += u64::from(matches!(record, Record::Fault(_)));
            self.take(record);
        }
        // By names as they are known at the end: a companion names itself after its first touches.
        let following = &self.following;
        self.touches.retain(|t| !following.is_companion(&t.fault));
        self.following.refresh(&self.host, &mut self.ends);
        let numbers = self.numbers.get_mut();
        self.retired
            .extend(self.ends.iter().filter_map(|pid| numbers.end(*pid)));
        self.figures.kernel_moved = self.following.moved();
        self.settle(samples, clock::own_cpu_time() - began);
        &self.touches
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Fault(fault) => {
                let Some(kind) = self.following.judge(&self.host, &fault) else {
                    return; // somebody else's
                };
                let count = match kind {
                    Kind::Hint => &mut self.figures.hints,
                    Kind::First => &mut self.figures.firsts,
                    Kind::Copy => &mut self.figures.copies,
                    Kind::Unknown => &mut self.figures.unknown,
                };
                *count += 1;
                let numbers = self.numbers.get_mut();
                let process = match kind {
                    Kind::Hint | Kind::Unknown => numbers.number(fault.pid),
                    Kind::First | Kind::Copy => numbers.known(fault.pid),
                };
                self.touches.push(Touch { fault, kind, process });
            }
            Record::Lost(records) => self.figures.lost += records,
            Record::Began { pid, tid, parent } => {
                if self.following.begin(pid, parent) {
                    self.births.push((pid, tid));
                }
            }
            other => {
                if let Record::Named {
                    pid, executed: true, ..
                } = other
                {
                    self.executed.push((pid, self.touches.len()));
                    self.retired.extend(self.numbers.get_mut().end(pid));
                }
                self.following.hear(&other);
            }
        }
    }

    fn settle(&mut self, samples: u64, own: Duration) {
        let now = clock::monotonic();
        let wall = now - std::mem::replace(&mut self.looked, now);
        let running = self.budget.rate().running;
        let hints = self.touches.iter().filter(|t| t.kind == Kind::Hint).count() as u64;
        let looking = if samples == 0 {
            &mut self.upkeep
        } else {
            &mut self.charged
        };
        *looking += own;
        let rate = self.budget.settle(&Spell {
            program_ns: self.following.cpu_since() as f64,
            own_ns: std::mem::take(&mut self.charged).as_nanos() as f64,
            upkeep_ns: std::mem::take(&mut self.upkeep).as_nanos() as f64,
            samples,
            hints,
            open: f64::from(u8::from(running)),
            wall,
        });
        if !running {
            self.figures.closed += wall;
        }
        self.source.set_running(rate.running);
        self.source.set_period(rate.period);
        self.figures.period = self.source.period();
        self.figures.cost = self.budget.cost().unwrap_or(0.0);
        self.figures.sample_ns = self.budget.sample_ns();
    }

    /// What the last look saw, by time.
    #[must_use]
    pub fn touches(&self) -> &[Touch] {
        &self.touches
    }

    /// Threads of the followed processes that began before the last look: process and thread.
    #[must_use]
    pub fn births(&self) -> &[(u32, u32)] {
        &self.births
    }

    /// Processes that the last look found ended.
    #[must_use]
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Processes that run another program since: which, and before which of the touches.
    #[must_use]
    pub fn executed(&self) -> &[(u32, usize)] {
        &self.executed
    }

    /// Numbers of programs that are no more since the last look, as their processes ended or executed another.
    #[must_use]
    pub fn retired(&self) -> &[u16] {
        &self.retired
    }

    /// The number that page numbers carry for a process, given now if it has none; `None` when none is left.
    #[must_use]
    pub fn number(&self, pid: u32) -> Option<u16> {
        let mut numbers = self.numbers.borrow_mut();
        let number = numbers.number(pid);
        if !self.following.follows(pid) {
            numbers.end(pid); // has ended already: nobody else will say so
        }
        number
    }

    /// The same if it has been given.
    #[must_use]
    pub fn known_number(&self, pid: u32) -> Option<u16> {
        self.numbers.borrow().known(pid)
    }

    /// The process that a number stands for, alive or not.
    #[must_use]
    pub fn pid(&self, number: u16) -> Option<u32> {
        self.numbers.borrow().pid(number)
    }

    /// Whether a number stands for one program in the whole observation, as it has to in a profile.
    #[must_use]
    pub fn is_unique(&self, number: u16) -> bool {
        self.numbers.borrow().is_unique(number)
    }

    /// Whether there were more processes at once than numbers: some were left out.
    #[must_use]
    pub fn left_processes_out(&self) -> bool {
        self.numbers.borrow().is_short()
    }

    /// The processes that are followed and live, ascending.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.following.processes()
    }

    /// The name of a thread, as far as it was heard.
    #[must_use]
    pub fn name(&self, tid: u32) -> Option<&str> {
        self.following.name(tid)
    }

    /// Pages that the kernel's balancing moved of a process, dead or alive.
    #[must_use]
    pub fn moved(&self, pid: u32) -> u64 {
        self.following.moved_of(pid)
    }

    /// The same, counted now: where the kernel does not tell of each move, it is asked now and then only. `None`
    /// where it does not count.
    pub fn count_moved(&mut self, pid: u32) -> Option<u64> {
        self.following.count_moves(&self.host, pid);
        self.following.moved().map(|_| self.moved(pid))
    }

    /// Figures of the whole observation.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// Whose faults the kernel reports to us.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.source.scope()
    }
}

/// The threads that these processes have, all of which are there.
fn all_threads(host: &Host, pids: &[u32]) -> Result<Vec<u32>, NotHere> {
    match pids.iter().find(|pid| !host.has_process(**pid)) {
        Some(gone) => Err(NotHere::process(host, *gone)),
        None => threads(host, pids),
    }
}

/// The threads that these processes have now.
fn threads(host: &Host, pids: &[u32]) -> Result<Vec<u32>, NotHere> {
    let mut tids = Vec::new();
    each_alive(host, pids, |pid| {
        tids.extend(host.tasks(pid)?.iter().map(|t| t.tid));
        Ok(())
    })?;
    Ok(tids)
}

/// Looks at each process, past those that have ended; an error when nobody is left.
fn each_alive(
    host: &Host,
    pids: &[u32],
    mut look: impl FnMut(u32) -> Result<(), ReadError>,
) -> Result<(), NotHere> {
    let mut alive = 0;
    for pid in pids {
        match look(*pid) {
            Ok(()) => alive += 1,
            Err(_) if !lives(host, *pid) => {}
            Err(_) => return Err(NotHere::process(host, *pid)),
        }
    }
    match pids.first() {
        Some(first) if alive == 0 => Err(NotHere::process(host, *first)),
        _ => Ok(()),
    }
}

/// Running processes that are being attached to.
struct Attached<'a> {
    host: &'a Host,
    pids: &'a [u32],
    source: Option<Source>,
    /// What was heard meanwhile.
    records: Vec<Record>,
}

impl Threads for Attached<'_> {
    type Error = NotHere;

    fn list(&mut self) -> Result<Vec<u32>, NotHere> {
        threads(self.host, self.pids)
    }

    fn begun(&mut self) -> Vec<u32> {
        let before = self.records.len();
        if let Some(source) = &mut self.source {
            source.drain(&mut self.records);
        }
        let began = |r: &Record| match r {
            Record::Began { tid, .. } => Some(*tid),
            _ => None,
        };
        self.records[before..].iter().filter_map(began).collect()
    }

    fn watch(&mut self, tids: &[u32]) -> Result<(), NotHere> {
        let watched = match &mut self.source {
            Some(source) => source.add_threads(tids),
            none => Source::of_threads(tids, 1).map(|source| *none = Some(source)),
        };
        watched.map_err(|e| NotHere::events(self.host, &e))
    }
}

/// An event a thread and CPU is cheapest, as the kernel leaves out what we do not want; where these would be
/// too many, everybody's faults are looked through, if we may.
fn crowded(host: &Host, threads: usize) -> Option<Source> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let many = threads * cpus > MOST_EVENTS || cpus > MOST_CPUS;
    let everybody = || Source::of_everybody(1).ok();
    (many && sees_everybody(host)).then(everybody).flatten()
}

fn nodes(names: &[String]) -> usize {
    let is_node = |n: &&String| n.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok());
    names.iter().filter(is_node).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn sleeper() -> Child {
        Command::new("/bin/sleep").arg("600").spawn().unwrap()
    }

    #[test]
    fn who_ends_while_we_attach_is_passed_over_until_nobody_is_left() {
        let (mut first, mut second) = (sleeper(), sleeper());
        let (host, pids) = (Host::default(), [first.id(), second.id()]);
        assert_eq!(all_threads(&host, &pids).unwrap(), pids);
        first.kill().unwrap();
        first.wait().unwrap();
        assert_eq!(threads(&host, &pids).unwrap(), [second.id()]);
        let gone = NotHere::process(&host, first.id());
        assert_eq!(all_threads(&host, &pids), Err(gone.clone()));
        second.kill().unwrap();
        second.wait().unwrap();
        assert_eq!(threads(&host, &pids), Err(gone));
    }
}
