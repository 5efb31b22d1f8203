//! A page that is aside, and which parts of it are still to be put back.

use super::SMALL;

/// Small pages in a huge one, by 64.
const WORDS: usize = 8;

/// A page in one of our places. Parts are small pages: the program may do with a part of a huge page what it likes.
#[derive(Clone, Copy, Default)]
pub struct Aside {
    pub page: u64,
    pub slot: usize,
    pub bytes: u64,
    /// Parts that are not in the place, or are not to be put back.
    gone: [u64; WORDS],
}

impl Aside {
    pub fn new(page: u64, slot: usize, bytes: u64) -> Self {
        Self {
            page,
            slot,
            bytes,
            gone: [0; WORDS],
        }
    }

    /// All of it is there.
    pub fn is_whole(&self) -> bool {
        self.gone == [0; WORDS]
    }

    /// The number of the first part that is to be put back, if there is one.
    pub fn first(&self) -> Option<u64> {
        (0..self.bytes / SMALL).find(|part| !self.is_gone(*part))
    }

    pub fn is_gone(&self, part: u64) -> bool {
        self.gone[part as usize / 64] & 1 << (part % 64) != 0
    }

    pub fn forget(&mut self, part: u64) {
        self.gone[part as usize / 64] |= 1 << (part % 64);
    }

    /// Forgets parts from one on, before another.
    pub fn forget_all(&mut self, first: u64, end: u64) {
        (first..end).for_each(|part| self.forget(part));
    }

    pub fn contains(&self, address: u64) -> bool {
        (self.page..self.page + self.bytes).contains(&address)
    }

    /// The parts in a range of addresses: the first, and the one after the last.
    pub fn parts_in(&self, start: u64, end: u64) -> (u64, u64) {
        let within = |address: u64| address.clamp(self.page, self.page + self.bytes) - self.page;
        (within(start) / SMALL, within(end).div_ceil(SMALL))
    }
}

#[cfg(test)]
mod tests {
    use super::super::HUGE;
    use super::*;

    #[test]
    fn parts_of_a_huge_page_are_given_up_alone() {
        let mut one = Aside::new(HUGE, 0, HUGE);
        assert!(one.is_whole());
        assert_eq!(one.parts_in(0, HUGE), (0, 0));
        assert_eq!(one.parts_in(0, HUGE + 3 * SMALL), (0, 3));
        assert_eq!(one.parts_in(HUGE + 510 * SMALL, u64::MAX), (510, 512));
        one.forget_all(0, 3);
        assert_eq!(
            (one.first(), one.is_gone(2), one.is_gone(3)),
            (Some(3), true, false)
        );
        one.forget_all(3, 512);
        assert_eq!(one.first(), None);
        let mut small = Aside::new(SMALL, 9, SMALL);
        assert!(small.contains(SMALL + 5) && !small.contains(2 * SMALL));
        assert_eq!(small.first(), Some(0));
        small.forget(0);
        assert_eq!(small.first(), None);
    }
}
