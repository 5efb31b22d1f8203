//! Predicts several programs that run at once, each on nodes of its own, and contend for links and for the controllers
//! of each other's nodes.
//!
//! All programs begin together. While each program is in some phase, every node of every program moves bytes at the
//! rate that follows from the phase's time, max-min fair where a resource is full. Each program's time depends on what
//! the others leave it, so the times are found by fixed-point iteration. When the first phase ends, its program's next
//! phase begins.

use crate::phase::{Cost, Load};
use crate::resources::Resources;
use crate::{Demand, ProgramPhases};
use nodewise_machine::{Machine, NodeId};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Relative change of times below which the fixed-point iteration has converged.
const CONVERGENCE_TOLERANCE: f64 = 1e-3;
/// Largest number of iterations.
const MAX_ITERATIONS: usize = 40;
/// From this iteration on, steps are damped (geometric mean) to prevent oscillation.
const DAMPED_FROM: usize = 6;

/// One of several programs: the index of its policy in its [`ProgramPhases`], and the node of each of its virtual
/// nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// Index of the policy in [`ProgramPhases::policies`].
    pub policy: usize,
    /// The node of each virtual node.
    pub nodes: Vec<NodeId>,
}

/// What a program does once it has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterEnd {
    /// It leaves its share of the links to the others.
    #[default]
    Leave,
    /// It is repeated until all programs have ended once; the others then contend with its average traffic.
    Repeat,
}

/// Predicted time of one program beside others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgramPrediction {
    /// Wall time of its first run in the typical scenario.
    pub seconds: f64,
    /// Mean latency of a cache line as seen by CPUs, nanoseconds.
    pub latency_ns: f64,
}

/// A step of a program: a phase or a pause for moving pages.
enum Item<'a> {
    /// A phase, and its cost when the program runs alone.
    Phase(Box<(Load<'a>, Cost)>),
    /// Time in which pages are moved, nanoseconds.
    Pause(f64),
}

/// Predicts each run of the programs. A run has one entry per program of `all_phases`, and so does its result.
///
/// # Panics
/// If a run does not have as many programs as `all_phases`, or a program names an unknown policy.
#[must_use]
pub fn at_once(
    machine: &Machine,
    all_phases: &[ProgramPhases],
    runs: &[Vec<Program>],
    after_end: AfterEnd,
) -> Vec<Vec<ProgramPrediction>> {
    let mut known: Vec<BTreeMap<&Program, usize>> = vec![BTreeMap::new(); all_phases.len()];
    let mut each: Vec<(usize, &Program)> = Vec::new();
    for run in runs {
        assert_eq!(
            run.len(),
            all_phases.len(),
            "a run has one program per entry of `all_phases`"
        );
        for (which, program) in run.iter().enumerate() {
            known[which].entry(program).or_insert_with(|| {
                each.push((which, program));
                each.len() - 1
            });
        }
    }
    let resources: Vec<Resources> = each
        .par_iter()
        .map(|(_, p)| Resources::on(machine, &p.nodes))
        .collect();
    let prepared = each.par_iter().zip(&resources);
    let prepared: Vec<Prepared<'_>> = prepared
        .map(|((which, program), resources)| Prepared::new(&all_phases[*which], program.policy, resources))
        .collect();
    let of = |(which, program): (usize, &Program)| Running::new(&prepared[known[which][program]]);
    let together = |run: &Vec<Program>| play(run.iter().enumerate().map(of).collect(), after_end);
    runs.par_iter().map(together).collect()
}

/// A program with its policy on its nodes.
struct Prepared<'a> {
    program_phases: &'a ProgramPhases,
    items: Vec<Item<'a>>,
    /// Traffic of each of its nodes over the whole run.
    whole: Vec<Demand>,
}

impl<'a> Prepared<'a> {
    fn new(program_phases: &'a ProgramPhases, policy: usize, resources: &'a Resources) -> Self {
        let items = items(program_phases, policy, resources);
        let mut sums = vec![(0.0, BTreeMap::new()); resources.nodes];
        for item in &items {
            let Item::Phase(phase) = item else { continue };
            let load = &phase.0;
            for ((bytes, over), demand) in sums.iter_mut().zip(&load.demands) {
                *bytes += demand.bytes;
                for &(resource, bytes) in &demand.over {
                    *over.entry(resource).or_insert(0.0) += bytes;
                }
            }
        }
        let whole = sums.into_iter().map(|(bytes, over)| Demand {
            bytes,
            over: over.into_iter().collect(),
        });
        Self {
            program_phases,
            items,
            whole: whole.collect(),
        }
    }
}

/// The items of a program's phases under one policy, on the nodes that `resources` describe.
fn items<'a>(program_phases: &'a ProgramPhases, policy: usize, resources: &'a Resources) -> Vec<Item<'a>> {
    let bytes = program_phases.parameters.traffic.bytes();
    let mut items = Vec::new();
    for step in &program_phases.steps {
        let pause = step.paid[policy].as_ref().map_or(0.0, |p| p.ns(resources));
        items.extend((pause > 0.0).then_some(Item::Pause(pause)));
        for merged in &step.phases {
            let load = merged.load(policy, &program_phases.slot_nodes, resources, bytes);
            let alone = load.solve(
                &program_phases.typical,
                &program_phases.fit,
                &program_phases.parameters,
            );
            items.push(Item::Phase(Box::new((load, alone))));
        }
    }
    items
}

