//! Threads that share pages on one node (Diener, Cruz and Navaux, IPDPS 2013: reference [12] of
//! the locality-vs-balance paper, which assigns its threads so).

use nodewise_analysis::{Histogram, SharingMatrix, thread_numbers};
use nodewise_machine::{CpuId, Machine, NodeId};
use nodewise_profile::{Profile, ThreadId};

/// Sweeps over all pairs before settling for what was found; each one only improves.
const SWEEPS: usize = 16;

/// What leaving the order of threads must save: neighbours in number are neighbours in blocks, and
/// rules by thread carry over to other thread counts only while that holds.
const WORTH_IT: f64 = 0.05;

/// Beyond this many threads comparing all pairs takes longer than it is worth: plain blocks have to do.
pub(super) const MOST_COMPARED: usize = 256;

/// The CPU of each thread number. Nodes take equal shares of the threads. Of two starts, blocks of
/// consecutive threads and groups grown greedily around the most communicative one, both improved
/// by exchanging pairs, the one that costs least (communication × latency) is taken, unless plain
/// blocks cost nearly as little. More than 256 threads go in plain blocks.
#[must_use]
pub fn sharing_aware(profile: &Profile, histogram: &Histogram, machine: &Machine) -> Vec<CpuId> {
    let numbers = thread_numbers(profile);
    let threads = numbers.iter().max().map_or(0, |n| *n as usize + 1);
    let blocks = seats(threads, machine);
    if threads > MOST_COMPARED {
        return on_cpus(&blocks, machine);
    }
    let problem = Problem::new(&numbers, threads, histogram, machine);
    let best = [blocks.clone(), problem.greedy(&blocks)]
        .into_iter()
        .map(|start| problem.exchanged(start))
        .min_by(|a, b| problem.cost(a).total_cmp(&problem.cost(b)))
        .filter(|best| problem.cost(best) < problem.cost(&blocks) * (1.0 - WORTH_IT));
    on_cpus(&best.unwrap_or(blocks), machine)
}

/// What threads (by number) say to each other, and what that costs between nodes.
struct Problem {
    threads: usize,
    communication: Vec<f64>,
    nodes: usize,
    latency: Vec<f64>,
}

impl Problem {
    fn new(numbers: &[u32], threads: usize, histogram: &Histogram, machine: &Machine) -> Self {
        let matrix = SharingMatrix::of(histogram);
        let mut communication = vec![0.0; threads * threads];
        for (i, &a) in numbers.iter().enumerate().take(matrix.threads()) {
            for (j, &b) in numbers.iter().enumerate().take(matrix.threads()) {
                let shared = matrix.between(ThreadId::from_index(i), ThreadId::from_index(j));
                communication[a as usize * threads + b as usize] += shared as f64;
            }
        }
        let cell = |a: NodeId, b: NodeId| machine.latency(a, b) - machine.latency(a, a);
        let latency = machine
            .node_ids()
            .flat_map(|a| machine.node_ids().map(move |b| cell(a, b)))
            .collect();
        Self {
            threads,
            communication,
            nodes: machine.node_count(),
            latency,
        }
    }

    fn between(&self, a: usize, b: usize) -> f64 {
        self.communication[a * self.threads + b]
    }

    /// What a thread's communication costs from a node.
    fn cost_of(&self, thread: usize, node: NodeId, places: &[NodeId]) -> f64 {
        let latency = &self.latency[node.index() * self.nodes..][..self.nodes];
        let others = (0..self.threads).filter(|o| *o != thread);
        others
            .map(|o| self.between(thread, o) * latency[places[o].index()])
            .sum()
    }

    fn cost(&self, places: &[NodeId]) -> f64 {
        (0..self.threads)
            .map(|t| self.cost_of(t, places[t], places))
            .sum()
    }

    /// Fills the seats node by node: the free thread that communicates most with those already on
    /// the node, or, for its first seat, with all free ones.
    fn greedy(&self, seats: &[NodeId]) -> Vec<NodeId> {
        let mut places: Vec<Option<NodeId>> = vec![None; self.threads];
        for &node in seats {
            let free: Vec<usize> = (0..self.threads).filter(|t| places[*t].is_none()).collect();
            let group: Vec<usize> = (0..self.threads).filter(|t| places[*t] == Some(node)).collect();
            let partners = if group.is_empty() { &free } else { &group };
            let weight = |t: usize| -> f64 { partners.iter().map(|p| self.between(t, *p)).sum() };
            // The first of equals, so that without any sharing threads stay in order.
            let chosen = free
                .iter()
                .copied()
                .rev()
                .max_by(|a, b| weight(*a).total_cmp(&weight(*b)));
            if let Some(thread) = chosen {
                places[thread] = Some(node);
            }
        }
        places.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Exchanges pairs of threads while that saves anything.
    fn exchanged(&self, mut places: Vec<NodeId>) -> Vec<NodeId> {
        for _ in 0..SWEEPS {
            let mut improved = false;
            for a in 0..self.threads {
                for b in a + 1..self.threads {
                    if places[a] != places[b] && self.exchange_saves(a, b, &mut places) {
                        improved = true;
                    }
                }
            }
            if !improved {
                break;
            }
        }
        places
    }

    /// Exchanges two threads if that saves more than rounding does.
    fn exchange_saves(&self, a: usize, b: usize, places: &mut [NodeId]) -> bool {
        let pair =
            |places: &[NodeId]| self.cost_of(a, places[a], places) + self.cost_of(b, places[b], places);
        let before = pair(places);
        places.swap(a, b);
        let saves = pair(places) < before * (1.0 - 1e-9);
        if !saves {
            places.swap(a, b);
        }
        saves
    }
}

/// One node per thread, ascending: as even as the nodes' CPUs allow.
fn seats(threads: usize, machine: &Machine) -> Vec<NodeId> {
    let mut taken = vec![0usize; machine.node_count()];
    for _ in 0..threads {
        let load = |n: &NodeId| taken[n.index()] / machine.nodes[n.index()].cpus.len();
        let next = machine.cpu_nodes().min_by_key(|n| {
            let full = load(n);
            (
                full,
                taken[n.index()] - full * machine.nodes[n.index()].cpus.len(),
            )
        });
        if let Some(node) = next {
            taken[node.index()] += 1;
        }
    }
    machine
        .node_ids()
        .flat_map(|n| std::iter::repeat_n(n, taken[n.index()]))
        .collect()
}

/// Each thread on the next CPU of its node; more threads than CPUs begin again.
fn on_cpus(places: &[NodeId], machine: &Machine) -> Vec<CpuId> {
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
            let problem = Problem::new(&thread_numbers(profile), 9, histogram, machine);
            let found = sharing_aware(profile, histogram, machine);
            let nodes: Vec<NodeId> = found.iter().map(|c| NodeId(c.0 / cpus)).collect();
            prop_assert!(problem.cost(&nodes) <= problem.cost(&seats(9, machine)) + 1e-6);
            for node in machine.node_ids() {
                prop_assert_eq!(nodes.iter().filter(|n| **n == node).count(), 3);
            }
        }
    }

    #[test]
    fn nodes_with_more_cpus_take_more_threads_once_the_others_are_full() {
        let mut machine = machine(2, 4);
        machine.nodes[1].cpus.truncate(2);
        let counts = |threads| {
            let seats = seats(threads, &machine);
            [0, 1].map(|n| seats.iter().filter(|s| s.0 == n).count())
        };
        assert_eq!(counts(4), [2, 2]);
        assert_eq!(counts(6), [4, 2]);
        assert_eq!(counts(12), [8, 4]);
    }
}
