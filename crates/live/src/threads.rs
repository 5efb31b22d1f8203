//! Thread migration of running processes by AsymSched's Algorithm 1.
//!
//! Once an interval, the CPUs and sampled accesses of all threads go to the scheduler, which decides which threads change
//! nodes. These are bound there, and the page policy migrates their memory.

mod census;
mod counts;
mod follow;
mod loads;
mod summary;
mod thread_event;
mod traffic;
mod view;

pub use follow::pages_of;
pub(crate) use summary::Process;
pub use summary::ThreadSummary;
pub use thread_event::{ThreadEvent, ThreadsMoved};

use crate::options::Options;
use crate::topology::Topology;
use census::Census;
use counts::Counts;
use loads::Sampled;
use nodewise_control::Interval;
use nodewise_control::asym::{Decision, FullMigration, Scheduler, Settings};
use nodewise_enforce::Affinities;
use nodewise_linux::{Host, clock};
use nodewise_machine::NodeId;
use nodewise_observe::faults::Watch;
use nodewise_placement::asym;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};
use view::{Seen, applications, bindings};

/// Smallest share of time, where [`Options::observe`] is close to zero.
const LEAST_SHARE: f64 = 0.001;

/// The live scheduler of threads.
pub struct ThreadScheduler {
    host: Host,
    settings: Settings,
    /// One scheduler for each group of processes that may use the same CPUs.
    schedulers: BTreeMap<Vec<u32>, Scheduler>,
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
    /// Whether there was any sample yet.
    judges: bool,
    passed: Duration,
    /// Share of the time that observing and deciding may take, and when the next step may be.
    share: f64,
    due: Duration,
}

/// The result of a step.
#[derive(Debug, Default)]
pub struct Turned {
    /// Processes with threads that migrated.
    pub moved: Vec<u32>,
    /// Full migrations to make.
    pub full: Vec<FullMigration>,
}

impl ThreadScheduler {
    /// The scheduler, if it is asked for. `of_command`: a program is started next, by this thread.
    pub fn new(
        options: &Options,
        topology: &Topology,
        dry: bool,
        of_command: bool,
        pids: &[u32],
    ) -> Option<Self> {
        if !options.move_threads {
            return None;
        }
        let mut summary = ThreadSummary::new(dry);
        if !topology.links_known {
            summary.notice(
                "the kernel does not say how nodes are linked, so bandwidths are guessed from distances; \
                 `nodewise topo --measure -o FILE` finds out, --machine FILE takes it",
            );
        }
        let host = Host::default();
        let mut census = Census::new(host.clone(), of_command, options.bound);
        // CPU use is known from the second observation on.
        census.look(pids, topology, &Affinities::default());
        Some(Self {
            settings: Settings {
                budget: options.budget,
                ..Settings::default()
            },
            schedulers: BTreeMap::new(),
            census,
            counts: Counts::new(topology.machine.node_count()),
            loads: Sampled::new(&host, topology),
            traffic: traffic::Groups::default(),
            affinities: Affinities::default(),
            supposed: HashMap::new(),
            summary,
            restore: options.restore,
            judges: false,
            passed: Duration::ZERO,
            share: options.observe.max(LEAST_SHARE),
            due: Duration::ZERO,
            host,
            dry,
        })
    }

