//! The loop: observe, decide, move, until the programs or their owner have had enough.

use super::Arguments;
use super::asym::{Asym, pages_of};
use super::journal::Journal;
use super::metrics::Metrics;
use super::mover::Mover;
use super::page::Page;
use super::place::{Place, nothing_to_do};
use super::processes::Processes;
use super::recording::MovedPages;
use super::report::{Report, check_files};
use super::target::{Target, may_stop};
use super::timed::{Timed, cpu_time};
use super::touched::{Touched, asked, new_pages};
use super::unseen::Unseen;
use crate::exit::Outcome;
use crate::output::{self, say};
use anyhow::Context;
use nodewise_control::{Controller, DryRun, Interval, Observer, Settings, Tracker, run_interval};
use nodewise_enforce::{Holder, HugePages, Linux};
use nodewise_linux::mempolicy::decline_balancing;
use nodewise_linux::scan::{self, Scan};
use nodewise_linux::signals::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, Signals};
use nodewise_linux::{Host, clock, pages};
use nodewise_machine::NodeId;
use nodewise_observe::faults::{Kind, Watch};
use nodewise_placement::{Move, Observed, migration_policy};
use nodewise_profile::{BASE_PAGE_SHIFT, BASE_PAGE_SIZE, PageNumber};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::time::Duration;

/// Pages followed at once, 16 bytes each.
const MOST_PAGES: usize = 1 << 20;
/// At most so long until signals and the command's end are noticed.
const LOOK: Duration = Duration::from_millis(50);
/// The first look at what is to be held; the kernel begins to sample a second after a program's start.
const FIRST_HOLD: Duration = Duration::from_millis(100);
/// Counts are halved after so many samples a page on average, however long they take: a page is sampled
/// once a pass of the kernel's, which comes every second at first and every minute at last.
const HALF_LIFE: u64 = 4;
/// Holding takes no more than a fiftieth of the time, and a quarter while the program takes new memory,
/// which is not observed before it is held.
const HOLD_SHARE: u32 = 50;
const HOLD_SHARE_GROWING: u32 = 4;
/// At most so long between two looks at what is to be held, while the observing budget is overdrawn.
const SELDOM_HELD: Duration = Duration::from_secs(30);

/// One balancer at work.
pub struct Session {
    pub place: Place,
    pub report: Report,
    watch: Watch,
    observation: Observation,
    controller: Controller,
    mover: Mover,
    journal: Journal,
    processes: Processes,
    interval: Duration,
    began: Duration,
    decides_at: Duration,
    holds_at: Duration,
    hold_pause: Duration,
    /// When the last look at what is to be held ended, and what it took.
    held: (Duration, Duration),
    /// Samples since counts were halved.
    fresh: u64,
    unseen: Unseen,
    /// Pages that the kernel had moved of a process when decisions were last made.
    kernel_moved: HashMap<u32, u64>,
    /// With `--threads asym`.
    asym: Option<Asym>,
    metrics: Option<Metrics>,
    /// Put back when the session is dropped, and when it is killed.
    scan: Option<scan::Held>,
    /// Dropped last: its end may take a moment.
    page: Option<Page>,
}

/// What was sampled lately.
struct Observation(Tracker);

