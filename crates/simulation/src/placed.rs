//! The mappings of all policies in one table, as of the current slice.

use crate::traffic::Cell;
use nodewise_machine::NodeId;
use nodewise_placement::Mapping;
use std::ops::Range;

/// The mappings of all policies in one table, so that a row costs one cache line for any number of policies.
pub(crate) struct Placed {
    /// `[page * policies + policy]`: the node of a page under a policy; the number of nodes if it is copied.
    nodes: Vec<u16>,
    /// Prefix sums: number of pages before each block on each node, `[block][policy][column]`; long runs cost no more
    /// than short ones.
    before: Vec<u32>,
    policies: usize,
    node_count: usize,
    /// A column for each node, and if any policy makes copies, one for pages that have copies.
    columns: usize,
    /// `[policy * nodes + reader]`: the node whose copy a reader's node reads; empty if no policy makes copies.
    nearest: Vec<u16>,
    pages: usize,
}

const BLOCK: usize = 128;

impl Placed {
    /// `copies`: by policy, which node's copy each node reads; `None` for policies that make none, which may be left out
    /// at the end.
    pub fn new(mappings: &[&Mapping], pages: usize, node_count: usize, copies: &[Option<&[NodeId]>]) -> Self {
        let policies = mappings.len();
        let columns = node_count + usize::from(!copies.is_empty());
        let own: Vec<NodeId> = (0..node_count as u32).map(NodeId).collect();
        let nearest = (0..policies).flat_map(|p| copies.get(p).copied().flatten().unwrap_or(&own));
        let nearest = match copies.is_empty() {
            true => Vec::new(),
            false => nearest.map(|n| n.0 as u16).collect(),
        };
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
        let width = policies * columns;
        let mut before = Vec::with_capacity((pages / BLOCK + 1) * width);
        let mut running = vec![0u32; width];
        for page in 0..pages {
            if page % BLOCK == 0 {
                before.extend_from_slice(&running);
            }
            for p in 0..policies {
                running[p * columns + usize::from(nodes[page * policies + p])] += 1;
            }
        }
        before.extend_from_slice(&running);
        Self {
            nodes,
            before,
            policies,
            node_count,
            columns,
            nearest,
            pages,
        }
    }

    /// The length of the scratch space that [`Placed::add`] needs.
    pub fn scratch(&self) -> usize {
        self.policies * self.columns
    }

