//! Counts of one page by node.

use super::{Observed, Reason};
use nodewise_machine::NodeId;
use std::cmp::Reverse;

/// Whole numbers of accesses to one page, for policies that see all of them.
pub(super) struct Counts {
    by_node: Vec<u64>,
    home: NodeId,
}

impl Counts {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            by_node: vec![0; nodes],
            home: NodeId(0),
        }
    }

    pub(super) fn load(&mut self, observed: &dyn Observed, index: usize) {
        observed.counts(index, &mut self.by_node);
        self.home = observed.home(index);
    }

    pub(super) fn home(&self) -> NodeId {
        self.home
    }

    pub(super) fn of(&self, node: NodeId) -> u64 {
        self.by_node[node.index()]
    }

    pub(super) fn local(&self) -> u64 {
        self.of(self.home)
    }

    pub(super) fn total(&self) -> u64 {
        self.by_node.iter().sum()
    }

    /// Nodes that access it.
    pub(super) fn accessing(&self) -> usize {
        self.by_node.iter().filter(|c| **c > 0).count()
    }

    /// The node with the most accesses, its home among equals, else the lowest-numbered.
    pub(super) fn dominant(&self) -> NodeId {
        let (mut best, mut most) = (self.home, self.local());
        for (node, &count) in (0..).zip(&self.by_node) {
            if count > most {
                (best, most) = (NodeId(node), count);
            }
        }
        best
    }

    /// The same among some nodes.
    pub(super) fn most(&self, among: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        let nodes = (0..self.by_node.len() as u32).map(NodeId).filter(|n| among(*n));
        nodes.max_by_key(|n| (self.of(*n), *n == self.home, Reverse(*n)))
    }

    /// For going to a node that had to have more than `against`.
    pub(super) fn reason(&self, to: NodeId, against: f64) -> Reason {
        Reason {
            to_count: self.of(to) as f64,
            home_count: Some(self.local() as f64),
            against,
            evidence: self.total() as f64,
        }
    }
}

/// Virtual page number mod nodes (Diener, equation 6), in units of the decision's page size.
pub(super) fn interleaved(observed: &dyn Observed, index: usize) -> NodeId {
    let number = observed.page(index).virtual_number() >> observed.page_shift();
    NodeId((number % observed.nodes() as u64) as u32)
}

/// Accesses by node of the memory they go to.
pub(super) fn load_by_home(observed: &dyn Observed) -> (Vec<u64>, u64) {
    let mut counts = Counts::new(observed.nodes());
    let (mut load, mut local) = (vec![0; observed.nodes()], 0);
    for index in 0..observed.len() {
        counts.load(observed, index);
        load[counts.home.index()] += counts.total();
        local += counts.local();
    }
    (load, local)
}
