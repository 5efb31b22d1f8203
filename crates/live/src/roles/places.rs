//! The places that a placement has for threads, and which threads change places.

use nodewise_analysis::{ThreadData, assign_threads};
use nodewise_enforce::Table;
use nodewise_machine::NodeId;
use std::collections::BTreeMap;

/// The CPUs of a placement, one for each of its threads.
pub(super) struct Places {
    /// The node of each CPU.
    node: BTreeMap<u32, NodeId>,
    /// Number of threads on each node.
    by_node: Vec<u32>,
}

/// A thread bound to one of these CPUs.
#[derive(Clone, Debug)]
pub(super) struct BoundThread {
    pub tid: u32,
    pub cpu: u32,
    pub known: ThreadData,
}

impl BoundThread {
    /// Makes the thread keep its place if its role is unknown.
    pub fn stay_if_unknown(&mut self) {
        self.known.belongs.get_or_insert((self.known.now, u32::MAX));
    }
}

impl Places {
    pub fn of(table: &Table) -> Self {
        let mut by_node = vec![0; table.node_count()];
        let places = table.places().inspect(|(_, node)| by_node[node.index()] += 1);
        Self {
            node: places.collect(),
            by_node,
        }
    }

    /// The node of a CPU; none if the placement does not use it.
    pub fn node(&self, cpu: u32) -> Option<NodeId> {
        self.node.get(&cpu).copied()
    }

    /// The threads that change nodes, each with its new CPU: the one on that node with the fewest threads.
    pub fn moves(&self, threads: &[BoundThread]) -> Vec<(u32, u32)> {
        let known: Vec<ThreadData> = threads.iter().map(|t| t.known).collect();
        let to = assign_threads(&known, &self.by_node);
        let mut users: BTreeMap<u32, u32> = self.node.keys().map(|cpu| (*cpu, 0)).collect();
        for (thread, to) in threads.iter().zip(&to) {
            *users.entry(thread.cpu).or_default() += u32::from(thread.known.now == *to);
        }
        let mut moves = Vec::new();
        for (thread, to) in threads.iter().zip(to) {
            if thread.known.now == to {
                continue;
            }
            let there = self
                .node
                .iter()
                .filter(|(_, node)| **node == to)
                .map(|(cpu, _)| *cpu);
            if let Some(cpu) = there.min_by_key(|cpu| users[cpu]) {
                *users.entry(cpu).or_default() += 1;
                moves.push((thread.tid, cpu));
            }
        }
        moves
    }
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
