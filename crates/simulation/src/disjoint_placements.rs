//! Placements of several programs on disjoint sets of nodes.

use nodewise_machine::{Machine, NodeId};
use nodewise_placement::formulas::mix;
use std::cmp::Reverse;

/// The nodes of each program, as `[program][virtual node]`.
pub type Places = Vec<Vec<NodeId>>;

/// Assignments of programs to disjoint sets of nodes. Within a set, virtual nodes take its nodes in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DisjointPlacements {
    /// The placements to evaluate.
    pub all: Vec<Places>,
    /// The number of possible placements: N! / (∏ n! · (N − ∑ n)!) if all nodes have enough CPUs.
    pub possible: f64,
}

impl DisjointPlacements {
    /// Every placement if there are at most `most`, else `drawn` random ones. `threads`: the number of threads on each
    /// virtual node by program, in descending order.
    #[must_use]
    pub fn new(machine: &Machine, threads: &[Vec<u32>], most: usize, drawn: u64) -> Self {
        let nodes: Vec<NodeId> = machine.cpu_nodes().collect();
        let possible = ways(nodes.len(), threads);
        if possible > most as f64 {
            return Self {
                all: (0..drawn)
                    .filter_map(|seed| random_placement(machine, threads, seed))
                    .collect(),
                possible,
            };
        }
        let mut all: Vec<Places> = vec![Vec::new()];
        for sizes in threads {
            all = all
                .iter()
                .flat_map(|placed| longer(machine, &nodes, placed, sizes))
                .collect();
        }
        Self {
            possible: all.len() as f64,
            all,
        }
    }

    /// Whether `all` has every placement.
    #[must_use]
    pub fn complete(&self) -> bool {
        self.all.len() as f64 >= self.possible
    }

    /// Index in `all` of a placement, ignoring the order of nodes within a program; appended if missing.
    pub fn index(&mut self, machine: &Machine, mut places: Places) -> usize {
        places.iter_mut().for_each(|nodes| in_order(machine, nodes));
        self.all.iter().position(|p| *p == places).unwrap_or_else(|| {
            self.all.push(places);
            self.all.len() - 1
        })
    }
}

/// A random placement of all programs; `None` if they do not fit.
#[must_use]
pub fn random_placement(machine: &Machine, threads: &[Vec<u32>], seed: u64) -> Option<Places> {
    let mut free: Vec<NodeId> = machine.cpu_nodes().collect();
    free.sort_by_key(|n| mix(u64::from(n.0) ^ (seed << 16)));
    let take = |sizes: &Vec<u32>| {
        let mut nodes: Vec<NodeId> =
            (!free.is_empty() && sizes.len() <= free.len()).then(|| free.drain(..sizes.len()).collect())?;
        in_order(machine, &mut nodes);
        fit(machine, &nodes, sizes).then_some(nodes)
    };
    threads.iter().map(take).collect()
}

fn ways(nodes: usize, threads: &[Vec<u32>]) -> f64 {
    let mut left = nodes;
    let mut ways = 1.0;
    for sizes in threads {
        for i in 0..sizes.len() {
            ways *= left.saturating_sub(i) as f64 / (i + 1) as f64;
        }
        left = left.saturating_sub(sizes.len());
    }
    ways.round()
}

/// Sorts nodes by descending number of CPUs, as virtual nodes are sorted by descending number of threads.
fn in_order(machine: &Machine, nodes: &mut [NodeId]) {
    nodes.sort_by_key(|n| (Reverse(machine.nodes[n.index()].cpus.len()), *n));
}

fn fit(machine: &Machine, nodes: &[NodeId], sizes: &[u32]) -> bool {
    let cpus = |n: &NodeId| machine.nodes[n.index()].cpus.len();
    nodes.iter().zip(sizes).all(|(n, s)| cpus(n) >= *s as usize)
}

/// Extends a partial placement by one more program, on every set of free nodes.
fn longer(machine: &Machine, nodes: &[NodeId], placed: &Places, sizes: &[u32]) -> Vec<Places> {
    let free: Vec<NodeId> = nodes
        .iter()
        .filter(|n| !placed.iter().flatten().any(|p| p == *n))
        .copied()
        .collect();
    let mut sets: Vec<Vec<NodeId>> = vec![Vec::new()];
    for _ in sizes {
        let larger = |set: &Vec<NodeId>| {
            let after = free.iter().filter(|n| set.last().is_none_or(|last| *n > last));
            after
                .map(|n| [set.as_slice(), &[*n]].concat())
                .collect::<Vec<_>>()
        };
        sets = sets.iter().flat_map(larger).collect();
    }
    sets.iter_mut().for_each(|set| in_order(machine, set));
    sets.retain(|set| fit(machine, set, sizes));
    sets.into_iter()
        .map(|set| [placed.as_slice(), &[set]].concat())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn sizes(nodes: &[usize]) -> Vec<Vec<u32>> {
        nodes.iter().map(|n| vec![8; *n]).collect()
    }

    #[test]
    fn three_three_and_two_of_eight_nodes_can_be_had_in_560_ways_five_and_three_in_56() {
        let machine = Machine::named("machine-a").unwrap();
        for (needed, ways) in [
            (vec![3, 3, 2], 560),
            (vec![5, 3], 56),
            (vec![3, 3], 560),
            (vec![2, 2, 2, 2], 2520),
        ] {
            let found = DisjointPlacements::new(&machine, &sizes(&needed), 10_000, 10);
            let distinct: BTreeSet<_> = found.all.iter().collect();
            assert_eq!(
                (distinct.len(), found.possible, found.complete()),
                (ways, ways as f64, true)
            );
            for places in &found.all {
                let used: BTreeSet<_> = places.iter().flatten().collect();
                assert_eq!(used.len(), needed.iter().sum::<usize>());
            }
        }
    }

    #[test]
    fn beyond_so_many_some_are_drawn_and_one_may_be_added() {
        let machine = Machine::named("machine-a").unwrap();
        let mut few = DisjointPlacements::new(&machine, &sizes(&[3, 3, 2]), 100, 20);
        assert_eq!((few.all.len(), few.possible, few.complete()), (20, 560.0, false));
        let asked = vec![
            [7, 6, 5].map(NodeId).to_vec(),
            [4, 2, 3].map(NodeId).to_vec(),
            [0, 1].map(NodeId).to_vec(),
        ];
        let at = few.index(&machine, asked.clone());
        assert_eq!(few.all[at][0], [5, 6, 7].map(NodeId));
        assert_eq!(few.index(&machine, asked), at);
    }

    #[test]
    fn a_node_with_too_few_cpus_takes_a_smaller_part_or_none() {
        let mut machine = Machine::named("machine-a").unwrap();
        machine.nodes[0].cpus.remove(0);
        let whole = DisjointPlacements::new(&machine, &sizes(&[2]), 100, 10);
        assert!(whole.all.iter().flatten().flatten().all(|n| n.0 != 0));
        let uneven = DisjointPlacements::new(&machine, &[vec![8, 7]], 100, 10);
        assert!(uneven.all.iter().all(|p| p[0][0].0 != 0) && uneven.all.iter().any(|p| p[0][1].0 == 0));
    }
}
