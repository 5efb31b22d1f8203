//! Pages that are aside: where each belongs, and which parts of it are still to be put back. What the process does to its memory
//! meanwhile changes both.
//!
//! A thread tells of a change after it has made it, and goes on once we have read that. Of changes that several threads have under
//! way together the order is not known: one that is told after a page came somewhere (`mremap`) may have been made before, when
//! something else was there. Such a page has several candidate places then, with the same slot; it is put back where there
//! turns out to be a gap for it. There may be gaps at several, and nothing tells them apart: a process of which that much is
//! seen is left alone from then on.

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
    /// Stays the same while other entries come and go.
    pub id: u32,
    /// Parts that are not in the place, or are not to be put back.
    gone: [u64; WORDS],
    /// The number of the move (`mremap`) by which it came to where it is, while other changes may be under way of which we have not
    /// read; else 0.
    came: u32,
    /// Changes by which it would be somewhere else, or gone, if they were made in another order than was taken for likely.
    doubts: u8,
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

    /// Whether both are candidates of one page's place, or of a part of it.
    fn is_candidate_of(&self, other: &Self) -> bool {
        let both = |part| !self.is_gone(part) && !other.is_gone(part);
        self.slot == other.slot && (0..self.bytes / SMALL).any(both)
    }

    fn doubted(self) -> Self {
        Self {
            doubts: self.doubts.saturating_add(1),
            ..self
        }
    }
}

/// The pages that are aside, an entry for each candidate of a place.
#[derive(Clone)]
pub struct Pages {
    all: [Aside; ENTRIES],
    count: usize,
    next: u32,
    /// Moves told so far.
    moves: u32,
}

