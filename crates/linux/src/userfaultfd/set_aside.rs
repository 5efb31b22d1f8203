//! The pages that are aside: where each belongs, and which parts of it are still to be put back. Both change when the
//! process changes its mappings meanwhile.
//!
//! A thread reports a change after it has made it, and continues once we have read the report. When several threads
//! make changes concurrently, the order of the changes is unknown: a change reported after a page was moved to an
//! address (`mremap`) may have been made before that move, and so concern what was there earlier. Such a page gets
//! several entries with the same slot, one for each candidate place, and is put back at the candidate where a page is
//! missing. If pages are missing at several candidates, nothing distinguishes them; a process in which that happens is
//! not sampled again.

/// Size of a huge page in bytes.
pub const HUGE: u64 = 2 << 20;
/// Size of a small page in bytes.
pub const SMALL: u64 = 4 << 10;

/// Length of the bit set that has a bit for each small page of a huge page.
const WORDS: usize = 8;
/// The largest number of entries: a window's pages, and parts of them that were moved apart before they were put back.
const ENTRIES: usize = 1024;

/// A page that lies in one of our slots, or some parts of one. A part is a small page: the program may move or unmap a
/// part of a huge page alone.
#[derive(Clone, Copy, Default)]
pub struct Entry {
    pub page: u64,
    pub slot: usize,
    pub bytes: u64,
    /// Identifies the entry while others are added and removed.
    pub id: u32,
    /// A bit for each part that is not in the slot, or need not be put back.
    gone: [u64; WORDS],
    /// The number of the move (`mremap`) that brought the page here, as long as concurrent changes may still be
    /// unreported; else 0.
    moved_by: u32,
    /// How many reported changes would contradict this place if they were made in another order than the assumed one.
    contradictions: u8,
}

impl Entry {
    /// Whether every part is in the slot and to be put back.
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

    /// The address where a part belongs.
    pub fn address(&self, part: u64) -> u64 {
        self.page.wrapping_add(part * SMALL)
    }

    pub fn forget(&mut self, part: u64) {
        self.gone[part as usize / 64] |= 1 << (part % 64);
    }

    /// Marks the parts from `first` up to but excluding `end` as gone.
    pub fn forget_all(&mut self, first: u64, end: u64) {
        (first..end).for_each(|part| self.forget(part));
    }

    fn contains(&self, address: u64) -> bool {
        let part = address.wrapping_sub(self.page) / SMALL;
        part < self.bytes / SMALL && !self.is_gone(part)
    }

    /// The parts in a range of addresses: the first one, and one past the last.
    fn parts_in(&self, start: u64, end: u64) -> (u64, u64) {
        // If a part of a huge page was moved below 2 MiB, the page's computed start is negative.
        let within = |address: u64| {
            let offset = address.min(i64::MAX as u64) as i64 - self.page as i64;
            offset.clamp(0, self.bytes as i64) as u64
        };
        (within(start) / SMALL, within(end).div_ceil(SMALL))
    }

    /// Splits off the parts in a range; none if the range contains no part that is to be put back.
    fn split(&mut self, start: u64, end: u64) -> Option<Self> {
        let (first, end) = self.parts_in(start, end);
        let mut taken = *self;
        taken.forget_all(0, first);
        taken.forget_all(end, self.bytes / SMALL);
        self.forget_all(first, end);
        taken.first().map(|_| taken)
    }

    /// Whether both entries are candidate places of the same page, or of a common part.
    fn is_candidate_of(&self, other: &Self) -> bool {
        let both = |part| !self.is_gone(part) && !other.is_gone(part);
        self.slot == other.slot && (0..self.bytes / SMALL).any(both)
    }

    fn doubted(self) -> Self {
        Self {
            contradictions: self.contradictions.saturating_add(1),
            ..self
        }
    }
}

/// The pages that are aside, with one entry for each candidate place.
#[derive(Clone)]
pub struct Pages {
    all: [Entry; ENTRIES],
    count: usize,
    next: u32,
    /// Number of moves (`mremap`) reported so far.
    moves: u32,
}

impl Pages {
    pub fn new() -> Self {
        Self {
            all: [Entry::default(); ENTRIES],
            count: 0,
            next: 0,
            moves: 0,
        }
    }

