//! Puts pages back where they belong, in the process and in children that it forked meanwhile.

use super::super::SMALL;
use super::super::abi::{Descriptor, Event};
use super::super::injection::sleep_a_moment;
use super::super::set_aside::{Entry, Pages};
use super::Keeper;

impl Keeper<'_> {
    /// Removes an entry of which something stays in its slot; the slot is not used again.
    fn give_up(&mut self, one: &Entry) {
        self.lost[one.slot] = true;
        self.pages_aside.remove(one.id);
    }

    /// Puts a page back: by moving it, or by copying its contents where a move is refused (the mapping's access rights
    /// changed meanwhile, the page is pinned, or a part is gone). Of several candidate places the likeliest is tried
    /// first. Repeats until it succeeds, as a page that is not put back is lost. Returns whether the page was put where
    /// this entry says.
    pub(super) fn put_back(&mut self, id: u32) -> bool {
        let mut by_contents = None;
        let mut here = false;
        loop {
            if self.pages_aside.has_candidates(id) && !self.injected.uffd.changing() {
                self.end_settling();
            }
            // Events handled meanwhile may have changed or removed this entry.
            let Some(one) = self.pages_aside.likeliest(id).copied() else {
                return here;
            };
            let guessed = self.pages_aside.has_candidates(one.id);
            let error = if guessed && self.injected.uffd.changing() {
                libc::EAGAIN
            } else if one.is_whole() && by_contents != Some(one.id) {
                let (moved, error) =
                    self.injected
                        .move_pages(one.page, self.injected.address(one.slot), one.bytes);
                self.pages_aside.done(one.slot, 0, moved / SMALL);
                if error == 0 {
                    here = one.id == id;
                    self.ambiguous_place |= guessed;
                    self.remove_all_of(one.slot);
                    self.end_settling();
                    continue;
                }
                let refused = error != libc::EAGAIN || moved > 0;
                by_contents = refused.then_some(one.id);
                if refused { 0 } else { error }
            } else {
                let filled = self.put_back_contents(&one);
                here |= one.id == id && filled == Some(true);
                if filled.is_none() { libc::EAGAIN } else { 0 }
            };
            if error == libc::EAGAIN {
                // The process is changing its mappings, and waits until we have read the event.
                self.wait_for([-1, self.injected.uffd.0], 1);
                if self.gone {
                    self.give_up(&one);
                    return here;
                }
                match self.injected.uffd.read() {
                    Some(event) => self.handle(event),
                    None => sleep_a_moment(),
                }
                continue;
            }
            self.end_settling();
            if let Some(one) = self.pages_aside.get(one.id).copied()
                && one.first().is_none()
            {
                self.ambiguous_place |= guessed;
                self.give_up(&one);
            }
        }
    }

    /// The slot is empty: removes all of its entries.
    fn remove_all_of(&mut self, slot: usize) {
        while let Some(one) = self.pages_aside.all().iter().find(|one| one.slot == slot) {
            self.pages_aside.remove(one.id);
        }
        self.lost[slot] = false;
    }

    /// Copies the remaining parts of a page, one by one. Returns whether any was copied; none if it must be tried
    /// again.
    fn put_back_contents(&mut self, one: &Entry) -> Option<bool> {
        let mut any = false;
        for part in (0..one.bytes / SMALL).filter(|part| !one.is_gone(*part)) {
            let error = self.fill(self.injected.uffd, one.address(part), one.slot, part);
            if error == libc::EAGAIN {
                return None;
            }
            any |= error == 0;
            self.pages_aside.filled(one, part, error == 0);
        }
        Some(any)
    }

    /// Copies one part of a slot to a small page. Returns 0 or the error number; `EAGAIN` if it must be tried again.
    fn fill(&mut self, to: Descriptor, page: u64, slot: usize, part: u64) -> i32 {
        let from = self.injected.address(slot) + part * SMALL;
        let buffer = &mut self.buffer[..SMALL as usize];
        match self.injected.memory.read(from, buffer) {
            Ok(()) => match to.copy(page, buffer) {
                libc::ENOMEM => libc::EAGAIN,
                other => other,
            },
            Err(libc::ESRCH) => libc::ESRCH,
            Err(_) if self.gone => libc::ESRCH,
            Err(_) => libc::EAGAIN, // for instance, it could not be read from swap
        }
    }

    /// A child was forked while pages were aside: fills in its copies of them, after which we do not observe it.
    /// `pages`: where they belong in the child, which may change that meanwhile.
    pub(super) fn fill_child(&mut self, child: Descriptor, pages: &mut Pages) {
        while let Some(id) = pages.all().last().map(|one| one.id) {
            let one = pages.likeliest(id).copied().unwrap_or_default();
            let Some(part) = one.first() else {
                pages.remove(one.id);
                continue;
            };
            let error = self.fill(child, one.address(part), one.slot, part);
            if error != libc::EAGAIN {
                pages.filled(&one, part, error == 0);
                continue;
            }
            // The child is already changing its mappings, and waits until we have read the event.
            self.wait_for([-1, child.0], 1);
            while let Some(event) = child.read() {
                match event {
                    Event::Fork(grandchild) => self.fill_child(Descriptor(grandchild), &mut pages.clone()),
                    Event::Remap(from, to, bytes) => pages.moved(from, to, bytes, |_| false),
                    Event::Unmap(start, end) => pages.unmapped(start, end, |_| false),
                    Event::Remove(start, end) => pages.discarded(start, end),
                    Event::Fault(_) | Event::Other => {}
                }
            }
        }
        child.close();
    }
}
