//! Pages that are aside: where each belongs, and which parts of it are still to be put back. What the process does to its memory
//! meanwhile changes both.

use super::SMALL;

/// Small pages in a huge one, by 64.
const WORDS: usize = 8;
/// Entries at most: a window's pages, and parts of them that were moved apart before they could be put back.
const ENTRIES: usize = 1024;

/// A page in one of our places, or parts of one. Parts are small pages: the program may do with a part of a huge page what it
/// likes.
#[derive(Clone, Copy, Default)]
pub struct Aside {
    pub page: u64,
    pub slot: usize,
    pub bytes: u64,
    /// By which it is found again, whatever becomes of the others.
    pub id: u32,
    /// Parts that are not in the place, or are not to be put back.
    gone: [u64; WORDS],
    /// It was moved to where it is (`mremap`), and other changes may be under way of which we have not read.
    arrived: bool,
}

impl Aside {
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

    /// Where a part belongs.
    pub fn address(&self, part: u64) -> u64 {
        self.page.wrapping_add(part * SMALL)
    }

    pub fn forget(&mut self, part: u64) {
        self.gone[part as usize / 64] |= 1 << (part % 64);
    }

    /// Forgets parts from one on, before another.
    pub fn forget_all(&mut self, first: u64, end: u64) {
        (first..end).for_each(|part| self.forget(part));
    }

    fn contains(&self, address: u64) -> bool {
        let part = address.wrapping_sub(self.page) / SMALL;
        part < self.bytes / SMALL && !self.is_gone(part)
    }

    /// The parts in a range of addresses: the first, and the one after the last.
    fn parts_in(&self, start: u64, end: u64) -> (u64, u64) {
        // A part that was moved below 2 MiB leaves the page's start, which is not its own, below 0.
        let within = |address: u64| {
            let offset = address.min(i64::MAX as u64) as i64 - self.page as i64;
            offset.clamp(0, self.bytes as i64) as u64
        };
        (within(start) / SMALL, within(end).div_ceil(SMALL))
    }

    /// Takes the parts in a range out; none if nothing of it is left there.
    fn split(&mut self, start: u64, end: u64) -> Option<Self> {
        let (first, end) = self.parts_in(start, end);
        let mut taken = *self;
        taken.forget_all(0, first);
        taken.forget_all(end, self.bytes / SMALL);
        self.forget_all(first, end);
        taken.first().map(|_| taken)
    }

    /// Whether what is told of a range is older than this entry's being there. A thread tells of a change some time after it
    /// made it, and another may have moved memory to where the first one's was, and have told of that already. So of changes that
    /// were under way together ([`Pages::settled`]) what came somewhere came last, unless nothing is mapped there any more.
    fn came_later(&self, start: u64, end: u64, mapped: &mut impl FnMut(u64) -> bool) -> bool {
        let (first, end) = self.parts_in(start, end);
        self.arrived && first < end && mapped(self.address(first))
    }
}

/// All that are aside.
#[derive(Clone)]
pub struct Pages {
    all: [Aside; ENTRIES],
    count: usize,
    next: u32,
}

impl Pages {
    pub fn new() -> Self {
        Self {
            all: [Aside::default(); ENTRIES],
            count: 0,
            next: 0,
        }
    }

    pub fn all(&self) -> &[Aside] {
        &self.all[..self.count]
    }

    /// Adds a page in a slot; the first `there` bytes of it are.
    pub fn add(&mut self, page: u64, slot: usize, bytes: u64, there: u64) {
        let mut aside = Aside {
            page,
            slot,
            bytes,
            ..Aside::default()
        };
        aside.forget_all(there / SMALL, bytes / SMALL);
        self.push(aside);
    }

    pub fn get(&mut self, id: u32) -> Option<&mut Aside> {
        self.all[..self.count].iter_mut().find(|aside| aside.id == id)
    }