    pub fn all(&self) -> &[Entry] {
        &self.all[..self.count]
    }

    /// Adds a page in a slot, of which only the first `there` bytes were moved to the slot.
    pub fn add(&mut self, page: u64, slot: usize, bytes: u64, there: u64) {
        let mut entry = Entry {
            page,
            slot,
            bytes,
            ..Entry::default()
        };
        entry.forget_all(there / SMALL, bytes / SMALL);
        self.push(entry);
    }

    pub fn get(&mut self, id: u32) -> Option<&mut Entry> {
        self.all[..self.count].iter_mut().find(|entry| entry.id == id)
    }

    /// The entry that belongs to an address; of several, the one with the fewest contradictions, and then the one moved there
    /// last.
    pub fn at(&self, address: u64) -> Option<u32> {
        let there = self.all().iter().filter(|entry| entry.contains(address));
        there
            .min_by_key(|entry| (entry.contradictions, u32::MAX - entry.moved_by))
            .map(|entry| entry.id)
    }

    /// The likeliest candidate place of the page that this entry belongs to.
    pub fn likeliest(&self, id: u32) -> Option<&Entry> {
        let one = self.all().iter().find(|entry| entry.id == id)?;
        let candidates = self.all().iter().filter(|entry| entry.is_candidate_of(one));
        // A place that more likely belongs to another page is not free for this one.
        let taken = |entry: &Entry| {
            let at = |other: &&Entry| {
                let part = entry.first().unwrap_or_default();
                other.slot != entry.slot && other.contains(entry.address(part))
            };
            let others = self.all().iter().filter(at);
            others
                .map(|other| other.contradictions)
                .min()
                .is_some_and(|contradictions| contradictions < entry.contradictions)
        };
        candidates
            .min_by_key(|entry| (taken(entry), entry.contradictions, entry.id))
            .or(Some(one))
    }

    /// The number of pages; the candidates of one page count once.
    pub fn count(&self) -> u64 {
        let first =
            |(at, entry): &(usize, &Entry)| !self.all()[..*at].iter().any(|one| one.slot == entry.slot);
        self.all().iter().enumerate().filter(first).count() as u64
    }

    /// Whether any part in a slot is still to be put back.
    pub fn has(&self, slot: usize) -> bool {
        self.all().iter().any(|entry| entry.slot == slot)
    }

    pub fn remove(&mut self, id: u32) {
        if let Some(which) = self.all().iter().position(|entry| entry.id == id) {
            self.count -= 1;
            self.all[which] = self.all[self.count];
        }
    }

    /// Parts of a slot, from `first` up to but excluding `end`, are back in place: they are removed from all
    /// candidates.
    pub fn done(&mut self, slot: usize, first: u64, end: u64) {
        let of = self.all[..self.count]
            .iter_mut()
            .filter(|entry| entry.slot == slot);
        of.for_each(|entry| entry.forget_all(first, end));
    }

    /// A part was filled in at one candidate place (`there`), or could not be.
    pub fn filled(&mut self, one: &Entry, part: u64, there: bool) {
        if there {
            self.done(one.slot, part, part + 1);
        } else if let Some(one) = self.get(one.id) {
            one.forget(part);
        }
    }

    /// A range was moved (`mremap`). `mapped`: whether an address is mapped now.
    pub fn moved(&mut self, from: u64, to: u64, bytes: u64, mapped: impl FnMut(u64) -> bool) {
        self.moves += 1;
        let mut mapped = once(mapped);
        for which in 0..self.count {
            let mut left = self.all[which];
            let Some(taken) = left.split(from, from + bytes) else {
                continue;
            };
            let address = taken.address(taken.first().unwrap_or_default());
            let mut there = Entry {
                page: taken.page.wrapping_sub(from).wrapping_add(to),
                moved_by: self.moves,
                ..taken
            };
            // If another page was moved here later, this one had left before.
            let since = |other: &Entry| other.slot != taken.slot && other.moved_by > taken.moved_by;
            let has_left = self
                .all()
                .iter()
                .any(|other| since(other) && other.contains(address));
            let mut here = None;
            if taken.moved_by > 0 && !has_left && mapped(address) {
                // Either the page is still here, and the report is a late one about what was here earlier; or the page
                // has moved on.
                there = there.doubted();
                here = Some(taken);
            } else if taken.moved_by > 0 || has_left {
                here = Some(taken.doubted());
            }
            self.replace(which, left, there);
            here.into_iter().for_each(|here| self.push(here));
        }
    }

