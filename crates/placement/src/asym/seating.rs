//! From sets of nodes to which virtual node is where: what can stay stays.

use super::enumeration::Arrangement;
use super::problem::{Problem, members};
use super::{Cluster, NodePlacement};
use nodewise_machine::NodeId;
use std::cmp::Reverse;

/// Slot s gets set `names[s]`, clusters of one node get what is left.
pub(super) fn placement(problem: &Problem<'_>, arrangement: &Arrangement, names: &[usize]) -> NodePlacement {
    let clusters = problem.clusters;
    let mut places: Vec<Vec<NodeId>> = vec![Vec::new(); clusters.len()];
    for &c in &problem.fixed {
        places[c].clone_from(&clusters[c].at);
    }
    let mut left = problem.nodes.clone();
    for (slot, set) in names.iter().enumerate() {
        let nodes: Vec<NodeId> = members(arrangement.sets[*set])
            .map(|i| problem.nodes[i])
            .collect();
        left.retain(|n| !nodes.contains(n));
        let cluster = problem.wide[slot];
        places[cluster] = clusters[cluster].seated(nodes);
    }
    seat_narrow(problem, left, &mut places);
    NodePlacement { places }
}

/// Those that can stay do, of several on one node the one with most memory there.
fn seat_narrow(problem: &Problem<'_>, mut left: Vec<NodeId>, places: &mut [Vec<NodeId>]) {
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
    /// These nodes in the order of its virtual nodes: those it is on stay what they are.
    fn seated(&self, mut nodes: Vec<NodeId>) -> Vec<NodeId> {
        let mut seats: Vec<Option<NodeId>> = vec![None; nodes.len()];
        for (seat, at) in seats.iter_mut().zip(&self.at) {
            if let Some(found) = nodes.iter().position(|n| n == at) {
                *seat = Some(nodes.remove(found));
            }
        }
        let mut rest = nodes.into_iter();
        seats
            .into_iter()
            .filter_map(|s| s.or_else(|| rest.next()))
            .collect()
    }
}
