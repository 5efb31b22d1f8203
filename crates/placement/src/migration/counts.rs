//! Counts of one page by node.

use super::rows::{Rows, blocks};
use super::{Observed, Reason};
use nodewise_machine::NodeId;
use std::cmp::Reverse;

/// Exact counts of accesses to one page, for policies that see all accesses.
#[derive(Clone, Copy)]
pub(super) struct Counts<'a> {
    by_node: &'a [u64],
    home: NodeId,
}

/// Calls `each` with the index and the counts of every page.
pub(super) fn each_page(observed: &dyn Observed, mut each: impl FnMut(usize, Counts<'_>)) {
    blocks(observed, |rows| {
        (0..rows.len()).for_each(|i| each(rows.start + i, Counts::of_row(rows, i)));
    });
}

impl<'a> Counts<'a> {
    fn of_row(rows: &'a Rows, i: usize) -> Self {
        Self {
            by_node: rows.row(i),
            home: rows.homes[i],
        }
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

    /// The number of nodes that access it.
    pub(super) fn accessing(&self) -> usize {
        self.by_node.iter().filter(|c| **c > 0).count()
    }

    /// The node with the most accesses; among equals the page's home, else the node with the lowest number.
    pub(super) fn dominant(&self) -> NodeId {
        let (mut best, mut most) = (self.home, self.local());
        for (node, &count) in (0..).zip(self.by_node) {
            if count > most {
                (best, most) = (NodeId(node), count);
            }
        }
        best
    }

    /// The dominant node among those that `among` selects.
    pub(super) fn most(&self, among: impl Fn(NodeId) -> bool) -> Option<NodeId> {
        let nodes = (0..self.by_node.len() as u32).map(NodeId).filter(|n| among(*n));
        nodes.max_by_key(|n| (self.of(*n), *n == self.home, Reverse(*n)))
    }

    /// The reason for a move to a node that needed more than `count_threshold` accesses.
    pub(super) fn reason(&self, to: NodeId, count_threshold: f64) -> Reason {
        Reason {
            to_count: self.of(to) as f64,
            home_count: Some(self.local() as f64),
            count_threshold,
            evidence: self.total() as f64,
            regardless: false,
            partner: None,
        }
    }

    /// The reason for a move of a shared page to the node where it is spread.
    pub(super) fn spreading(&self, to: NodeId, count_threshold: f64) -> Reason {
        Reason {
            regardless: true,
            ..self.reason(to, count_threshold)
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
    let (mut load, mut local) = (vec![0; observed.nodes()], 0);
    each_page(observed, |_, counts| {
        load[counts.home.index()] += counts.total();
        local += counts.local();
    });
    (load, local)
}
