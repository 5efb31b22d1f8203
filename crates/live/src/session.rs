//! The session loop: observe, decide, move.

// Why: docs/decisions/structure.md

mod sampling;

use crate::claims::Claims;
use crate::error::LiveError;
use crate::event::{Decided, Event, Subscriber, Subscribers};
use crate::heat::Heat;
use crate::holding_times::HoldingTimes;
use crate::kernel_moves::KernelMoves;
use crate::mover::Mover;
use crate::options::{MOST_PAGES, MOST_RANKED_PAGES, Options, ThreadMoves};
use crate::ranking::{FIRST_SCAN_PERIOD, Ranking};
use crate::shared_pages::SharedPages;
use crate::status::Status;
use crate::target::{Target, may_stop};
use crate::threads::{ThreadEvent, ThreadScheduler, pages_of};
use crate::timed_actuator::{TimedActuator, cpu_time};
use crate::topology::Topology;
use crate::unconfirmed_moves::UnconfirmedMoves;
use nodewise_control::{Controller, DryRun, Interval, PageResult, Tracker, run_interval};
use nodewise_enforce::{Holder, Linux};
use nodewise_linux::scan::{self, Scan};
use nodewise_linux::{Host, clock, privileges};
use nodewise_observe::faults::{SETS_ASIDE, Sensor, Watch};
use nodewise_placement::{Observed, migration_policy};
use nodewise_profile::{BASE_PAGE_SIZE, PageNumber};
use std::time::Duration;

/// Longest duration of a [`Session::turn`].
const LOOK: Duration = Duration::from_millis(50);
/// Counts are halved after this many samples a page on average, rather than at fixed times: the kernel samples a page
/// once per scan, every second at first and every minute at last.
const HALF_LIFE: u64 = 4;
/// Longest pause between two protection passes while the observing budget is overdrawn.
const SELDOM_HELD: Duration = Duration::from_secs(30);

/// A running session, driven by calls of [`Session::turn`].
pub struct Session {
    topology: Topology,
    /// What the user is told once there are subscribers.
    notices: Vec<String>,
    claims: Claims,
    status: Status,
    watch: Watch,
    tracker: Tracker,
    controller: Controller,
    mover: Mover,
    /// The user was told that some processes are left out.
    said_left_out: bool,
    /// The user was told that there is more memory than is ranked.
    said_full: bool,
    interval: Duration,
    began: Duration,
    decides_at: Duration,
    holding: HoldingTimes,
    /// Samples since counts were last halved.
    fresh: u64,
    unconfirmed: UnconfirmedMoves,
    /// The memory that several processes map, with [`Options::shared`].
    shared: Option<SharedPages>,
    /// What policies that rank pages need.
    ranking: Option<Ranking>,
    /// Counts of accesses by region, with [`Sensor::Damon`].
    heat: Option<Heat>,
    kernel_moves: KernelMoves,
    /// The thread scheduler, with [`Options::move_threads`].
    threads: Option<ThreadScheduler>,
    /// Restores kernel settings when the session is dropped or killed.
    scan: Option<scan::Held>,
    /// Dropped last, because some subscribers take a moment to end.
    subscribers: Subscribers,
}

