//! Assigns nodes to virtual nodes, given a set of nodes for each cluster; virtual nodes keep their current nodes if
//! possible.

use super::enumeration::Arrangement;
use super::problem::{Problem, members};
use super::{Cluster, NodePlacement};
use nodewise_machine::NodeId;
use std::cmp::Reverse;

/// Slot s gets set `assignment[s]`, single-node clusters get the nodes left over.
pub(super) fn placement(
    problem: &Problem<'_>,
    arrangement: &Arrangement,
    assignment: &[usize],
) -> NodePlacement {
    let clusters = problem.clusters;
    let mut places: Vec<Vec<NodeId>> = vec![Vec::new(); clusters.len()];
    for &c in &problem.fixed {
        places[c].clone_from(&clusters[c].at);
    }
    let mut left = problem.nodes.clone();
    for (slot, set) in assignment.iter().enumerate() {
        let nodes: Vec<NodeId> = members(arrangement.sets[*set])
            .map(|i| problem.nodes[i])
            .collect();
        left.retain(|n| !nodes.contains(n));
        let cluster = problem.wide[slot];
        places[cluster] = clusters[cluster].in_virtual_node_order(nodes);
    }
    assign_single_nodes(problem, left, &mut places);
    NodePlacement { places }
}

/// Single-node clusters keep their node if it is left over; of several on one node, the one with most memory there
/// does.
fn assign_single_nodes(problem: &Problem<'_>, mut left: Vec<NodeId>, places: &mut [Vec<NodeId>]) {
    let clusters = problem.clusters;
    let here = |c: &usize| clusters[*c].at.first().copied();
    let bytes = |c: &usize| here(c).map(|n| clusters[*c].resident_on(n));
    let mut order = problem.narrow.clone();
    order.sort_by_key(|c| Reverse(bytes(c)));
    let mut moving = Vec::new();
    for c in order {
        match left.iter().position(|n| Some(*n) == here(&c)) {
            Some(at) => places[c] = vec![left.remove(at)],
            None => moving.push(c),
        }
    }
    for (c, node) in moving.into_iter().zip(left) {
        places[c] = vec![node];
    }
}

impl Cluster {
    /// Orders these nodes by virtual node: a virtual node that is on one of them keeps it.
    fn in_virtual_node_order(&self, mut nodes: Vec<NodeId>) -> Vec<NodeId> {
        let mut assigned: Vec<Option<NodeId>> = vec![None; nodes.len()];
        for (slot, at) in assigned.iter_mut().zip(&self.at) {
            if let Some(found) = nodes.iter().position(|n| n == at) {
                *slot = Some(nodes.remove(found));
            }
        }
        let mut rest = nodes.into_iter();
        assigned
            .into_iter()
            .filter_map(|s| s.or_else(|| rest.next()))
            .collect()
    }
}