    /// Which one belongs to an address; of two, that which came there last.
    pub fn at(&self, address: u64) -> Option<u32> {
        let there = self.all().iter().filter(|aside| aside.contains(address));
        there.max_by_key(|aside| aside.arrived).map(|aside| aside.id)
    }

    pub fn remove(&mut self, id: u32) {
        if let Some(which) = self.all().iter().position(|aside| aside.id == id) {
            self.count -= 1;
            self.all[which] = self.all[self.count];
        }
    }

    /// A range has changed its place. `mapped`: whether there is a mapping at an address.
    pub fn moved(&mut self, from: u64, to: u64, bytes: u64, mut mapped: impl FnMut(u64) -> bool) {
        for which in 0..self.count {
            if self.all[which].came_later(from, from + bytes, &mut mapped) {
                continue;
            }
            if let Some(mut taken) = self.all[which].split(from, from + bytes) {
                taken.page = taken.page.wrapping_sub(from).wrapping_add(to);
                taken.arrived = true;
                if self.all[which].first().is_none() {
                    self.all[which] = taken;
                } else {
                    self.push(taken);
                }
            }
        }
    }

    /// A range is unmapped.
    pub fn unmapped(&mut self, start: u64, end: u64, mut mapped: impl FnMut(u64) -> bool) {
        for aside in &mut self.all[..self.count] {
            if !aside.came_later(start, end, &mut mapped) {
                aside.split(start, end);
            }
        }
    }

    /// No change is under way: what will be told from now on happens from now on.
    pub fn settled(&mut self) {
        for aside in &mut self.all[..self.count] {
            aside.arrived = false;
        }
    }

    /// The contents of a range are given up.
    pub fn given_up(&mut self, start: u64, end: u64) {
        for aside in &mut self.all[..self.count] {
            aside.split(start, end);
        }
    }

    /// The next one of which nothing is to be put back any more.
    pub fn take_empty(&mut self) -> Option<Aside> {
        let empty = *self.all().iter().find(|aside| aside.first().is_none())?;
        self.remove(empty.id);
        Some(empty)
    }

