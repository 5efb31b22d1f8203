//! Sampled access counts by page and node, in 16 bytes a page.

// Why: docs/decisions/live-loop.md

mod entry;
#[cfg(test)]
mod properties;

use self::entry::{Entry, LARGEST, Layout};
use crate::Observer;
use nodewise_machine::NodeId;
use nodewise_placement::{Move, Observed};
use nodewise_profile::PageNumber;
use std::collections::BTreeMap;
use std::ops::Range;

/// Allocation granularity in pages.
const ROOM: usize = 4096;
/// When the tracker is full, this fraction (1 / n) of its pages is evicted at once, so that evictions are amortised.
const EVICTED: usize = 8;

/// Counts by page and node: 16 bytes a page, capped, decaying.
///
/// A page is observed from the first [`Tracker::settle`] after [`Tracker::set_home`] on.
///
/// Counts have seven bits. When one would exceed 127, all counts of its page are halved, which keeps their ratios;
/// halvings lose less than one from each count in total. Change detection: when the last samples of a page all come
/// from one node, which by its earlier counts would happen by chance one time in five hundred, the counts of all other
/// nodes are reset. On machines with more than eight nodes a page has three counters (Space-Saving), which include every
/// node with more than a third of its accesses; each overestimates by at most the smallest of the three.
///
/// Pages of more than 4 PiB from the start of the address space, and nodes above 254, are not tracked.
#[derive(Clone, Debug)]
pub struct Tracker {
    layout: Layout,
    cap: usize,
    /// `..settled` is sorted and visible to policies, `settled..sorted` is sorted. The rest is in order of arrival; it
    /// may contain a page several times, but no page of `..sorted`.
    entries: Vec<Entry>,
    settled: usize,
    sorted: usize,
    evicted: u64,
    /// Pages that each node has free memory for; empty if that is not known.
    free: Vec<u64>,
}

impl Tracker {
    /// A tracker for this many nodes, with pages of `1 << page_shift` base pages, at most `cap` of them.
    #[must_use]
    pub fn new(nodes: usize, page_shift: u32, cap: usize) -> Self {
        Self {
            layout: Layout {
                nodes: nodes.min(usize::from(u8::MAX)),
                shift: page_shift,
                ranks: false,
            },
            cap: cap.max(1),
            entries: Vec::new(),
            settled: 0,
            sorted: 0,
            evicted: 0,
            free: Vec::new(),
        }
    }

    /// The tracker for a policy that [ranks pages](nodewise_placement::MigrationPolicy::tier): pages without accesses are
    /// kept, and counts are only halved for all pages at once.
    #[must_use]
    pub fn ranking(mut self) -> Self {
        self.layout.ranks = true;
        self
    }

    /// Sets the number of pages that each node has free memory for.
    pub fn set_free(&mut self, pages: Vec<u64>) {
        self.free = pages;
    }

    /// Adds `weight` accesses from a node to the page that holds this base page. When full, evicts the coldest pages.
    pub fn add(&mut self, page: PageNumber, node: NodeId, weight: u32) {
        let Some(number) = self.layout.number(page) else {
            return;
        };
        if node.index() >= self.layout.nodes {
            return;
        }
        let mut found = self.find(number);
        if found.is_none() && (weight > u32::from(LARGEST) || self.entries.len() >= self.cap) {
            // The count does not fit a separate entry to be merged later, or there is no room for one.
            self.sort();
            found = self.find(number);
        }
        if let Some(at) = found {
            self.layout.touch(&mut self.entries[at], node, weight);
            return;
        }
        self.make_room();
        let mut entry = self.layout.new_entry(number);
        self.layout.touch(&mut entry, node, weight);
        self.entries.push(entry);
        if self.entries.len() - self.sorted >= ROOM.max(self.sorted - self.settled) {
            self.sort();
        }
    }

    /// Adds a sample of `weight` to the exponential moving sum of a page's weights: its counts are reduced to three quarters
    /// before.
    pub fn add_decaying(&mut self, page: PageNumber, node: NodeId, weight: u32) {
        if let Some(at) = self.layout.number(page).and_then(|number| self.find(number)) {
            let layout = self.layout;
            layout.fade(&mut self.entries[at]);
        }
        self.add(page, node, weight);
    }

    /// Adds `weight` to the moving sum of every known page of a range of base pages, as by [`Tracker::add_decaying`], and passes each to
    /// `visit`.
    pub fn add_to_range(
        &mut self,
        pages: Range<PageNumber>,
        node: NodeId,
        weight: u32,
        mut visit: impl FnMut(PageNumber),
    ) {
        self.sort();
        let layout = self.layout;
        if node.index() >= layout.nodes {
            return;
        }
        let (early, late) = self.entries.split_at_mut(self.settled);
        for entries in [early, late] {
            let first = entries.partition_point(|e| layout.page(e) < pages.start);
            let within = entries[first..].iter_mut();
            for entry in within.take_while(|e| layout.page(e) < pages.end) {
                layout.fade(entry);
                if weight > 0 {
                    layout.touch(entry, node, weight);
                }
                visit(layout.page(entry));
            }
        }
    }

