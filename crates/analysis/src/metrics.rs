//! Metrics of a mapping under an affinity, for the program and for each object.

use crate::{Affinity, Histogram, NodeCounts, PageView, SharingClass, balance};
use nodewise_machine::NodeId;
use nodewise_profile::{ObjectId, ObjectKind, Profile};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Sums over pages from which every figure follows; the sums of disjoint sets of pages can be added.
///
/// Exclusivity and sharing depend on the affinity alone, all other figures on affinity and mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metrics {
    /// Pages with recorded accesses.
    pub pages: u64,
    /// Load instructions over all pages.
    pub reads: u64,
    /// Store instructions over all pages.
    pub writes: u64,
    /// Cache lines of traffic (see [`nodewise_profile::Access::lines`]).
    pub lines: u64,
    /// Accesses by the node that accesses each page most: the numerator of equation 2.
    pub exclusive: u64,
    /// Accesses from the page's home node.
    pub local: u64,
    /// NodePages: pages by home node.
    pub home_pages: Vec<u64>,
    /// NodeAcc as Table I needs it: accesses to the pages *mapped on* each node.
    pub home_accesses: Vec<u64>,
    /// NodeAcc as equation 4 is printed: accesses made *from* each node. No mapping can change it.
    pub issued_accesses: Vec<u64>,
    /// Number of pages of each sharing class, by [`SharingClass::index`].
    pub class_pages: [u64; 4],
    /// Number of accesses to pages of each sharing class, by [`SharingClass::index`].
    pub class_accesses: [u64; 4],
}

impl Metrics {
    /// The sums over no pages, on a machine with `nodes` nodes.
    #[must_use]
    pub fn none(nodes: usize) -> Self {
        Self {
            pages: 0,
            reads: 0,
            writes: 0,
            lines: 0,
            exclusive: 0,
            local: 0,
            home_pages: vec![0; nodes],
            home_accesses: vec![0; nodes],
            issued_accesses: vec![0; nodes],
            class_pages: [0; 4],
            class_accesses: [0; 4],
        }
    }

    /// Number of loads and stores.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }

    /// E_App (Diener, equation 2): between 1 / nodes and 1; 1 where nothing was accessed.
    #[must_use]
    pub fn application_exclusivity(&self) -> f64 {
        fraction(self.exclusive, self.accesses())
    }

    /// B_Pages (Diener, equation 3).
    #[must_use]
    pub fn page_balance(&self) -> f64 {
        balance(&self.home_pages)
    }

    /// B_Acc (Diener, equations 4 and 5, with accesses counted at the page's home node: the only
    /// reading under which a mapping matters, and the one Table I needs).
    #[must_use]
    pub fn access_balance(&self) -> f64 {
        balance(&self.home_accesses)
    }

    /// B_Acc with equation 4 as printed: accesses counted at the node that makes them.
    #[must_use]
    pub fn access_balance_as_printed(&self) -> f64 {
        balance(&self.issued_accesses)
    }

    /// The share of accesses that the page's home node makes; 1 where nothing was accessed.
    #[must_use]
    pub fn local_fraction(&self) -> f64 {
        fraction(self.local, self.accesses())
    }

    /// The class with most accesses: an object's sharing in one word.
    #[must_use]
    pub fn sharing(&self) -> SharingClass {
        SharingClass::ALL
            .into_iter()
            .rev()
            .max_by_key(|c| self.class_accesses[c.index()])
            .expect("four classes")
    }

    /// Adds the sums over other pages.
    pub fn absorb(&mut self, other: &Self) {
        self.pages += other.pages;
        self.reads += other.reads;
        self.writes += other.writes;
        self.lines += other.lines;
        self.exclusive += other.exclusive;
        self.local += other.local;
        add(&mut self.home_pages, &other.home_pages);
        add(&mut self.home_accesses, &other.home_accesses);
        add(&mut self.issued_accesses, &other.issued_accesses);
        add(&mut self.class_pages, &other.class_pages);
        add(&mut self.class_accesses, &other.class_accesses);
    }

