//! Policies that move pages between slices, run with the controller that also runs live.

use crate::Parameters;
use crate::counts::{Counts, Memory, Since};
use crate::placed::Placed;
use crate::recorded::Recorded;
use crate::resources::Resources;
use crate::sums::Sums;
use nodewise_control::{BatchResult, Controller, HeldBack, Ledger, PageResult, Settings};
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::formulas::mix;
use nodewise_placement::{Context, Mapping, MigrationPolicy, Move, Observed};
use nodewise_profile::{Migration, Observer, PageNumber, SliceId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A policy that moves pages between slices, and the mapping that it starts from.
pub struct Moving {
    /// As written on the command line.
    pub policy: String,
    /// Index of the mapping that it starts from.
    pub start: usize,
    /// Slices between decisions, at least 1.
    pub interval: u32,
    /// Whether [`Moved::migrations`] lists every move.
    pub traced: bool,
    controller: Controller,
    /// For a recorded policy: the number of the current slice.
    clock: Option<Arc<AtomicU32>>,
}

impl Moving {
    /// A policy with limits, which decides after every slice.
    #[must_use]
    pub fn new(
        policy: impl Into<String>,
        start: usize,
        decides: Box<dyn MigrationPolicy>,
        settings: Settings,
    ) -> Self {
        let mut controller = Controller::new(decides, settings);
        // The clock starts with the run, not with the first decision.
        controller.record(0, &BatchResult::default());
        Self {
            policy: policy.into(),
            start,
            interval: 1,
            traced: false,
            controller,
            clock: None,
        }
    }

    /// Replays recorded moves, each at the end of the slice in which it was made.
    #[must_use]
    pub fn replay(start: usize, migrations: &[Migration]) -> Self {
        let clock = Arc::new(AtomicU32::new(0));
        let recorded = Box::new(Recorded::new(migrations, Arc::clone(&clock)));
        let limits = Settings {
            budget: f64::INFINITY,
            pages_per_second: None,
            minimum_samples: 0,
            half_life: 0,
            cooldown: 0,
            remembered_pages: usize::MAX,
            ..Settings::default()
        };
        Self {
            clock: Some(clock),
            ..Self::new("replay", start, recorded, limits)
        }
    }
}

/// The moves that a policy made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moved {
    /// Counts of moves, as ARS defines them.
    pub ledger: Ledger,
    /// Proposals that the controller filtered out, by reason.
    pub held_back: HeldBack,
    /// Time of moving, seconds; part of the predicted time, and the same in every scenario.
    pub seconds: f64,
    /// Every move in order, if it was asked for.
    pub migrations: Vec<Migration>,
    /// Whether each of these left the node that accessed the page most; `None` without exact counts.
    pub incorrect: Vec<Option<bool>>,
}

/// Mean cost of moving 10⁹ bytes over all pairs of nodes, including the copy, seconds.
#[must_use]
pub fn migration_seconds_per_gb(machine: &Machine, parameters: &Parameters) -> f64 {
    let resources = Resources::new(machine);
    let nodes = machine.node_count();
    let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
    let copies: Vec<f64> = pairs
        .filter(|(from, to)| from != to)
        .map(|(from, to)| resources.copy_ns(from, to))
        .collect();
    // 1 ns per byte is 1 s per GB.
    parameters.seconds_per_gb + copies.iter().sum::<f64>() / copies.len().max(1) as f64
}

/// The input of a migration step that is the same for all policies.
#[derive(Clone, Copy)]
pub(crate) struct StepContext<'a> {
    pub context: &'a Context<'a>,
    pub resources: &'a Resources,
    pub placed: &'a Placed,
    pub counts: &'a Counts,
    pub slice: SliceId,
    pub seconds_per_gb: f64,
}

/// Traffic and messages of moves by virtual nodes, independent of the nodes that the program is placed on.
#[derive(Clone, Debug)]
pub(crate) struct MoveCost {
    nodes: usize,
    /// Bytes `[from * nodes + to]`.
    bytes: Vec<f64>,
    messages: f64,
    seconds_per_gb: f64,
}

impl MoveCost {
    /// No moves. `seconds_per_gb`: time of 10⁹ bytes in addition to that of the copy.
    pub fn new(nodes: usize, seconds_per_gb: f64) -> Self {
        Self {
            nodes,
            bytes: vec![0.0; nodes * nodes],
            messages: 0.0,
            seconds_per_gb,
        }
    }

