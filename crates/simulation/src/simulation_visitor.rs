//! The simulation as a [`Visitor`], so that it shares a pass over the accesses with others.

use crate::run::SimulationRun;
use crate::tally::Tally;
use crate::{Changing, Parameters, Simulation};
use nodewise_analysis::Visitor;
use nodewise_placement::{Context, Mapping};
use nodewise_profile::Access;

/// Predicts mappings, and policies that move or copy pages, from the rows that it visits: they go to a tally, whose complete slices go
/// to a run, which makes time of them.
pub struct SimulationVisitor<'a> {
    run: SimulationRun<'a>,
    tally: Tally<'a>,
}

impl<'a> SimulationVisitor<'a> {
    /// As [`crate::simulate_moving`].
    ///
    /// # Panics
    /// As [`crate::simulate_moving`].
    #[must_use]
    pub fn new(
        context: &Context<'a>,
        mappings: &'a [Mapping],
        changing: impl Into<Changing>,
        parameters: &Parameters,
    ) -> Self {
        let mut run = SimulationRun::new(context, mappings, changing.into(), None, parameters);
        let tally = run.tally(parameters);
        Self { run, tally }
    }

    /// The prediction from all rows.
    #[must_use]
    pub fn finish(self) -> Simulation {
        self.run.finish()
    }
}

impl Visitor for SimulationVisitor<'_> {
    fn rows(&mut self, rows: &[Access]) {
        self.tally.add(rows, &mut |slice| self.run.add(slice));
    }

    fn end(&mut self) {
        self.tally.finish(&mut |slice| self.run.add(slice));
    }
}