    /// A range was unmapped. `mapped`: whether an address is mapped now.
    pub fn unmapped(&mut self, start: u64, end: u64, mapped: impl FnMut(u64) -> bool) {
        let mut mapped = once(mapped);
        for which in 0..self.count {
            let mut left = self.all[which];
            let Some(taken) = left.split(start, end) else {
                continue;
            };
            if taken.moved_by == 0 {
                self.all[which] = left;
                self.gone_with(&taken);
            } else if !mapped(taken.address(taken.first().unwrap_or_default())) {
                // Either this page was unmapped, or it has moved on (not reported yet) and what was here earlier was
                // unmapped.
                self.replace(which, left, taken.doubted());
            }
        }
    }

    /// Parts that are gone from their likeliest place are removed from the less likely places as well.
    fn gone_with(&mut self, taken: &Entry) {
        for other in &mut self.all[..self.count] {
            if other.is_candidate_of(taken) && other.contradictions > taken.contradictions {
                (0..taken.bytes / SMALL)
                    .filter(|part| !taken.is_gone(*part))
                    .for_each(|part| other.forget(part));
            }
        }
    }

    /// Replaces an entry by its remaining parts and those split off; no second entry is needed if nothing remains.
    fn replace(&mut self, which: usize, left: Entry, taken: Entry) {
        self.all[which] = left;
        if left.first().is_some() {
            self.push(taken);
        } else if !self.merge(&taken) {
            self.all[which] = Entry { id: left.id, ..taken };
        }
    }

    /// Whether an equal entry exists; if so, it takes the smaller number of contradictions of the two.
    fn merge(&mut self, entry: &Entry) -> bool {
        let same = |one: &&mut Entry| (one.page, one.slot, one.gone) == (entry.page, entry.slot, entry.gone);
        let found = self.all[..self.count].iter_mut().find(same);
        found.is_some_and(|one| {
            (one.contradictions, one.moved_by) = (
                one.contradictions.min(entry.contradictions),
                one.moved_by.max(entry.moved_by),
            );
            true
        })
    }

    /// No change is under way: each later report is about a later change.
    pub fn forget_order(&mut self) {
        for entry in &mut self.all[..self.count] {
            entry.moved_by = 0;
        }
    }

    /// Whether the place of any page is in doubt.
    pub fn is_doubtful(&self) -> bool {
        self.all().iter().any(|entry| entry.contradictions > 0)
    }

    /// Whether a page has several candidate places.
    pub fn has_candidates(&self, id: u32) -> bool {
        let one = self.all().iter().find(|entry| entry.id == id);
        one.is_some_and(|one| {
            let mut others = self.all().iter().filter(|entry| entry.id != id);
            others.any(|entry| entry.is_candidate_of(one))
        })
    }

    /// Removes doubtful places where nothing is mapped; no change may be under way. A page with one place left is no
    /// longer in doubt.
    pub fn keep_mapped(&mut self, mut mapped: impl FnMut(u64) -> bool) {
        for entry in &mut self.all[..self.count] {
            if let Some(part) = entry.first()
                && entry.contradictions > 0
                && !mapped(entry.address(part))
            {
                entry.forget_all(0, entry.bytes / SMALL);
            }
        }
        for which in 0..self.count {
            if !self.has_candidates(self.all[which].id) {
                self.all[which].contradictions = 0;
            }
        }
    }

    /// The contents of a range were discarded.
    pub fn discarded(&mut self, start: u64, end: u64) {
        for which in 0..self.count {
            if let Some(taken) = self.all[which].split(start, end) {
                self.gone_with(&taken);
            }
        }
    }

    /// Removes and returns an entry of which no part is left to put back.
    pub fn take_empty(&mut self) -> Option<Entry> {
        let empty = *self.all().iter().find(|entry| entry.first().is_none())?;
        self.remove(empty.id);
        Some(empty)
    }

