//! A placement on its way to a better one.

use nodewise_machine::NodeId;

/// Who has which node, by position.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub slots: Vec<Vec<usize>>,
    /// The same nodes by their names.
    pub names: Vec<Vec<NodeId>>,
    /// By node: its slot, and its place there.
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
        let names = slots
            .iter()
            .map(|s| s.iter().map(|i| nodes[*i]).collect())
            .collect();
        Self { slots, names, owner }
    }

    pub fn swap(&mut self, a: usize, b: usize) {
        let ((s, i), (t, j)) = (self.owner[a], self.owner[b]);
        let (x, y) = (self.names[s][i], self.names[t][j]);
        (self.slots[s][i], self.names[s][i]) = (b, y);
        (self.slots[t][j], self.names[t][j]) = (a, x);
        self.owner.swap(a, b);
    }

    /// The slot that has a node.
    pub fn slot(&self, node: usize) -> usize {
        self.owner[node].0
    }
}