impl Session {
    /// Prepares observation. A command is started next, by this thread, and then passed to [`Session::follow`].
    ///
    /// # Errors
    /// One line: no such policy or process, or the kernel refuses what the options ask for.
    pub fn new(
        options: &Options,
        target: &Target,
        mut topology: Topology,
        holder: Option<Holder>,
    ) -> Result<Self, LiveError> {
        let host = Host::default();
        let shift = options.page_shift();
        let policy = migration_policy(&options.policy, &topology.machine)?;
        let dry = options.dry_run || topology.pretended;
        let status = Status::new(options, &topology, policy.name(), shift, dry);
        // A scan period was given, so the user wants the kernel's hint faults as the samples.
        let wanted = match (options.sensor, options.scan_period) {
            (Sensor::Auto, Some(_)) => Sensor::HintFaults,
            (Sensor::Userfaultfd | Sensor::Damon, Some(_)) => {
                return Err(LiveError::without_scans(options.sensor.name()));
            }
            (sensor, _) => sensor,
        };
        let mut scan = options
            .scan_period
            .map(|period| hold_scan(&host, period))
            .transpose()?;
        let tier = policy.tier().cloned();
        if wanted == Sensor::Damon && tier.is_none() {
            return Err(LiveError::new(format!(
                "--sensor damon: DAMON tells how often memory is accessed and not by whom, which {} needs to know; hot:NODES does not",
                options.policy
            )));
        }
        if options.shared && tier.is_some() {
            return Err(LiveError::new(
                "policies that rank pages look at private memory only: leave --shared out, or choose another policy",
            ));
        }
        let sensor = wanted.choose(&host).or_else(|why| match (wanted, &tier) {
            // The only one that such policies alone can use; what the others lack is easier to come by.
            (Sensor::Auto, Some(_)) => Sensor::Damon.choose(&host).map_err(|_| why),
            _ => Err(why),
        })?;
        let adapts = tier.is_some() && sensor == Sensor::HintFaults && scan.is_none();
        let holder = match (holder, tier.as_ref().and_then(|t| topology.slow_without_cpus(t))) {
            (Some(holder), Some(node)) => Some(holder.with_one_policy(node)),
            (holder, _) => holder,
        };
        if adapts {
            scan = hold_scan(&host, FIRST_SCAN_PERIOD).ok();
        }
        let options = &Options {
            sensor,
            ..options.clone()
        };
        let of_command = matches!(target, Target::Command(_));
        let running = target.running(&host);
        let mut notices: Vec<String> = topology.notice.take().into_iter().collect();
        if options.shared && sensor == Sensor::Userfaultfd {
            notices.push(
                "userfaultfd samples private memory only: --shared needs hint faults (kernel.numa_balancing=1)".into(),
            );
        }
        if options.move_threads == ThreadMoves::Asym && !topology.threads_have_a_choice() {
            notices
                .push("one node has all CPUs, so threads have nothing to choose and are left alone".into());
        }
        let threads = ThreadScheduler::new(options, &topology, dry, of_command, &running);
        // Bound threads cannot be pushed to other nodes by what attaching takes of the CPUs.
        if let (Some(true), Some(niceness)) = (
            threads.as_ref().map(ThreadScheduler::holds),
            options.niceness_while_held,
        ) {
            privileges::lower_niceness(niceness);
        }
        let mut watch = target.watch(&host, options.observe, sensor)?;
        let adapted = (adapts && scan.is_some()).then_some(FIRST_SCAN_PERIOD);
        if let Some(period) = options.scan_period.or(adapted) {
            watch.own_scans(clock::milliseconds(period));
        }
        if options.freeze && !dry {
            watch.processes().into_iter().try_for_each(may_stop)?;
        }
        let settings = options.settings(shift);
        let mover = match dry {
            true => Mover::DryRun(Box::new(DryRun::new(&settings)), holder.map(Box::new)),
            false => Mover::Linux(Box::new(linux(options, &topology, shift, holder))),
        };
        let began = clock::monotonic();
        let nodes = topology.machine.node_count();
        Ok(Self {
            tracker: match tier {
                Some(_) => Tracker::new(nodes, shift, MOST_RANKED_PAGES).ranking(),
                None => Tracker::new(nodes, shift, MOST_PAGES),
            },
            heat: match (sensor, &tier) {
                (Sensor::Damon, Some(tier)) => Some(Heat::start(
                    &host,
                    options.interval,
                    shift,
                    tier,
                    &topology.machine,
                )?),
                _ => None,
            },
            shared: options.shared.then(|| SharedPages::new(shift, MOST_PAGES)),
            ranking: tier.map(|tier| Ranking::new(tier, sensor, of_command, adapted)),
            controller: Controller::new(policy, settings),
            said_left_out: false,
            said_full: false,
            interval: options.interval,
            decides_at: began + options.interval,
            holding: HoldingTimes::new(began),
            fresh: 0,
            unconfirmed: UnconfirmedMoves::new(MOST_PAGES),
            kernel_moves: KernelMoves::default(),
            subscribers: Subscribers::default(),
            threads,
            scan,
            began,
            topology,
            notices,
            claims: Claims::default(),
            status,
            watch,
            mover,
        })
    }

    /// Adds a subscriber for all events from now on.
    pub fn subscribe(&mut self, subscriber: impl Subscriber + 'static) {
        self.subscribers.add(Box::new(subscriber));
    }

    /// Sends the messages of the preparation; call it after all subscribers were added.
    pub fn begin(&mut self) {
        if self.watch.sensor() == Sensor::Userfaultfd {
            self.tell(&Event::Notice(SETS_ASIDE));
        }
        for line in std::mem::take(&mut self.notices) {
            self.tell(&Event::Notice(&line));
        }
        self.claim();
        self.tell_of_threads();
    }

    /// Observes the command, which has just been started.
    pub fn follow(&mut self, pid: u32) {
        self.watch.follow(pid);
    }

