//! Thread migration of running processes: groups of threads that share memory, or AsymSched's Algorithm 1.
//!
//! Once an interval, the rule gets the CPUs and the sampled accesses of all threads, and decides which threads change
//! nodes. These are bound there; the page policy and the kernel move their memory after them.

mod census;
mod counts;
mod follow;
mod groups;
mod homes;
mod loads;
mod summary;
mod thread_event;
mod traffic;
mod view;

pub use follow::pages_of;
pub(crate) use summary::Process;
pub use summary::ThreadSummary;
pub use thread_event::{Gain, ThreadEvent, ThreadsMoved};

use crate::options::{Options, ThreadMoves};
use crate::topology::Topology;
use census::Census;
use counts::Counts;
use groups::GroupRule;
use loads::Sampled;
use nodewise_control::asym::{Decision, FullMigration, Scheduler, Settings};
use nodewise_control::groups::{Order, ThreadDecision, Why};
use nodewise_control::{Interval, PageResult};
use nodewise_enforce::Affinities;
use nodewise_linux::{Host, clock};
use nodewise_machine::NodeId;
use nodewise_observe::faults::Watch;
use nodewise_placement::asym;
use nodewise_profile::PageNumber;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;
use view::{Seen, applications, bindings};

/// Smallest share of CPU time for observing and deciding, for when [`Options::observe`] is close to zero.
const LEAST_SHARE: f64 = 0.001;
/// Programs that use fewer CPUs than this are charged as if they used this many: looking at sleeping programs takes
/// half a per cent of one CPU at 2 %.
const LEAST_WORK: f64 = 0.25;
/// Time for which threads are bound to their nodes at the start of a session. They stay bound as long as all CPUs are busy:
/// each time this loop runs it has a thread wait, which a CPU of another node that is idle for a moment would take.
const INITIAL_BINDING: Duration = Duration::from_secs(6);
/// A node of which less than this many CPUs is idle counts as busy.
const SPARE: f64 = 0.5;
/// Half-life of samples under AsymSched, seconds.
const HALF_LIFE: f64 = 10.0;

/// The live scheduler of threads.
pub struct ThreadScheduler {
    host: Host,
    rule: Rule,
    census: Census,
    counts: Counts,
    loads: Sampled,
    traffic: traffic::Groups,
    affinities: Affinities,
    /// In a dry run: the nodes that threads would be on.
    supposed: HashMap<u32, NodeId>,
    summary: ThreadSummary,
    dry: bool,
    restore: bool,
    /// Whether there was a sample yet.
    has_samples: bool,
    passed: Duration,
    /// Share of the programs' CPU time that observing and deciding may take. `due`: when the next step may run.
    share: f64,
    due: Duration,
    /// Number of CPUs that the programs use.
    work: f64,
    /// Whether they use all CPUs of all nodes.
    all_busy: bool,
    /// Processes whose threads are bound to their present nodes until the first decision about them.
    held: BTreeSet<u32>,
    /// Processes that were bound by a decision.
    bound: BTreeSet<u32>,
}

/// The rule that decides which nodes threads get.
enum Rule {
    Groups(GroupRule),
    /// One scheduler for each group of processes that may use the same CPUs.
    Asym(Settings, BTreeMap<Vec<u32>, Scheduler>),
}

/// The result of a step.
#[derive(Debug, Default)]
pub struct StepResult {
    /// Processes with threads that migrated.
    pub moved: Vec<u32>,
    /// Full migrations to make.
    pub full: Vec<FullMigration>,
}

