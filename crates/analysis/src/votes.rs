//! Weighted observations of the nodes on which a thread uses memory.

use crate::Interval;
use nodewise_machine::NodeId;

/// Weighted observations of a thread's use of memory, by node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Votes {
    by_node: Vec<f64>,
    squares: f64,
}

impl Votes {
    /// Adds one observation of memory on a node.
    pub fn add(&mut self, node: NodeId, weight: f64) {
        self.add_likely(node, weight, 1.0);
    }

    /// Adds an observation that is made with this likelihood, 0 to 1.
    pub fn add_likely(&mut self, node: NodeId, weight: f64, likelihood: f64) {
        if self.by_node.len() <= node.index() {
            self.by_node.resize(node.index() + 1, 0.0);
        }
        self.by_node[node.index()] += weight * likelihood;
        self.squares += weight * weight * likelihood;
    }

    /// The node with most of the weight, if a majority of the weight is on it with 95 % confidence (4 of 4, 7 of 8 or
    /// 13 of 18 equal observations suffice). Also returns the number of equal observations that the weights are worth,
    /// the square of their sum over the sum of their squares (Kish 1965): one page with more weight than all others
    /// together is one observation.
    #[must_use]
    pub fn majority(&self) -> Option<(NodeId, u32)> {
        let all: f64 = self.by_node.iter().sum();
        let (node, most) = (0..).zip(&self.by_node).max_by(|a, b| a.1.total_cmp(b.1))?;
        if all <= 0.0 {
            return None;
        }
        let worth = all * all / self.squares;
        let clear = Interval::wilson(most / all, worth).low > 0.5;
        clear.then_some((NodeId(node), worth as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::votes;

    #[test]
    fn few_or_mixed_observations_name_no_node() {
        let of = |by_node: &[u32]| votes(by_node).majority().map(|(node, _)| node.0);
        assert_eq!(of(&[]), None);
        assert_eq!([of(&[0, 3]), of(&[4, 4]), of(&[6, 2]), of(&[55, 45])], [None; 4]);
        assert_eq!([of(&[0, 4]), of(&[1, 7]), of(&[30, 70])], [Some(1); 3]);
    }

    #[test]
    fn observations_that_are_made_now_and_then_are_worth_as_many() {
        let mut votes = Votes::default();
        (0..8).for_each(|_| votes.add_likely(NodeId(1), 2.0, 0.125));
        assert_eq!(votes.majority(), None, "one observation");
        (0..24).for_each(|_| votes.add_likely(NodeId(1), 2.0, 0.125));
        assert_eq!(votes.majority(), Some((NodeId(1), 4)));
    }

    #[test]
    fn one_page_that_matters_most_decides_nothing_but_outweighs_others() {
        let mut votes = votes(&[20, 0]);
        assert_eq!(votes.majority(), Some((NodeId(0), 20)));
        votes.add(NodeId(1), 100.0);
        assert_eq!(votes.majority(), None);
        votes.add(NodeId(1), 100.0);
        assert_eq!(votes.majority(), None, "two observations");
    }
}
