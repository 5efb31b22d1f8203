//! The objects of a running process that a placement has placed.

use crate::Table;
use crate::live::Live;
use crate::summary::State;
use nodewise_machine::NodeId;
use std::path::Path;

/// Objects of a process that rules of the placement have placed, in ascending order of address.
#[derive(Debug)]
pub struct PlacedObjects {
    /// Id of the process.
    pub pid: u32,
    /// Whether the program itself has bound threads, which must then be left alone.
    pub binds_threads: bool,
    objects: Vec<Live>,
}

impl PlacedObjects {
    /// The objects of each running process, as reported in `folder`.
    #[must_use]
    pub fn of_running(folder: &Path, table: &Table) -> Vec<Self> {
        let running = crate::achieved::summaries(folder).filter(|s| s.1.state() == State::Running);
        let placed = running.map(|(_, summary)| {
            let by_rule = |o: &Live| (o.rule as usize) < table.rules.len();
            let mut objects: Vec<Live> = summary.live().filter(by_rule).collect();
            objects.sort_unstable_by_key(|o| o.page);
            Self {
                pid: summary.pid(),
                binds_threads: summary.own_masks() > 0,
                objects,
            }
        });
        placed.collect()
    }

    /// Whether a process itself has bound threads by now.
    #[must_use]
    pub fn binds_threads_now(folder: &Path, pid: u32) -> bool {
        let mut running = crate::achieved::summaries(folder).filter(|s| s.1.pid() == pid);
        running.any(|(_, summary)| summary.own_masks() > 0)
    }

    /// Recorded number of accesses to a page, relative to the mean over the program's pages; 1 where that is unknown.
    #[must_use]
    pub fn weight(&self, table: &Table, page: u64) -> f64 {
        let before = self.objects.partition_point(|o| o.page <= page);
        let object = before.checked_sub(1).and_then(|i| self.objects.get(i));
        object
            .filter(|o| page < o.page + o.pages)
            .and_then(|o| table.rules.get(o.rule as usize))
            .map_or(1.0, |rule| rule.weight)
    }

    /// Whether the process has no placed objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

impl Table {
    /// The places for threads: the kernel's number of the CPU, and the table's number of its node.
    pub fn places(&self) -> impl Iterator<Item = (u32, NodeId)> + '_ {
        self.thread_cpus
            .iter()
            .copied()
            .zip(self.thread_nodes.iter().copied())
    }

    /// The table's number of the node with this number in the kernel.
    #[must_use]
    pub fn node_of_kernel(&self, number: u32) -> Option<NodeId> {
        let at = self.nodes.iter().position(|n| *n == number)?;
        u32::try_from(at).ok().map(NodeId)
    }

    /// Number of nodes that the table knows.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }
}