    /// Takes in samples, each with its page, the node that accessed it and its weight, and then where pages are. `decaying`: counts
    /// are moving sums, as by [`Tracker::add_decaying`]. Returns the pages whose home was another node, with that one.
    pub fn take_samples(
        &mut self,
        samples: &[(PageNumber, NodeId, u32)],
        decaying: bool,
        homes: &BTreeMap<PageNumber, NodeId>,
    ) -> Vec<(PageNumber, NodeId)> {
        for (page, node, weight) in samples {
            match decaying {
                true => self.add_decaying(*page, *node, *weight),
                false => self.add(*page, *node, *weight),
            }
        }
        let mut elsewhere = Vec::new();
        for (page, home) in homes {
            let before = self.home_of(*page).filter(|before| before != home);
            elsewhere.extend(before.map(|before| (*page, before)));
            self.set_home(*page, *home);
        }
        elsewhere
    }

    /// Sets the home of a tracked page; its counts restart if it was on another node. The first call after additions sorts.
    pub fn set_home(&mut self, page: PageNumber, node: NodeId) {
        let Some(number) = self.layout.number(page) else {
            return;
        };
        if node.index() >= self.layout.nodes {
            return;
        }
        let mut found = self.find(number);
        if found.is_none() && self.sorted < self.entries.len() {
            self.sort();
            found = self.find(number);
        }
        if let Some(at) = found {
            self.layout.set_home(&mut self.entries[at], node);
        }
    }

    /// The home last set, also before [`Tracker::settle`].
    #[must_use]
    pub fn home_of(&self, page: PageNumber) -> Option<NodeId> {
        let at = self.find(self.layout.number(page)?)?;
        self.layout.home(&self.entries[at])
    }

    /// Pages whose home is not known yet, ascending.
    #[must_use]
    pub fn homeless(&self) -> Vec<PageNumber> {
        let waiting = self.entries[self.settled..].iter();
        let waiting = waiting.filter(|e| self.layout.home(e).is_none());
        let mut pages: Vec<_> = waiting.map(|e| self.layout.page(e)).collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// Merges additions and makes them visible to policies; pages without a home are dropped.
    pub fn settle(&mut self) {
        self.sort();
        let layout = self.layout;
        self.retain(|e, settled| settled || layout.home(e).is_some());
        merge(&mut self.entries, self.settled);
        self.settled = self.entries.len();
    }

    /// Removes the pages of a range of base pages (unmapped, or of a process that ended).
    pub fn forget(&mut self, pages: Range<PageNumber>) {
        let layout = self.layout;
        self.retain(|e, _| !pages.contains(&layout.page(e)));
        self.give_back();
    }

    /// Removes these pages, which ascend and are given by their first base pages.
    pub fn forget_pages(&mut self, pages: &[PageNumber]) {
        let layout = self.layout;
        self.retain(|e, _| pages.binary_search(&layout.page(e)).is_err());
        self.give_back();
    }

    /// Halves all counts; drops pages that have none left, unless pages are ranked.
    pub fn halve(&mut self) {
        self.sort();
        let layout = self.layout;
        self.entries.iter_mut().for_each(|e| layout.shrink(e, 1));
        self.retain(|e, _| layout.ranks || layout.total(e) > 0);
        self.give_back();
    }

    /// Takes in where all pages of a range are, ascending: those not tracked yet come without accesses, while there is room
    /// and if their home is known, and tracked ones that are not among them are removed. Returns those whose home was
    /// another node, with that one.
    pub fn take_residents(
        &mut self,
        range: Range<PageNumber>,
        residents: &[(PageNumber, Option<NodeId>)],
    ) -> Vec<(PageNumber, NodeId)> {
        self.sort();
        let layout = self.layout;
        let resides = |page| residents.binary_search_by_key(&page, |r| r.0).is_ok();
        self.retain(|e, _| {
            let page = layout.page(e);
            !range.contains(&page) || resides(page)
        });
        let (mut elsewhere, known) = (Vec::new(), self.sorted);
        let known_homes = residents.iter().filter_map(|(page, home)| Some((page, (*home)?)));
        for (page, home) in known_homes {
            let Some(number) = layout.number(*page).filter(|_| home.index() < layout.nodes) else {
                continue;
            };
            if let Some(at) = self.find(number) {
                let entry = &mut self.entries[at];
                elsewhere.extend(
                    layout
                        .home(entry)
                        .filter(|before| *before != home)
                        .map(|before| (*page, before)),
                );
                layout.set_home(entry, home);
            } else if self.entries.len() < self.cap {
                let mut entry = layout.new_entry(number);
                layout.set_home(&mut entry, home);
                self.entries.push(entry);
            }
        }
        if self.entries.len() > known {
            self.sort();
        }
        self.give_back();
        elsewhere
    }

    /// Number of pages that have accesses left.
    #[must_use]
    pub fn accessed(&self) -> usize {
        self.entries.iter().filter(|e| self.layout.total(e) > 0).count()
    }

    /// Begins an interval: clears the first toucher of every page.
    pub fn begin_interval(&mut self) {
        let layout = self.layout;
        self.entries.iter_mut().for_each(|e| layout.begin(e));
    }

    /// Pages tracked; those that came since the last [`Tracker::settle`] may count more than once.
    #[must_use]
    pub fn tracked(&self) -> usize {
        self.entries.len()
    }

    /// Pages evicted so far.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Memory in use, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    fn find(&self, number: u64) -> Option<usize> {
        let within = |part: &[Entry]| part.binary_search_by_key(&number, Entry::number).ok();
        let late = || within(&self.entries[self.settled..self.sorted]).map(|i| i + self.settled);
        within(&self.entries[..self.settled]).or_else(late)
    }