    fn add_page(&mut self, page: &PageView<'_>, home: NodeId, kind: ObjectKind, counts: &NodeCounts) {
        let total = counts.total();
        self.pages += 1;
        for entry in page.entries {
            self.reads += entry.reads;
            self.writes += entry.writes;
            self.lines += u64::from(entry.lines);
        }
        self.exclusive += counts.dominant().1;
        self.local += counts.of(home);
        self.home_pages[home.index()] += 1;
        self.home_accesses[home.index()] += total;
        for &node in counts.touched() {
            self.issued_accesses[node.index()] += counts.of(node);
        }
        let class = SharingClass::of(kind, counts).index();
        self.class_pages[class] += 1;
        self.class_accesses[class] += total;
    }
}

/// Adds up sums cell by cell.
pub(crate) fn add(sums: &mut [u64], more: &[u64]) {
    sums.iter_mut().zip(more).for_each(|(s, m)| *s += m);
}

/// A part of a whole; 1 where the whole is nothing.
pub(crate) fn fraction(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        1.0
    } else {
        part as f64 / whole as f64
    }
}

/// The figures of one mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Metrics over all pages of the program.
    pub program: Metrics,
    /// Each object with recorded pages.
    pub objects: BTreeMap<ObjectId, Metrics>,
}

/// Measures a mapping: `homes` is the node of each page of the histogram, on a machine with `nodes`
/// nodes.
///
/// ```
/// # use nodewise_analysis::{Affinity, Histogram, measure};
/// # use nodewise_machine::{CpuId, NodeId};
/// # use nodewise_profile::{Access, InMemory, PageNumber, Profile, ThreadId};
/// // Thread 0 reads page 0 thirty times, thread 1 reads pages 0 and 1 ten times.
/// # let row = |thread, page, reads| Access {
/// #     thread: ThreadId(thread),
/// #     page: PageNumber(page),
/// #     len: 1,
/// #     reads,
/// #     ..Access::default()
/// # };
/// let accesses = InMemory::new(vec![row(0, 0, 30), row(1, 0, 10), row(1, 1, 10)]);
/// let histogram = Histogram::build(&accesses, 2, 0)?;
/// let affinity = Affinity {
///     name: "one a node".into(),
///     cpus: vec![CpuId(0), CpuId(1)],
///     nodes: vec![NodeId(0), NodeId(1)],
/// };
/// let both_on_node_1 = [NodeId(1); 2];
/// let program = measure(&Profile::default(), &histogram, &affinity, &both_on_node_1, 2).program;
/// assert_eq!(program.local, 20, "what thread 1 reads");
/// assert_eq!(program.exclusive, 40, "of page 0 what thread 0 reads, of page 1 all");
/// # Ok::<(), std::convert::Infallible>(())
/// ```
/// # Panics
/// If `homes` is shorter than the histogram or names a node that is not below `nodes`.
#[must_use]
pub fn measure(
    profile: &Profile,
    histogram: &Histogram,
    affinity: &Affinity,
    homes: &[NodeId],
    nodes: usize,
) -> Measured {
    let objects = histogram
        .chunks()
        .map(|pages| measure_pages(profile, histogram, affinity, homes, nodes, pages))
        .reduce(BTreeMap::new, |mut a, b| {
            for (object, metrics) in b {
                a.entry(object)
                    .or_insert_with(|| Metrics::none(nodes))
                    .absorb(&metrics);
            }
            a
        });
    let mut program = Metrics::none(nodes);
    objects.values().for_each(|m| program.absorb(m));
    Measured { program, objects }
}

