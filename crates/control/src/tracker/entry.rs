//! The 16-byte entry of one page.

use nodewise_machine::NodeId;
use nodewise_profile::PageNumber;

/// Bits of a page's number inside its process: 2⁴⁰ pages are 4 PiB.
const NUMBER_BITS: u32 = 40;
/// Encoding of an unknown node.
const UNKNOWN: u8 = u8::MAX;
/// Pairs of node and count on machines with more than eight nodes.
const PAIRS: usize = 3;
/// Bits of a count. On machines with up to eight nodes, the eighth bits of all counts together store the trail.
const COUNT_BITS: u32 = 7;
pub(super) const LARGEST: u8 = (1 << COUNT_BITS) - 1;
/// Bit offset of the trail on larger machines.
const TRAIL: usize = 7;
/// Longest run of samples from one node that is counted.
pub(super) const LONGEST: u8 = 31;
/// Significance level at which a run of samples from one node counts as a change of the page's users.
const CHANCE_OF_CHANGE: f64 = 2e-3;

/// A page's number and home, then its counts.
///
/// The number, below its process's ordinal, has the upper 56 bits. Up to eight nodes, home and first
/// toucher have four bits each (15 is unknown), and every node has a count. On larger machines the home
/// has all eight bits; there are three pairs of node and count, the first toucher, and the trail: which
/// count the last samples went to (three bits), and how many in a row (five).
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    key: u64,
    cells: [u8; 8],
}

const _: () = assert!(size_of::<Entry>() == 16);

/// How entries are laid out for a number of nodes and a page size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub nodes: usize,
    pub shift: u32,
    /// Pages are compared with each other: no event of one page alone changes its counts, other than accesses.
    pub ranks: bool,
}

impl Layout {
    /// The entry of the page that holds this base page; `None` if its number does not fit.
    pub fn number(self, page: PageNumber) -> Option<u64> {
        let number = page.virtual_number() >> self.shift;
        (number >> NUMBER_BITS == 0).then(|| u64::from(page.process()) << NUMBER_BITS | number)
    }

    pub fn page(self, entry: &Entry) -> PageNumber {
        let (process, number) = (
            entry.number() >> NUMBER_BITS,
            entry.number() & ((1 << NUMBER_BITS) - 1),
        );
        PageNumber::of_address(process as u16, 0).offset(number << self.shift)
    }

    pub fn new_entry(self, number: u64) -> Entry {
        let mut entry = Entry {
            key: number << 8 | u64::from(UNKNOWN),
            cells: [0; 8],
        };
        if !self.few() {
            entry.cells[2 * PAIRS] = UNKNOWN;
        }
        entry
    }

    fn few(self) -> bool {
        self.nodes <= 8
    }

    pub fn home(self, entry: &Entry) -> Option<NodeId> {
        self.known(if self.few() { entry.low() >> 4 } else { entry.low() })
    }

    /// Sets the home. If it was another node the counts restart: otherwise the old home's accesses would look like those
    /// of a remote node that wants the page back. Where pages are ranked, it is the accesses from all nodes that matter.
    pub fn set_home(self, entry: &mut Entry, home: NodeId) {
        if !self.ranks && self.home(entry).is_some_and(|before| before != home) {
            self.shrink(entry, u8::BITS);
            self.set_trail(entry, 0, 0);
        }
        let low = if self.few() {
            (home.0 as u8) << 4 | entry.low() & 15
        } else {
            home.0 as u8
        };
        entry.set_low(low);
    }

    /// The first node that accessed it since [`Layout::begin`].
    pub fn first(self, entry: &Entry) -> Option<NodeId> {
        self.known(if self.few() {
            entry.low() & 15
        } else {
            entry.cells[2 * PAIRS]
        })
    }

    fn set_first(self, entry: &mut Entry, node: u8) {
        if self.few() {
            entry.set_low(entry.low() & 0xf0 | node & 15);
        } else {
            entry.cells[2 * PAIRS] = node;
        }
    }

    pub fn begin(self, entry: &mut Entry) {
        self.set_first(entry, UNKNOWN);
    }

    fn known(self, node: u8) -> Option<NodeId> {
        (usize::from(node) < self.nodes).then(|| NodeId(u32::from(node)))
    }

    pub fn touch(self, entry: &mut Entry, node: NodeId, weight: u32) {
        if self.first(entry).is_none() {
            self.set_first(entry, node.0 as u8);
        }
        self.add(entry, node.0 as u8, weight);
    }

    /// Adds to a count, and to the trail.
    fn add(self, entry: &mut Entry, node: u8, weight: u32) {
        let (trailed, run) = self.trail(entry);
        let follows = run > 0 && self.node_at(entry, trailed) == node;
        let at = self.count(entry, node, weight);
        let run = u32::from(if follows { run } else { 0 }).saturating_add(weight);
        self.set_trail(entry, at, run.min(u32::from(LONGEST)) as u8);
        self.notice_change(entry, at);
    }

    /// Adds to a count and returns its index; halves all counts of the page until it fits. Where pages are ranked, the count
    /// stays at its largest value.
    fn count(self, entry: &mut Entry, node: u8, weight: u32) -> usize {
        let at = if self.few() {
            usize::from(node)
        } else {
            pair(&mut entry.cells, node)
        };
        let sum = u64::from(self.count_at(entry, at)) + u64::from(weight);
        if self.ranks {
            self.set_count(entry, at, sum.min(u64::from(LARGEST)) as u8);
            return at;
        }
        let halvings = (u64::BITS - sum.leading_zeros()).saturating_sub(COUNT_BITS);
        if halvings > 0 {
            self.shrink(entry, halvings);
        }
        self.set_count(entry, at, (sum >> halvings) as u8);
        at
    }

