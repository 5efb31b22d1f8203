//! The simulation itself: sums over phases for each policy and scenario.

use crate::assumed_bandwidth::has_assumed_bandwidth;
use crate::assumed_latency::has_assumed_latency;
use crate::calibration::{Basis, Calibration};
use crate::concurrency;
use crate::copying::{Copied, CopyingPolicy};
use crate::counts::Memory;
use crate::limits::Limits;
use crate::memory_side_caches::{Footprint, footprints};
use crate::moving::{self, MoveCost, Moved, MovingPolicy, StepContext};
use crate::parameters::Unknown;
use crate::phase::Load;
use crate::prediction::{ControllerUse, LinkUse, Mapped, Prediction, ScenarioCost, Simulation};
use crate::regions::{self};
use crate::resources::Resources;
use crate::share::SliceShare;
use crate::sums::Sums;
use crate::tally::{Moves, SliceTally, Tally, slots};
use crate::{Changing, Parameters, Range, Scenario};
use nodewise_analysis::{HomeCounts, OtherRuns, Roles, balance, left_to_first_touch, measure};
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::{Context, Mapping};
use nodewise_profile::{ObjectId, Profile, SliceId};
use rayon::prelude::*;
use std::sync::Arc;

/// State of a running simulation.
pub(crate) struct SimulationRun<'a> {
    context: Context<'a>,
    mappings: &'a [Mapping],
    parameters: Parameters,
    /// The typical scenario, then those that vary one quantity, of which there are `one_at_a_time` in all; then those
    /// that vary all.
    scenarios: Vec<Scenario>,
    one_at_a_time: usize,
    calibration: Calibration,
    /// The real machine: the one that policies see, or the one with the nodes that each policy is on.
    machine: &'a Machine,
    on: Option<&'a [Vec<NodeId>]>,
    /// Resources that each policy's nodes are mapped to, by policy.
    resources: Vec<Arc<Resources>>,
    /// The same for each other choice of what limits the program.
    scaled: Vec<(Limits, Vec<Arc<Resources>>)>,
    slot_nodes: Vec<usize>,
    /// By policy: mappings first, then policies that move pages.
    sums: Vec<Sums>,
    /// By policy: whether pages have come to other nodes since its resources were made.
    outdated: Vec<bool>,
    /// Whether maps can place each page; empty unless pages move.
    mappable: Vec<bool>,
    tracks: Vec<MovingPolicy>,
    /// Policies that make copies, after those.
    copying: Vec<CopyingPolicy>,
    /// The largest number of CPUs that code outside parallel regions kept busy at a time, in the slices where it was limited.
    side_by_side: Option<f64>,
    /// The slice of the last copy, and the time of each policy until its end, by scenario; none before that.
    last_copy: Option<SliceId>,
    until_copied: Vec<Vec<f64>>,
    memories: Vec<Memory>,
    /// Which thread took which part in other runs, if any were recorded.
    roles: Option<Roles>,
}