fn measure_pages(
    profile: &Profile,
    histogram: &Histogram,
    affinity: &Affinity,
    homes: &[NodeId],
    nodes: usize,
    pages: std::ops::Range<usize>,
) -> BTreeMap<ObjectId, Metrics> {
    let mut objects: BTreeMap<ObjectId, Metrics> = BTreeMap::new();
    let mut counts = NodeCounts::new(nodes);
    let mut next = pages.start;
    for owned in histogram.objects[pages].chunk_by(|a, b| a == b) {
        let kind = profile.object(owned[0]).map_or(ObjectKind::Unknown, |o| o.kind);
        let metrics = objects.entry(owned[0]).or_insert_with(|| Metrics::none(nodes));
        for page in (next..next + owned.len()).map(|i| histogram.page(i)) {
            let counts = counts.load(page.entries, affinity);
            metrics.add_page(&page, homes[page.index], kind, counts);
        }
        next += owned.len();
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::first_touch_nodes;
    use crate::fixtures::{histogram, thread_per_node};
    use proptest::prelude::*;

    fn program(pages: &[Vec<u64>], homes: &[u32]) -> Metrics {
        let nodes = pages[0].len();
        let homes: Vec<_> = homes.iter().copied().map(NodeId).collect();
        let affinity = thread_per_node(nodes as u32);
        measure(&Profile::default(), &histogram(pages), &affinity, &homes, nodes).program
    }

    #[test]
    fn a_worked_example() {
        // Page 0: 6 accesses from node 0, 2 from node 1; page 1: 1 and 3. Both pages are on node 0.
        let m = program(&[vec![6, 2], vec![1, 3]], &[0, 0]);
        assert_eq!(m.application_exclusivity(), 9.0 / 12.0);
        assert_eq!(m.local_fraction(), 7.0 / 12.0);
        assert_eq!(m.page_balance(), 0.0);
        assert_eq!(m.access_balance(), 0.0);
        assert_eq!(m.access_balance_as_printed(), 1.0 - 2.0 / 12.0);
        let two_nodes = program(&[vec![6, 2], vec![1, 3]], &[0, 1]);
        assert_eq!(two_nodes.page_balance(), 1.0);
        assert_eq!(two_nodes.access_balance(), 1.0 - 4.0 / 12.0);
        assert_eq!(
            two_nodes.access_balance_as_printed(),
            m.access_balance_as_printed()
        );
    }

    const NODES: usize = 4;

    fn pages() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let page = proptest::collection::vec(prop_oneof![Just(0u64), 0u64..50], NODES);
        proptest::collection::vec(page, 1..60)
    }

    proptest! {
        #[test]
        fn figures_stay_in_their_ranges(pages in pages(), seed in any::<u64>()) {
            let homes: Vec<u32> = (0..pages.len()).map(|p| (seed.rotate_left(p as u32) % NODES as u64) as u32).collect();
            let m = program(&pages, &homes);
            prop_assert!((1.0 / NODES as f64..=1.0).contains(&m.application_exclusivity()));
            for figure in [m.page_balance(), m.access_balance(), m.access_balance_as_printed()] {
                prop_assert!((0.0..=1.0).contains(&figure));
            }
            prop_assert!(m.local_fraction() <= m.application_exclusivity());
            prop_assert_eq!(m.home_accesses.iter().sum::<u64>(), m.accesses());
            prop_assert_eq!(m.issued_accesses.iter().sum::<u64>(), m.accesses());
            prop_assert_eq!(m.class_pages.iter().sum::<u64>(), m.pages);
        }

        #[test]
        fn larger_pages_and_more_nodes_never_raise_exclusivity(pages in pages(), shift in 1u32..5) {
            let affinity = thread_per_node(NODES as u32);
            let halves = Affinity { nodes: [0, 0, 1, 1].map(NodeId).to_vec(), ..affinity.clone() };
            let exclusivity = |h: &Histogram, affinity: &Affinity| {
                let homes = first_touch_nodes(&Profile::default(), h, affinity, NODES);
                measure(&Profile::default(), h, affinity, &homes, NODES).program.exclusive
            };
            let fine = histogram(&pages);
            let coarse = fine.clone().coarsened(shift);
            prop_assert!(exclusivity(&coarse, &affinity) <= exclusivity(&fine, &affinity));
            prop_assert!(exclusivity(&fine, &affinity) <= exclusivity(&fine, &halves));
        }

        #[test]
        fn renaming_nodes_changes_no_figure(pages in pages(), turn in 1u32..NODES as u32) {
            let turned = |n: u32| (n + turn) % NODES as u32;
            let homes: Vec<u32> = (0..pages.len() as u32).map(|p| p * p % NODES as u32).collect();
            let renamed_homes: Vec<u32> = homes.iter().copied().map(turned).collect();
            let renamed: Vec<Vec<u64>> = pages
                .iter()
                .map(|p| { let mut p = p.clone(); p.rotate_right(turn as usize); p })
                .collect();
            let (a, b) = (program(&pages, &homes), program(&renamed, &renamed_homes));
            prop_assert_eq!(a.application_exclusivity(), b.application_exclusivity());
            prop_assert_eq!(a.page_balance(), b.page_balance());
            prop_assert_eq!(a.access_balance(), b.access_balance());
            prop_assert_eq!(a.local_fraction(), b.local_fraction());
        }
    }
}