    /// Change detection: resets all other counts if the last run of samples from one node is not plausible by the counts
    /// before it.
    fn notice_change(self, entry: &mut Entry, at: usize) {
        if self.ranks {
            return;
        }
        let (own, total, run) = (self.count_at(entry, at), self.total(entry), self.trail(entry).1);
        let before = total - u32::from(own.min(run));
        if total > u32::from(own) && is_change(before, u32::from(own.saturating_sub(run)), run) {
            (0..self.counts_kept())
                .filter(|other| *other != at)
                .for_each(|other| self.set_count(entry, other, 0));
        }
    }

    /// Merges a later entry of the same page, whose counts are all from one node.
    pub fn absorb(self, entry: &mut Entry, other: &Entry) {
        if let (None, Some(first)) = (self.first(entry), self.first(other)) {
            self.set_first(entry, first.0 as u8);
        }
        self.each(other, |node, count| {
            if count > 0 {
                self.add(entry, node, u32::from(count));
            }
        });
    }

    /// Number of counters of an entry.
    fn counts_kept(self) -> usize {
        if self.few() { 8 } else { PAIRS }
    }

    fn count_at(self, entry: &Entry, at: usize) -> u8 {
        if self.few() {
            entry.cells[at] & LARGEST
        } else {
            entry.cells[2 * at + 1]
        }
    }

    fn set_count(self, entry: &mut Entry, at: usize, count: u8) {
        if self.few() {
            entry.cells[at] = entry.cells[at] & !LARGEST | count;
        } else {
            entry.cells[2 * at + 1] = count;
        }
    }

    fn node_at(self, entry: &Entry, at: usize) -> u8 {
        if self.few() { at as u8 } else { entry.cells[2 * at] }
    }

    /// The trail: index of the counter that the last samples went to, and their number.
    fn trail(self, entry: &Entry) -> (usize, u8) {
        let trail = if self.few() {
            let bits = entry.cells.iter().enumerate();
            bits.fold(0, |trail, (i, cell)| trail | cell >> COUNT_BITS << i)
        } else {
            entry.cells[TRAIL]
        };
        (usize::from(trail / (LONGEST + 1)), trail % (LONGEST + 1))
    }

    fn set_trail(self, entry: &mut Entry, at: usize, run: u8) {
        let trail = at as u8 * (LONGEST + 1) + run;
        if self.few() {
            for (i, cell) in entry.cells.iter_mut().enumerate() {
                *cell = *cell & LARGEST | (trail >> i & 1) << COUNT_BITS;
            }
        } else {
            entry.cells[TRAIL] = trail;
        }
    }

    fn each(self, entry: &Entry, mut count: impl FnMut(u8, u8)) {
        (0..self.counts_kept()).for_each(|at| count(self.node_at(entry, at), self.count_at(entry, at)));
    }

    pub fn counts(self, entry: &Entry, counts: &mut [u64]) {
        if self.few() {
            let stored = entry.cells.iter().map(|cell| u64::from(cell & LARGEST));
            counts.iter_mut().zip(stored).for_each(|(to, count)| *to = count);
            return;
        }
        counts.fill(0);
        self.each(entry, |node, count| counts[usize::from(node)] += u64::from(count));
    }

    pub fn total(self, entry: &Entry) -> u32 {
        let mut total = 0;
        self.each(entry, |_, count| total += u32::from(count));
        total
    }

    /// Reduces all counts to three quarters, rounded down.
    pub fn fade(self, entry: &mut Entry) {
        self.change(entry, |count| count - count.div_ceil(4));
    }

    /// Halves all counts `times` times.
    pub fn shrink(self, entry: &mut Entry, halvings: u32) {
        self.change(entry, |count| count.checked_shr(halvings).unwrap_or(0));
    }

    fn change(self, entry: &mut Entry, to: impl Fn(u8) -> u8) {
        for at in 0..self.counts_kept() {
            self.set_count(entry, at, to(self.count_at(entry, at)));
        }
    }
}

/// Whether a run of `run` samples from one node is too long for chance, given that the node made `own` of the `before`
/// earlier ones (Laplace's rule of succession).
pub(super) fn is_change(before: u32, own: u32, run: u8) -> bool {
    let chance = f64::from(own + 1) / f64::from(before + 2);
    chance.powi(i32::from(run)) < CHANCE_OF_CHANGE
}

impl Entry {
    /// Sort key: process and page number.
    pub fn number(&self) -> u64 {
        self.key >> 8
    }

    fn low(&self) -> u8 {
        self.key as u8
    }

    fn set_low(&mut self, low: u8) {
        self.key = self.key >> 8 << 8 | u64::from(low);
    }
}

/// Index of the pair that counts a node: its own, an empty one, or the one with the smallest count, which it takes over
/// (Space-Saving; Metwally, Agrawal and El Abbadi, ICDT 2005).
fn pair(cells: &mut [u8; 8], node: u8) -> usize {
    let mut own = None;
    let mut least = 0;
    for i in 0..PAIRS {
        if cells[2 * i] == node && cells[2 * i + 1] > 0 {
            own = Some(i);
        }
        if cells[2 * i + 1] < cells[2 * least + 1] {
            least = i;
        }
    }
    let at = own.unwrap_or(least);
    cells[2 * at] = node;
    at
}