impl<'a> SimulationRun<'a> {
    pub fn new(
        context: &Context<'a>,
        mappings: &'a [Mapping],
        changing: Changing,
        on: Option<(&'a Machine, &'a [Vec<NodeId>])>,
        parameters: &Parameters,
    ) -> Self {
        assert!(!mappings.is_empty(), "a simulation compares with a baseline");
        let last_copy = changing.last_copy();
        let Changing { moving, copies, .. } = changing;
        let calibration = Calibration::new(context.profile, context.histogram, parameters);
        let parameters = parameters.clone();
        let timed = calibration.is_timed() || calibration.basis == Basis::Samples;
        let machine = on.map_or(context.machine, |o| o.0);
        let unknown = Unknown {
            recording_cost: calibration.recording_cost,
            is_timed: timed,
            bandwidth: has_assumed_bandwidth(machine),
            latency: has_assumed_latency(machine),
            caches: machine.has_memory_side_caches(),
            concurrency: concurrency::is_unknown(context.profile),
        };
        let mut scenarios = parameters.scenarios(&unknown);
        let one_at_a_time = scenarios.len();
        scenarios.extend(parameters.jointly(&unknown));
        let (memories, tracks) = moving::tracks(context, mappings, moving);
        let copying = copies
            .into_iter()
            .map(|c| CopyingPolicy::new(context, &mappings[0], c));
        let copying: Vec<CopyingPolicy> = copying.collect();
        let policies = mappings.len() + tracks.len() + copying.len();
        let has_caches = machine.has_memory_side_caches();
        assert!(
            on.is_none() || !has_caches,
            "each policy sees the machine's own nodes, where these have caches"
        );
        let used: Vec<Vec<Footprint>> = match has_caches {
            true => starts(mappings, &tracks, copying.len())
                .map(|start| footprints(context, |page| [start.nodes[page]]))
                .collect(),
            false => Vec::new(),
        };
        let resources_at = |limits: Limits| match has_caches {
            true => used.iter().map(|used| limits.cached(machine, used)).collect(),
            false => limits.resources(machine, on.map(|o| o.1), policies),
        };
        let typical = Limits::of(&scenarios[0]);
        let resources = resources_at(typical);
        let mut limits: Vec<Limits> = Vec::new();
        for scenario in &scenarios {
            let of = Limits::of(scenario);
            if of != typical && !limits.contains(&of) {
                limits.push(of);
            }
        }
        let scaled = limits
            .into_iter()
            .map(|limits| (limits, resources_at(limits)))
            .collect();
        let sums = Sums::new(scenarios.len(), &resources[0]);
        let mappable = match tracks.is_empty() && copying.is_empty() {
            true => Vec::new(),
            false => {
                let objects = context.histogram.objects.iter();
                objects.map(|o| is_mappable(context.profile, *o)).collect()
            }
        };
        Self {
            context: *context,
            mappings,
            parameters,
            scenarios,
            one_at_a_time,
            calibration,
            slot_nodes: slots(context).1,
            machine,
            on: on.map(|o| o.1),
            sums: vec![sums; policies],
            // Copies may be made before the first slice.
            outdated: (0..policies).map(|p| p >= policies - copying.len()).collect(),
            resources,
            scaled,
            mappable,
            tracks,
            copying,
            side_by_side: None,
            last_copy,
            until_copied: Vec::new(),
            memories,
            roles: Roles::of(context.profile),
        }
    }

