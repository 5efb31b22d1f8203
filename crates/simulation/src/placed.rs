//! The mappings of all policies in one table, as of the current slice.

use crate::traffic::Cell;
use nodewise_machine::NodeId;
use nodewise_placement::Mapping;
use std::ops::Range;

/// The mappings of all policies in one table, so that a row costs one cache line for any number of policies.
pub(crate) struct Placed {
    /// `[page * policies + policy]`: the node of a page under a policy.
    nodes: Vec<u16>,
    /// Prefix sums: number of pages before each block on each node, `[block][policy][node]`; long runs cost no more
    /// than short ones.
    before: Vec<u32>,
    policies: usize,
    node_count: usize,
    pages: usize,
}

const BLOCK: usize = 128;

impl Placed {
    pub fn new(mappings: &[&Mapping], pages: usize, node_count: usize) -> Self {
        let policies = mappings.len();
        let mut nodes = vec![0u16; pages * policies];
        for (p, mapping) in mappings.iter().enumerate() {
            assert_eq!(
                mapping.nodes.len(),
                pages,
                "`{}` is parallel to the histogram",
                mapping.policy
            );
            for (page, node) in mapping.nodes.iter().enumerate() {
                nodes[page * policies + p] = u16::try_from(node.0).expect("fewer than 65,536 nodes");
            }
        }
        let width = policies * node_count;
        let mut before = Vec::with_capacity((pages / BLOCK + 1) * width);
        let mut running = vec![0u32; width];
        for page in 0..pages {
            if page % BLOCK == 0 {
                before.extend_from_slice(&running);
            }
            for p in 0..policies {
                running[p * node_count + usize::from(nodes[page * policies + p])] += 1;
            }
        }
        before.extend_from_slice(&running);
        Self {
            nodes,
            before,
            policies,
            node_count,
            pages,
        }
    }

    /// Adds the pages `from..to` to `counts`, `[policy][node]`.
    fn count(&self, from: usize, to: usize, counts: &mut [u64]) {
        let (first, last) = (from.div_ceil(BLOCK), to / BLOCK);
        if first >= last {
            return self.count_each(from, to, counts);
        }
        self.count_each(from, first * BLOCK, counts);
        let width = counts.len();
        let (a, b) = (
            &self.before[first * width..][..width],
            &self.before[last * width..][..width],
        );
        for ((count, a), b) in counts.iter_mut().zip(a).zip(b) {
            *count += u64::from(b - a);
        }
        self.count_each(last * BLOCK, to, counts);
    }

    fn count_each(&self, from: usize, to: usize, counts: &mut [u64]) {
        for nodes in self.nodes[from * self.policies..to * self.policies].chunks_exact(self.policies) {
            for (count, &node) in counts.chunks_exact_mut(self.node_count).zip(nodes) {
                count[usize::from(node)] += 1;
            }
        }
    }

    /// The node of a page under a policy at present.
    #[inline]
    pub fn home(&self, policy: usize, page: usize) -> usize {
        usize::from(self.nodes[page * self.policies + policy])
    }

    /// Sets new homes of pages under one policy; `moves` ascend by page.
    pub fn apply(&mut self, policy: usize, moves: &[(u32, NodeId)]) {
        let Some(first) = moves.first() else { return };
        let width = self.policies * self.node_count;
        let mut change = vec![0i32; self.node_count];
        let mut moves = moves.iter().peekable();
        let first_block = first.0 as usize / BLOCK + 1;
        for block in first_block..self.before.len() / width {
            while let Some(&(page, to)) = moves.next_if(|m| (m.0 as usize) < block * BLOCK) {
                let node = &mut self.nodes[page as usize * self.policies + policy];
                change[usize::from(*node)] -= 1;
                change[to.index()] += 1;
                *node = u16::try_from(to.0).expect("fewer than 65,536 nodes");
            }
            let before = &mut self.before[block * width + policy * self.node_count..][..self.node_count];
            for (count, by) in before.iter_mut().zip(&change) {
                *count = count.wrapping_add_signed(*by);
            }
        }
    }

    /// Adds pages, each with `weight` base pages, to the cells of one CPU; `counts` is scratch space.
    pub fn add(&self, pages: Range<usize>, weight: u64, add: Cell, cells: &mut [Cell], counts: &mut [u64]) {
        debug_assert!(pages.end <= self.pages);
        if pages.len() == 1 {
            return self.add_page(pages.start, weight, add, cells);
        }
        counts.fill(0);
        self.count(pages.start, pages.end, counts);
        for (cell, &pages) in cells.iter_mut().zip(&*counts) {
            cell.lines += add.lines * pages * weight;
            cell.dirty += add.dirty * pages * weight;
        }
    }

    fn add_page(&self, page: usize, weight: u64, add: Cell, cells: &mut [Cell]) {
        let (lines, dirty) = (add.lines * weight, add.dirty * weight);
        let nodes = &self.nodes[page * self.policies..][..self.policies];
        for (row, &node) in cells.chunks_exact_mut(self.node_count).zip(nodes) {
            let cell = &mut row[usize::from(node)];
            cell.lines += lines;
            cell.dirty += dirty;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_by_blocks_equals_counting_page_by_page() {
        let map = |f: fn(u32) -> u32| Mapping {
            policy: String::new(),
            nodes: (0..1000).map(|i| NodeId(f(i))).collect(),
        };
        let placed = Placed::new(&[&map(|i| i % 3), &map(|i| i / 400)], 1000, 3);
        for (from, to) in [
            (0, 1000),
            (1, 999),
            (5, 6),
            (127, 129),
            (128, 256),
            (300, 300),
            (100, 640),
        ] {
            let (mut blocks, mut each) = (vec![0; 6], vec![0; 6]);
            placed.count(from, to, &mut blocks);
            placed.count_each(from, to, &mut each);
            assert_eq!(blocks, each, "{from}..{to}");
        }
    }

    #[test]
    fn moved_pages_count_as_if_they_had_always_been_there() {
        let map = |node: &dyn Fn(u32) -> u32| Mapping {
            policy: String::new(),
            nodes: (0..1000).map(|i| NodeId(node(i))).collect(),
        };
        let moved = |i: u32| i.is_multiple_of(7) || i > 990;
        let target = |i: u32| if moved(i) { (i + 1) % 3 } else { i % 3 };
        let mut placed = Placed::new(&[&map(&|i| i / 400), &map(&|i| i % 3)], 1000, 3);
        let moves: Vec<_> = (0..1000)
            .filter(|i| moved(*i))
            .map(|i| (i, NodeId(target(i))))
            .collect();
        placed.apply(1, &moves);
        let expected = Placed::new(&[&map(&|i| i / 400), &map(&target)], 1000, 3);
        assert_eq!(placed.nodes, expected.nodes);
        assert_eq!(placed.before, expected.before);
    }
}