impl ThreadScheduler {
    /// A scheduler, if one is asked for and threads have a choice of nodes. `of_command`: a program is started next, by this
    /// thread. Threads that run already are bound where they belong ([`homes::belonging`]): attaching takes a burst of CPU
    /// time, for which the kernel may push threads to other nodes. They are released after [`INITIAL_BINDING`], once not
    /// all CPUs are busy, unless a decision has bound them by then.
    pub fn new(
        options: &Options,
        topology: &Topology,
        dry: bool,
        of_command: bool,
        pids: &[u32],
    ) -> Option<Self> {
        if !topology.threads_have_a_choice() {
            return None;
        }
        let (rule, half_life) = match options.move_threads {
            ThreadMoves::Off => return None,
            ThreadMoves::Groups => (Rule::Groups(GroupRule::default()), groups::HALF_LIFE),
            ThreadMoves::Asym => {
                let settings = Settings {
                    budget: options.budget,
                    ..Settings::default()
                };
                (Rule::Asym(settings, BTreeMap::new()), HALF_LIFE)
            }
        };
        // Thread groups are bound without being asked for, so the binding is undone at the end; from then on, the
        // kernel's balancing keeps threads near their memory.
        let undoes = options.restore || matches!(rule, Rule::Groups(_));
        let mut summary = ThreadSummary::new(options.move_threads, options.sensor.name(), dry);
        if matches!(rule, Rule::Asym(..)) && !topology.links_known {
            summary.notice(
                "the kernel does not say how nodes are linked, so bandwidths are guessed from distances; \
                 `nodewise topo --measure -o FILE` finds out, --machine FILE takes it",
            );
        }
        let host = Host::default();
        let mut census = Census::new(host.clone(), of_command, options.bound);
        // CPU use is known from the second observation on.
        let running = census.look(pids, topology, &Affinities::default(), false);
        let mut scheduler = Self {
            rule,
            census,
            counts: Counts::new(topology.machine.node_count(), half_life),
            loads: Sampled::new(&host, topology),
            traffic: traffic::Groups::default(),
            affinities: if undoes && !dry {
                Affinities::guarded()
            } else {
                Affinities::default()
            },
            supposed: HashMap::new(),
            summary,
            restore: undoes,
            has_samples: false,
            passed: Duration::ZERO,
            share: options.observe.max(LEAST_SHARE),
            due: Duration::ZERO,
            work: 0.0,
            all_busy: false,
            held: BTreeSet::new(),
            bound: BTreeSet::new(),
            host,
            dry,
        };
        if !dry && matches!(scheduler.rule, Rule::Groups(_)) {
            scheduler.hold(topology, &running);
        }
        Some(scheduler)
    }

    /// Binds the threads of these processes to the nodes where they belong, as far as these are known already.
    fn hold(&mut self, topology: &Topology, running: &[Seen]) {
        for (one, threads) in homes::belonging(&self.host, topology, running) {
            for (tid, node) in threads {
                let cpus = topology.cpus_among(node, &one.cpus);
                // A thread that has ended or may not be bound is skipped.
                let _ = self.affinities.bind(one.pid, tid, &cpus);
            }
            self.held.insert(one.pid);
        }
    }

    /// Whether the session is at its start, and threads are bound as they were found.
    pub fn holds(&self) -> bool {
        !self.held.is_empty() && self.passed <= INITIAL_BINDING
    }

    /// Releases the threads bound by [`Self::hold`], and those that they have created since, also in other processes.
    fn release_initial(&mut self, pids: &[u32]) {
        if self.held.is_empty() {
            return;
        }
        let held = std::mem::take(&mut self.held);
        let unbound = pids.iter().filter(|pid| !self.bound.contains(pid));
        for pid in held.iter().chain(unbound.filter(|pid| !held.contains(pid))) {
            self.affinities.release(&self.host, *pid);
        }
    }

    /// Counts a hint fault of a thread on a page that is on this node. It counts as an access to the node only where
    /// the processor does not sample loads, which tell more precisely how often a thread accesses which node.
    pub fn sampled(&mut self, pid: u32, tid: u32, page: PageNumber, node: NodeId) {
        if let Rule::Groups(groups) = &mut self.rule {
            groups.sampled(page, tid);
        }
        if self.loads.source().is_none() {
            self.counts.add(pid, tid, node, 1.0);
        }
    }

