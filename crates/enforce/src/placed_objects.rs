//! The objects of a running process that a placement has placed.

use crate::Table;
use crate::summary::{Live, State};
use nodewise_machine::NodeId;
use std::path::Path;

/// Objects of a process that rules of the map have placed, ascending.
#[derive(Debug)]
pub struct PlacedObjects {
    /// The process that has them.
    pub pid: u32,
    /// Whether the program has bound threads itself: these are its own.
    pub binds_threads: bool,
    objects: Vec<Live>,
}

impl PlacedObjects {
    /// Those of the processes that run, as they report themselves in `folder`.
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

    /// Whether a process has bound threads itself by now.
    #[must_use]
    pub fn binds_threads_now(folder: &Path, pid: u32) -> bool {
        let mut running = crate::achieved::summaries(folder).filter(|s| s.1.pid() == pid);
        running.any(|(_, summary)| summary.own_masks() > 0)
    }

    /// Accesses to a page over the program's mean, as recorded; 1 for pages of which that is not known.
    #[must_use]
    pub fn weight(&self, table: &Table, page: u64) -> f64 {
        let before = self.objects.partition_point(|o| o.page <= page);
        let object = before.checked_sub(1).and_then(|i| self.objects.get(i));
        object
            .filter(|o| page < o.page + o.pages)
            .and_then(|o| table.rules.get(o.rule as usize))
            .map_or(1.0, |rule| rule.weight)
    }

    /// Whether there are any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

impl Table {
    /// The CPU and node of each place for a thread, by the kernel's number and as the table counts nodes.
    pub fn places(&self) -> impl Iterator<Item = (u32, NodeId)> + '_ {
        self.thread_cpus
            .iter()
            .copied()
            .zip(self.thread_nodes.iter().copied())
    }

    /// The node, as the table counts them, with this number of the kernel.
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