impl Session {
    /// Ready to observe; a command is to be started next, by this thread, and then [`Session::follow`]ed.
    pub fn new(
        arguments: &Arguments,
        target: &Target,
        place: Place,
        holder: Option<Holder>,
    ) -> anyhow::Result<Self> {
        let host = Host::default();
        let shift = arguments.page_size.unwrap_or_else(default_page_shift);
        let policy = migration_policy(&arguments.policy, &place.machine)?;
        let report = Report::new(arguments, &place, policy.name(), shift);
        let scan = arguments
            .scan_period
            .map(|period| hold_scan(&host, period))
            .transpose()?;
        let mut watch = target.watch(&host, arguments.observe)?;
        if let Some(period) = arguments.scan_period {
            watch.own_scans(milliseconds(period));
        }
        let dry = arguments.dry_run || place.pretended;
        if arguments.freeze && !dry {
            watch.processes().into_iter().try_for_each(may_stop)?;
        }
        let settings = limits(arguments, shift);
        let mover = match dry {
            true => Mover::Nobody(DryRun::new(&settings), holder),
            false => Mover::Linux(linux(arguments, &place, shift, holder)),
        };
        let journal = Journal::new(arguments, target, shift, dry)?;
        let page = arguments.page.zip(journal.folder());
        let page = page.map(|(port, folder)| Page::start(arguments, port, folder));
        let began = clock::monotonic();
        Ok(Self {
            observation: Observation(Tracker::new(place.machine.node_count(), shift, MOST_PAGES)),
            controller: Controller::new(policy, settings),
            journal,
            page: page.and_then(|page| page.map_err(|e| say!("no page: {e:#}")).ok()),
            interval: arguments.interval,
            decides_at: began + arguments.interval,
            holds_at: began + FIRST_HOLD,
            hold_pause: FIRST_HOLD,
            held: (began, Duration::ZERO),
            fresh: 0,
            unseen: Unseen::new(MOST_PAGES),
            kernel_moved: HashMap::new(),
            asym: Asym::new(arguments, &place, dry, &watch.processes()),
            metrics: arguments
                .metrics
                .as_deref()
                .map(|file| Metrics::new(file, target)),
            processes: Processes::default(),
            scan,
            began,
            place,
            report,
            watch,
            mover,
        })
    }

    /// The command has been started.
    pub fn follow(&mut self, pid: u32) {
        self.watch.follow(pid);
    }

    /// Processes that are balanced and live.
    pub fn processes(&self) -> Vec<u32> {
        self.watch.processes()
    }

    pub fn pause(&mut self) {
        self.controller.pause();
        say!("paused; SIGUSR2 resumes");
    }

    pub fn resume(&mut self) {
        self.controller.resume();
        say!("resumed");
    }

    /// Some hundredths of a second of the loop.
    pub fn turn(&mut self) {
        if self.watch.due(LOOK) || clock::monotonic() >= self.decides_at {
            self.look();
        }
        let now = clock::monotonic();
        if now >= self.holds_at {
            self.hold(now);
        }
        if now >= self.decides_at {
            self.decide();
            // Turns that were missed are not made up for.
            self.decides_at = (self.decides_at + self.interval).max(now);
        }
    }

    /// Looks at what was sampled, on the observing budget.
    fn look(&mut self) {
        self.watch.look(Duration::ZERO);
        let began = clock::own_cpu_time();
        self.take_in_all();
        self.watch.charge(clock::own_cpu_time() - began);
        if let Some(scan) = &self.scan {
            self.watch.adapt_scans(scan);
        }
    }

    fn take_in_all(&mut self) {
        self.journal.heard(&self.watch);
        let overdrawn = self.watch.overdrawn();
        let mut touched: BTreeMap<u16, Vec<Touched>> = BTreeMap::new();
        for touch in self.watch.touches() {
            if touch.kind == Kind::First && self.holds_at != Duration::MAX && !overdrawn {
                let (at, took) = self.held;
                self.holds_at = self.holds_at.min(at + FIRST_HOLD.max(took * HOLD_SHARE_GROWING));
            }
            let (fault, sampled) = (touch.fault, matches!(touch.kind, Kind::Hint | Kind::Unknown));
            let node = self.place.node_of_cpu(fault.cpu).filter(|_| sampled);
            let known = self.processes.ordinal(fault.pid);
            if let (Some((ordinal, true)), Mover::Linux(linux)) = (known, &mut self.mover) {
                linux.set_process(ordinal, fault.pid);
            }
            if let Some((process, _)) = known {
                touched.entry(process).or_default().push(Touched {
                    address: fault.address,
                    tid: fault.tid,
                    node,
                    first: touch.kind == Kind::First,
                });
            }
        }
        for (process, touches) in touched {
            self.take_in(process, &touches);
        }
        for pid in self.watch.ends() {
            if let Some(process) = self.processes.end(*pid) {
                let pages = pages_of_process(process);
                self.mover.forget(&pages);
                self.unseen.forget_all(&pages);
                self.observation.0.forget(pages);
                self.kernel_moved.remove(pid);
            }
            if let Some(asym) = &mut self.asym {
                asym.forget(*pid);
            }
        }
    }