    fn push(&mut self, aside: Aside) {
        // Nobody cuts so much in a window's time.
        if self.count < ENTRIES {
            self.all[self.count] = Aside {
                id: self.next,
                ..aside
            };
            self.count += 1;
            self.next = self.next.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::HUGE;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn one(page: u64, bytes: u64) -> Pages {
        let mut pages = Pages::new();
        pages.add(page, 0, bytes, bytes);
        pages
    }

    #[test]
    fn parts_of_a_huge_page_are_given_up_alone() {
        let mut pages = one(HUGE, HUGE);
        assert!(pages.all()[0].is_whole());
        pages.given_up(0, HUGE);
        assert!(pages.all()[0].is_whole());
        pages.given_up(0, HUGE + 3 * SMALL - 1);
        let left = pages.all()[0];
        assert_eq!(
            (left.first(), left.is_gone(2), left.is_gone(3)),
            (Some(3), true, false)
        );
        assert_eq!(
            (pages.at(HUGE), pages.at(HUGE + 3 * SMALL)),
            (None, Some(left.id))
        );
        pages.given_up(HUGE + 3 * SMALL, u64::MAX);
        assert_eq!(pages.take_empty().map(|aside| aside.slot), Some(0));
        assert!(pages.all().is_empty() && pages.take_empty().is_none());
    }

    #[test]
    fn what_was_told_late_leaves_alone_what_came_since() {
        // One thread unmaps a range; another moves a page there, and tells of it first.
        let (hole, elsewhere) = (8 * SMALL, 80 * SMALL);
        let mut pages = one(hole, SMALL);
        pages.add(elsewhere, 1, SMALL, SMALL);
        pages.moved(elsewhere, hole, SMALL, |_| true);
        assert_eq!(pages.at(hole), Some(1), "the one that is there now");
        pages.unmapped(hole, hole + SMALL, |_| true);
        assert_eq!(pages.take_empty().map(|aside| aside.slot), Some(0));
        assert_eq!(pages.at(hole), Some(1));
        // The same of a page that the first one had moved elsewhere.
        let mut pages = one(hole, SMALL);
        pages.add(elsewhere, 1, SMALL, SMALL);
        pages.moved(elsewhere, hole, SMALL, |_| true);
        pages.moved(hole, elsewhere, SMALL, |_| true);
        assert_eq!((pages.at(elsewhere), pages.at(hole)), (Some(0), Some(1)));
        // It is unmapped by whoever moved it, and there is something else by now.
        let mut later = pages.clone();
        later.settled();
        later.unmapped(hole, hole + SMALL, |_| true);
        assert_eq!(later.take_empty().map(|aside| aside.slot), Some(1));
        // It is moved on, and unmapped there.
        pages.moved(hole, 3 * SMALL, SMALL, |_| false);
        assert_eq!(pages.at(3 * SMALL), Some(1));
        pages.unmapped(0, 9 * SMALL, |_| false);
        assert_eq!(pages.take_empty().map(|aside| aside.slot), Some(1));
    }

    #[derive(Clone, Debug)]
    enum Change {
        Moved(u64, u64, u64),
        Unmapped(u64, u64),
        GivenUp(u64, u64),
    }

    proptest! {
        /// Beside a map from addresses to what is there, with changes told in the order in which they are made.
        #[test]
        fn parts_are_where_the_program_moved_them(changes in prop::collection::vec(
            prop_oneof![
                (0..1536u64, 2048..3000u64, 1..700u64).prop_map(|(from, to, n)| Change::Moved(from, to, n)),
                (2048..3600u64, 0..900u64, 1..700u64).prop_map(|(from, to, n)| Change::Moved(from, to, n)),
                (0..4000u64, 1..300u64).prop_map(|(start, n)| Change::Unmapped(start, n)),
                (0..4000u64, 1..300u64).prop_map(|(start, n)| Change::GivenUp(start, n)),
            ], 0..12)) {
            let mut pages = Pages::new();
            let mut memory = BTreeMap::new(); // by number of a small page: slot and part
            for slot in 0..3 {
                pages.add(HUGE * slot, slot as usize, HUGE, HUGE);
                memory.extend((0..512).map(|part| (slot * 512 + part, (slot as usize, part))));
            }
            for change in changes {
                match change {
                    Change::Moved(from, to, n) => {
                        // What was there is unmapped first, as the kernel does; ranges do not overlap.
                        let n = n.min(from.abs_diff(to));
                        pages.unmapped(to * SMALL, (to + n) * SMALL, |_| false);
                        pages.moved(from * SMALL, to * SMALL, n * SMALL, |_| false);
                        memory.retain(|at, _| !(to..to + n).contains(at));
                        let taken: Vec<_> = memory.range(from..from + n).map(|(at, what)| (*at, *what)).collect();
                        for (at, what) in taken {
                            memory.remove(&at);
                            memory.insert(at - from + to, what);
                        }
                    }
                    Change::Unmapped(start, n) => {
                        pages.unmapped(start * SMALL, (start + n) * SMALL, |_| false);
                        memory.retain(|at, _| !(start..start + n).contains(at));
                    }
                    Change::GivenUp(start, n) => {
                        pages.given_up(start * SMALL, (start + n) * SMALL);
                        memory.retain(|at, _| !(start..start + n).contains(at));
                    }
                }
                while pages.take_empty().is_some() {}
            }
            let mut found = BTreeMap::new();
            for aside in pages.all() {
                for part in (0..512).filter(|part| !aside.is_gone(*part)) {
                    let address = aside.address(part);
                    prop_assert_eq!(pages.at(address), Some(aside.id));
                    prop_assert!(found.insert(address / SMALL, (aside.slot, part)).is_none());
                }
            }
            prop_assert_eq!(found, memory);
        }
    }
}
