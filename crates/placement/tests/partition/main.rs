//! Threads dealt out to nodes: exact sizes, and no more communication between nodes than others leave.

mod matrices;
mod reference;

use nodewise_placement::{Parts, SharingGraph, partition};
use proptest::prelude::*;
use reference::{greedy_pairing, recursive_bisection};

fn filled(places: &[u32], parts: usize) -> Vec<u32> {
    let mut filled = vec![0; parts];
    places.iter().for_each(|p| filled[*p as usize] += 1);
    filled
}

#[test]
fn as_much_stays_inside_nodes_as_pairing_and_bisection_keep_there() {
    for (threads, nodes) in [(24u32, 3u32), (64, 8), (256, 8), (1024, 8), (1024, 16)] {
        let parts = Parts::equal(vec![threads / nodes; nodes as usize]);
        for (name, graph) in matrices::all(threads, u64::from(threads)) {
            let ours = partition(&graph, &parts);
            assert_eq!(filled(&ours, nodes as usize), parts.sizes, "{name}");
            let kept = graph.kept_inside(&ours);
            for theirs in [greedy_pairing, recursive_bisection] {
                let theirs = theirs(&graph, &parts.sizes);
                assert_eq!(filled(&theirs, nodes as usize), parts.sizes, "{name}");
                let other = graph.kept_inside(&theirs);
                assert!(
                    kept >= other - 1e-9,
                    "{name}, {threads} threads: {kept} < {other}"
                );
            }
        }
    }
}

#[test]
fn groups_that_fit_nodes_are_found_whatever_their_order() {
    let graphs = matrices::all(512, 9);
    let parts = Parts::equal(vec![64; 8]);
    let kept: Vec<f64> = graphs[..2]
        .iter()
        .map(|(_, g)| g.kept_inside(&partition(g, &parts)))
        .collect();
    assert!(kept[0] > 0.9 && (kept[0] - kept[1]).abs() < 1e-9, "{kept:?}");
}

proptest! {
    #[test]
    fn any_sizes_are_met_exactly_at_no_more_than_the_cost_of_blocks(
        sizes in proptest::collection::vec(0u32..30, 1..7),
        pairs in proptest::collection::vec((0u32..200, 0u32..200, 0.0f64..9.0), 0..300),
        costs in proptest::collection::vec(1u32..4, 49),
    ) {
        let threads: u32 = sizes.iter().sum();
        let inside = pairs.into_iter().filter(|(a, b, _)| *a < threads && *b < threads);
        let graph = SharingGraph::of_pairs(threads as usize, inside);
        let mut parts = Parts::equal(sizes);
        let count = parts.sizes.len();
        for p in 0..count {
            for q in 0..p {
                let cost = f64::from(costs[p * 7 + q]);
                (parts.costs[p * count + q], parts.costs[q * count + p]) = (cost, cost);
            }
        }
        let found = partition(&graph, &parts);
        prop_assert_eq!(filled(&found, count), parts.sizes.clone());
        let (ours, blocks) = (parts.cost(&graph, &found), parts.cost(&graph, &parts.blocks()));
        prop_assert!(ours <= blocks * (1.0 + 1e-9), "{} > {}", ours, blocks);
        prop_assert_eq!(found, partition(&graph, &parts));
    }
}