    /// Takes the processor's load samples since the last step.
    fn take_loads(&mut self, topology: &Topology) {
        let only_hinted = self.loads.source().is_none();
        let accesses = self.loads.take(topology);
        if only_hinted && let Some(source) = self.loads.source() {
            self.summary.loads = Some(source.to_owned());
            self.counts.clear();
        }
        for each in accesses {
            self.counts.add(each.pid, each.tid, each.node, each.count);
        }
    }

    /// Decides and, unless it is a dry run, binds threads; `now`: time since the session began.
    pub fn step(&mut self, now: Duration, topology: &Topology, pids: &[u32]) -> StepResult {
        // Also if there was no sample by then.
        if now > INITIAL_BINDING && !self.all_busy {
            self.release_initial(pids);
        }
        if now < self.due {
            return StepResult::default();
        }
        // CPU time, not wall time: waiting for a CPU costs the programs nothing.
        let began = clock::own_cpu_time();
        let result = self.turn(now, topology, pids);
        let took = clock::own_cpu_time().saturating_sub(began);
        self.due = now + took.div_f64(self.share * self.work.max(LEAST_WORK));
        result
    }

    fn turn(&mut self, now: Duration, topology: &Topology, pids: &[u32]) -> StepResult {
        let passed = (now - std::mem::replace(&mut self.passed, now)).as_secs_f64();
        self.take_loads(topology);
        self.counts.pass(passed);
        let mut seen = self.look(topology, pids);
        self.work = seen.iter().flat_map(|s| &s.threads).map(|t| t.load).sum();
        self.all_busy = all_busy(topology, &seen);
        self.loads.follow(&seen);
        self.summary.counted = self.traffic.scale(&self.host, &mut seen, passed);
        if !self.has_samples && self.counts.is_empty() {
            return StepResult::default(); // no sample yet
        }
        self.has_samples = true;
        let sets: BTreeSet<Vec<u32>> = seen.iter().map(|s| s.cpus.clone()).collect();
        match &mut self.rule {
            Rule::Groups(groups) => groups.pass(&self.host, passed, &sets),
            Rule::Asym(_, schedulers) => schedulers.retain(|cpus, _| sets.contains(cpus)),
        }
        let mut result = StepResult::default();
        for cpus in sets {
            self.decide(now, topology, &cpus, &mut seen, &mut result);
        }
        self.summary.set_nodes(topology, &seen);
        result
    }

    /// All processes with their current nodes (in a dry run: assumed ones).
    fn look(&mut self, topology: &Topology, pids: &[u32]) -> Vec<Seen> {
        let with_memory = matches!(self.rule, Rule::Asym(..));
        let mut seen = self.census.look(pids, topology, &self.affinities, with_memory);
        for one in &mut seen {
            self.counts.keep(one.pid, |tid| one.all.contains(&tid));
            for thread in &mut one.threads {
                thread.accesses = match self.rule {
                    Rule::Groups(_) => self.counts.recent(one.pid, thread.tid),
                    Rule::Asym(..) => self.counts.rates(one.pid, thread.tid),
                };
                if let Some(supposed) = self.supposed.get(&thread.tid) {
                    (thread.node, thread.bound) = (*supposed, Some(*supposed));
                }
            }
            if self.held.contains(&one.pid) {
                one.threads.iter_mut().for_each(|t| t.bound = None);
            }
            if one.pinned {
                self.summary.report_pinned(one);
            }
        }
        let alive = seen.iter().flat_map(|s| s.all.iter().copied()).collect();
        self.affinities.keep(&alive);
        self.bound.retain(|pid| alive.contains(pid));
        for one in seen
            .iter()
            .filter(|s| s.threads.iter().any(|t| t.bound.is_some()))
        {
            self.affinities.note(one.pid);
        }
        self.supposed.retain(|tid, _| alive.contains(tid));
        seen
    }