    /// A page that has just faulted can be asked about: where it is, and whether somebody moved it.
    fn take_in(&mut self, process: u16, touches: &[Touched]) {
        let shift = BASE_PAGE_SHIFT + self.report.page_shift;
        let Some(pid) = self.processes.pid(process) else {
            return;
        };
        let page_of = |address: u64| PageNumber::of_address(process, address >> shift << shift);
        let fresh = new_pages(touches, shift);
        let fresh: Vec<PageNumber> = fresh.into_iter().map(page_of).collect();
        self.forget_new(&fresh);
        let homes = self.homes(pid, &asked(touches, shift), page_of);
        let tracker = &mut self.observation.0;
        for touch in touches {
            let page = page_of(touch.address);
            if let Some(node) = touch.node {
                tracker.add(page, node, 1);
                self.fresh += 1;
                if let Some(home) = tracker.home_of(page).or_else(|| homes.get(&page).copied()) {
                    self.report.sampled(page, home == node);
                    if let Some(asym) = &mut self.asym {
                        asym.sampled(pid, touch.tid, home);
                    }
                }
            }
        }
        self.report.tracked = tracker.tracked();
        self.set_homes(pid, homes, &fresh);
    }

    /// Pages were found there; a fresh one was nowhere before.
    fn set_homes(&mut self, pid: u32, homes: BTreeMap<PageNumber, NodeId>, fresh: &[PageNumber]) {
        let tracker = &mut self.observation.0;
        let mut elsewhere = Vec::new();
        for (page, to) in homes {
            let before = tracker.home_of(page).filter(|from| *from != to);
            tracker.set_home(page, to);
            if let Some(from) = before.filter(|_| fresh.binary_search(&page).is_err()) {
                elsewhere.push(MovedPages {
                    pid,
                    page,
                    count: 1,
                    from,
                    to,
                });
            }
        }
        self.found_elsewhere(pid, &elsewhere);
    }

    /// Pages are not where they were: our moves, the kernel's or somebody's.
    fn found_elsewhere(&mut self, pid: u32, found: &[MovedPages]) {
        let mut kernel_moved = None;
        if found.iter().any(|moved| self.unseen.contains(moved.page)) {
            kernel_moved = self.watch.count_moved(pid);
        }
        let now_ns = self.now_ns();
        let by_kernel = self.watch.moved(pid) > self.kernel_moved.get(&pid).copied().unwrap_or(0);
        for moved in found {
            match self.unseen.found(moved, kernel_moved) {
                Some(ours) => {
                    self.controller
                        .arrived_after_all(moved.page, moved.from, moved.to);
                    self.journal
                        .moved(now_ns, &self.controller.policy(), &ours.reason, moved);
                }
                None => self.journal.found_elsewhere(now_ns, by_kernel, moved),
            }
        }
    }

    /// Where pages are, or would be; those of which nobody knows are left out. Given are an address that was
    /// touched of each.
    fn homes(
        &self,
        pid: u32,
        asked: &[u64],
        page_of: impl Fn(u64) -> PageNumber,
    ) -> BTreeMap<PageNumber, NodeId> {
        let statuses = pages::query(pid, asked).unwrap_or_default();
        let nodes = statuses
            .into_iter()
            .map(|s| s.node().and_then(|n| self.place.node(n)));
        let home = |(address, node): (&u64, Option<NodeId>)| {
            let page = page_of(*address);
            Some((page, self.mover.supposed_home(page).or(node)?))
        };
        asked.iter().zip(nodes).filter_map(home).collect()
    }

    /// What was counted of other memory at the same address. Of a huge page other parts may be old.
    fn forget_new(&mut self, pages: &[PageNumber]) {
        if self.report.page_shift > 0 || pages.is_empty() {
            return;
        }
        if let Mover::Nobody(nobody, _) = &mut self.mover {
            pages.iter().for_each(|p| nobody.forget_page(*p));
        }
        let known = pages.iter().filter(|p| self.observation.0.home_of(**p).is_some());
        let known: Vec<PageNumber> = known.copied().collect();
        if !known.is_empty() {
            self.observation.gone(&known);
        }
    }

