//! What is counted of a mapping by node: pages, and accesses by the node that makes them. All figures of a mapping that
//! depend on where pages are follow from it.

use crate::metrics::{add, fraction};
use crate::{Affinity, Histogram, NodeCounts, balance};
use nodewise_profile::ObjectId;
use rayon::prelude::*;
use std::ops::Range;

/// Pages and accesses of a mapping by home node. Sums over disjoint sets of pages can be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeCounts {
    nodes: usize,
    /// NodePages (Diener, equation 3): pages by home node.
    pages: Vec<u64>,
    /// Accesses by accessing node and home node, row by row: to pages of the chosen objects, and to all others.
    chosen: Vec<u64>,
    others: Vec<u64>,
}

impl HomeCounts {
    fn none(nodes: usize) -> Self {
        Self {
            nodes,
            pages: vec![0; nodes],
            chosen: vec![0; nodes * nodes],
            others: vec![0; nodes * nodes],
        }
    }

    /// Counts several mappings in one pass over the histogram. `mappings` has the node of each page, of each mapping, on a
    /// machine with `nodes` nodes, as a node or its number; `chosen` says of which objects accesses are also wanted apart.
    ///
    /// # Panics
    /// If a mapping is shorter than the histogram or names a node that is not below `nodes`.
    #[must_use]
    pub fn of<N: Copy + Sync + Into<usize>>(
        histogram: &Histogram,
        affinity: &Affinity,
        mappings: &[&[N]],
        nodes: usize,
        chosen: impl Fn(ObjectId) -> bool + Sync,
    ) -> Vec<Self> {
        let none = || vec![Self::none(nodes); mappings.len()];
        let count = |(mut sums, mut counts): (Vec<Self>, NodeCounts), pages: Range<usize>| {
            for page in pages.map(|index| histogram.page(index)) {
                let counts = counts.load(page.entries, affinity);
                let is_chosen = chosen(page.object);
                for (sum, homes) in sums.iter_mut().zip(mappings) {
                    sum.add_page(homes[page.index].into(), counts, is_chosen);
                }
            }
            (sums, counts)
        };
        histogram
            .chunks()
            .fold(|| (none(), NodeCounts::new(nodes)), count)
            .map(|(sums, _)| sums)
            .reduce(none, |mut all, more| {
                all.iter_mut().zip(&more).for_each(|(a, b)| a.absorb(b));
                all
            })
    }

    fn add_page(&mut self, home: usize, counts: &NodeCounts, is_chosen: bool) {
        self.pages[home] += 1;
        let matrix = if is_chosen {
            &mut self.chosen
        } else {
            &mut self.others
        };
        for reader in counts.touched() {
            matrix[reader.index() * self.nodes + home] += counts.of(*reader);
        }
    }

    fn absorb(&mut self, other: &Self) {
        add(&mut self.pages, &other.pages);
        add(&mut self.chosen, &other.chosen);
        add(&mut self.others, &other.others);
    }

    fn accesses(&self, reader: usize, home: usize) -> u64 {
        let cell = reader * self.nodes + home;
        self.chosen[cell] + self.others[cell]
    }

    /// Accesses to the pages of the chosen objects: `accesses[cpu_node][memory_node]`.
    #[must_use]
    pub fn of_chosen(&self) -> Vec<Vec<u64>> {
        self.chosen
            .chunks(self.nodes.max(1))
            .map(<[u64]>::to_vec)
            .collect()
    }

    /// The share of accesses that the page's home node makes; 1 where nothing was accessed.
    #[must_use]
    pub fn local_fraction(&self) -> f64 {
        let local: u64 = (0..self.nodes).map(|node| self.accesses(node, node)).sum();
        fraction(local, self.chosen.iter().chain(&self.others).sum())
    }

    /// B_Pages (Diener, equation 3).
    #[must_use]
    pub fn page_balance(&self) -> f64 {
        balance(&self.pages)
    }

    /// B_Acc (Diener, equations 4 and 5, with accesses counted at the page's home node).
    #[must_use]
    pub fn access_balance(&self) -> f64 {
        let to = |home| (0..self.nodes).map(|reader| self.accesses(reader, home)).sum();
        balance(&(0..self.nodes).map(to).collect::<Vec<u64>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{histogram, thread_per_node};
    use crate::histogram::CHUNK;
    use crate::measure;
    use nodewise_machine::NodeId;
    use nodewise_profile::Profile;
    use proptest::prelude::*;

    const NODES: usize = 4;

    fn pages() -> impl Strategy<Value = Vec<(Vec<u64>, [usize; 2])>> {
        let counts = proptest::collection::vec(0u64..9, NODES);
        let different = proptest::collection::vec((counts, [0..NODES, 0..NODES]), 1..2000);
        // Over and over, for more pages than a thread processes at a time.
        (different, 1..3 * CHUNK).prop_map(|(pages, count)| pages.into_iter().cycle().take(count).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn each_mapping_has_the_figures_of_its_metrics(pages in pages()) {
            let (counts, homes): (Vec<_>, Vec<_>) = pages.into_iter().unzip();
            let (histogram, affinity) = (histogram(&counts), thread_per_node(NODES as u32));
            let homes = [0, 1].map(|m| homes.iter().map(|h| NodeId(h[m] as u32)).collect::<Vec<_>>());
            let found = HomeCounts::of(&histogram, &affinity, &[&homes[0], &homes[1]], NODES, |_| false);
            for (found, homes) in found.iter().zip(&homes) {
                let metrics = measure(&Profile::default(), &histogram, &affinity, homes, NODES).program;
                prop_assert_eq!(found.local_fraction(), metrics.local_fraction());
                prop_assert_eq!(found.page_balance(), metrics.page_balance());
                prop_assert_eq!(found.access_balance(), metrics.access_balance());
                prop_assert_eq!(found.of_chosen(), vec![vec![0; NODES]; NODES]);
            }
            let all = HomeCounts::of(&histogram, &affinity, &[&homes[0]], NODES, |_| true)[0].of_chosen();
            let metrics = measure(&Profile::default(), &histogram, &affinity, &homes[0], NODES).program;
            prop_assert_eq!((0..NODES).map(|n| all[n][n]).sum::<u64>(), metrics.local);
            prop_assert_eq!(all.iter().map(|r| r.iter().sum()).collect::<Vec<u64>>(), metrics.issued_accesses);
        }
    }

    #[test]
    fn a_cell_of_the_matrix_is_what_a_node_accesses_of_another() {
        // Page 0: 6 accesses from node 0, 2 from node 1; page 1: 1 and 3. Page 0 is on node 1, page 1 on node 0.
        let (histogram, affinity) = (histogram(&[vec![6, 2], vec![1, 3]]), thread_per_node(2));
        let homes = [NodeId(1), NodeId(0)];
        let counted =
            |chosen: bool| HomeCounts::of(&histogram, &affinity, &[&homes], 2, |_| chosen)[0].of_chosen();
        assert_eq!(counted(true), [[1, 6], [3, 2]]);
        assert_eq!(counted(false), [[0, 0], [0, 0]]);
    }
}