    /// Decides for the processes that may use one set of CPUs.
    fn decide(
        &mut self,
        now: Duration,
        topology: &Topology,
        cpus: &[u32],
        seen: &mut [Seen],
        result: &mut StepResult,
    ) {
        let ours = |s: &Seen| s.cpus == cpus;
        let places = places(topology, seen.iter().filter(|s| ours(s)), cpus);
        let (settings, schedulers) = match &mut self.rule {
            Rule::Groups(groups) => {
                let decision = groups.decide(clock::nanoseconds(now), topology, cpus, &places, seen);
                return self.carry_out(topology, decision, seen, result);
            }
            Rule::Asym(settings, schedulers) => (settings, schedulers),
        };
        let asked = match applications(seen, |s| ours(s) && !s.pinned, &places) {
            Ok(asked) => asked,
            Err(error) => return self.summary.report_trouble(&error.to_string()),
        };
        let scheduler = schedulers.entry(cpus.to_vec());
        let scheduler = scheduler.or_insert_with(|| Scheduler::new(&topology.machine, settings.clone()));
        let decision = scheduler.step(clock::nanoseconds(now), &places, &asked);
        self.summary.decided(&decision, &places, &asked);
        self.bind_as_decided(topology, &decision, seen, result);
        result.full.extend(decision.full);
    }

    /// Carries out the decision for groups of threads.
    fn carry_out(
        &mut self,
        topology: &Topology,
        decision: ThreadDecision,
        seen: &mut [Seen],
        result: &mut StepResult,
    ) {
        self.summary.set_remote(decision.remote);
        self.held
            .retain(|pid| !matches!(decision.orders.get(pid), Some(Order::Bind(_))));
        for (pid, order) in decision.orders {
            let Some(one) = seen.iter_mut().find(|s| s.pid == pid) else {
                continue;
            };
            match order {
                Order::Bind(nodes) => {
                    self.bound.insert(pid);
                    self.bind_all(topology, one, &nodes, result);
                }
                Order::Release(why) => {
                    self.bound.remove(&pid);
                    self.release(one, why);
                }
            }
        }
    }

    /// Gives the threads of a process their original CPUs back.
    fn release(&mut self, one: &Seen, why: Why) {
        if self.dry {
            self.supposed.retain(|tid, _| !one.all.contains(tid));
        } else {
            self.affinities.release(&self.host, one.pid);
        }
        self.summary.report_undone(one, why);
    }

    fn bind_as_decided(
        &mut self,
        topology: &Topology,
        decision: &Decision,
        seen: &mut [Seen],
        result: &mut StepResult,
    ) {
        let told: BTreeSet<u32> = decision.moves.iter().map(|m| m.application).collect();
        for one in seen.iter_mut().filter(|s| told.contains(&s.pid)) {
            let nodes: BTreeMap<u32, NodeId> = bindings(one, &decision.moves).into_iter().collect();
            self.bind_all(topology, one, &nodes, result);
        }
    }

    /// Binds the given threads of a process.
    fn bind_all(
        &mut self,
        topology: &Topology,
        one: &mut Seen,
        nodes: &BTreeMap<u32, NodeId>,
        result: &mut StepResult,
    ) {
        let before = one.runs_on();
        let mut moved = false;
        for thread in &mut one.threads {
            let Some(to) = nodes.get(&thread.tid).copied() else {
                continue;
            };
            if self.bind(topology, (one.pid, thread.tid), to, &one.cpus) {
                moved |= thread.node != to;
                self.summary.moves += u64::from(thread.node != to);
                thread.node = to;
            }
        }
        self.summary.tell_move(topology, one, &before);
        if moved {
            // A memory's node does not depend on where threads run, but AsymSched's clusters are formed by both.
            if matches!(self.rule, Rule::Asym(..)) {
                self.counts.forget(one.pid);
            }
            result.moved.push(one.pid);
        }
    }

