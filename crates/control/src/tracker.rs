//! What was sampled, in 16 bytes a page.

use nodewise_machine::NodeId;
use nodewise_placement::Observed;
use nodewise_profile::PageNumber;
use std::collections::BTreeMap;
use std::ops::Range;

/// Counts by page and node: few bytes, capped, decaying.
///
/// New pages are observed from the first [`Tracker::settle`] after [`Tracker::set_home`].
#[derive(Clone, Debug)]
pub struct Tracker {
    nodes: usize,
    page_shift: u32,
    cap: usize,
    pages: BTreeMap<PageNumber, (Option<NodeId>, Vec<u64>, Option<NodeId>)>,
    settled: Vec<PageNumber>,
}

impl Tracker {
    /// For a machine with so many nodes, pages of `1 << page_shift` base pages, at most `cap` of them.
    #[must_use]
    pub fn new(nodes: usize, page_shift: u32, cap: usize) -> Self {
        Self {
            nodes,
            page_shift,
            cap,
            pages: BTreeMap::new(),
            settled: Vec::new(),
        }
    }

    /// Counts `weight` accesses from a node to the page that holds this base page.
    pub fn add(&mut self, page: PageNumber, node: NodeId, weight: u32) {
        let page = page.align_down(self.page_shift);
        let nodes = self.nodes;
        if self.pages.len() < self.cap || self.pages.contains_key(&page) {
            let entry = self
                .pages
                .entry(page)
                .or_insert_with(|| (None, vec![0; nodes], None));
            entry.1[node.index()] += u64::from(weight);
            entry.2.get_or_insert(node);
        }
    }

    /// Says where a page is; nothing if it is not tracked.
    pub fn set_home(&mut self, page: PageNumber, node: NodeId) {
        if let Some(entry) = self.pages.get_mut(&page.align_down(self.page_shift)) {
            entry.0 = Some(node);
        }
    }

    /// Pages whose home nobody has said yet, ascending.
    #[must_use]
    pub fn homeless(&self) -> Vec<PageNumber> {
        self.pages
            .iter()
            .filter(|p| p.1.0.is_none())
            .map(|p| *p.0)
            .collect()
    }

    /// Makes what was added visible to policies; pages without a home are dropped.
    pub fn settle(&mut self) {
        self.pages.retain(|_, e| e.0.is_some());
        self.settled = self.pages.keys().copied().collect();
    }

    /// Forgets the pages of a range of base pages: unmapped, or of a process that ended.
    pub fn forget(&mut self, pages: Range<PageNumber>) {
        self.pages.retain(|p, _| !pages.contains(p));
        self.settled = self.pages.keys().copied().collect();
    }

    /// Halves all counts, drops pages that have none left, and begins a new interval.
    pub fn halve(&mut self) {
        self.pages
            .values_mut()
            .for_each(|e| e.1.iter_mut().for_each(|c| *c /= 2));
        self.pages.retain(|_, e| e.1.iter().any(|c| *c > 0));
        self.settled = self.pages.keys().copied().collect();
    }

    /// Begins a new interval: forgets who touched pages first in the last one.
    pub fn begin_interval(&mut self) {
        self.pages.values_mut().for_each(|e| e.2 = None);
    }

    /// Pages tracked.
    #[must_use]
    pub fn tracked(&self) -> usize {
        self.pages.len()
    }

    /// Bytes that tracking takes now.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pages.len() * 16
    }
}

impl Observed for Tracker {
    fn nodes(&self) -> usize {
        self.nodes
    }

    fn len(&self) -> usize {
        self.settled.len()
    }

    fn page(&self, index: usize) -> PageNumber {
        self.settled[index]
    }

    fn home(&self, index: usize) -> NodeId {
        self.pages[&self.settled[index]].0.unwrap_or_default()
    }

    fn counts(&self, index: usize, counts: &mut [u64]) {
        counts.copy_from_slice(&self.pages[&self.settled[index]].1);
    }

    fn first(&self, index: usize) -> Option<NodeId> {
        self.pages[&self.settled[index]].2
    }

    fn page_shift(&self) -> u32 {
        self.page_shift
    }
}
