//! Puts threads that share pages on one node (Diener, Cruz and Navaux, IPDPS 2013: reference [12] of the
//! locality-vs-balance paper, which assigns its threads in this way).

use super::{Parts, SharingGraph, partition};
use nodewise_analysis::{Histogram, thread_numbers};
use nodewise_machine::{CpuId, Machine, NodeId};
use nodewise_profile::Profile;

/// The saving for which the order of threads is given up. Threads with adjacent numbers are adjacent in blocks, and
/// rules by thread transfer to other thread counts only while that holds.
const MIN_SAVING: f64 = 0.05;

/// The CPU of each thread number. Nodes take equal shares of the threads. [`partition`] looks for the cheapest
/// partition (communication × latency), which is used unless plain blocks cost nearly as little.
#[must_use]
pub fn sharing_aware(profile: &Profile, histogram: &Histogram, machine: &Machine) -> Vec<CpuId> {
    let graph = SharingGraph::of(histogram, &thread_numbers(profile));
    let places = dealt(&graph, &parts(graph.len(), machine));
    let places: Vec<NodeId> = places.into_iter().map(NodeId).collect();
    on_cpus(&places, machine)
}

/// The part of each thread: by the best partition found, or in blocks if those cost nearly as little.
pub(super) fn dealt(graph: &SharingGraph, parts: &Parts) -> Vec<u32> {
    let (best, blocks) = (partition(graph, parts), parts.blocks());
    let worth_it = parts.cost(graph, &best) < parts.cost(graph, &blocks) * (1.0 - MIN_SAVING);
    if worth_it { best } else { blocks }
}

/// One part for each node, as equal as the nodes' CPUs permit.
fn parts(threads: usize, machine: &Machine) -> Parts {
    let farther = |a: NodeId, b: NodeId| machine.latency(a, b) - machine.latency(a, a);
    let pairs = machine
        .node_ids()
        .flat_map(|a| machine.node_ids().map(move |b| (a, b)));
    Parts {
        sizes: threads_a_node(threads, &cpus(machine)),
        // Both ends wait, hence the sum. If remote access is as fast as local, communication costs nothing.
        costs: pairs.map(|(a, b)| farther(a, b) + farther(b, a)).collect(),
    }
}

/// How many CPUs each node has.
fn cpus(machine: &Machine) -> Vec<u32> {
    machine.nodes.iter().map(|n| n.cpus.len() as u32).collect()
}

/// How many threads each node takes, by its CPUs.
pub(super) fn threads_a_node(threads: usize, cpus: &[u32]) -> Vec<u32> {
    let mut taken = vec![0u32; cpus.len()];
    for _ in 0..threads {
        let next = (0..cpus.len())
            .filter(|n| cpus[*n] > 0)
            .min_by_key(|n| (taken[*n] / cpus[*n], taken[*n] % cpus[*n]));
        if let Some(node) = next {
            taken[node] += 1;
        }
    }
    taken
}

/// Assigns each thread the next CPU of its node; with more threads than CPUs, starts again at the first.
pub(super) fn on_cpus(places: &[NodeId], machine: &Machine) -> Vec<CpuId> {
    let mut next = vec![0; machine.node_count()];
    let cpu = |node: &NodeId| {
        let cpus = &machine.nodes[node.index()].cpus;
        next[node.index()] += 1;
        cpus[(next[node.index()] - 1) % cpus.len()]
    };
    places.iter().map(cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Recorded, machine};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_never_costs_more_than_even_blocks(
            pages in proptest::collection::vec(proptest::collection::vec(0u64..9, 9), 1..40),
            cpus in 1u32..5,
        ) {
            let accesses = |page: u64, thread: u32| pages[page as usize][thread as usize];
            let recorded = Recorded::new(machine(3, cpus), 9, &[(pages.len() as u64, &accesses)]);
            let Recorded { profile, histogram, machine, .. } = &recorded;
            let graph = SharingGraph::of(histogram, &thread_numbers(profile));
            let parts = parts(graph.len(), machine);
            let found = sharing_aware(profile, histogram, machine);
            let nodes: Vec<u32> = found.iter().map(|c| c.0 / cpus).collect();
            prop_assert!(parts.cost(&graph, &nodes) <= parts.cost(&graph, &parts.blocks()) + 1e-6);
            for node in 0..3 {
                prop_assert_eq!(nodes.iter().filter(|n| **n == node).count(), 3);
            }
        }
    }

    #[test]
    fn nodes_with_more_cpus_take_more_threads_once_the_others_are_full() {
        for (threads, expected) in [(4, [2, 2]), (6, [4, 2]), (12, [8, 4])] {
            assert_eq!(threads_a_node(threads, &[4, 2]), expected);
        }
    }

    #[test]
    fn thousands_of_threads_that_share_in_groups_meet_on_their_nodes() {
        // Threads that are equal modulo 8 use the same pages.
        let grouped = |page: u64, thread: u32| u64::from(u64::from(thread) % 8 == page % 8);
        let recorded = Recorded::new(machine(8, 16), 2000, &[(64, &grouped)]);
        let found = sharing_aware(&recorded.profile, &recorded.histogram, &recorded.machine);
        for thread in 0..1992 {
            assert_eq!(found[thread].0 / 16, found[thread + 8].0 / 16, "thread {thread}");
        }
    }
}
