//! Samples which threads access which pages of running programs, by NUMA hint faults.
//!
//! Automatic NUMA balancing makes some pages inaccessible from time to time, and the next access to each faults. This
//! samples *pages per scan*, not accesses: it shows which nodes and threads use a page, but not how intensely.

mod attaching;
mod budget;
mod cooldown;
mod drawing;
mod following;
mod here;
mod kind;
mod mapped;
mod measured;
mod pace;
mod processes;
mod recorder;
mod residents;
mod running;
mod sensor;
mod set_aside;
mod traced;

pub use budget::{Budget, Costs, Interval, Rate};
pub use following::is_companion;
pub use here::{Unavailable, check, sees_everybody};
pub use kind::Kind;
pub use recorder::{Options, PeriodicTask, Progress, Recorded, Target, record};
pub use sensor::{SETS_ASIDE, Sensor, damon_unavailable, user_faults};
pub use set_aside::SetAsideTotals;
pub use traced::Traced;

use attaching::attach;
use following::Following;
use measured::costs;
use nodewise_linux::faults::{Fault, Record, Scope, Source};
use nodewise_linux::scan::{Held, Scan};
use nodewise_linux::{Host, clock};
use nodewise_profile::Sampling;
use processes::Processes;
use running::{Attached, all_threads, crowded, each_alive, nodes, threads};
use set_aside::SetAside;
use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

/// An access that faulted, with the cause of the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Time, thread, address and CPU of the fault.
    pub fault: Fault,
    /// The cause of the fault.
    pub kind: Kind,
    /// The number of the program that the process was running. Each sample has one unless all numbers are in use.
    pub process: Option<u16>,
}

/// Counts of the observation so far, and its cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Hint faults, which are the samples.
    pub hints: u64,
    /// Faults at the first touch of a page.
    pub firsts: u64,
    /// Faults at the first write to a shared page (copy-on-write).
    pub copies: u64,
    /// Faults that were either hints or copies.
    pub unknown: u64,
    /// Records that were lost because the kernel's buffers were full.
    pub lost: u64,
    /// One of every `period` faults is reported at present.
    pub period: u64,
    /// Current milliseconds between the kernel's scans, if we set that.
    pub scan_ms: Option<u32>,
    /// Total time during which no fault was reported, in order to keep the budget.
    pub closed: Duration,
    /// Share of the programs' CPU time that observation took; 0 before they used any.
    pub cost: f64,
    /// Cost of a sample in nanoseconds: at least half of it is in the kernel, charged to the program.
    pub sample_ns: f64,
    /// Pages that the kernel has moved by itself; `None` if it does not report them.
    pub kernel_moved: Option<u64>,
    /// Number of threads that could not be watched.
    pub missed_threads: usize,
    /// Whether the kernel reports if an access is a write.
    pub writes: bool,
    /// The mechanism that makes accesses fault.
    pub sensor: Sensor,
    /// Pages that were set aside to sample accesses to them, with [`Sensor::Userfaultfd`].
    pub aside: Option<SetAsideTotals>,
}

