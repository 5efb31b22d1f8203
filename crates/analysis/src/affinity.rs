//! The assignment of threads to CPUs and nodes, on which every locality figure depends.

use nodewise_machine::{CpuId, Machine, NodeId};
use nodewise_profile::{Profile, ThreadId};
use std::collections::BTreeMap;

/// Thread to CPU and node, for every thread of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Affinity {
    /// How the affinity was made, as reports print it: `compact`, `file:bind.toml`.
    pub name: String,
    /// The CPU of each thread, by [`ThreadId`].
    pub cpus: Vec<CpuId>,
    /// The node of each thread's CPU, by [`ThreadId`].
    pub nodes: Vec<NodeId>,
}

impl Affinity {
    /// The node a thread runs on.
    #[must_use]
    pub fn node(&self, thread: ThreadId) -> NodeId {
        self.nodes[thread.index()]
    }

    /// The CPUs that run threads, numbered 0, 1, … in ascending order: the number of each thread's, and the node of each.
    #[must_use]
    pub fn used_cpus(&self) -> (Vec<u32>, Vec<NodeId>) {
        let cpus = self.cpus.iter().copied();
        let used: BTreeMap<CpuId, NodeId> = cpus.zip(self.nodes.iter().copied()).collect();
        let numbers: BTreeMap<CpuId, u32> = used.keys().copied().zip(0..).collect();
        let of_threads = self.cpus.iter().map(|cpu| numbers[cpu]).collect();
        (of_threads, used.into_values().collect())
    }

    /// The node of each thread number, by number (see [`thread_numbers`]); node 0 for numbers that no thread has.
    #[must_use]
    pub fn by_number(&self, profile: &Profile) -> Vec<NodeId> {
        let numbers = thread_numbers(profile);
        let mut nodes = vec![NodeId(0); numbers.iter().max().map_or(0, |n| *n as usize + 1)];
        for (number, node) in numbers.into_iter().zip(&self.nodes) {
            nodes[number as usize] = *node;
        }
        nodes
    }

    /// Binds thread number i to the i-th of `cpus`, starting again at the first if there are more threads than CPUs.
    ///
    /// # Panics
    /// If `cpus` is empty or names a CPU that the machine lacks.
    #[must_use]
    pub fn of_cpus(name: &str, profile: &Profile, machine: &Machine, cpus: &[CpuId]) -> Self {
        let node_of: BTreeMap<CpuId, NodeId> = machine.cpus().into_iter().collect();
        let cpus: Vec<_> = thread_numbers(profile)
            .into_iter()
            .map(|n| cpus[n as usize % cpus.len()])
            .collect();
        let nodes = cpus.iter().map(|c| node_of[c]).collect();
        Self {
            name: name.to_owned(),
            cpus,
            nodes,
        }
    }
}

impl Affinity {
    /// Puts thread number t of T on node t · N / T of the N nodes with CPUs, as libnodewise binds threads and as a
    /// static schedule's blocks are distributed over the nodes. The CPU within the node does not matter here: it is the
    /// node's first.
    #[must_use]
    pub fn in_order(profile: &Profile, machine: &Machine) -> Self {
        let nodes: Vec<NodeId> = machine.cpu_nodes().collect();
        let numbers = thread_numbers(profile);
        let all = numbers.iter().max().map_or(1, |n| *n as usize + 1);
        let node = |number: &u32| nodes[*number as usize * nodes.len() / all];
        let nodes: Vec<NodeId> = numbers.iter().map(node).collect();
        Self {
            name: "in order".to_owned(),
            cpus: nodes.iter().map(|n| machine.nodes[n.index()].cpus[0]).collect(),
            nodes,
        }
    }
}

/// The number that each thread is bound by: its OpenMP number if known, else the next free number of its process. The
/// numbers of a process follow those of the process before.
#[must_use]
pub fn thread_numbers(profile: &Profile) -> Vec<u32> {
    let mut team: BTreeMap<u16, u32> = BTreeMap::new();
    for thread in &profile.threads {
        let size = team.entry(thread.process).or_default();
        *size = (*size).max(thread.openmp.map_or(0, |n| n.saturating_add(1)));
    }
    let mut next = team.clone();
    let within: Vec<u32> = profile
        .threads
        .iter()
        .map(|t| {
            t.openmp.unwrap_or_else(|| {
                let free = next.get_mut(&t.process).expect("every process was entered above");
                *free += 1;
                *free - 1
            })
        })
        .collect();
    let base = |process| next.range(..process).map(|(_, size)| size).sum::<u32>();
    profile
        .threads
        .iter()
        .zip(within)
        .map(|(t, n)| base(t.process) + n)
        .collect()
}

/// CPUs in the order of their numbers: the *identity* affinity of Majo & Gross 2.1.
#[must_use]
pub fn identity_order(machine: &Machine) -> Vec<CpuId> {
    machine.cpus().into_iter().map(|(cpu, _)| cpu).collect()
}

/// CPUs node by node: *compact*.
#[must_use]
pub fn compact_order(machine: &Machine) -> Vec<CpuId> {
    machine
        .nodes
        .iter()
        .flat_map(|n| n.cpus.iter().copied())
        .collect()
}

/// CPUs dealt over the nodes in turn: *scatter*.
#[must_use]
pub fn scatter_order(machine: &Machine) -> Vec<CpuId> {
    let rounds = machine.nodes.iter().map(|n| n.cpus.len()).max().unwrap_or(0);
    (0..rounds)
        .flat_map(|r| machine.nodes.iter().filter_map(move |n| n.cpus.get(r).copied()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::machine;
    use nodewise_profile::Thread;

    fn profile(threads: &[(u16, Option<u32>)]) -> Profile {
        let thread = |&(process, openmp)| Thread {
            process,
            openmp,
            ..Thread::default()
        };
        Profile {
            threads: threads.iter().map(thread).collect(),
            ..Profile::default()
        }
    }

    fn bound(order: fn(&Machine) -> Vec<CpuId>, threads: usize) -> Vec<u32> {
        // Two nodes whose CPUs are numbered alternately, as on many servers.
        let machine = machine(&[&[0, 2, 4], &[1, 3, 5], &[]]);
        let profile = profile(&vec![(0, None); threads]);
        Affinity::of_cpus("", &profile, &machine, &order(&machine))
            .nodes
            .iter()
            .map(|n| n.0)
            .collect()
    }

    #[test]
    fn orders_differ_as_their_names_say() {
        assert_eq!(bound(identity_order, 4), [0, 1, 0, 1]);
        assert_eq!(bound(compact_order, 4), [0, 0, 0, 1]);
        assert_eq!(bound(scatter_order, 4), [0, 1, 0, 1]);
    }

    #[test]
    fn more_threads_than_cpus_begin_again() {
        assert_eq!(bound(compact_order, 8), [0, 0, 0, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn openmp_numbers_come_before_ordinals() {
        let threads = [
            (0, Some(0)),
            (0, None),
            (0, Some(2)),
            (0, Some(1)),
            (1, None),
            (1, None),
        ];
        assert_eq!(thread_numbers(&profile(&threads)), [0, 3, 2, 1, 4, 5]);
    }
}