impl Pages {
    pub fn new() -> Self {
        Self {
            all: [Aside::default(); ENTRIES],
            count: 0,
            next: 0,
            moves: 0,
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

    /// Which one belongs to an address; of two, the likelier one, and that which came there last.
    pub fn at(&self, address: u64) -> Option<u32> {
        let there = self.all().iter().filter(|aside| aside.contains(address));
        there
            .min_by_key(|aside| (aside.doubts, u32::MAX - aside.came))
            .map(|aside| aside.id)
    }

    /// Of the candidates of a page's place the likeliest.
    pub fn likeliest(&self, id: u32) -> Option<&Aside> {
        let one = self.all().iter().find(|aside| aside.id == id)?;
        let candidates = self.all().iter().filter(|aside| aside.is_candidate_of(one));
        // Where another page is likelier to be there is no gap for this one.
        let taken = |aside: &Aside| {
            let at = |other: &&Aside| {
                let part = aside.first().unwrap_or_default();
                other.slot != aside.slot && other.contains(aside.address(part))
            };
            let others = self.all().iter().filter(at);
            others
                .map(|other| other.doubts)
                .min()
                .is_some_and(|doubts| doubts < aside.doubts)
        };
        candidates
            .min_by_key(|aside| (taken(aside), aside.doubts, aside.id))
            .or(Some(one))
    }

    /// How many pages, each with all candidates of its place.
    pub fn count(&self) -> u64 {
        let first =
            |(at, aside): &(usize, &Aside)| !self.all()[..*at].iter().any(|one| one.slot == aside.slot);
        self.all().iter().enumerate().filter(first).count() as u64
    }

    /// Whether anything of a slot is to be put back.
    pub fn has(&self, slot: usize) -> bool {
        self.all().iter().any(|aside| aside.slot == slot)
    }

    pub fn remove(&mut self, id: u32) {
        if let Some(which) = self.all().iter().position(|aside| aside.id == id) {
            self.count -= 1;
            self.all[which] = self.all[self.count];
        }
    }

    /// Parts of a slot, from one on and before another, are back in their place: it has no other.
    pub fn done(&mut self, slot: usize, first: u64, end: u64) {
        let of = self.all[..self.count]
            .iter_mut()
            .filter(|aside| aside.slot == slot);
        of.for_each(|aside| aside.forget_all(first, end));
    }

    /// A part was filled in at one candidate of its place, or could not be.
    pub fn filled(&mut self, one: &Aside, part: u64, there: bool) {
        if there {
            self.done(one.slot, part, part + 1);
        } else if let Some(one) = self.get(one.id) {
            one.forget(part);
        }
    }

    /// A range has changed its place. `mapped`: whether there is a mapping at an address.
    pub fn moved(&mut self, from: u64, to: u64, bytes: u64, mapped: impl FnMut(u64) -> bool) {
        self.moves += 1;
        let mut mapped = once(mapped);
        for which in 0..self.count {
            let mut left = self.all[which];
            let Some(taken) = left.split(from, from + bytes) else {
                continue;
            };
            let address = taken.address(taken.first().unwrap_or_default());
            let mut there = Aside {
                page: taken.page.wrapping_sub(from).wrapping_add(to),
                came: self.moves,
                ..taken
            };
            // Another page has come here since, so this one has left.
            let since = |other: &Aside| other.slot != taken.slot && other.came > taken.came;
            let has_left = self
                .all()
                .iter()
                .any(|other| since(other) && other.contains(address));
            let mut here = None;
            if taken.came > 0 && !has_left && mapped(address) {
                // It is still here, and what was here before it has moved, which is told late; or it has gone on.
                there = there.doubted();
                here = Some(taken);
            } else if taken.came > 0 || has_left {
                here = Some(taken.doubted());
            }
            self.replace(which, left, there);
            here.into_iter().for_each(|here| self.push(here));
        }
    }

    /// A range is unmapped.
    pub fn unmapped(&mut self, start: u64, end: u64, mapped: impl FnMut(u64) -> bool) {
        let mut mapped = once(mapped);
        for which in 0..self.count {
            let mut left = self.all[which];
            let Some(taken) = left.split(start, end) else {
                continue;
            };
            if taken.came == 0 {
                self.all[which] = left;
                self.gone_with(&taken);
            } else if !mapped(taken.address(taken.first().unwrap_or_default())) {
                // It is unmapped; or was moved on, which will be told, and what was here before it is.
                self.replace(which, left, taken.doubted());
            }
        }
    }

    /// What has gone from the likeliest place is nowhere else.
    fn gone_with(&mut self, taken: &Aside) {
        for other in &mut self.all[..self.count] {
            if other.is_candidate_of(taken) && other.doubts > taken.doubts {
                (0..taken.bytes / SMALL)
                    .filter(|part| !taken.is_gone(*part))
                    .for_each(|part| other.forget(part));
            }
        }
    }

    /// One entry becomes two, unless nothing is left of the first.
    fn replace(&mut self, which: usize, left: Aside, taken: Aside) {
        self.all[which] = left;
        if left.first().is_some() {
            self.push(taken);
        } else if !self.merge(&taken) {
            self.all[which] = Aside { id: left.id, ..taken };
        }
    }

    /// Whether there is such an entry already: it has the fewer doubts of both then.
    fn merge(&mut self, aside: &Aside) -> bool {
        let same = |one: &&mut Aside| (one.page, one.slot, one.gone) == (aside.page, aside.slot, aside.gone);
        let found = self.all[..self.count].iter_mut().find(same);
        found.is_some_and(|one| {
            (one.doubts, one.came) = (one.doubts.min(aside.doubts), one.came.max(aside.came));
            true
        })
    }

    /// No change is under way: what will be told from now on happens from now on.
    pub fn settled(&mut self) {
        for aside in &mut self.all[..self.count] {
            aside.came = 0;
        }
    }

    /// Whether any place is in doubt.
    pub fn is_doubtful(&self) -> bool {
        self.all().iter().any(|aside| aside.doubts > 0)
    }

    /// Whether a page has several candidates of its place.
    pub fn has_candidates(&self, id: u32) -> bool {
        let one = self.all().iter().find(|aside| aside.id == id);
        one.is_some_and(|one| {
            let others = self.all().iter().filter(|aside| aside.id != id);
            others.into_iter().any(|aside| aside.is_candidate_of(one))
        })
    }

    /// Takes out the places in doubt where nothing is mapped; no change is under way. A page that has one place left is there.
    pub fn keep_mapped(&mut self, mut mapped: impl FnMut(u64) -> bool) {
        for aside in &mut self.all[..self.count] {
            if let Some(part) = aside.first()
                && aside.doubts > 0
                && !mapped(aside.address(part))
            {
                aside.forget_all(0, aside.bytes / SMALL);
            }
        }
        for which in 0..self.count {
            if !self.has_candidates(self.all[which].id) {
                self.all[which].doubts = 0;
            }
        }
    }

    /// The contents of a range are given up.
    pub fn given_up(&mut self, start: u64, end: u64) {
        for which in 0..self.count {
            if let Some(taken) = self.all[which].split(start, end) {
                self.gone_with(&taken);
            }
        }
    }

    /// The next one of which nothing is to be put back any more.
    pub fn take_empty(&mut self) -> Option<Aside> {
        let empty = *self.all().iter().find(|aside| aside.first().is_none())?;
        self.remove(empty.id);
        Some(empty)
    }

    /// Adds an entry, unless there is such a one. If there are too many, the least likely goes.
    fn push(&mut self, aside: Aside) {
        if self.merge(&aside) {
            return;
        }
        let added = Aside {
            id: self.next,
            ..aside
        };
        self.next = self.next.wrapping_add(1);
        if self.count < ENTRIES {
            self.all[self.count] = added;
            self.count += 1;
        } else if let Some(least) = self.all.iter_mut().max_by_key(|one| one.doubts)
            && least.doubts > added.doubts
        {
            *least = added;
        }
    }
}

/// Asks once: what is told of a range concerns all of it.
fn once(mut ask: impl FnMut(u64) -> bool) -> impl FnMut(u64) -> bool {
    let mut known = None;
    move |address| *known.get_or_insert_with(|| ask(address))
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
        // It is unmapped by whoever moved it, and there is something else by now.
        pages.settled();
        pages.unmapped(hole, hole + SMALL, |_| true);
        assert_eq!(pages.take_empty().map(|aside| aside.slot), Some(1));
    }

    #[test]
    fn what_goes_on_before_an_older_change_is_told_goes_along() {
        let (hole, elsewhere, beyond) = (8 * SMALL, 80 * SMALL, 160 * SMALL);
        let mut pages = one(elsewhere, SMALL);
        pages.moved(elsewhere, hole, SMALL, |_| true);
        // That of what was in the hole before; the page has left it already.
        pages.unmapped(hole, hole + SMALL, |_| false);
        assert!(pages.take_empty().is_none());
        pages.moved(hole, beyond, SMALL, |_| false);
        pages.settled();
        pages.keep_mapped(|address| address == beyond);
        while pages.take_empty().is_some() {}
        let places: Vec<u64> = pages.all().iter().map(|aside| aside.page).collect();
        assert_eq!(places, [beyond]);
    }

    #[test]
    fn one_that_came_before_another_has_left() {
        let (hole, beyond) = (8 * SMALL, 160 * SMALL);
        let mut pages = one(80 * SMALL, SMALL);
        pages.add(90 * SMALL, 1, SMALL, SMALL);
        pages.moved(80 * SMALL, hole, SMALL, |_| true);
        // It has moved on, which is told after the other has come.
        pages.moved(90 * SMALL, hole, SMALL, |_| true);
        pages.moved(hole, beyond, SMALL, |_| true);
        let slot = |pages: &mut Pages, address| {
            let id = pages.at(address).unwrap();
            let likeliest = pages.likeliest(id).unwrap();
            (likeliest.slot, likeliest.page)
        };
        assert_eq!(slot(&mut pages, hole), (1, hole));
        assert_eq!(slot(&mut pages, beyond), (0, beyond));
    }

    #[test]
    fn a_page_that_moves_to_and_fro_has_two_places() {
        let places = [80 * SMALL, 160 * SMALL];
        let mut pages = one(places[0], SMALL);
        for round in 0..100 {
            let (from, to) = (places[round % 2], places[(round + 1) % 2]);
            pages.moved(from, to, SMALL, |_| round % 3 == 0);
            while pages.take_empty().is_some() {}
        }
        assert_eq!((pages.all().len(), pages.count()), (2, 1));
        pages.settled();
        pages.keep_mapped(|address| address == places[1]);
        while pages.take_empty().is_some() {}
        assert_eq!(pages.all().len(), 1);
        assert_eq!((pages.all()[0].page, pages.is_doubtful()), (places[1], false));
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
                pages.settled();
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