    /// Binds a thread to a node. Returns whether it runs there now (in a dry run: would run).
    fn bind(&mut self, topology: &Topology, (pid, tid): (u32, u32), to: NodeId, usable: &[u32]) -> bool {
        if self.dry {
            self.supposed.insert(tid, to);
            return true;
        }
        let bound = self.affinities.bind(pid, tid, &topology.cpus_among(to, usable));
        self.summary.failures += u64::from(bound.is_err());
        bound.is_ok()
    }

    /// Charges the page moves of an interval to the processes that own the pages.
    pub fn pages_moved(&mut self, turn: &Interval, watch: &Watch, page_bytes: u64) {
        let mut pages: BTreeMap<u32, u64> = BTreeMap::new();
        for (i, each) in turn.decision.moves.iter().enumerate() {
            if turn.outcome.result(i) == PageResult::Moved
                && let Some(pid) = watch.pid(each.page.process())
            {
                *pages.entry(pid).or_default() += 1;
            }
        }
        let all: u64 = pages.values().sum();
        for (pid, pages) in pages {
            let took = u128::from(turn.outcome.took_ns) * u128::from(pages) / u128::from(all.max(1));
            self.charge(pid, u64::try_from(took).unwrap_or(u64::MAX), pages * page_bytes);
        }
    }

    /// Records the full migration of a process's memory.
    pub fn moved_whole(&mut self, pid: u32, took_ns: u64, bytes: u64) {
        self.summary.full_migrations += 1;
        self.summary.full_bytes += bytes;
        self.charge(pid, took_ns, bytes);
    }

    fn charge(&mut self, pid: u32, took_ns: u64, bytes: u64) {
        if let Rule::Asym(_, schedulers) = &mut self.rule {
            schedulers
                .values_mut()
                .for_each(|s| s.record_cost(pid, took_ns, bytes));
        }
    }

    /// Removes a process that has ended.
    pub fn forget(&mut self, pid: u32) {
        self.counts.forget(pid);
        if let Rule::Groups(groups) = &mut self.rule {
            groups.forget(pid);
        }
    }

    /// Ends the session; restores affinity masks, if that is asked for.
    pub fn leave(&mut self, pids: &[u32]) {
        self.release_initial(pids);
        if self.restore && !self.dry {
            self.summary.restored = Some(self.affinities.restore(&self.host, pids));
        }
    }

    /// Messages and moves since the last call, in order.
    pub fn take_events(&mut self) -> Vec<ThreadEvent> {
        self.summary.take_events()
    }

    pub fn summary(&self) -> &ThreadSummary {
        &self.summary
    }
}

/// Also runs when a session cannot begin.
impl Drop for ThreadScheduler {
    fn drop(&mut self) {
        self.release_initial(&[]);
    }
}

/// Whether threads of these processes keep all CPUs of all nodes busy, and no node has a thread too many: the kernel has
/// nothing to level then.
fn all_busy(topology: &Topology, seen: &[Seen]) -> bool {
    let threads = || seen.iter().flat_map(|s| &s.threads);
    let busy = |node: NodeId| {
        let on = threads().filter(|t| t.node == node);
        let excess = on.map(|t| t.demand).sum::<f64>() - topology.cpus(node).len() as f64;
        excess > -SPARE && excess < 1.0 - SPARE
    };
    topology
        .machine
        .node_ids()
        .filter(|n| !topology.cpus(*n).is_empty())
        .all(busy)
}

/// The nodes with some of these CPUs whose memory all of the processes may use.
fn places<'a>(topology: &Topology, seen: impl Iterator<Item = &'a Seen>, cpus: &[u32]) -> Vec<asym::Place> {
    let seen: Vec<&Seen> = seen.collect();
    let may = |node: &NodeId| seen.iter().all(|s| s.nodes.contains(node));
    let of = |node: NodeId| asym::Place {
        node,
        threads: topology.cpus(node).iter().filter(|c| cpus.contains(&c.0)).count(),
    };
    let nodes = topology.machine.node_ids().filter(may);
    nodes.map(of).filter(|p| p.threads > 0).collect()
}
