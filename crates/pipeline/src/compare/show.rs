//! `simulate --svg`: pages over time under the policy that moves them.

use super::table::significant;
use crate::Selected;
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::Mapping;
use nodewise_profile::Migration;
use nodewise_report::{PageShow, page_show, percent, plural};
use nodewise_simulation::Simulation;

/// The picture of the only policy that moves pages; under `asym`, on the nodes for which it is predicted.
pub fn draw(machine: &Machine, selected: &Selected, start: &Mapping, simulation: &Simulation) -> String {
    let found = simulation
        .predictions
        .iter()
        .find_map(|p| Some((p, p.moved.as_ref()?)));
    let (prediction, moved) = found.expect("one policy moves pages");
    let summary = format!(
        "{} on {} from {}: {}, {} local, {} times as fast (simulated)",
        selected.profile().program(),
        simulation.machine,
        start.policy,
        plural(moved.ledger.migrations as usize, "move"),
        percent(prediction.local_fraction),
        significant(prediction.speedup.typical),
    );
    let node = |n: u32| prediction.nodes.get(n as usize).map_or(n, |n| n.0);
    let homes: Vec<NodeId> = start.nodes.iter().map(|n| NodeId(node(n.0))).collect();
    let on_real_nodes = |m: &Migration| Migration {
        from: node(u32::from(m.from)) as u16,
        to: node(u32::from(m.to)) as u16,
        ..m.clone()
    };
    let migrations: Vec<Migration> = moved.migrations.iter().map(on_real_nodes).collect();
    page_show(&PageShow {
        policy: &prediction.policy,
        summary: &summary,
        profile: selected.profile(),
        histogram: &selected.histogram,
        start: &homes,
        nodes: machine.node_count(),
        slices: &prediction.slices,
        migrations: &migrations,
    })
}