    /// Bytes between nodes, from and to, where there are any.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let pair = |(cell, bytes): (usize, &f64)| (cell / self.nodes, cell % self.nodes, *bytes);
        let moved = self.bytes.iter().enumerate().filter(|(_, bytes)| **bytes > 0.0);
        moved.map(pair)
    }

    /// Time of the moves on the nodes that these resources describe, nanoseconds.
    pub fn ns(&self, resources: &Resources) -> f64 {
        let ns = |(from, to, bytes)| bytes * (resources.copy_ns(from, to) + self.seconds_per_gb);
        self.pairs().map(ns).sum::<f64>() + self.messages * resources.remote_ns()
    }

    /// Adds bytes that are copied from one node to another.
    pub fn add(&mut self, from: usize, to: usize, bytes: f64) {
        self.bytes[from * self.nodes + to] += bytes;
    }

    /// Charges time and traffic of these moves to a policy, which has `paid` for the moves before. Returns the time,
    /// nanoseconds.
    pub fn charge(&self, resources: &Resources, paid: &mut Self, sums: &mut Sums) -> f64 {
        for (from, to, bytes) in self.pairs() {
            for resource in resources.copy(from, to) {
                sums.bytes[resource as usize] += bytes;
            }
        }
        let ns = self.ns(resources);
        sums.ns.iter_mut().for_each(|sum| *sum += ns);
        paid.absorb(self);
        ns
    }

    fn absorb(&mut self, other: &Self) {
        self.bytes.iter_mut().zip(&other.bytes).for_each(|(a, b)| *a += b);
        self.messages += other.messages;
        self.seconds_per_gb = other.seconds_per_gb;
    }

    /// Difference to an earlier state.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            nodes: self.nodes,
            bytes: self
                .bytes
                .iter()
                .zip(&earlier.bytes)
                .map(|(a, b)| a - b)
                .collect(),
            messages: self.messages - earlier.messages,
            seconds_per_gb: self.seconds_per_gb,
        }
    }
}

/// Simulation state of one policy.
pub(crate) struct MovingPolicy {
    pub policy: String,
    pub start: usize,
    /// Index of the [`Memory`] that it uses.
    pub memory: usize,
    /// Whether its memory is due to be halved.
    halves: bool,
    /// Pages on each node.
    pub pages_at: Vec<u64>,
    since: Since,
    controller: Controller,
    clock: Option<Arc<AtomicU32>>,
    moved: Moved,
    /// Cost of all moves so far.
    pub paid: MoveCost,
    traced: bool,
}

/// The state of each policy, and the memories that they share: policies with the same interval and half-life that know the
/// same pages share one.
pub(crate) fn tracks(
    context: &Context<'_>,
    mappings: &[Mapping],
    moving: Vec<Moving>,
) -> (Vec<Memory>, Vec<MovingPolicy>) {
    let (pages, nodes) = (context.histogram.len(), context.machine.node_count());
    let (mut keys, mut memories) = (Vec::new(), Vec::new());
    let track = |m: Moving| {
        let controller = &m.controller;
        let key = (
            controller.settings().half_life,
            m.interval.max(1),
            controller.tier().is_some(),
        );
        let memory = keys.iter().position(|k| *k == key).unwrap_or_else(|| {
            keys.push(key);
            memories.push(Memory::new(key.1, pages, nodes, key.2));
            keys.len() - 1
        });
        let mut pages_at = vec![0; nodes];
        for node in &mappings[m.start].nodes {
            pages_at[node.index()] += 1;
        }
        MovingPolicy {
            policy: m.policy,
            start: m.start,
            memory,
            halves: false,
            pages_at,
            since: Since::default(),
            controller: m.controller,
            clock: m.clock,
            moved: Moved::default(),
            paid: MoveCost::new(nodes, 0.0),
            traced: m.traced,
        }
    };
    let tracks = moving.into_iter().map(track).collect();
    (memories, tracks)
}

impl MovingPolicy {
    /// Decides, moves pages, and charges their cost. `policy`: the index among all policies.
    pub fn step(
        &mut self,
        world: &StepContext<'_>,
        policy: usize,
        memory: &Memory,
        sums: &mut Sums,
    ) -> Vec<(u32, NodeId)> {
        if let Some(clock) = &self.clock {
            clock.store(world.slice.0, Ordering::Relaxed);
        }
        let view = View {
            world,
            policy,
            memory,
            since: &self.since,
        };
        let decision = self.controller.step(sums.ns[0] as u64, &view);
        if self.controller.tier().is_none() {
            for m in &decision.moves {
                self.since.begin(memory.pages()[m.index], memory);
            }
        }
        self.halves = decision.halve;
        if self.traced {
            self.moved.incorrect.extend(self.controller.incorrect());
        }
        let ns = self.pay(world, &decision.moves, decision.messages, sums);
        let outcome = BatchResult {
            results: vec![PageResult::Moved; decision.moves.len()],
            took_ns: ns as u64,
        };
        self.controller.record(sums.ns[0] as u64, &outcome);
        self.hold_back(&decision.held_back);
        if self.traced {
            let trace = decision.moves.iter().map(|m| self.migration(world, memory, m));
            let trace: Vec<_> = trace.collect();
            self.moved.migrations.extend(trace);
        }
        let page = |m: &Move| (memory.pages()[m.index], m.to);
        decision.moves.iter().map(page).collect()
    }

