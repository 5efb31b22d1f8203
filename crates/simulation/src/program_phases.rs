//! A program's phases in order, from which its time beside other programs is predicted.

use crate::calibration::Fit;
use crate::merged::{Merged, Merging};
use crate::moving::MoveCost;
use crate::run::SimulationRun;
use crate::tally::SliceTally;
use crate::{Parameters, Scenario};
use nodewise_placement::Context;

/// The phases of a program under one or several policies, independent of nodes and of other programs.
pub struct ProgramPhases {
    /// The policies, as written on the command line: mappings first, then those that move pages.
    pub policies: Vec<String>,
    /// Number of slices that were merged into a step; differences within a step are averaged.
    pub slices_together: usize,
    pub(crate) steps: Vec<Step>,
    pub(crate) slot_nodes: Vec<usize>,
    pub(crate) fit: Fit,
    pub(crate) typical: Scenario,
    pub(crate) parameters: Parameters,
}

/// Some consecutive slices, merged.
pub(crate) struct Step {
    pub phases: Vec<Merged>,
    /// By policy: the cost of moves before this step.
    pub paid: Vec<Option<MoveCost>>,
}

/// Builds a [`ProgramPhases`] from the slices of a simulation.
pub(crate) struct CourseBuilder<'a> {
    merging: Merging<'a>,
    steps: Vec<Step>,
    paid: Vec<Option<MoveCost>>,
    slot_nodes: Vec<usize>,
}

impl<'a> CourseBuilder<'a> {
    /// A builder that merges slices into at most `steps` steps.
    pub fn new(context: &Context<'a>, steps: usize) -> Self {
        let slices = context.profile.slices.len();
        Self {
            merging: Merging::new(context.profile, slices.div_ceil(steps.max(1))),
            steps: Vec::new(),
            paid: Vec::new(),
            slot_nodes: crate::tally::slots(context).1,
        }
    }

    pub fn add(&mut self, slice: &SliceTally<'_>, run: &SimulationRun<'_>) {
        let (calibration, _, typical) = run.model();
        if self.merging.add(slice, calibration, typical) {
            self.step(run);
        }
    }

    /// Ends a step, with its phases and the cost of moves until now.
    fn step(&mut self, run: &SimulationRun<'_>) {
        let now: Vec<_> = (0..run.policies().len()).map(|p| run.paid(p).cloned()).collect();
        let since = |(at, now): (usize, &Option<MoveCost>)| {
            let earlier = self.paid.get(at).and_then(Option::as_ref);
            now.as_ref()
                .map(|now| earlier.map_or_else(|| now.clone(), |e| now.since(e)))
        };
        self.steps.push(Step {
            paid: now.iter().enumerate().map(since).collect(),
            phases: self.merging.take(),
        });
        self.paid = now;
    }

    pub fn finish(mut self, run: &SimulationRun<'_>) -> ProgramPhases {
        self.step(run);
        let (calibration, parameters, typical) = run.model();
        ProgramPhases {
            policies: run.policies(),
            slices_together: self.merging.together,
            steps: self.steps,
            slot_nodes: self.slot_nodes,
            fit: calibration.fit(typical).on(typical, parameters),
            typical: *typical,
            parameters: parameters.clone(),
        }
    }
}
