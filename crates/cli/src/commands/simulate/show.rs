//! `simulate --svg`: pages through time under the policy that moves them.

use super::table::significant;
use crate::selection::Selected;
use nodewise_placement::Mapping;
use nodewise_report::{PageShow, page_show};
use nodewise_simulation::Simulation;

/// The picture of the one policy that moves pages.
pub fn draw(selected: &Selected, start: &Mapping, simulation: &Simulation) -> String {
    let found = simulation
        .predictions
        .iter()
        .find_map(|p| Some((p, p.moved.as_ref()?)));
    let (prediction, moved) = found.expect("one policy moves pages");
    let summary = format!(
        "{} on {} from {}: {} moves, {:.1} % local, {} times as fast (simulated)",
        selected.profile().program(),
        simulation.machine,
        start.policy,
        moved.ledger.migrations,
        100.0 * prediction.local_fraction,
        significant(prediction.speedup.typical),
    );
    page_show(&PageShow {
        policy: &prediction.policy,
        summary: &summary,
        profile: selected.profile(),
        histogram: &selected.histogram,
        start: &start.nodes,
        nodes: selected.machine.node_count(),
        slices: &prediction.slices,
        migrations: &moved.migrations,
    })
}