    /// Adds the pages `from..to` to `counts`, `[policy][column]`.
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
            for (count, &node) in counts.chunks_exact_mut(self.columns).zip(nodes) {
                count[usize::from(node)] += 1;
            }
        }
    }

    /// The node of a page under a policy at present; `None` if it has copies.
    #[inline]
    pub fn home(&self, policy: usize, page: usize) -> Option<usize> {
        let node = usize::from(self.nodes[page * self.policies + policy]);
        (node < self.node_count).then_some(node)
    }

    /// The node to which a page moves that gets copies ([`Placed::apply`]).
    pub fn copied(&self) -> NodeId {
        NodeId(self.node_count as u32)
    }

    /// By reader's node: the node whose copy it reads under a policy.
    pub fn nearest(&self, policy: usize) -> &[u16] {
        &self.nearest[policy * self.node_count..][..self.node_count]
    }

    /// Sets new homes of pages under one policy; `moves` ascend by page.
    pub fn apply(&mut self, policy: usize, moves: &[(u32, NodeId)]) {
        let Some(first) = moves.first() else { return };
        let width = self.policies * self.columns;
        let mut change = vec![0i32; self.columns];
        let mut moves = moves.iter().peekable();
        let first_block = first.0 as usize / BLOCK + 1;
        for block in first_block..self.before.len() / width {
            while let Some(&(page, to)) = moves.next_if(|m| (m.0 as usize) < block * BLOCK) {
                let node = &mut self.nodes[page as usize * self.policies + policy];
                change[usize::from(*node)] -= 1;
                change[to.index()] += 1;
                *node = u16::try_from(to.0).expect("fewer than 65,536 nodes");
            }
            let before = &mut self.before[block * width + policy * self.columns..][..self.columns];
            for (count, by) in before.iter_mut().zip(&change) {
                *count = count.wrapping_add_signed(*by);
            }
        }
    }

    /// Adds pages, each with `weight` base pages, to the cells `[policy][node]` of one CPU, which is on node `reader`;
    /// `counts` is scratch space.
    pub fn add(&self, pages: Range<usize>, reader: usize, add: Cell, cells: &mut [Cell], counts: &mut [u64]) {
        debug_assert!(pages.end <= self.pages);
        if pages.len() == 1 {
            return self.add_page(pages.start, reader, add, cells);
        }
        counts.fill(0);
        self.count(pages.start, pages.end, counts);
        if self.nearest.is_empty() {
            cells
                .iter_mut()
                .zip(&*counts)
                .for_each(|(c, &pages)| c.add(add, pages));
            return;
        }
        let policies = cells
            .chunks_exact_mut(self.node_count)
            .zip(counts.chunks_exact(self.columns));
        for (policy, (row, counts)) in policies.enumerate() {
            row.iter_mut()
                .zip(counts)
                .for_each(|(c, &pages)| c.add(add, pages));
            row[usize::from(self.nearest(policy)[reader])].add(add, counts[self.node_count]);
        }
    }

    fn add_page(&self, page: usize, reader: usize, add: Cell, cells: &mut [Cell]) {
        let nodes = &self.nodes[page * self.policies..][..self.policies];
        let rows = cells.chunks_exact_mut(self.node_count).zip(nodes);
        for (policy, (row, &node)) in rows.enumerate() {
            let node = match usize::from(node) {
                copied if copied == self.node_count => usize::from(self.nearest(policy)[reader]),
                node => node,
            };
            row[node].add(add, 1);
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
        let placed = Placed::new(&[&map(|i| i % 3), &map(|i| i / 400)], 1000, 3, &[]);
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
        let mut placed = Placed::new(&[&map(&|i| i / 400), &map(&|i| i % 3)], 1000, 3, &[]);
        let moves: Vec<_> = (0..1000)
            .filter(|i| moved(*i))
            .map(|i| (i, NodeId(target(i))))
            .collect();
        placed.apply(1, &moves);
        let expected = Placed::new(&[&map(&|i| i / 400), &map(&target)], 1000, 3, &[]);
        assert_eq!(placed.nodes, expected.nodes);
        assert_eq!(placed.before, expected.before);
    }
    #[test]
    fn readers_of_copied_pages_find_them_on_the_nearest_node() {
        let map = Mapping {
            policy: String::new(),
            nodes: vec![NodeId(1); 600],
        };
        let nearest = [0, 0, 2].map(NodeId);
        let mut placed = Placed::new(&[&map, &map], 600, 3, &[None, Some(&nearest)]);
        let copied: Vec<_> = (100..500).map(|page| (page, placed.copied())).collect();
        placed.apply(1, &copied);
        let line = Cell { lines: 2, dirty: 0 };
        for (reader, of_copies) in [(0, 0), (1, 0), (2, 2)] {
            let (mut runs, mut pages) = (vec![Cell::default(); 6], vec![Cell::default(); 6]);
            let mut counts = vec![0; placed.scratch()];
            placed.add(50..550, reader, line, &mut runs, &mut counts);
            (50..550).for_each(|p| placed.add(p..p + 1, reader, line, &mut pages, &mut counts));
            assert_eq!(runs, pages);
            let mut expected = [0, 1000, 0, 0, 200, 0];
            expected[3 + of_copies] += 800;
            assert_eq!(runs.iter().map(|c| c.lines).collect::<Vec<_>>(), expected);
        }
        assert_eq!(
            (placed.home(0, 200), placed.home(1, 200), placed.home(1, 99)),
            (Some(1), None, Some(1))
        );
    }
}
