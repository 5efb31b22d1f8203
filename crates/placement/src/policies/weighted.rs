//! Interleave in proportion to controller bandwidth.

use crate::deal::lowest_terms;
use crate::{Context, Mapping, PagePolicy};
use nodewise_machine::{Machine, NodeId};

/// As Linux 6.9's `MPOL_WEIGHTED_INTERLEAVE`: a node of weight w takes w consecutive pages, then the next node follows.
/// As in [`super::Interleave`], page numbers decide which pages. Weights are computed from bandwidths as in Linux 6.16:
/// shares of 32, at least 1, in lowest terms.
#[derive(Clone, Copy, Debug)]
pub struct Weighted;

/// The approximate sum of all weights; a larger sum is more precise, but evens out later.
const WEIGHT_SUM: f64 = 32.0;

/// The weight of each node.
#[must_use]
pub fn weights(machine: &Machine) -> Vec<u32> {
    let total: f64 = machine.nodes.iter().map(|n| n.bandwidth).sum();
    let weight = |bandwidth: f64| {
        if total > 0.0 {
            (WEIGHT_SUM * bandwidth / total).round().max(1.0) as u32
        } else {
            1
        }
    };
    let weights: Vec<u32> = machine.nodes.iter().map(|n| weight(n.bandwidth)).collect();
    lowest_terms(&weights)
}

/// One round: each node, repeated by its weight.
pub(crate) fn round(machine: &Machine) -> Vec<NodeId> {
    let turns = machine.node_ids().zip(weights(machine));
    turns
        .flat_map(|(node, weight)| std::iter::repeat_n(node, weight as usize))
        .collect()
}

impl PagePolicy for Weighted {
    fn name(&self) -> String {
        "weighted".into()
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        let (shift, round) = (context.histogram.shift, round(context.machine));
        let turn = |number: u64| round[((number >> shift) % round.len() as u64) as usize];
        let nodes = context
            .histogram
            .pages
            .iter()
            .map(|p| turn(p.virtual_number()))
            .collect();
        Mapping {
            policy: self.name(),
            nodes,
        }
    }
}
