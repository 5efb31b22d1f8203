//! Cost of each object under first-touch, as a share of the cost of all objects.

use nodewise_machine::NodeId;
use nodewise_placement::{Context, Mapping};
use nodewise_simulation::Simulation;

/// Cost of one object under first-touch, as a share of the cost of all objects.
#[derive(Clone, Copy, Default)]
pub(crate) struct CostShare {
    /// Time that all of its lines take.
    wait: f64,
    /// The part of that time beyond local latency at the mean load.
    pub wasted: f64,
}

/// The shares of all objects; each field sums to 1. If no line takes longer than a local access at the mean load, all
/// time counts as wasted: a placement that gains nevertheless reduces a load that all lines share.
pub(crate) fn cost_shares(
    context: &Context<'_>,
    simulation: &Simulation,
    first_touch: &Mapping,
) -> Vec<CostShare> {
    let mut cost_shares = vec![CostShare::default(); context.profile.objects.len()];
    let loaded = &simulation.baseline().loaded_ns;
    let idle = |node: NodeId| context.machine.latency(node, node);
    let queues: Vec<f64> = context
        .machine
        .cpu_nodes()
        .map(|n| loaded[n.index()][n.index()] - idle(n))
        .collect();
    let mean_queue = queues.iter().sum::<f64>() / queues.len().max(1) as f64;
    for (page, home) in context.histogram.iter().zip(&first_touch.nodes) {
        let Some(cost_share) = cost_shares.get_mut(page.object.index()) else {
            continue;
        };
        for entry in page.entries {
            let node = context.affinity.node(entry.thread);
            let latency = loaded[node.index()][home.index()];
            cost_share.wait += f64::from(entry.lines) * latency;
            cost_share.wasted += f64::from(entry.lines) * (latency - idle(node) - mean_queue).max(0.0);
        }
    }
    let sum = |part: fn(&CostShare) -> f64| cost_shares.iter().map(part).sum::<f64>();
    let (wait, wasted) = (sum(|b| b.wait).max(1e-9), sum(|b| b.wasted));
    for cost_share in &mut cost_shares {
        cost_share.wait /= wait;
        cost_share.wasted = if wasted > 0.0 {
            cost_share.wasted / wasted
        } else {
            cost_share.wait
        };
    }
    cost_shares
}
