//! Equal load on all controllers, as local as that allows (Diener, Algorithm 1).

use crate::{Context, Mapping, PagePolicy};
use nodewise_analysis::NodeCounts;
use nodewise_machine::NodeId;
use rayon::prelude::*;
use std::cmp::Reverse;

/// Pages in descending order of accesses (the paper gives no direction; with the largest first, small pages even out
/// the rest). Each goes to the node with the most accesses to it among those that do not exceed their share of all
/// accesses. The test precedes the addition, as printed, so a node may exceed its share by one page. Ties go to the
/// lower page and the lower node.
#[derive(Clone, Copy, Debug)]
pub struct Balanced;

impl PagePolicy for Balanced {
    fn name(&self) -> String {
        "balanced".into()
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        let (histogram, count) = (context.histogram, context.machine.node_count());
        let pages = (0..histogram.len()).into_par_iter();
        let mut order: Vec<(Reverse<u64>, usize)> = pages
            .map(|p| (Reverse(histogram.page(p).accesses()), p))
            .collect();
        order.par_sort_unstable();
        let total: u64 = order.iter().map(|(accesses, _)| accesses.0).sum();

        let mut load = vec![0u64; count];
        let mut nodes = vec![NodeId(0); histogram.len()];
        let mut counts = NodeCounts::new(count);
        for (Reverse(accesses), page) in order {
            counts.load(histogram.page(page).entries, context.affinity);
            let free = |n: &NodeId| u128::from(load[n.index()]) * count as u128 <= u128::from(total);
            let node = best(&counts, free, context.machine.node_ids());
            nodes[page] = node;
            load[node.index()] += accesses;
        }
        Mapping {
            policy: self.name(),
            nodes,
        }
    }
}

/// The free node with the most accesses. One exists, as not all nodes can be above the average.
fn best(counts: &NodeCounts, free: impl Fn(&NodeId) -> bool, all: impl Iterator<Item = NodeId>) -> NodeId {
    let accessing = counts.touched().iter().copied().filter(&free);
    let most = accessing.max_by_key(|n| (counts.of(*n), Reverse(*n)));
    most.or_else(|| all.into_iter().find(free)).unwrap_or_default()
}