/// Simulation state of a program.
struct Running<'a> {
    prepared: &'a Prepared<'a>,
    /// Index of its current item; the number of items once the program has ended.
    at: usize,
    /// Share of the current item that is left, 0 to 1.
    left: f64,
    /// Time of the whole item under current contention (ns), and its latency summed over lines.
    now: (f64, f64),
    ns: f64,
    waited: f64,
    lines: f64,
}

impl<'a> Running<'a> {
    fn new(prepared: &'a Prepared<'a>) -> Self {
        Self {
            prepared,
            at: 0,
            left: 1.0,
            now: (0.0, 0.0),
            ns: 0.0,
            waited: 0.0,
            lines: 0.0,
        }
    }

    fn item(&self) -> Option<&'a Item<'a>> {
        self.prepared.items.get(self.at)
    }

    /// Starts the fixed-point iteration with the item's time without contention.
    fn begin(&mut self) {
        self.now = match self.item() {
            Some(Item::Phase(phase)) => (phase.1.ns, phase.0.waited(&phase.1)),
            Some(Item::Pause(ns)) => (*ns, 0.0),
            None => (f64::INFINITY, 0.0),
        };
    }

    /// Current traffic of each of its nodes, with its rate limit in bytes a nanosecond.
    fn moves(&self, after_end: AfterEnd) -> Vec<(&'a Demand, f64)> {
        let (demands, ns) = match self.item() {
            Some(Item::Phase(phase)) => (&phase.0.demands, self.now.0),
            None if after_end == AfterEnd::Repeat => (&self.prepared.whole, self.ns),
            _ => return Vec::new(),
        };
        let rate = self.prepared.program_phases.fit.miss / ns;
        let busy = demands.iter().filter(|d| d.bytes > 0.0);
        busy.map(|d| (d, d.bytes * rate))
            .filter(|d| d.1 > 0.0 && d.1.is_finite())
            .collect()
    }

    /// Recomputes its time beside the others' traffic; returns the relative change.
    fn beside(&mut self, others: &[(&Demand, f64)], round: usize) -> f64 {
        let Some(Item::Phase(phase)) = self.item() else {
            return 0.0;
        };
        let (load, alone) = &**phase;
        let meets = |demand: &Demand| demand.over.iter().any(|o| load.bytes[o.0 as usize] > 0.0);
        let others: Vec<_> = others.iter().filter(|o| meets(o.0)).copied().collect();
        let program_phases = self.prepared.program_phases;
        let solved = match others.as_slice() {
            [] => alone.clone(),
            others => load.solve_beside(
                others,
                &program_phases.typical,
                &program_phases.fit,
                &program_phases.parameters,
            ),
        };
        let before = self.now.0;
        let ns = if round < DAMPED_FROM {
            solved.ns
        } else {
            (solved.ns * before).sqrt()
        };
        self.now = (ns, load.waited(&solved));
        if before > 0.0 {
            (ns / before - 1.0).abs()
        } else {
            0.0
        }
    }

    /// Advances the program by `ns` nanoseconds.
    fn pass(&mut self, ns: f64) {
        let Some(item) = self.item() else { return };
        let share = if self.now.0 > 0.0 {
            (ns / self.now.0).min(self.left)
        } else {
            self.left
        };
        self.ns += ns;
        self.left -= share;
        if let Item::Phase(phase) = item {
            self.waited += share * self.now.1;
            self.lines += share * phase.0.lines.iter().sum::<f64>();
        }
        if self.left <= 1e-9 {
            (self.at, self.left) = (self.at + 1, 1.0);
        }
    }

    fn outcome(&self) -> ProgramPrediction {
        ProgramPrediction {
            seconds: self.ns * 1e-9,
            latency_ns: if self.lines > 0.0 {
                self.waited / self.lines
            } else {
                0.0
            },
        }
    }
}

fn play(mut programs: Vec<Running<'_>>, after_end: AfterEnd) -> Vec<ProgramPrediction> {
    while programs.iter().any(|p| p.item().is_some()) {
        converge(&mut programs, after_end);
        let under_way = programs.iter().filter(|p| p.item().is_some());
        let next = under_way.map(|p| p.left * p.now.0).fold(f64::INFINITY, f64::min);
        programs.iter_mut().for_each(|p| p.pass(next));
    }
    programs.iter().map(Running::outcome).collect()
}

/// Fixed-point iteration: finds times of all current items that are consistent with each other.
fn converge(programs: &mut [Running<'_>], after_end: AfterEnd) {
    programs.iter_mut().for_each(Running::begin);
    for round in 0..MAX_ITERATIONS {
        let mut change = 0.0f64;
        for at in 0..programs.len() {
            let others = programs.iter().enumerate().filter(|(i, _)| *i != at);
            let others: Vec<_> = others.flat_map(|(_, p)| p.moves(after_end)).collect();
            change = change.max(programs[at].beside(&others, round));
        }
        if change < CONVERGENCE_TOLERANCE {
            break;
        }
    }
}