    /// Adds an entry unless an equal one exists. When the table is full, it replaces the least likely
    /// entry, if that one is less likely than the new one.
    fn push(&mut self, entry: Entry) {
        if self.merge(&entry) {
            return;
        }
        let added = Entry {
            id: self.next,
            ..entry
        };
        self.next = self.next.wrapping_add(1);
        if self.count < ENTRIES {
            self.all[self.count] = added;
            self.count += 1;
        } else if let Some(least) = self.all.iter_mut().max_by_key(|one| one.contradictions)
            && least.contradictions > added.contradictions
        {
            *least = added;
        }
    }
}

/// Asks only for the first address: a report concerns all of its range.
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
        pages.discarded(0, HUGE);
        assert!(pages.all()[0].is_whole());
        pages.discarded(0, HUGE + 3 * SMALL - 1);
        let left = pages.all()[0];
        assert_eq!(
            (left.first(), left.is_gone(2), left.is_gone(3)),
            (Some(3), true, false)
        );
        assert_eq!(
            (pages.at(HUGE), pages.at(HUGE + 3 * SMALL)),
            (None, Some(left.id))
        );
        pages.discarded(HUGE + 3 * SMALL, u64::MAX);
        assert_eq!(pages.take_empty().map(|entry| entry.slot), Some(0));
        assert!(pages.all().is_empty() && pages.take_empty().is_none());
    }

    #[test]
    fn what_was_told_late_leaves_alone_what_came_since() {
        // One thread unmaps a range; another moves a page there, and is reported first.
        let (hole, elsewhere) = (8 * SMALL, 80 * SMALL);
        let mut pages = one(hole, SMALL);
        pages.add(elsewhere, 1, SMALL, SMALL);
        pages.moved(elsewhere, hole, SMALL, |_| true);
        assert_eq!(pages.at(hole), Some(1), "the one that is there now");
        pages.unmapped(hole, hole + SMALL, |_| true);
        assert_eq!(pages.take_empty().map(|entry| entry.slot), Some(0));
        assert_eq!(pages.at(hole), Some(1));
        // This time the page itself is unmapped, and something else is mapped at its address.
        pages.forget_order();
        pages.unmapped(hole, hole + SMALL, |_| true);
        assert_eq!(pages.take_empty().map(|entry| entry.slot), Some(1));
    }

    #[test]
    fn what_goes_on_before_an_older_change_is_told_goes_along() {
        let (hole, elsewhere, beyond) = (8 * SMALL, 80 * SMALL, 160 * SMALL);
        let mut pages = one(elsewhere, SMALL);
        pages.moved(elsewhere, hole, SMALL, |_| true);
        // The report is about what was in the hole before; the page has already moved on.
        pages.unmapped(hole, hole + SMALL, |_| false);
        assert!(pages.take_empty().is_none());
        pages.moved(hole, beyond, SMALL, |_| false);
        pages.forget_order();
        pages.keep_mapped(|address| address == beyond);
        while pages.take_empty().is_some() {}
        let places: Vec<u64> = pages.all().iter().map(|entry| entry.page).collect();
        assert_eq!(places, [beyond]);
    }

    #[test]
    fn one_that_came_before_another_has_left() {
        let (hole, beyond) = (8 * SMALL, 160 * SMALL);
        let mut pages = one(80 * SMALL, SMALL);
        pages.add(90 * SMALL, 1, SMALL, SMALL);
        pages.moved(80 * SMALL, hole, SMALL, |_| true);
        // The first page had moved on, but that is reported after the second one has arrived.
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
        pages.forget_order();
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
        /// Compares with a map from addresses to contents; changes are reported in the order in which they are made.
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
                        // As in the kernel, the destination is unmapped first; the ranges do not overlap.
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
                        pages.discarded(start * SMALL, (start + n) * SMALL);
                        memory.retain(|at, _| !(start..start + n).contains(at));
                    }
                }
                pages.forget_order();
                while pages.take_empty().is_some() {}
            }
            let mut found = BTreeMap::new();
            for entry in pages.all() {
                for part in (0..512).filter(|part| !entry.is_gone(*part)) {
                    let address = entry.address(part);
                    prop_assert_eq!(pages.at(address), Some(entry.id));
                    prop_assert!(found.insert(address / SMALL, (entry.slot, part)).is_none());
                }
            }
            prop_assert_eq!(found, memory);
        }
    }
}
