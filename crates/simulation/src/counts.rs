//! Who accessed which page: exact counts of one slice, and what a policy remembers of earlier ones.

use std::collections::BTreeMap;

/// Accesses to each page from each node, in the current slice.
#[derive(Debug)]
pub(crate) struct Counts {
    nodes: usize,
    /// `[page][node]`.
    counts: Vec<u64>,
    /// One bit a page.
    touched: Vec<u64>,
}

impl Counts {
    pub fn new(pages: usize, nodes: usize) -> Self {
        Self {
            nodes,
            counts: vec![0; pages * nodes],
            touched: vec![0; pages.div_ceil(64)],
        }
    }

    /// Adds accesses from a node to each of the pages `from..to`.
    pub fn add(&mut self, from: usize, to: usize, node: usize, accesses: u64) {
        for page in from..to {
            self.counts[page * self.nodes + node] += accesses;
            self.touched[page / 64] |= 1 << (page % 64);
        }
    }

    /// The pages of the slice, ascending.
    pub fn pages(&self) -> impl Iterator<Item = usize> + '_ {
        let bits = |word: u64| std::iter::successors(Some(word), |w| Some(w & w.wrapping_sub(1)));
        let words = self.touched.iter().enumerate();
        words.flat_map(move |(i, &word)| {
            bits(word)
                .take_while(|w| *w != 0)
                .map(move |w| i * 64 + w.trailing_zeros() as usize)
        })
    }

    /// Accesses to a page by node.
    #[inline]
    pub fn of(&self, page: usize) -> &[u64] {
        &self.counts[page * self.nodes..][..self.nodes]
    }

    /// Begins a slice.
    pub fn clear(&mut self) {
        for word in 0..self.touched.len() {
            let mut bits = std::mem::take(&mut self.touched[word]);
            while bits != 0 {
                let page = word * 64 + bits.trailing_zeros() as usize;
                self.counts[page * self.nodes..][..self.nodes].fill(0);
                bits &= bits - 1;
            }
        }
    }
}

/// The counts that decisions are made from: intervals of one slice or several, halved now and then.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Slices an interval has, and those that the current one has had.
    interval: (u32, u32),
    nodes: usize,
    /// `[page][node]`.
    counts: Vec<u64>,
    /// Pages with counts, ascending.
    pages: Vec<u32>,
}

impl Memory {
    pub fn new(slices: u32, pages: usize, nodes: usize) -> Self {
        Self {
            interval: (slices, 0),
            nodes,
            counts: vec![0; pages * nodes],
            pages: Vec::new(),
        }
    }

    /// Pages with counts, ascending.
    pub fn pages(&self) -> &[u32] {
        &self.pages
    }

    /// Accesses to a page by node.
    #[inline]
    pub fn of(&self, page: usize) -> &[u64] {
        &self.counts[page * self.nodes..][..self.nodes]
    }

    /// Adds a slice; says whether an interval is complete.
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

    /// Halves all counts and forgets the pages that have none left.
    pub fn halve(&mut self) {
        let Self { counts, nodes, .. } = self;
        self.pages.retain(|&page| {
            let counts = &mut counts[page as usize * *nodes..][..*nodes];
            counts.iter_mut().for_each(|c| *c /= 2);
            counts.iter().any(|c| *c > 0)
        });
    }
}

/// What a page's counts were when one policy moved it: they begin anew at its new home, whose monitor
/// has seen nothing of what came before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Since {
    /// One bit a page: whether `left` has it.
    moved: Vec<u64>,
    left: BTreeMap<u32, Box<[u64]>>,
}

impl Since {
    pub fn new(pages: usize) -> Self {
        Self {
            moved: vec![0; pages.div_ceil(64)],
            left: BTreeMap::new(),
        }
    }

    /// Begins a page's counts anew.
    pub fn begin(&mut self, page: u32, memory: &Memory) {
        self.moved[page as usize / 64] |= 1 << (page % 64);
        self.left.insert(page, memory.of(page as usize).into());
    }

    /// What is remembered of a page since it moved.
    #[inline]
    pub fn of(&self, page: u32, memory: &Memory, counts: &mut [u64]) {
        counts.copy_from_slice(memory.of(page as usize));
        if self.moved[page as usize / 64] >> (page % 64) & 1 == 1 {
            let left = &self.left[&page];
            counts.iter_mut().zip(left).for_each(|(c, l)| *c -= (*l).min(*c));
        }
    }

    /// As [`Memory::halve`].
    pub fn halve(&mut self) {
        let moved = &mut self.moved;
        self.left.retain(|&page, left| {
            left.iter_mut().for_each(|l| *l /= 2);
            let any = left.iter().any(|l| *l > 0);
            if !any {
                moved[page as usize / 64] &= !(1 << (page % 64));
            }
            any
        });
    }
}

/// Both lists in one; each ascends.
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
        let mut memory = Memory::new(2, 200, 2);
        assert!(!memory.add(&slice(&[(3, 0, 8), (9, 0, 1)])));
        assert!(memory.add(&slice(&[(3, 1, 4)])));
        assert_eq!((memory.of(3), memory.of(9)), (&[8, 4][..], &[1, 0][..]));
        memory.halve();
        assert!(!memory.add(&slice(&[(5, 1, 7)])));
        // Page 9's single access has faded.
        assert_eq!(memory.pages(), [3, 5]);
        assert_eq!((memory.of(3), memory.of(5)), (&[4, 2][..], &[0, 7][..]));
    }

    #[test]
    fn a_moved_page_counts_anew() {
        let mut memory = Memory::new(1, 200, 2);
        let mut since = Since::new(200);
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
        assert_eq!((seen(&since, &memory), since.left.len()), ([0, 0], 0));
    }
}
