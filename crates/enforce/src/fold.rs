//! A placement for a machine of more nodes than there are here.

use nodewise_machine::NodeId;
use nodewise_placement::{Distribution, Placement};

/// Renames node i to i mod `nodes` throughout.
pub(crate) fn fold(placement: &mut Placement, nodes: u32) {
    let here = |node: &mut NodeId| node.0 %= nodes;
    placement.binding.nodes.iter_mut().for_each(here);
    fold_distribution(&mut placement.default, here);
    for rule in &mut placement.rules {
        fold_distribution(&mut rule.distribution, here);
        rule.runs.iter_mut().for_each(|r| here(&mut r.node));
    }
    placement.nodes = placement.nodes.min(nodes);
}

fn fold_distribution(distribution: &mut Distribution, here: impl Fn(&mut NodeId)) {
    match distribution {
        Distribution::Node(node) => here(node),
        Distribution::Interleave(list) => list.iter_mut().for_each(here),
        Distribution::Block(parts) => parts.iter_mut().for_each(|p| here(&mut p.0)),
        Distribution::FirstTouch | Distribution::ByThread { .. } | Distribution::Allocator => {}
    }
}
