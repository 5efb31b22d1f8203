//! The passes over the access table after the first.
//!
//! The first pass builds the histogram, from which mappings are made. Everything that depends on a mapping or indexes
//! pages shares the second pass. A third pass is made only where loops divide the same data differently: the schedules
//! that would match the data are known after the second pass, and predicting the transformed program needs its accesses
//! reassigned to threads.

use crate::selection::Selected;
use nodewise_advise::Matched;
use nodewise_analysis::{
    SampleEstimator, Samples, SliceVisitor, Slices, Timeline, TimelineBuilder, Usage, Visitor, read,
};
use nodewise_page::{Film, FilmBuilder};
use nodewise_placement::{Context, Copies, Mapping};
use nodewise_simulation::{Changing, Moving, Parameters, Prediction, Simulation, SimulationVisitor};

/// Results of the passes after the first.
pub(crate) struct LaterPasses {
    /// The predicted cost of each mapping, and of the recorded moves.
    pub simulation: Simulation,
    /// The prediction of the policy that moves pages, if one was requested.
    pub moving: Option<Prediction>,
    /// The predictions of policies that copy objects.
    pub copies: Vec<Prediction>,
    /// How regions divide objects.
    pub usage: Usage,
    /// The predicted gain of matching loops, if loops do not match their data.
    pub matched: Option<Matched>,
    /// Estimates from samples, if accesses are samples.
    pub samples: Option<Samples>,
    /// The metrics of each slice under the first mapping.
    pub timeline: Timeline,
    /// The film of the run, if it was requested.
    pub film: Option<Film>,
}

impl LaterPasses {
    /// Reads the rows again: predicts the time of each mapping, measures each slice and makes the film; and once more for the
    /// [transformed program](Matched). The first of the mappings is first-touch; `moving` is a policy that moves pages and `copies`
    /// are policies that copy objects, starting from it; `sums` are those of the first pass.
    pub fn of(
        selected: &Selected,
        mappings: &[Mapping],
        moving: Option<Moving>,
        copies: Vec<Copies>,
        sums: Usage,
        filmed: bool,
        parameters: &Parameters,
    ) -> anyhow::Result<Self> {
        let context = selected.context();
        let Context {
            profile,
            histogram,
            affinity,
            machine,
        } = context;
        let (homes, nodes) = (&mappings[0].nodes, machine.node_count());
        let copying = Changing {
            copies,
            ..Changing::default()
        };
        let placed = Changing {
            moving: replayed(&context),
            last_copy: copying.last_copy(),
            ..Changing::default()
        };
        let mut simulating = SimulationVisitor::new(&context, mappings, placed, parameters);
        // The policy that moves pages is kept apart from the mappings: advice is about what `map` and `run` can place.
        let mut moving =
            moving.map(|m| SimulationVisitor::new(&context, &mappings[..1], vec![m], parameters));
        let mut copies = (!copying.copies.is_empty())
            .then(|| SimulationVisitor::new(&context, &mappings[..1], copying, parameters));
        let mut maps = sums.maps(profile, histogram);
        let mut timeline = TimelineBuilder::new(profile, histogram, affinity, homes, nodes);
        let mut estimator = SampleEstimator::new(profile, histogram, affinity, nodes);
        let mut film = filmed.then(|| FilmBuilder::new(histogram, affinity, homes, nodes, &profile.slices));
        let mut by_slice: Vec<&mut dyn SliceVisitor> = vec![&mut timeline];
        by_slice.extend(estimator.as_mut().map(|j| j as &mut dyn SliceVisitor));
        let mut slices = Slices::new(histogram.threads, histogram.shift, by_slice);
        let mut visitors: Vec<&mut dyn Visitor> = vec![&mut simulating, &mut maps, &mut slices];
        visitors.extend(moving.as_mut().map(|m| m as &mut dyn Visitor));
        visitors.extend(copies.as_mut().map(|c| c as &mut dyn Visitor));
        visitors.extend(film.as_mut().map(|f| f as &mut dyn Visitor));
        read(&selected.reader, &mut visitors)?;
        let ((simulation, timeline), usage) =
            rayon::join(|| (simulating.finish(), timeline.finish()), || maps.finish());
        Ok(Self {
            matched: Matched::predict(&context, &usage, &simulation, mappings, &selected.reader)?,
            simulation,
            moving: moving.and_then(|m| m.finish().predictions.pop()),
            copies: copies.map_or_else(Vec::new, |c| c.finish().predictions.split_off(1)),
            usage,
            samples: estimator.map(SampleEstimator::finish),
            timeline,
            film: film.map(FilmBuilder::finish),
        })
    }
}

/// A policy that repeats the recorded moves, if it is known on which nodes threads ran.
fn replayed(context: &Context<'_>) -> Vec<Moving> {
    let migrations = &context.profile.migrations;
    match context.affinity.name == "recorded" && !migrations.is_empty() {
        true => vec![Moving::replay(0, migrations)],
        false => Vec::new(),
    }
}