    /// Sorts the unsettled entries and merges those of the same page.
    fn sort(&mut self) {
        if self.sorted == self.entries.len() {
            return;
        }
        let (layout, settled) = (self.layout, self.settled);
        self.entries[settled..].sort_by_key(Entry::number);
        let mut last = settled;
        for i in settled + 1..self.entries.len() {
            let entry = self.entries[i];
            if entry.number() == self.entries[last].number() {
                layout.absorb(&mut self.entries[last], &entry);
            } else {
                last += 1;
                self.entries[last] = entry;
            }
        }
        self.entries.truncate(last + 1);
        self.sorted = self.entries.len();
    }

    /// Retains entries for which `keep(entry, settled)` holds, in order.
    fn retain(&mut self, mut keep: impl FnMut(&Entry, bool) -> bool) {
        let (settled, sorted) = (self.settled, self.sorted);
        let (mut at, mut gone) = (0, [0, 0]);
        self.entries.retain(|e| {
            let kept = keep(e, at < settled);
            gone[0] += usize::from(!kept && at < settled);
            gone[1] += usize::from(!kept && at < sorted);
            at += 1;
            kept
        });
        self.settled -= gone[0];
        self.sorted -= gone[1];
    }

    fn make_room(&mut self) {
        if self.entries.len() >= self.cap {
            self.evict((self.cap / EVICTED).max(1));
        }
        if self.entries.len() == self.entries.capacity() {
            self.entries
                .reserve_exact(ROOM.min(self.cap - self.entries.len()));
        }
    }

    /// Evicts this many of the coldest pages; among equally cold ones, evenly over the address space.
    fn evict(&mut self, pages: usize) {
        let layout = self.layout;
        let mut by_total = vec![0usize; 8 * usize::from(LARGEST) + 1];
        self.entries
            .iter()
            .for_each(|e| by_total[layout.total(e) as usize] += 1);
        let (mut limit, mut left) = (0, pages);
        while by_total[limit] < left {
            left -= by_total[limit];
            limit += 1;
        }
        let (equals, mut seen) = (by_total[limit], 0);
        self.retain(|e, _| {
            let total = layout.total(e) as usize;
            if total == limit {
                seen += 1;
                seen * left / equals == (seen - 1) * left / equals
            } else {
                total > limit
            }
        });
        self.evicted += pages as u64;
    }

    fn give_back(&mut self) {
        if self.entries.capacity() > self.entries.len() + 2 * ROOM {
            self.entries.shrink_to(self.entries.len() + ROOM);
        }
    }
}

/// Merges the ascending runs before and after `middle`.
fn merge(entries: &mut [Entry], middle: usize) {
    let late = entries[middle..].to_vec();
    let (mut early, mut late) = (middle, late.as_slice());
    let mut to = entries.len();
    while let Some((last, rest)) = late.split_last() {
        to -= 1;
        if early > 0 && entries[early - 1].number() > last.number() {
            early -= 1;
            entries[to] = entries[early];
        } else {
            entries[to] = *last;
            late = rest;
        }
    }
}

impl Observed for Tracker {
    fn nodes(&self) -> usize {
        self.layout.nodes
    }

    fn len(&self) -> usize {
        self.settled
    }

    fn page(&self, index: usize) -> PageNumber {
        self.layout.page(&self.entries[index])
    }

    fn home(&self, index: usize) -> NodeId {
        self.layout.home(&self.entries[index]).unwrap_or_default()
    }

    fn counts(&self, index: usize, counts: &mut [u64]) {
        self.layout.counts(&self.entries[index], counts);
    }

    fn first(&self, index: usize) -> Option<NodeId> {
        self.layout.first(&self.entries[index])
    }

    fn page_shift(&self) -> u32 {
        self.layout.shift
    }

    fn free(&self, node: NodeId) -> Option<u64> {
        self.free.get(node.index()).copied()
    }
}

impl Observer for Tracker {
    fn observed(&self) -> &dyn Observed {
        self
    }

    fn moved(&mut self, moved: &Move) {
        self.set_home(moved.page, moved.to);
    }

    fn forget(&mut self, pages: &[PageNumber]) {
        self.forget_pages(pages);
    }

    fn halve(&mut self) {
        Self::halve(self);
    }

    fn begin(&mut self) {
        self.begin_interval();
    }
}