    /// Keeps the kernel's own balancing away from what has been touched meanwhile.
    fn hold(&mut self, now: Duration) {
        let Some(holder) = self.mover.holder() else {
            self.holds_at = Duration::MAX;
            return;
        };
        holder.look();
        self.report.held = holder.held();
        // The companions' time too: they answer while we wait.
        let took = clock::monotonic() - now;
        self.watch.charge_upkeep(took);
        self.held = (now + took, took);
        let most = if self.watch.overdrawn() {
            SELDOM_HELD
        } else {
            self.interval
        };
        self.hold_pause = (self.hold_pause * 2).min(most).max(took * HOLD_SHARE);
        self.holds_at = now + self.hold_pause;
    }

    fn now_ns(&self) -> u64 {
        nanoseconds(clock::monotonic().saturating_sub(self.began))
    }

    fn decide(&mut self) {
        self.place_threads();
        let cpu = cpu_time();
        self.journal.cut(self.now_ns(), &self.report);
        self.observation.0.settle();
        let began = self.began;
        let mut now = || nanoseconds(clock::monotonic().saturating_sub(began));
        let mut mover = Timed::new(self.mover.actuator()); // has a budget of its own
        let turn = run_interval(&mut self.controller, &mut now, &mut self.observation, &mut mover);
        let moving = mover.cpu;
        self.watch.charge_upkeep(cpu_time().saturating_sub(cpu + moving));
        if self.fresh > HALF_LIFE * self.observation.0.len() as u64 {
            self.observation.halve();
            self.fresh = 0;
        }
        self.observation.0.begin_interval();
        self.note_unseen(&turn);
        if let Some(asym) = &mut self.asym {
            asym.pages_moved(&turn, &self.processes, BASE_PAGE_SIZE << self.report.page_shift);
        }
        for pid in self.watch.processes() {
            self.kernel_moved.insert(pid, self.watch.moved(pid));
        }
        self.note(&turn);
    }

    /// Threads first: pages follow them.
    fn place_threads(&mut self) {
        let Some(asym) = self.asym.as_mut().filter(|_| !self.controller.paused()) else {
            return;
        };
        let (cpu, now) = (clock::own_cpu_time(), clock::monotonic() - self.began);
        let turned = asym.step(now, &self.place, &self.watch.processes());
        self.watch.charge_upkeep(clock::own_cpu_time() - cpu);
        for full in &turned.full {
            let Some(process) = self.processes.known(full.application) else {
                continue; // never sampled: it has no accesses to be told by
            };
            let moves = pages_of(full, process, &self.place, self.report.page_shift);
            let outcome = self.mover.actuator().apply(&moves);
            let arrived = (0..moves.len()).filter(|i| outcome.fate(*i).arrived()).count() as u64;
            let bytes = arrived * (BASE_PAGE_SIZE << self.report.page_shift);
            asym.moved_whole(full.application, outcome.took_ns, bytes);
        }
        let full = turned.full.iter().map(|f| f.application);
        for pid in turned.moved.into_iter().chain(full) {
            // What was counted was counted from elsewhere.
            if let Some(process) = self.processes.known(pid) {
                self.observation.0.forget(pages_of_process(process));
            }
        }
    }

    /// The kernel's own moves count from the last look on, before ours.
    fn note_unseen(&mut self, turn: &Interval) {
        self.unseen.begin_interval();
        let hidden = self.mover.take_hidden();
        for each in &turn.decision.moves {
            self.unseen.forget(each.page);
            let pid = self.processes.pid(each.page.process());
            if let Some(pid) = pid.filter(|_| hidden.contains(&each.page)) {
                self.unseen.note(*each, self.watch.moved(pid));
            }
        }
    }

    fn note(&mut self, turn: &Interval) {
        let policy = self.controller.policy();
        self.journal
            .decided(self.now_ns(), &policy, turn, &self.processes);
        self.report.evicted = self.observation.0.evicted();
        self.report.stalls = self.mover.stalls();
        self.report.threads = self.asym.as_ref().map(|a| a.summary().clone());
        self.report
            .decided(turn, &self.controller, &self.watch, self.began);
        if let Some(metrics) = &mut self.metrics
            && let Err(error) = metrics.write(&self.report)
        {
            say!("{error:#}; no metrics from here on");
            self.metrics = None;
        }
        if let Some(page) = &mut self.page
            && let Err(error) = page.tell(&self.report)
        {
            say!("the page has ended ({error}); all else goes on");
            self.page = None;
        }
    }