    /// Follows accesses from its first slice on: the state before it, with the copies that are made before it.
    pub fn tally(&mut self, parameters: &Parameters) -> Tally<'a> {
        let nearest: Vec<Option<&[NodeId]>> = match self.copying.is_empty() {
            true => Vec::new(),
            false => {
                let others = self.mappings.len() + self.tracks.len();
                let nearest = self.copying.iter().map(|c| Some(&*c.copies.nearest));
                std::iter::repeat_n(None, others).chain(nearest).collect()
            }
        };
        let mut tally = Tally::new(
            &self.context,
            &starts(self.mappings, &self.tracks, self.copying.len()).collect::<Vec<_>>(),
            &nearest,
            self.follows(),
            parameters,
        );
        tally.begin(self.copy(None, tally.copied()));
        tally
    }

    /// The inputs of the time model in the typical scenario.
    pub fn model(&self) -> (&Calibration, &Parameters, &Scenario) {
        (&self.calibration, &self.parameters, &self.scenarios[0])
    }

    /// The names of the policies, in order.
    pub fn policies(&self) -> Vec<String> {
        let moving = self.tracks.iter().map(|t| t.policy.clone());
        let copying = self.copying.iter().map(|c| c.copies.policy.clone());
        self.mappings
            .iter()
            .map(|m| m.policy.clone())
            .chain(moving)
            .chain(copying)
            .collect()
    }

    /// The cost of a policy's moves or copies so far, if it makes any.
    pub fn paid(&self, policy: usize) -> Option<&MoveCost> {
        let track = policy.checked_sub(self.mappings.len())?;
        let tracks = self.tracks.iter().map(|t| &t.paid);
        tracks.chain(self.copying.iter().map(|c| &c.paid)).nth(track)
    }

    /// Whether the homes of pages change under any policy.
    fn follows(&self) -> bool {
        !self.tracks.is_empty() || !self.copying.is_empty()
    }

    /// Adds the phases of one slice. Returns the moves before the next one.
    pub fn add(&mut self, slice: &SliceTally<'_>) -> Vec<Moves> {
        if self.until_copied.is_empty() && Some(slice.slice) > self.last_copy {
            self.until_copied = self.sums.iter().map(|s| s.ns.clone()).collect();
        }
        if self.machine.has_memory_side_caches() {
            self.renew(slice);
        }
        let Self {
            sums,
            slot_nodes,
            resources,
            scaled,
            scenarios,
            one_at_a_time,
            calibration,
            parameters,
            context,
            mappable,
            side_by_side,
            ..
        } = self;
        let limit = concurrency::limit(context.profile, calibration, &scenarios[0], slice);
        let free = slice
            .phases
            .iter()
            .filter(|p| !concurrency::is_team(context.profile, p.region));
        if free
            .map(|p| p.cpus().count())
            .max()
            .is_some_and(|cpus| limit < cpus as f64)
        {
            *side_by_side = Some(side_by_side.map_or(limit, |most| most.max(limit)));
        }
        sums.par_iter_mut().enumerate().for_each(|(policy, sums)| {
            let resources = &resources[policy];
            for phase in slice.phases {
                let team = concurrency::is_team(context.profile, phase.region);
                let at_a_time = if team { f64::INFINITY } else { limit };
                let bytes = parameters.traffic.bytes();
                let load_on =
                    |resources, at_a_time| Load::new(phase, policy, slot_nodes, resources, at_a_time, bytes);
                let load = load_on(resources, at_a_time);
                let others: Vec<(Limits, Load<'_>)> = scaled
                    .iter()
                    .map(|(limits, of)| (*limits, load_on(&of[policy], at_a_time * limits.concurrency)))
                    .collect();
                for (s, scenario) in scenarios.iter().enumerate() {
                    let fit = calibration.fit(scenario).on(scenario, parameters);
                    let other = others.iter().find(|(limits, _)| *limits == Limits::of(scenario));
                    let cost = other
                        .map_or(&load, |(_, load)| load)
                        .solve(scenario, &fit, parameters);
                    sums.ns[s] += cost.ns;
                    sums.compute_ns[s] += cost.compute_ns;
                    let region = regions::of(&mut sums.regions, phase.region);
                    if s < *one_at_a_time {
                        region.add_time(s, cost.ns);
                    }
                    if s == 0 {
                        region.add_lines(&load.lines, resources.nodes);
                        sums.count(&load, &cost, fit.miss);
                    }
                }
            }
            sums.follow(slice, policy, mappable);
        });
        self.moved(slice)
    }

    /// Makes anew the resources of policies of which pages have come to other nodes, whose caches these take part in.
    fn renew(&mut self, slice: &SliceTally<'_>) {
        for policy in 0..self.outdated.len() {
            if !std::mem::take(&mut self.outdated[policy]) {
                continue;
            }
            let used = footprints(&self.context, |page| match slice.placed.home(policy, page) {
                Some(home) => vec![NodeId(home as u32)],
                None => {
                    let mut holders: Vec<u16> = slice.placed.nearest(policy).to_vec();
                    holders.sort_unstable();
                    holders.dedup();
                    holders.into_iter().map(|n| NodeId(n.into())).collect()
                }
            });
            self.resources[policy] = Limits::of(&self.scenarios[0]).cached(self.machine, &used);
            for (limits, resources) in &mut self.scaled {
                resources[policy] = limits.cached(self.machine, &used);
            }
        }
    }

    /// The pages that are copied after a slice, or before the first, under each policy that makes copies. `copied`: the
    /// node that stands for copies.
    fn copy(&mut self, after: Option<SliceId>, copied: NodeId) -> Vec<Moves> {
        let first = self.mappings.len() + self.tracks.len();
        let seconds_per_gb = self.parameters.seconds_per_gb;
        let step = |(i, policy): (usize, &mut CopyingPolicy)| {
            let homes = &self.mappings[0].nodes;
            let (resources, sums) = (&self.resources[first + i], &mut self.sums[first + i]);
            let pages = policy.step(after, homes, resources, seconds_per_gb, sums);
            (first + i, pages.into_iter().map(|page| (page, copied)).collect())
        };
        self.copying.iter_mut().enumerate().map(step).collect()
    }

    /// The moves at the end of a slice, under each policy that moves pages or copies them.
    fn moved(&mut self, slice: &SliceTally<'_>) -> Vec<Moves> {
        let Some(counts) = slice.counts else {
            return Vec::new();
        };
        let copied = self.copy(Some(slice.slice), slice.placed.copied());
        let complete: Vec<bool> = self.memories.iter_mut().map(|m| m.add(counts)).collect();
        let mut halved = vec![false; self.memories.len()];
        let first = self.mappings.len();
        let Self {
            sums,
            tracks,
            memories,
            resources,
            context,
            parameters,
            ..
        } = self;
        let world = StepContext {
            context,
            resources: &resources[0],
            placed: slice.placed,
            counts,
            slice: slice.slice,
            seconds_per_gb: parameters.seconds_per_gb,
        };
        let step = |(i, (track, sums)): (usize, (&mut MovingPolicy, &mut Sums))| {
            let resources = &resources[first + i];
            let world = StepContext { resources, ..world };
            (
                first + i,
                track.step(&world, first + i, &memories[track.memory], sums),
            )
        };
        let moving = tracks.par_iter_mut().zip(&mut sums[first..]).enumerate();
        let due = moving.filter(|(_, (track, _))| complete[track.memory]);
        let mut moves: Vec<Moves> = due.map(step).filter(|m| !m.1.is_empty()).collect();
        moves.extend(copied);
        moves.iter().for_each(|(policy, _)| self.outdated[*policy] = true);
        // Policies that share a memory halve it at the same time.
        for track in tracks {
            halved[track.memory] |= track.halve();
        }
        for (memory, _) in memories.iter_mut().zip(&halved).filter(|m| *m.1) {
            memory.halve();
        }
        moves
    }

    /// The prediction of each mapping: its time is the sum over the phases of all slices, its local fraction that of its pages in the
    /// histogram.
    pub fn finish(self) -> Simulation {
        let (c, nodes) = (&self.context, self.resources[0].nodes);
        let homes: Vec<&[NodeId]> = self.mappings.iter().map(|m| &m.nodes[..]).collect();
        let counted = HomeCounts::of(c.histogram, c.affinity, &homes, nodes, |object| {
            is_mappable(c.profile, object)
        });
        let measured = measure(c.profile, c.histogram, c.affinity, homes[0], nodes);
        let predictions = (0..self.sums.len()).map(|p| self.prediction(p, &counted));
        Simulation {
            predictions: predictions.collect(),
            measured,
            machine: self.machine.name.clone(),
            affinity: self.context.affinity.name.clone(),
            threads: self.context.affinity.cpus.len(),
            cpus: self.slot_nodes.len(),
            calibration: self.calibration,
            side_by_side: self.side_by_side,
            scenarios: self.scenarios[..self.one_at_a_time].to_vec(),
            parameters: self.parameters,
        }
    }

    /// A policy's times in all scenarios, and its metrics; `counted`: of each mapping.
    fn prediction(&self, policy: usize, counted: &[HomeCounts]) -> Prediction {
        let (sums, baseline) = (&self.sums[policy], &self.sums[0]);
        let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 1.0 };
        let each =
            |f: &dyn Fn(usize) -> f64| Range::spanning(&(0..self.one_at_a_time).map(f).collect::<Vec<_>>());
        let cost = |s: usize| ScenarioCost {
            seconds: sums.ns[s] * 1e-9,
            speedup: ratio(baseline.ns[s], sums.ns[s]),
            memory_share: 1.0 - ratio(sums.compute_ns[s], sums.ns[s]),
        };
        let placed = self.placed(policy, counted);
        Prediction {
            policy: placed.policy,
            seconds: each(&|s| sums.ns[s] * 1e-9),
            by_scenario: (0..self.one_at_a_time).map(cost).collect(),
            jointly: (self.one_at_a_time..sums.ns.len()).map(cost).collect(),
            speedup: self.widened(each(&|s| ratio(baseline.ns[s], sums.ns[s]))),
            speedup_later: self.widened(each(&|s| {
                let until = |p: usize| self.until_copied.get(p).map_or(self.sums[p].ns[s], |ns| ns[s]);
                ratio(baseline.ns[s] - until(0), sums.ns[s] - until(policy))
            })),
            local_fraction: placed.local_fraction,
            other_runs: self.mappings.get(policy).and_then(|m| self.other_runs(m)),
            access_balance: placed.access_balance,
            page_balance: placed.page_balance,
            mapped: self.on_real_nodes(placed.mapped, policy),
            latency_ns: ratio(sums.waited, sums.lines.iter().sum()),
            memory_share: each(&|s| 1.0 - ratio(sums.compute_ns[s], sums.ns[s])),
            cache_hits: self
                .machine
                .has_memory_side_caches()
                .then(|| ratio(sums.hits, sums.lines.iter().sum())),
            loaded_ns: self.loaded(policy),
            controllers: self.controllers(policy),
            links: self.links(policy),
            nodes: self.on.map_or_else(Vec::new, |on| on[policy].clone()),
            regions: regions::costs(&sums.regions, self.context.profile),
            slices: sums.slices.clone(),
            moved: placed.moved,
            copied: placed.copied,
        }
    }

    fn other_runs(&self, mapping: &Mapping) -> Option<OtherRuns> {
        let Context {
            profile,
            histogram,
            affinity,
            ..
        } = self.context;
        let roles = self.roles.as_ref()?;
        let homes = &mapping.nodes;
        let left = left_to_first_touch(profile, histogram, affinity, homes);
        Some(roles.expected(profile, histogram, affinity, (homes, &left)))
    }

    /// The locations of pages: of a mapping, as counted from the histogram; of a policy that moves them, as tracked.
    fn placed(&self, policy: usize, counted: &[HomeCounts]) -> PageLocations {
        if let Some(counts) = counted.get(policy) {
            return PageLocations {
                policy: self.mappings[policy].policy.clone(),
                local_fraction: counts.local_fraction(),
                access_balance: counts.access_balance(),
                page_balance: counts.page_balance(),
                mapped: Mapped {
                    accesses: counts.of_chosen(),
                },
                moved: None,
                copied: None,
            };
        }
        let sums = &self.sums[policy];
        let after = policy - self.mappings.len();
        let (pages_at, moved, copied) = match self.tracks.get(after) {
            Some(track) => (&track.pages_at, Some(track.moved()), None),
            None => {
                let copying = &self.copying[after - self.tracks.len()];
                (&copying.pages_at, None, Some(copying.copied()))
            }
        };
        let whole = SliceShare {
            slice: Default::default(),
            accesses: sums.all.accesses(),
            local: sums.all.local(),
            migrations: 0,
        };
        PageLocations {
            policy: self.policies().swap_remove(policy),
            local_fraction: whole.local_fraction(),
            access_balance: sums.all.access_balance(),
            page_balance: balance(pages_at),
            mapped: Mapped {
                accesses: sums.mapped.by_reader(),
            },
            moved,
            copied,
        }
    }

    /// Widens a speed-up by the model's own error: each end moves away from the typical ratio by a share of it, never
    /// past 1.
    fn widened(&self, speedup: Range) -> Range {
        let off = speedup.typical.powf(self.parameters.gain_error);
        let (low, high) = (speedup.typical / off, speedup.typical * off);
        Range::new(
            speedup.min.min(low.min(high)),
            speedup.typical,
            speedup.max.max(low.max(high)),
        )
    }

    /// Accesses by the real machine's nodes.
    fn on_real_nodes(&self, mapped: Mapped, policy: usize) -> Mapped {
        let Some(on) = self.on else { return mapped };
        let nodes = self.machine.node_count();
        let mut accesses = vec![vec![0; nodes]; nodes];
        for (reader, row) in on[policy].iter().zip(&mapped.accesses) {
            for (memory, count) in on[policy].iter().zip(row) {
                accesses[reader.index()][memory.index()] = *count;
            }
        }
        Mapped { accesses }
    }

    fn loaded(&self, policy: usize) -> Vec<Vec<f64>> {
        let (sums, resources) = (&self.sums[policy], &self.resources[policy]);
        let mean = |cell: usize| match sums.lines[cell] {
            lines if lines > 0.0 => sums.latency[cell] / lines,
            _ => resources.idle_ns[cell],
        };
        let nodes = resources.nodes;
        (0..nodes)
            .map(|r| (0..nodes).map(|m| mean(r * nodes + m)).collect())
            .collect()
    }

    fn utilization(&self, policy: usize, resource: usize) -> f64 {
        let sums = &self.sums[policy];
        let possible = self.resources[policy].capacity[resource] * sums.ns[0];
        if possible > 0.0 {
            sums.bytes[resource] / possible
        } else {
            0.0
        }
    }

    fn controllers(&self, policy: usize) -> Vec<ControllerUse> {
        let controller = |node: NodeId| ControllerUse {
            node,
            bytes: self.sums[policy].bytes[node.index()],
            utilization: self.utilization(policy, node.index()),
        };
        self.machine.node_ids().map(controller).collect()
    }

    fn links(&self, policy: usize) -> Vec<LinkUse> {
        let links = self.machine.links.iter().enumerate();
        links
            .map(|(i, link)| {
                let resource = self.resources[policy].before_links + i;
                LinkUse {
                    from: link.from,
                    to: link.to,
                    bytes: self.sums[policy].bytes[resource],
                    utilization: self.utilization(policy, resource),
                }
            })
            .collect()
    }
}

/// The initial mapping of each policy: fixed mappings first, then policies that move pages, then those that make copies.
fn starts<'m>(
    mappings: &'m [Mapping],
    tracks: &[MovingPolicy],
    copying: usize,
) -> impl Iterator<Item = &'m Mapping> {
    let moving = tracks.iter().map(|t| &mappings[t.start]);
    mappings
        .iter()
        .chain(moving)
        .chain(std::iter::repeat_n(&mappings[0], copying))
}

/// Whether maps can place an object.
fn is_mappable(profile: &Profile, object: ObjectId) -> bool {
    profile.object(object).is_some_and(|o| o.kind.is_mappable())
}

/// The part of a prediction that depends on the locations of pages.
struct PageLocations {
    policy: String,
    local_fraction: f64,
    access_balance: f64,
    page_balance: f64,
    mapped: Mapped,
    moved: Option<Moved>,
    copied: Option<Copied>,
}
