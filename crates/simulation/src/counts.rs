//! Access counts by page and node: exact counts of one slice, and decayed counts of earlier ones.

/// Accesses to each page from each node, in the current slice.
#[derive(Debug)]
pub(crate) struct Counts {
    nodes: usize,
    /// `[page * nodes + node]`: accesses in the current slice.
    counts: Vec<u64>,
    /// One bit a page.
    touched: Vec<u64>,
    pages: Vec<u32>,
}

impl Counts {
    pub fn new(pages: usize, nodes: usize) -> Self {
        Self {
            nodes,
            counts: vec![0; pages * nodes],
            touched: vec![0; pages.div_ceil(64)],
            pages: Vec::new(),
        }
    }

    /// Adds accesses from a node to each of the pages `from..to`.
    pub fn add(&mut self, from: usize, to: usize, node: usize, accesses: u64) {
        for page in from..to {
            self.counts[page * self.nodes + node] += accesses;
            self.touched[page / 64] |= 1 << (page % 64);
        }
    }

    /// Lists the slice's pages, once all of it was added.
    pub fn settle(&mut self) {
        self.pages.clear();
        for (i, &word) in self.touched.iter().enumerate() {
            let mut bits = word;
            while bits != 0 {
                self.pages.push((i * 64) as u32 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    /// The pages of the slice, ascending, as of the last [`Counts::settle`].
    pub fn pages(&self) -> impl Iterator<Item = usize> + '_ {
        self.pages.iter().map(|p| *p as usize)
    }

    /// Accesses to a page by node.
    #[inline]
    pub fn of(&self, page: usize) -> &[u64] {
        &self.counts[page * self.nodes..][..self.nodes]
    }

    /// Clears all counts for the next slice.
    pub fn clear(&mut self) {
        for page in self.pages.drain(..) {
            self.counts[page as usize * self.nodes..][..self.nodes].fill(0);
            self.touched[page as usize / 64] = 0;
        }
    }
}

/// The counts that decisions are based on: accumulated over intervals of one or several slices, and halved
/// periodically.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The number of slices per interval, and of those in the current one.
    interval: (u32, u32),
    nodes: usize,
    /// `[page * nodes + node]`: decayed counts of past intervals.
    counts: Vec<u64>,
    /// Pages with counts, ascending; if `keeps_pages`, all that ever had any.
    pages: Vec<u32>,
    keeps_pages: bool,
}

impl Memory {
    pub fn new(slices: u32, pages: usize, nodes: usize, keeps_pages: bool) -> Self {
        Self {
            interval: (slices, 0),
            nodes,
            counts: vec![0; pages * nodes],
            pages: Vec::new(),
            keeps_pages,
        }
    }

    /// Pages with counts, ascending; those without as well, if they are kept.
    pub fn pages(&self) -> &[u32] {
        &self.pages
    }

    /// Accesses to a page by node.
    #[inline]
    pub fn of(&self, page: usize) -> &[u64] {
        &self.counts[page * self.nodes..][..self.nodes]
    }

    /// Adds a slice. Returns whether an interval is complete.
    pub fn add(&mut self, slice: &Counts) -> bool {
        let (slices, had) = &mut self.interval;
        *had = (*had + 1) % *slices;
        for page in slice.pages() {
            let counts = &mut self.counts[page * self.nodes..][..self.nodes];
            counts.iter_mut().zip(slice.of(page)).for_each(|(c, s)| *c += s);
        }
        self.pages = union(&self.pages, slice.pages().map(|p| p as u32));
        self.interval.1 == 0
    }

    /// Halves all counts and drops the pages that have none left, unless they are kept.
    pub fn halve(&mut self) {
        let Self {
            counts,
            nodes,
            keeps_pages,
            ..
        } = self;
        self.pages.retain(|&page| {
            let counts = &mut counts[page as usize * *nodes..][..*nodes];
            counts.iter_mut().for_each(|c| *c /= 2);
            *keeps_pages || counts.iter().any(|c| *c > 0)
        });
    }
}

/// For pages that one policy has moved, their counts at that time, to be subtracted: a page's counts restart at its new
/// home, whose monitor has not seen the earlier accesses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since {
    /// One more than the index of each page's counts in `left`, 0 if it has none; empty before the first move.
    slots: Vec<u32>,
    /// `[slot * nodes + node]`: counts to subtract.
    left: Vec<u64>,
}

impl Since {
    /// Restarts a page's counts.
    pub fn begin(&mut self, page: u32, memory: &Memory) {
        if self.slots.is_empty() {
            self.slots.resize(memory.counts.len() / memory.nodes, 0);
        }
        let (slot, counts) = (&mut self.slots[page as usize], memory.of(page as usize));
        if *slot == 0 {
            self.left.extend_from_slice(counts);
            *slot = (self.left.len() / memory.nodes) as u32;
        } else {
            let at = (*slot as usize - 1) * memory.nodes;
            self.left[at..at + memory.nodes].copy_from_slice(counts);
        }
    }