impl Figures {
    /// The sampling section of a profile's manifest.
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

/// Observes programs by their page faults.
pub struct Watch {
    host: Host,
    source: Source,
    budget: Budget,
    following: Following,
    /// Numbers that stand for processes in page numbers; assigned when first needed.
    numbers: RefCell<Processes>,
    figures: Figures,
    records: Vec<Record>,
    touches: Vec<Touch>,
    births: Vec<(u32, u32)>,
    ends: Vec<u32>,
    executed: Vec<(u32, usize)>,
    retired: Vec<u16>,
    looked: Duration,
    /// The interval of the kernel's scans that we last asked for, milliseconds.
    scans_wanted: Option<u32>,
    /// Cost of a minor fault in nanoseconds.
    fault_ns: f64,
    /// Time since the last look that the caller spent on touches; `upkeep`: on everything else.
    charged: Duration,
    upkeep: Duration,
    /// Number of samples in the last look, and the time that it took.
    looked_at: (u64, Duration),
    /// Makes accesses fault by setting pages aside, where the kernel's balancing does not.
    set_aside: Option<SetAside>,
    /// Average number of CPUs that the programs used between the last two looks.
    cpus: f64,
}

impl Watch {
    /// Observes running processes, their children, and those they start later. May use `share` of their CPU time.
    ///
    /// # Errors
    /// Accesses cannot be sampled here.
    pub fn of_pids(host: &Host, pids: &[u32], share: f64, sensor: Sensor) -> Result<Self, Unavailable> {
        let sensor = sensor.choose(host)?;
        all_threads(host, pids)?;
        let pids = &host.with_descendants(pids)[..];
        let tids = threads(host, pids)?;
        let one_node = host
            .names("sys/devices/system/node")
            .is_ok_and(|n| nodes(&n) == 1);
        if one_node && tids.len() == 1 && sensor == Sensor::HintFaults {
            let because = format!(
                "process {} has one thread on one node, and the kernel samples no page that lies where its only thread runs",
                pids[0]
            );
            return Err(Unavailable::new(because, ""));
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
        let source = source.ok_or_else(|| Unavailable::process(host, pids[0]))?;
        let mut watch = Self::new(host, source, costs, share, sensor);
        watch.records = records;
        each_alive(host, pids, |pid| watch.following.add_running(host, pid))?;
        match &mut watch.set_aside {
            Some(set_aside) => set_aside.enter(host, pids)?,
            None => watch.expect_bursts(),
        }
        Ok(watch)
    }

    /// Observes what the calling thread starts from now on; call [`Watch::follow`] with its process.
    ///
    /// # Errors
    /// Accesses cannot be sampled here.
    pub fn of_command(host: &Host, share: f64, sensor: Sensor) -> Result<Self, Unavailable> {
        let sensor = sensor.choose(host)?;
        let costs = costs();
        let source = crowded(host, 1).map_or_else(|| Source::of_children(1), Ok);
        let source = source.map_err(|e| Unavailable::events(host, &e))?;
        Ok(Self::new(host, source, costs, share, sensor))
    }

    /// Observes the processes of a control group (version 2), and those that join it.
    ///
    /// # Errors
    /// Accesses cannot be sampled here.
    pub fn of_group(host: &Host, folder: &Path, share: f64, sensor: Sensor) -> Result<Self, Unavailable> {
        let sensor = sensor.choose(host)?;
        let costs = costs();
        let source = Source::of_group(folder, 1).map_err(|e| Unavailable::group(host, &e))?;
        let text = std::fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        let mut watch = Self::new(host, source, costs, share, sensor);
        if watch.set_aside.is_none() {
            watch.expect_bursts();
        }
        for pid in text.lines().filter_map(|l| l.parse().ok()) {
            // A process that ends meanwhile is skipped.
            let _ = watch.following.add_running(host, pid);
        }
        Ok(watch)
    }

    fn new(host: &Host, source: Source, (costs, fault_ns): (Costs, f64), share: f64, sensor: Sensor) -> Self {
        let set_aside = (sensor == Sensor::Userfaultfd).then(|| SetAside::new(share));
        let (writes, missed_threads) = (source.sees_writes(), source.missed_threads());
        Self {
            host: host.clone(),
            following: Following::new(source.scope() == Scope::Group, writes, source.sees_moves()),
            numbers: RefCell::default(),
            source,
            budget: Budget::new(share, costs),
            figures: Figures {
                writes,
                missed_threads,
                kernel_moved: Some(0),
                period: 1,
                sensor,
                aside: set_aside.as_ref().map(SetAside::totals),
                ..Figures::default()
            },
            set_aside,
            cpus: 1.0,
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
            looked_at: (0, Duration::ZERO),
        }
    }

    /// Follows a program that was just started, and its children.
    pub fn follow(&mut self, pid: u32) {
        self.following.add_fresh(pid);
    }

    /// States that the kernel scans every `ms` milliseconds on our request. Each hint fault is then charged to us at
    /// the cost of a minor fault, and the budget may require [another period](Watch::adapt_scans).
    pub fn own_scans(&mut self, ms: u32) {
        self.budget.own_scans(ms, self.fault_ns);
        self.scans_wanted = Some(ms);
        self.figures.scan_ms = Some(ms);
    }

    /// Adapts the scan period to the budget: hint faults cost the program time even if they are not reported, so scans
    /// that we requested become rarer while the budget is overdrawn.
    pub fn adapt_scans(&mut self, held: &Held) {
        let wanted = self.budget.rate().scan_ms;
        let before = std::mem::replace(&mut self.scans_wanted, wanted);
        // The period could be written at the start; if it cannot be written now, the budget's other measures remain.
        if let Some(ms) = wanted.filter(|_| wanted != before)
            && held.set(Scan::every(ms)).is_ok()
        {
            self.figures.scan_ms = Some(ms);
        }
    }

    fn expect_bursts(&mut self) {
        self.budget.expect_bursts();
        self.source.set_period(self.budget.rate().period);
    }

    /// Charges time that the caller spent on processing touches.
    pub fn charge(&mut self, own: Duration) {
        self.charged += own;
    }

    /// Charges time that the caller spent independently of the number of touches.
    pub fn charge_upkeep(&mut self, own: Duration) {
        self.upkeep += own;
    }

    /// Share of the account from which on what was slowed down may go faster again.
    pub const RECOVERED: f64 = pace::RECOVERED_SHARE;

    /// The balance of the observing budget as a share of what the account can hold; negative if overdrawn.
    #[must_use]
    pub fn savings(&self) -> f64 {
        self.budget.savings()
    }

    /// Whether more was spent so far than the budget allows.
    #[must_use]
    pub fn overdrawn(&self) -> bool {
        self.budget.savings() < 0.0
    }

    /// Waits until it is time for a look or buffers fill up, at most `limit`; returns whether to look.
    pub fn wait_until_due(&self, limit: Duration) -> bool {
        let at = self.looked + self.budget.rate().look;
        let left = at.saturating_sub(clock::monotonic());
        self.source.wait(left.min(limit)) || left <= limit
    }

    /// Waits until buffers fill up, at most `limit`; returns the touches since the last call, by time: one for each fault of a
    /// followed process, except those of the preload library's companions. Where pages are set aside one by one, a fault on
    /// any other page is a first touch.
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
        // Applied at the end of a look, when more thread names are known: a companion sets its name after its first
        // touches.
        let following = &self.following;
        self.touches.retain(|t| !following.is_companion(&t.fault));
        self.following.refresh(&self.host, &mut self.ends);
        let numbers = self.numbers.get_mut();
        self.retired
            .extend(self.ends.iter().filter_map(|pid| numbers.end(*pid)));
        self.figures.kernel_moved = self.following.moved();
        self.set_aside();
        self.account(samples, clock::own_cpu_time() - began);
        &self.touches
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Fault(fault) => {
                let Some(kind) = self.following.classify(&self.host, &fault) else {
                    return; // a fault of a process that is not followed
                };
                let period = self.source.period();
                let kind = match &mut self.set_aside {
                    None => kind,
                    Some(_) if kind == Kind::Copy => kind,
                    Some(set_aside) => {
                        match set_aside.take_fault(fault.pid, fault.address, fault.time_ns, period) {
                            true => kind,
                            false => Kind::First,
                        }
                    }
                };
                let count = match kind {
                    Kind::Hint => &mut self.figures.hints,
                    Kind::First => &mut self.figures.firsts,
                    Kind::Copy => &mut self.figures.copies,
                    Kind::Unknown => &mut self.figures.unknown,
                };
                *count += 1;
                let numbers = self.numbers.get_mut();
                let process = match kind.is_sample() {
                    true => numbers.number(fault.pid),
                    false => numbers.known(fault.pid),
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
                self.following.handle(&other);
            }
        }
    }

