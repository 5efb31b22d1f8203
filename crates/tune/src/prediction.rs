//! Predicts the cost of placements of a recorded program.

use crate::Listener;
use crate::event::note;
use nodewise_pipeline::Selected;
use nodewise_placement::{Context, Mapping};
use nodewise_simulation::{Parameters, Simulation, simulate};

/// A simulation, and the mappings that it predicts.
pub type Predicted = (Simulation, Vec<Mapping>);

/// Predicts the policies of a comma-separated list, the first of which is the baseline. If the wall time of the plain
/// program is given, the prediction is calibrated with it.
///
/// # Errors
/// A policy is unknown, or the profile cannot be read.
pub fn predict(
    selected: &Selected,
    policies: &str,
    plain_seconds: Option<f64>,
    listener: Listener<'_>,
) -> anyhow::Result<Predicted> {
    let (mappings, notes) = selected.mappings(policies)?;
    let mut profile = selected.profile().clone();
    if let Some(seconds) = plain_seconds {
        profile.meta.plain_wall_ns = Some((seconds * 1e9) as u64);
    }
    let context = Context {
        profile: &profile,
        ..selected.context()
    };
    notes.into_iter().for_each(|text| note(listener, text));
    let simulation = simulate(&context, &mappings, &selected.reader, &Parameters::default())?;
    Ok((simulation, mappings))
}