    /// Counts a hint fault of a thread on a node's memory; ignored where the processor samples loads, which is more
    /// precise.
    pub fn sampled(&mut self, pid: u32, tid: u32, node: NodeId) {
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
            self.counts = Counts::new(topology.machine.node_count());
        }
        for each in accesses {
            self.counts.add(each.pid, each.tid, each.node, each.count);
        }
    }

    /// Decides and, unless it is a dry run, binds threads; `now`: time since the session began.
    pub fn step(&mut self, now: Duration, topology: &Topology, pids: &[u32]) -> Turned {
        if now < self.due {
            return Turned::default();
        }
        let began = Instant::now();
        let turned = self.turn(now, topology, pids);
        self.due = now + began.elapsed().div_f64(self.share);
        turned
    }

    fn turn(&mut self, now: Duration, topology: &Topology, pids: &[u32]) -> Turned {
        let passed = (now - std::mem::replace(&mut self.passed, now)).as_secs_f64();
        self.take_loads(topology);
        self.counts.pass(passed);
        let mut seen = self.look(topology, pids);
        self.loads.follow(&seen);
        self.summary.counted = self.traffic.scale(&self.host, &mut seen, passed);
        if !self.judges && self.counts.is_empty() {
            return Turned::default(); // nobody knows yet who needs what
        }
        self.judges = true;
        let sets: BTreeSet<Vec<u32>> = seen.iter().map(|s| s.cpus.clone()).collect();
        self.schedulers.retain(|cpus, _| sets.contains(cpus));
        let mut turned = Turned::default();
        for cpus in sets {
            self.decide(now, topology, &cpus, &mut seen, &mut turned);
        }
        self.summary.set_nodes(topology, &seen);
        turned
    }

    /// All processes with their current nodes (in a dry run: assumed ones).
    fn look(&mut self, topology: &Topology, pids: &[u32]) -> Vec<Seen> {
        let mut seen = self.census.look(pids, topology, &self.affinities);
        for one in &mut seen {
            self.counts.keep(one.pid, |tid| one.all.contains(&tid));
            for thread in &mut one.threads {
                thread.accesses = self.counts.rates(one.pid, thread.tid);
                thread.node = self.supposed.get(&thread.tid).copied().unwrap_or(thread.node);
            }
            if one.pinned {
                self.summary.report_pinned(one);
            }
        }
        let alive = seen.iter().flat_map(|s| s.all.iter().copied()).collect();
        self.affinities.keep(&alive);
        self.supposed.retain(|tid, _| alive.contains(tid));
        seen
    }

    /// Decides for the processes that may use these CPUs.
    fn decide(
        &mut self,
        now: Duration,
        topology: &Topology,
        cpus: &[u32],
        seen: &mut [Seen],
        turned: &mut Turned,
    ) {
        let ours = |s: &Seen| s.cpus == cpus;
        let places = places(topology, seen.iter().filter(|s| ours(s)), cpus);
        let asked = match applications(seen, |s| ours(s) && !s.pinned, &places) {
            Ok(asked) => asked,
            Err(error) => return self.summary.report_trouble(&error.to_string()),
        };
        let scheduler = self.schedulers.entry(cpus.to_vec());
        let scheduler = scheduler.or_insert_with(|| Scheduler::new(&topology.machine, self.settings.clone()));
        let decision = scheduler.step(clock::nanoseconds(now), &places, &asked);
        self.summary.decided(&decision, &places, &asked);
        self.enact(topology, &decision, seen, turned);
        turned.full.extend(decision.full);
    }

    fn enact(&mut self, topology: &Topology, decision: &Decision, seen: &mut [Seen], turned: &mut Turned) {
        let told: BTreeSet<u32> = decision.moves.iter().map(|m| m.application).collect();
        for one in seen.iter_mut().filter(|s| told.contains(&s.pid)) {
            let before = one.runs_on();
            let nodes: BTreeMap<u32, NodeId> = bindings(one, &decision.moves).into_iter().collect();
            for thread in &mut one.threads {
                let to = nodes[&thread.tid];
                if self.bind(topology, thread.tid, to, &one.cpus) {
                    self.summary.moves += u64::from(thread.node != to);
                    thread.node = to;
                }
            }
            // Earlier counts are from another node.
            self.counts.forget(one.pid);
            self.summary.tell_move(topology, one, &before);
            turned.moved.push(one.pid);
        }
    }

    /// Binds a thread; whether it is on the node now (in a dry run: would be).
    fn bind(&mut self, topology: &Topology, tid: u32, to: NodeId, usable: &[u32]) -> bool {
        if self.dry {
            self.supposed.insert(tid, to);
            return true;
        }
        let cpus: Vec<u32> = topology.cpus(to).iter().map(|c| c.0).collect();
        let cpus: Vec<u32> = cpus.into_iter().filter(|c| usable.contains(c)).collect();
        let bound = self.affinities.bind(tid, &cpus);
        self.summary.failures += u64::from(bound.is_err());
        bound.is_ok()
    }

    /// Charges the page moves of an interval to the processes that own the pages.
    pub fn pages_moved(&mut self, turn: &Interval, watch: &Watch, page_bytes: u64) {
        let mut pages: BTreeMap<u32, u64> = BTreeMap::new();
        for (i, each) in turn.decision.moves.iter().enumerate() {
            if turn.outcome.result(i).arrived()
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
        for scheduler in self.schedulers.values_mut() {
            scheduler.moved(pid, took_ns, bytes);
        }
    }

    /// Removes a process that has ended.
    pub fn forget(&mut self, pid: u32) {
        self.counts.forget(pid);
    }

    /// Ends the session; restores affinity masks, if that is asked for.
    pub fn leave(&mut self, pids: &[u32]) {
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

/// Those of these nodes that have CPUs and whose memory all of the processes may use.
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