    /// Adds the time and the traffic of moves.
    fn pay(&mut self, world: &StepContext<'_>, moves: &[Move], messages: u64, sums: &mut Sums) -> f64 {
        let bytes = world.context.histogram.page_size() as f64;
        let mut now = MoveCost::new(world.resources.nodes, world.seconds_per_gb);
        now.messages = messages as f64;
        for m in moves {
            let (from, to) = (m.from.index(), m.to.index());
            now.add(from, to, bytes);
            self.pages_at[from] -= 1;
            self.pages_at[to] += 1;
        }
        let ns = now.charge(world.resources, &mut self.paid, sums);
        self.moved.seconds += ns * 1e-9;
        if let Some(slice) = sums.slices.last_mut() {
            slice.migrations = moves.len() as u64;
        }
        ns
    }

    fn hold_back(&mut self, now: &HeldBack) {
        self.moved.held_back.add(now);
    }

    fn migration(&self, world: &StepContext<'_>, memory: &Memory, m: &Move) -> Migration {
        let Context {
            profile, histogram, ..
        } = world.context;
        let page = memory.pages()[m.index] as usize;
        let slice = profile.slices.get(world.slice.index());
        Migration {
            time_ns: slice.map_or(0, |s| s.end_ns),
            slice: world.slice,
            page: m.page,
            len: 1 << histogram.shift,
            object: histogram.objects[page],
            from: m.from.0 as u16,
            to: m.to.0 as u16,
            by: self.policy.clone(),
            to_count: m.reason.to_count,
            home_count: m.reason.home_count,
            count_threshold: m.reason.count_threshold,
        }
    }

    /// Whether its memory is due to be halved; the next call returns false.
    pub fn halve(&mut self) -> bool {
        let now = std::mem::take(&mut self.halves);
        if now {
            self.since.halve();
        }
        now
    }

    /// Totals of its moves.
    pub fn moved(&self) -> Moved {
        Moved {
            ledger: self.controller.ledger().clone(),
            ..self.moved.clone()
        }
    }
}

/// The accesses that the profile shows to a policy: all accesses to the pages with counts.
struct View<'a> {
    world: &'a StepContext<'a>,
    policy: usize,
    memory: &'a Memory,
    since: &'a Since,
}

/// The node of one access, chosen at random with equal probability for each; `draw` is uniform over all numbers.
pub(crate) fn drawn(counts: &[u64], draw: u64) -> Option<NodeId> {
    let total: u64 = counts.iter().sum();
    let mut left = ((u128::from(draw) * u128::from(total)) >> 64) as u64;
    let drawn = counts.iter().position(|count| {
        let here = left < *count;
        left = left.wrapping_sub(*count);
        here
    });
    drawn.map(|node| NodeId(node as u32))
}

impl View<'_> {
    fn index(&self, index: usize) -> usize {
        self.memory.pages()[index] as usize
    }
}

impl Observed for View<'_> {
    fn nodes(&self) -> usize {
        self.world.resources.nodes
    }

    fn len(&self) -> usize {
        self.memory.pages().len()
    }

    fn page(&self, index: usize) -> PageNumber {
        self.world.context.histogram.pages[self.index(index)]
    }

    fn home(&self, index: usize) -> NodeId {
        let home = self.world.placed.home(self.policy, self.index(index));
        NodeId(home.expect("policies that move pages make no copies") as u32)
    }

    fn counts(&self, index: usize, counts: &mut [u64]) {
        self.since.of(self.memory.pages()[index], self.memory, counts);
    }

    /// The order of accesses in a slice is unknown: any access may have been the first; it is drawn by the page's
    /// number.
    fn first(&self, index: usize) -> Option<NodeId> {
        let counts = self.world.counts.of(self.index(index));
        drawn(
            counts,
            mix(self.page(index).0 ^ (u64::from(self.world.slice.0) << 40)),
        )
    }

    fn page_shift(&self) -> u32 {
        self.world.context.histogram.shift
    }

    fn exact(&self) -> bool {
        self.world.context.profile.meta.observer != Observer::Faults
    }
}
