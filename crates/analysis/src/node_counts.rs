//! MemAcc[p]: the accesses to one page by node, from its cells by thread.

use crate::{Affinity, Entry};
use nodewise_machine::NodeId;

/// Accesses to one page from each node. One value is reused for all pages.
#[derive(Clone, Debug)]
pub struct NodeCounts {
    counts: Vec<u64>,
    touched: Vec<NodeId>,
    total: u64,
    threads: usize,
}

impl NodeCounts {
    /// Counters for a machine with `nodes` nodes.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        Self {
            counts: vec![0; nodes],
            touched: Vec::with_capacity(nodes),
            total: 0,
            threads: 0,
        }
    }

    /// Replaces the counts by those of a page with these cells.
    pub fn load(&mut self, entries: &[Entry], affinity: &Affinity) -> &Self {
        for node in self.touched.drain(..) {
            self.counts[node.index()] = 0;
        }
        (self.total, self.threads) = (0, 0);
        for entry in entries.iter().filter(|e| e.accesses() > 0) {
            let node = affinity.node(entry.thread);
            let count = &mut self.counts[node.index()];
            if *count == 0 {
                self.touched.push(node);
            }
            *count += entry.accesses();
            self.total += entry.accesses();
            self.threads += 1;
        }
        self
    }

    /// Accesses from a node.
    #[must_use]
    pub fn of(&self, node: NodeId) -> u64 {
        self.counts[node.index()]
    }

    /// Accesses from each node, by node number.
    #[must_use]
    pub fn all(&self) -> &[u64] {
        &self.counts
    }

    /// Nodes with accesses, in no particular order.
    #[must_use]
    pub fn touched(&self) -> &[NodeId] {
        &self.touched
    }

    /// Accesses from all nodes.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Number of threads that accessed the page.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// maxnode(p) of equation 7 and its number of accesses; of tied nodes the one with the lowest number, node 0 if
    /// there are no accesses.
    #[must_use]
    pub fn dominant(&self) -> (NodeId, u64) {
        let mut best = (NodeId(0), 0);
        for &node in &self.touched {
            let count = self.of(node);
            if count > best.1 || (count == best.1 && node < best.0) {
                best = (node, count);
            }
        }
        best
    }

    /// E_Page of Diener et al., equation 1: between 1/N and 1. 1 for a page without accesses, which any single node can
    /// hold at no cost.
    #[must_use]
    pub fn exclusivity(&self) -> f64 {
        match self.total() {
            0 => 1.0,
            total => self.dominant().1 as f64 / total as f64,
        }
    }
}