    /// Sets pages aside, where that is the sensor.
    fn set_aside(&mut self) {
        let Some(set_aside) = &mut self.set_aside else {
            return;
        };
        for (pid, _) in &self.executed {
            set_aside.executed(*pid);
        }
        // Setting aside has its own half of the budget, whatever first touches cost. It is paused while no fault is
        // reported, since it would be of no use.
        let paused = !self.budget.rate().running;
        set_aside.turn(&self.host, &self.following.processes(), self.cpus, paused);
        self.upkeep += set_aside.take_spent();
        self.figures.aside = Some(set_aside.totals());
    }

    /// The mechanism that makes accesses fault.
    #[must_use]
    pub fn sensor(&self) -> Sensor {
        self.figures.sensor
    }

    /// The reasons why some processes are not sampled, since the last call; each reason once.
    pub fn take_failures(&mut self) -> Vec<Unavailable> {
        self.set_aside
            .as_mut()
            .map(SetAside::take_failures)
            .unwrap_or_default()
    }

    fn account(&mut self, samples: u64, own: Duration) {
        let now = clock::monotonic();
        let wall = now - std::mem::replace(&mut self.looked, now);
        let running = self.budget.rate().running;
        let hints = self.touches.iter().filter(|t| t.kind == Kind::Hint).count() as u64;
        // The time that the caller spent since then belongs to the samples of the previous look. With few samples, the
        // cost of a look does not depend on their number.
        let (handled, looked) = std::mem::replace(&mut self.looked_at, (samples, own));
        let each = (looked + self.charged).as_nanos() as f64 / handled.max(1) as f64;
        let looking = if samples == 0 {
            &mut self.upkeep
        } else {
            &mut self.charged
        };
        *looking += own;
        let program_ns = self.following.cpu_since() as f64;
        self.cpus = program_ns / (wall.as_nanos() as f64).max(1.0);
        let rate = self.budget.account(&Interval {
            program_ns,
            own_ns: std::mem::take(&mut self.charged).as_nanos() as f64,
            handling_ns: (handled >= budget::MIN_COST_SAMPLES).then_some(each),
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

    /// The touches that the last look found, by time.
    #[must_use]
    pub fn touches(&self) -> &[Touch] {
        &self.touches
    }

    /// Threads of the followed processes that were created before the last look, as (process, thread).
    #[must_use]
    pub fn births(&self) -> &[(u32, u32)] {
        &self.births
    }

    /// Processes that the last look found to have ended.
    #[must_use]
    pub fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Processes that executed another program, each with the index of the first touch after that.
    #[must_use]
    pub fn executed(&self) -> &[(u32, usize)] {
        &self.executed
    }

    /// Numbers of programs that ended since the last look, with their process or because it executed another program.
    #[must_use]
    pub fn retired(&self) -> &[u16] {
        &self.retired
    }

    /// The number of a process in page numbers, assigned now if it has none; `None` when numbers have run out.
    #[must_use]
    pub fn number(&self, pid: u32) -> Option<u16> {
        let mut numbers = self.numbers.borrow_mut();
        let number = numbers.number(pid);
        if !self.following.follows(pid) {
            numbers.end(pid); // the process has ended, and no later record will report that
        }
        number
    }

    /// The number of a process, if it has one.
    #[must_use]
    pub fn known_number(&self, pid: u32) -> Option<u16> {
        self.numbers.borrow().known(pid)
    }

    /// The process that a number was assigned to, running or not.
    #[must_use]
    pub fn pid(&self, number: u16) -> Option<u32> {
        self.numbers.borrow().pid(number)
    }

    /// Whether a number stands for one program throughout the observation, as profiles require.
    #[must_use]
    pub fn is_unique(&self, number: u16) -> bool {
        self.numbers.borrow().is_unique(number)
    }

    /// Whether some processes got no number because too many ran at once.
    #[must_use]
    pub fn left_processes_out(&self) -> bool {
        self.numbers.borrow().has_run_out()
    }

    /// The followed processes that are running, ascending.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.following.processes()
    }

    /// The name of a thread, if it was reported.
    #[must_use]
    pub fn name(&self, tid: u32) -> Option<&str> {
        self.following.name(tid)
    }

    /// Pages of a process, running or not, that automatic NUMA balancing moved.
    #[must_use]
    pub fn moved(&self, pid: u32) -> u64 {
        self.following.moved_of(pid)
    }

    /// Whether the kernel reports each of its moves, so that [`Watch::moved`] is up to date.
    #[must_use]
    pub fn reports_moves(&self) -> bool {
        self.following.kernel_tells_moves()
    }

    /// As [`Watch::moved`], but up to date: where the kernel does not report each move, its counters are read now.
    /// `None` if it does not count moves.
    pub fn count_moved(&mut self, pid: u32) -> Option<u64> {
        self.following.count_moves(&self.host, pid);
        self.following.moved().map(|_| self.moved(pid))
    }

    /// Counts and cost of the whole observation.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.figures
    }

    /// The processes whose faults the kernel reports to us.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.source.scope()
    }
}
