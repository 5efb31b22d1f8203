//! Times of a program on every placement of its virtual nodes.
//!
//! The placement does not change any access, so the tally is the same for all placements. Each placement's time follows
//! from the same phases over other links (AsymSched, Figures 2 and 3).

use crate::merged::Merging;
use crate::resources::Resources;
use crate::run::SimulationRun;
use crate::tally::SliceTally;
use crate::{Calibration, Parameters, Scenario};
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::Context;
use rayon::prelude::*;

/// Largest number of slices × policies × placements to solve; that takes a second or two.
const MAX_SOLUTIONS: usize = 60_000;

/// The times of one policy on every placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The policy, as written on the command line.
    pub policy: String,
    /// Wall time on each placement in the typical scenario, seconds.
    pub seconds: Vec<f64>,
    /// Mean latency of a line on each placement, as CPUs see it, nanoseconds.
    pub latency_ns: Vec<f64>,
    /// Number of slices that were merged before solving; with 1, times equal those of [`crate::simulate_on`].
    pub slices_together: usize,
}

/// Smallest, mean and largest of some figures, and their standard deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The index of the smallest figure (the first among equals), and its value.
    pub least: (usize, f64),
    /// Arithmetic mean of the values.
    pub mean: f64,
    /// The index of the largest figure (the first among equals), and its value.
    pub most: (usize, f64),
    /// Standard deviation of the values (population).
    pub deviation: f64,
}

impl Spread {
    /// The spread of at least one figure.
    ///
    /// # Panics
    /// If there are no figures.
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

/// Accumulates the times of all policies on all placements.
pub(crate) struct Survey<'a> {
    slot_nodes: Vec<usize>,
    resources: Vec<Resources>,
    merging: Merging<'a>,
    /// `[policy][placement]`: nanoseconds, lines times latency, lines.
    sums: Vec<Vec<[f64; 3]>>,
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
            slot_nodes: crate::tally::slots(context).1,
            resources: placements.iter().map(|at| Resources::on(machine, at)).collect(),
            merging: Merging::new(
                context.profile,
                (slices * policies * placements.len()).div_ceil(MAX_SOLUTIONS),
            ),
            sums: vec![vec![[0.0; 3]; placements.len()]; policies],
        }
    }

    pub fn add(&mut self, slice: &SliceTally<'_>, run: &SimulationRun<'_>) {
        let (calibration, parameters, typical) = run.model();
        if self.merging.add(slice, calibration, typical) {
            self.solve(calibration, parameters, typical);
        }
    }

    fn solve(&mut self, calibration: &Calibration, parameters: &Parameters, typical: &Scenario) {
        let fit = calibration.fit(typical).on(typical, parameters);
        let phases = self.merging.take();
        let (phases, resources, slot_nodes) = (&phases, &self.resources, &self.slot_nodes);
        let all = self.sums.par_iter_mut().enumerate();
        all.flat_map(|(policy, by)| {
            by.par_iter_mut()
                .enumerate()
                .map(move |(at, sums)| (policy, at, sums))
        })
        .for_each(|(policy, at, sums)| {
            for merged in phases {
                let bytes = parameters.traffic.bytes();
                let load = merged.load(policy, slot_nodes, &resources[at], bytes);
                let cost = load.solve(typical, &fit, parameters);
                sums[0] += cost.ns;
                sums[1] += load.waited(&cost);
                sums[2] += load.lines.iter().sum::<f64>();
            }
        });
    }

    pub fn finish(mut self, run: &SimulationRun<'_>) -> Vec<Choice> {
        let (calibration, parameters, typical) = run.model();
        self.solve(calibration, parameters, typical);
        let latency = |s: &[f64; 3]| if s[2] > 0.0 { s[1] / s[2] } else { 0.0 };
        let choice = |(at, policy): (usize, String)| {
            let paid = |resources: &Resources| run.paid(at).map_or(0.0, |p| p.ns(resources));
            let paid = self.resources.iter().map(paid);
            let sums = &self.sums[at];
            Choice {
                policy,
                seconds: sums.iter().zip(paid).map(|(s, p)| (s[0] + p) * 1e-9).collect(),
                latency_ns: sums.iter().map(latency).collect(),
                slices_together: self.merging.together,
            }
        };
        run.policies().into_iter().enumerate().map(choice).collect()
    }
}
