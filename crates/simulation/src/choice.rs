//! What the choice of nodes is worth: a program's time on every placement of its virtual nodes.
//!
//! Which nodes a placement uses changes no access: the tally is the same for all, and each placement's time
//! follows from the same phases over other links (AsymSched, Figures 2 and 3).

use crate::concurrency;
use crate::phase::Load;
use crate::resources::Resources;
use crate::run::Run;
use crate::tally::{Phase, SliceTally};
use crate::{Calibration, Parameters, Scenario};
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::Context;
use nodewise_profile::{Profile, RegionId};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Phases times placements that are solved, about: a second or two.
const SOLVED: usize = 60_000;

/// One policy on every placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// As written on the command line.
    pub policy: String,
    /// Wall time by placement, typical, seconds.
    pub seconds: Vec<f64>,
    /// Mean loaded latency of a line by placement, nanoseconds.
    pub latency_ns: Vec<f64>,
}

/// The ends, the middle and the spread of some figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The smallest, and where it is: the first of equals.
    pub least: (usize, f64),
    /// The mean.
    pub mean: f64,
    /// The largest, and where it is: the first of equals.
    pub most: (usize, f64),
    /// The standard deviation.
    pub deviation: f64,
}

impl Spread {
    /// Of at least one figure.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let first = (0, values[0]);
        let numbered = || values.iter().copied().enumerate();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        Self {
            least: numbered().fold(first, |a, b| if b.1 < a.1 { b } else { a }),
            mean,
            most: numbered().fold(first, |a, b| if b.1 > a.1 { b } else { a }),
            deviation: (squares / values.len() as f64).sqrt(),
        }
    }
}

/// Times of all policies on all placements, under way.
pub(crate) struct Survey<'a> {
    profile: &'a Profile,
    slot_nodes: Vec<usize>,
    resources: Vec<Resources>,
    /// Slices that are added up before they are solved.
    together: usize,
    waiting: usize,
    phases: BTreeMap<RegionId, Merged>,
    /// `[policy][placement]`: nanoseconds, lines times latency, lines.
    sums: Vec<Vec<[f64; 3]>>,
}

/// A region over several slices, and how many CPUs were busy in it.
struct Merged {
    phase: Phase,
    work: f64,
    /// The work over how many CPUs could do it at a time.
    alone: f64,
}

impl<'a> Survey<'a> {
    pub fn new(
        context: &Context<'a>,
        machine: &Machine,
        placements: &[Vec<NodeId>],
        policies: usize,
    ) -> Self {
        let slices = context.profile.slices.len().max(1);
        Self {
            profile: context.profile,
            slot_nodes: crate::tally::slots(context).1,
            resources: placements.iter().map(|at| Resources::on(machine, at)).collect(),
            together: (slices * policies * placements.len()).div_ceil(SOLVED),
            waiting: 0,
            phases: BTreeMap::new(),
            sums: vec![vec![[0.0; 3]; placements.len()]; policies],
        }
    }

    pub fn add(&mut self, slice: &SliceTally<'_>, run: &Run<'_>) {
        let (calibration, parameters, typical) = run.model();
        let limit = concurrency::limit(self.profile, calibration, typical, slice);
        for phase in slice.phases {
            let team = concurrency::is_team(self.profile, phase.region);
            let work = phase.accesses.iter().sum::<u64>() as f64;
            let alone = if team { 0.0 } else { work / limit };
            self.phases
                .entry(phase.region)
                .and_modify(|m| m.absorb(phase, work, alone))
                .or_insert_with(|| Merged {
                    phase: phase.clone(),
                    work,
                    alone,
                });
        }
        self.waiting += 1;
        if self.waiting >= self.together {
            self.solve(calibration, parameters, typical);
        }
    }

    fn solve(&mut self, calibration: &Calibration, parameters: &Parameters, typical: &Scenario) {
        let fit = calibration.fit(typical).on(parameters.traffic);
        let (phases, resources, slot_nodes) = (&self.phases, &self.resources, &self.slot_nodes);
        let policies = self.sums.len();
        let all = self.sums.par_iter_mut().enumerate();
        all.flat_map(|(policy, by)| {
            by.par_iter_mut()
                .enumerate()
                .map(move |(at, sums)| (policy, at, sums))
        })
        .for_each(|(policy, at, sums)| {
            for merged in phases.values() {
                let which = (policy, policies);
                let bytes = parameters.traffic.bytes();
                let load = Load::new(
                    &merged.phase,
                    which,
                    slot_nodes,
                    &resources[at],
                    merged.at_a_time(),
                    bytes,
                );
                let cost = load.solve(typical, &fit, parameters);
                sums[0] += cost.ns;
                sums[1] += load
                    .lines
                    .iter()
                    .zip(&cost.latency_ns)
                    .map(|(n, l)| n * l)
                    .sum::<f64>();
                sums[2] += load.lines.iter().sum::<f64>();
            }
        });
        self.phases.clear();
        self.waiting = 0;
    }

    pub fn finish(mut self, run: &Run<'_>) -> Vec<Choice> {
        let (calibration, parameters, typical) = run.model();
        self.solve(calibration, parameters, typical);
        let latency = |s: &[f64; 3]| if s[2] > 0.0 { s[1] / s[2] } else { 0.0 };
        let policies = run.policies().into_iter().zip(&self.sums);
        policies
            .map(|(policy, sums)| Choice {
                policy,
                seconds: sums.iter().map(|s| s[0] * 1e-9).collect(),
                latency_ns: sums.iter().map(latency).collect(),
            })
            .collect()
    }
}

impl Merged {
    fn absorb(&mut self, phase: &Phase, work: f64, alone: f64) {
        let into = &mut self.phase;
        into.lines += phase.lines;
        into.accesses
            .iter_mut()
            .zip(&phase.accesses)
            .for_each(|(a, b)| *a += b);
        for (a, b) in into.cells.iter_mut().zip(&phase.cells) {
            a.lines += b.lines;
            a.dirty += b.dirty;
        }
        self.work += work;
        self.alone += alone;
    }

    fn at_a_time(&self) -> f64 {
        if self.alone > 0.0 {
            (self.work / self.alone).max(1.0)
        } else {
            f64::INFINITY
        }
    }
}