    /// The counts of a page since it was moved.
    #[inline]
    pub fn of(&self, page: u32, memory: &Memory, counts: &mut [u64]) {
        let all = memory.of(page as usize);
        match self.slots.get(page as usize) {
            None | Some(0) => counts.iter_mut().zip(all).for_each(|(c, a)| *c = *a),
            Some(slot) => {
                let left = &self.left[(*slot as usize - 1) * memory.nodes..][..memory.nodes];
                for ((count, all), left) in counts.iter_mut().zip(all).zip(left) {
                    *count = all - left.min(all);
                }
            }
        }
    }

    /// Halves the subtracted counts; call with [`Memory::halve`].
    pub fn halve(&mut self) {
        self.left.iter_mut().for_each(|l| *l /= 2);
    }
}

/// The union of two ascending lists.
fn union(a: &[u32], b: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut all = Vec::with_capacity(a.len());
    let (mut a, mut b) = (a.iter().copied().peekable(), b.peekable());
    loop {
        let next = match (a.peek(), b.peek()) {
            (Some(&x), Some(&y)) => x.min(y),
            (Some(&x), None) | (None, Some(&x)) => x,
            (None, None) => return all,
        };
        a.next_if_eq(&next);
        b.next_if_eq(&next);
        all.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(cells: &[(usize, usize, u64)]) -> Counts {
        let mut counts = Counts::new(200, 2);
        for &(page, node, accesses) in cells {
            counts.add(page, page + 1, node, accesses);
        }
        counts.settle();
        counts
    }

    #[test]
    fn a_slice_lists_its_pages_ascending_and_forgets_them() {
        let mut counts = slice(&[(199, 1, 3), (0, 0, 1), (64, 1, 2), (63, 0, 4), (64, 0, 1)]);
        assert_eq!(counts.pages().collect::<Vec<_>>(), [0, 63, 64, 199]);
        assert_eq!(counts.of(64), [1, 2]);
        counts.clear();
        assert_eq!(counts.pages().count(), 0);
        assert_eq!(counts.of(64), [0, 0]);
    }

    #[test]
    fn an_interval_has_all_its_slices_and_what_is_left_of_earlier_ones() {
        let mut memory = Memory::new(2, 200, 2, false);
        assert!(!memory.add(&slice(&[(3, 0, 8), (9, 0, 1)])));
        assert!(memory.add(&slice(&[(3, 1, 4)])));
        assert_eq!((memory.of(3), memory.of(9)), (&[8, 4][..], &[1, 0][..]));
        memory.halve();
        assert!(!memory.add(&slice(&[(5, 1, 7)])));
        // Page 9's single access was halved to nothing.
        assert_eq!(memory.pages(), [3, 5]);
        assert_eq!((memory.of(3), memory.of(5)), (&[4, 2][..], &[0, 7][..]));
    }

    #[test]
    fn pages_without_accesses_are_kept_where_they_are_ranked() {
        let mut memory = Memory::new(1, 200, 2, true);
        memory.add(&slice(&[(3, 0, 1)]));
        memory.halve();
        assert_eq!((memory.pages(), memory.of(3)), (&[3][..], &[0, 0][..]));
    }

    #[test]
    fn a_moved_page_counts_anew() {
        let mut memory = Memory::new(1, 200, 2, false);
        let mut since = Since::default();
        let seen = |since: &Since, memory: &Memory| {
            let mut counts = [0; 2];
            since.of(70, memory, &mut counts);
            counts
        };
        memory.add(&slice(&[(70, 0, 9)]));
        assert_eq!(seen(&since, &memory), [9, 0]);
        since.begin(70, &memory);
        assert_eq!(seen(&since, &memory), [0, 0]);
        memory.add(&slice(&[(70, 1, 6)]));
        assert_eq!(seen(&since, &memory), [0, 6]);
        for _ in 0..4 {
            memory.halve();
            since.halve();
        }
        assert_eq!(seen(&since, &memory), [0, 0]);
    }
}