    /// Ids of the balanced processes that are running.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        self.watch.processes()
    }

    /// Whether running threads are held on their nodes, as they are for the first seconds.
    #[must_use]
    pub fn holds_threads(&self) -> bool {
        self.threads.as_ref().is_some_and(ThreadScheduler::holds)
    }

    /// Pauses decisions; observation goes on.
    pub fn pause(&mut self) {
        self.controller.pause();
        self.tell(&Event::Paused(true));
    }

    /// Resumes decisions after [`Session::pause`].
    pub fn resume(&mut self) {
        self.controller.resume();
        self.tell(&Event::Paused(false));
    }

    fn now(&self) -> Duration {
        clock::monotonic().saturating_sub(self.began)
    }

    /// Sends an event to all subscribers; one that fails is removed.
    fn tell(&mut self, event: &Event<'_>) {
        let _ = self.subscribers.tell(self.now(), event);
    }

    fn tell_of_threads(&mut self) {
        let events = self.threads.as_mut().map(ThreadScheduler::take_events);
        for event in events.into_iter().flatten() {
            self.tell(&match &event {
                ThreadEvent::Notice(line) => Event::Notice(line),
                ThreadEvent::Moved(moved) => Event::ThreadsMoved(moved),
            });
        }
    }

    /// Runs the loop for at most 50 ms or so.
    pub fn turn(&mut self) {
        if self.watch.wait_until_due(LOOK) || clock::monotonic() >= self.decides_at {
            self.look();
        }
        let now = clock::monotonic();
        if self.holding.due(now) {
            self.hold(now);
        }
        if now >= self.decides_at {
            self.decide();
            // Missed intervals are not made up for.
            self.decides_at = (self.decides_at + self.interval).max(now);
        }
    }

    /// Updates where pages are, what memory is free, and how often the kernel scans, for policies that rank pages.
    fn rank(&mut self) {
        let Some(ranking) = &mut self.ranking else {
            return;
        };
        let tracker = &mut self.tracker;
        let period = ranking.adapt(tracker, &self.topology.machine, self.watch.figures().scan_ms);
        if let (Some(period), Some(held)) = (period, &self.scan) {
            self.watch.own_scans(clock::milliseconds(period));
            let _ = held.set(Scan::every(clock::milliseconds(period)));
        }
        let shift = self.status.page_shift;
        let found = ranking.take_residents(
            tracker,
            &mut self.watch,
            &self.mover,
            &self.topology,
            shift,
            self.interval,
        );
        let full = ranking.take_full();
        for (pid, moved) in found {
            self.found_elsewhere(pid, &moved);
        }
        if full && !std::mem::replace(&mut self.said_full, true) {
            self.tell(&Event::Notice(&format!(
                "there is more memory than the {MOST_RANKED_PAGES} pages that are ranked; the rest stays where it is"
            )));
        }
        if let Some(heat) = &mut self.heat {
            let lines = heat.take_in(&mut self.watch, &mut self.tracker, &mut self.controller);
            self.status.regions = Some(heat.regions());
            for line in lines {
                self.tell(&Event::Notice(&line));
            }
        }
    }

    /// Protects newly touched pages from the kernel's own balancing.
    fn hold(&mut self, now: Duration) {
        let Some(holder) = self.mover.holder() else {
            self.holding.stop();
            return;
        };
        holder.look();
        self.status.held = holder.held();
        // Includes the companions' CPU time: they work while we wait.
        let took = clock::monotonic() - now;
        self.watch.charge_upkeep(took);
        let most = if self.watch.overdrawn() {
            SELDOM_HELD
        } else {
            self.interval
        };
        self.holding.record_pass(now, took, most);
    }

    /// Ends an interval: threads are moved first, as that changes where pages are wanted and which counts still hold; then the
    /// counts are completed and the [controller](run_interval) moves pages; moves that the kernel hides are remembered before the
    /// interval is reported.
    fn decide(&mut self) {
        self.claim();
        self.place_threads();
        self.tell_of_threads();
        let cpu = cpu_time();
        let now = self.now();
        let _ = self.subscribers.tell(now, &Event::Complete(&self.status));
        self.rank();
        self.tracker.settle();
        let began = self.began;
        let mut now = || clock::nanoseconds(clock::monotonic().saturating_sub(began));
        let mut mover = TimedActuator::new(self.mover.actuator()); // moving has its own budget
        let turn = run_interval(&mut self.controller, &mut now, &mut self.tracker, &mut mover);
        let moving = mover.cpu;
        self.watch.charge_upkeep(cpu_time().saturating_sub(cpu + moving));
        let pages = match self.ranking {
            Some(_) => self.tracker.accessed(),
            None => self.tracker.len(),
        };
        if self.fresh > HALF_LIFE * pages as u64 {
            self.tracker.halve();
            self.fresh = 0;
        }
        self.note_unseen(&turn);
        if let Some(threads) = &mut self.threads {
            threads.pages_moved(&turn, &self.watch, BASE_PAGE_SIZE << self.status.page_shift);
        }
        for pid in self.watch.processes() {
            self.kernel_moves.begin_interval(pid, self.watch.moved(pid));
        }
        self.report_interval(&turn);
    }

    /// Says which processes another session balances too. A dry run disturbs none.
    fn claim(&mut self) {
        if self.status.dry {
            return;
        }
        self.claims.update(&Host::default(), &self.watch.processes());
        if let Some(line) = self.claims.take_notice() {
            self.tell(&Event::Notice(&line));
        }
    }

    /// Migrates threads; done before pages, whose targets depend on it.
    fn place_threads(&mut self) {
        let Some(threads) = self.threads.as_mut().filter(|_| !self.controller.paused()) else {
            return;
        };
        let (cpu, now) = (clock::own_cpu_time(), clock::monotonic() - self.began);
        let result = threads.step(now, &self.topology, &self.watch.processes());
        self.watch.charge_upkeep(clock::own_cpu_time() - cpu);
        for full in &result.full {
            let Some(process) = self.watch.known_number(full.application) else {
                continue; // never sampled, so its accesses are unknown
            };
            if let Mover::Linux(linux) = &mut self.mover {
                linux.set_process(process, full.application);
            }
            let moves = pages_of(full, process, &self.topology, self.status.page_shift);
            let outcome = self.mover.actuator().apply(&moves);
            let moved = |i: &usize| outcome.result(*i) == PageResult::Moved;
            let moved = (0..moves.len()).filter(moved).count() as u64;
            let bytes = moved * (BASE_PAGE_SIZE << self.status.page_shift);
            threads.moved_whole(full.application, outcome.took_ns, bytes);
        }
        let full = result.full.iter().map(|f| f.application);
        for pid in result.moved.into_iter().chain(full) {
            // Earlier counts were made on another node.
            if let Some(process) = self.watch.known_number(pid) {
                self.tracker.forget(PageNumber::all_of(process));
            }
        }
    }

    /// Remembers which of the interval's moves have a result that the kernel hides: the pages are asked for again later.
    fn note_unseen(&mut self, turn: &Interval) {
        self.unconfirmed.begin_interval();
        let hidden = self.mover.take_hidden();
        for each in &turn.decision.moves {
            self.unconfirmed.forget(each.page);
            let pid = self.watch.pid(each.page.process());
            if let Some(pid) = pid.filter(|_| hidden.contains(&each.page)) {
                self.unconfirmed.note(*each, self.watch.moved(pid));
            }
        }
    }

    /// Tells the subscribers what was decided and what came of it, and then the session's updated status.
    fn report_interval(&mut self, turn: &Interval) {
        let (policy, now) = (self.controller.policy(), self.now());
        let decided = Decided {
            policy: &policy,
            interval: turn,
            watch: &self.watch,
            page_shift: self.status.page_shift,
            dry: self.status.dry,
        };
        let _ = self.subscribers.tell(now, &Event::Decided(decided));
        self.status.evicted = self.tracker.evicted();
        self.status.stalls = self.mover.stalls();
        self.status.longest_call = self.mover.longest_call();
        self.status.threads = self.threads.as_ref().map(|t| t.summary().clone());
        self.status.fast = self.ranking.as_ref().map(|r| r.fast().clone());
        self.status
            .decided(turn, &self.controller, &self.watch, self.began);
        let _ = self.subscribers.tell(now, &Event::Updated(&self.status));
    }

    /// Ends the session; `exit_status` of the command, if one was started. Changed kernel settings are restored when
    /// this returns.
    ///
    /// # Errors
    /// The first error of a subscriber at its end, one line.
    pub fn finish(mut self, exit_status: Option<u8>) -> Result<(), LiveError> {
        if let Some(threads) = &mut self.threads {
            threads.leave(&self.watch.processes());
            self.status.threads = Some(threads.summary().clone());
        }
        self.tell_of_threads();
        self.status
            .ended(&self.controller, &self.watch, self.began, exit_status);
        let ended = self.subscribers.tell(self.now(), &Event::Ended(&self.status));
        ended.map_err(LiveError::new)
    }
}

fn linux(options: &Options, topology: &Topology, shift: u32, holder: Option<Holder>) -> Linux {
    let linux = Linux::new(topology.os_indices(), shift, holder);
    if options.freeze {
        linux.with_freeze()
    } else {
        linux
    }
}

fn hold_scan(host: &Host, period: Duration) -> Result<scan::Held, LiveError> {
    scan::Held::take(host, Scan::every(clock::milliseconds(period))).map_err(|e| LiveError::scan_period(&e))
}
