//! The placement that local search modifies.

use nodewise_machine::NodeId;

/// The nodes of each slot; nodes are positions among the free nodes of the problem.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub slots: Vec<Vec<usize>>,
    /// The same nodes as node numbers.
    pub nodes: Vec<Vec<NodeId>>,
    /// By node: its slot, and its index in the slot.
    pub owner: Vec<(usize, usize)>,
}

impl State {
    pub fn of(slots: Vec<Vec<usize>>, nodes: &[NodeId]) -> Self {
        let mut owner = vec![(0, 0); nodes.len()];
        for (slot, members) in slots.iter().enumerate() {
            for (at, node) in members.iter().enumerate() {
                owner[*node] = (slot, at);
            }
        }
        let nodes = slots
            .iter()
            .map(|s| s.iter().map(|i| nodes[*i]).collect())
            .collect();
        Self { slots, nodes, owner }
    }

    pub fn swap(&mut self, a: usize, b: usize) {
        let ((s, i), (t, j)) = (self.owner[a], self.owner[b]);
        let (x, y) = (self.nodes[s][i], self.nodes[t][j]);
        (self.slots[s][i], self.nodes[s][i]) = (b, y);
        (self.slots[t][j], self.nodes[t][j]) = (a, x);
        self.owner.swap(a, b);
    }

    /// The slot that a node belongs to.
    pub fn slot(&self, node: usize) -> usize {
        self.owner[node].0
    }
}
