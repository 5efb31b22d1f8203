//! Dynamicity: how often pages would have to move (Diener et al. II-C, Figure 4).

use crate::{Affinity, Histogram, NodeCounts};
use nodewise_machine::NodeId;

/// Follows every page from slice to slice, starting at its first-touch node, and counts the moves that keep the page on
/// the node that accesses it most in each slice. A page does not move if its current node is tied for most accesses,
/// nor in slices that do not touch it.
#[derive(Clone, Debug)]
pub struct Dynamicity {
    homes: Vec<NodeId>,
    moves: Vec<u32>,
    counts: NodeCounts,
    per_slice: Vec<u64>,
    /// Moves in the current slice, and the index in the whole histogram that the slice has reached.
    moved: u64,
    at: usize,
}

impl Dynamicity {
    /// The state before the first slice. `start` is the first-touch node of each page of the whole histogram, on a
    /// machine with `nodes` nodes.
    #[must_use]
    pub fn new(start: Vec<NodeId>, nodes: usize) -> Self {
        let moves = vec![0; start.len()];
        Self {
            homes: start,
            moves,
            counts: NodeCounts::new(nodes),
            per_slice: Vec::new(),
            moved: 0,
            at: 0,
        }
    }

    /// Moves the pages that a part of a slice accesses. Its pages must be pages of `whole`, at the same page size, and
    /// above those of the slice's earlier parts.
    pub fn advance(&mut self, whole: &Histogram, part: &Histogram, affinity: &Affinity) {
        for page in part.iter() {
            self.at = whole.seek(self.at, page.page);
            self.counts.load(page.entries, affinity);
            let (wanted, most) = self.counts.dominant();
            if self.counts.of(self.homes[self.at]) < most {
                self.homes[self.at] = wanted;
                self.moves[self.at] += 1;
                self.moved += 1;
            }
        }
    }

    /// Ends the slice, and returns the number of moves in it.
    pub fn end_of_slice(&mut self) -> u64 {
        self.at = 0;
        let moved = std::mem::take(&mut self.moved);
        self.per_slice.push(moved);
        moved
    }

    /// Moves in each slice so far.
    #[must_use]
    pub fn per_slice(&self) -> &[u64] {
        &self.per_slice
    }

    /// Number of moves over all pages.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.per_slice.iter().sum()
    }

    /// Moves of each page of the whole histogram.
    #[must_use]
    pub fn moves(&self) -> &[u32] {
        &self.moves
    }

    /// Figure 4: how many pages moved 0, 1, 2, … times; the last entry is not zero.
    #[must_use]
    pub fn distribution(&self) -> Vec<u64> {
        let mut pages = vec![0; self.moves.iter().max().map_or(0, |m| *m as usize + 1)];
        self.moves.iter().for_each(|m| pages[*m as usize] += 1);
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{histogram, thread_per_node};
    use proptest::prelude::*;

    fn follow(start: &[u32], slices: &[Vec<Vec<u64>>]) -> Dynamicity {
        let whole = histogram(&vec![vec![1, 1, 1]; start.len()]);
        let mut dynamicity = Dynamicity::new(start.iter().copied().map(NodeId).collect(), 3);
        for slice in slices {
            dynamicity.advance(&whole, &histogram(slice), &thread_per_node(3));
            dynamicity.end_of_slice();
        }
        dynamicity
    }

    #[test]
    fn pages_follow_their_heaviest_user_and_ties_stay() {
        let slices = [
            vec![vec![0, 5, 0], vec![5, 5, 0]], // page 0 leaves node 0; page 1 is tied on node 0
            vec![vec![0, 0, 0], vec![0, 1, 2]], // page 0 untouched; page 1 goes to node 2
            vec![vec![1, 0, 0]],                // page 0 returns
        ];
        let dynamicity = follow(&[0, 0, 1], &slices);
        assert_eq!(dynamicity.per_slice(), [1, 1, 1]);
        assert_eq!(dynamicity.distribution(), [1, 1, 1]);
    }

    proptest! {
        #[test]
        fn a_repeated_slice_moves_nothing(slice in proptest::collection::vec(proptest::collection::vec(0u64..5, 3), 1..20)) {
            let start = vec![0; slice.len()];
            let dynamicity = follow(&start, &[slice.clone(), slice]);
            prop_assert_eq!(dynamicity.per_slice()[1], 0);
            prop_assert_eq!(dynamicity.distribution().iter().sum::<u64>(), start.len() as u64);
        }
    }
}