    /// The last word: what was changed for the session is put back as this is dropped.
    pub fn finish(mut self, arguments: &Arguments, status: Option<u8>) -> anyhow::Result<()> {
        if let Some(asym) = &mut self.asym {
            asym.leave(&self.watch.processes());
            self.report.threads = Some(asym.summary().clone());
        }
        self.report
            .ended(&self.controller, &self.watch, self.began, status);
        let now = self.now_ns();
        let shown = self.journal.folder().filter(|_| arguments.page.is_some());
        let again = shown.map(|folder| format!("the page again: nodewise serve {}", folder.display()));
        self.journal.finish(now, &self.report)?;
        self.page.iter_mut().for_each(Page::end);
        again.iter().for_each(|line| output::message(line));
        self.report.publish(arguments)
    }
}

impl Observer for Observation {
    fn observed(&self) -> &dyn Observed {
        &self.0
    }

    fn moved(&mut self, moved: &Move) {
        self.0.set_home(moved.page, moved.to);
    }

    fn gone(&mut self, pages: &[PageNumber]) {
        self.0.forget_pages(pages);
    }

    fn halve(&mut self) {
        self.0.halve();
    }
}

fn pages_of_process(process: u16) -> Range<PageNumber> {
    PageNumber::of_address(process, 0)..PageNumber::of_address(process + 1, 0)
}

/// Balances what runs already until it is gone, or we are told to stop.
pub fn attach(arguments: &Arguments, target: &Target) -> anyhow::Result<Outcome> {
    check_files(arguments)?;
    let place = Place::this(&Host::default(), arguments.machine.as_deref())?;
    if place.single() {
        nothing_to_do()?;
    }
    let signals =
        Signals::block(&[SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2]).context("cannot wait for signals")?;
    let mut session = Session::new(arguments, target, place, None)?;
    decline_balancing();
    let lasting = matches!(target, Target::Group(folder) if folder.exists());
    loop {
        match signals.wait(Duration::ZERO).map(|s| s.number) {
            Some(SIGUSR1) => session.pause(),
            Some(SIGUSR2) => session.resume(),
            Some(_) => break,
            None => session.turn(),
        }
        let group_is_gone = matches!(target, Target::Group(folder) if !folder.exists());
        if (session.processes().is_empty() && !lasting) || group_is_gone {
            break;
        }
    }
    session.finish(arguments, None)?;
    Ok(Outcome::Done)
}

fn linux(arguments: &Arguments, place: &Place, shift: u32, holder: Option<Holder>) -> Linux {
    let linux = Linux::new(place.os_indices(), shift, holder);
    if arguments.freeze {
        linux.with_freeze()
    } else {
        linux
    }
}

fn limits(arguments: &Arguments, shift: u32) -> Settings {
    let page_bytes = BASE_PAGE_SIZE << shift;
    Settings {
        interval_ns: nanoseconds(arguments.interval),
        budget: arguments.budget,
        pages_per_second: arguments.rate_limit.map(|mb| mb * 1e6 / page_bytes as f64),
        minimum_samples: arguments.samples,
        half_life: 0,
        remembered_pages: MOST_PAGES,
        page_bytes,
        ..Settings::default()
    }
}

/// Huge pages are decided on whole where the kernel makes them by itself.
fn default_page_shift() -> u32 {
    let always = nodewise_enforce::Host::this(&[]).is_ok_and(|h| h.huge == HugePages::Always);
    if always { 9 } else { 0 }
}

fn milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

fn hold_scan(host: &Host, period: Duration) -> anyhow::Result<scan::Held> {
    scan::Held::take(host, Scan::every(milliseconds(period)))
        .context("--scan-period: the kernel's setting lies in /sys/kernel/debug, which is root's; leave it out, or run as root with debugfs mounted")
}

pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
