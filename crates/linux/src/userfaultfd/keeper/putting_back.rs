//! Puts pages back where they belong, in the process and in children that it forked meanwhile.

use super::super::SMALL;
use super::super::abi::{Descriptor, Event};
use super::super::aside::{Aside, Pages};
use super::super::injection::sleep_a_moment;
use super::Keeper;

impl Keeper<'_> {
    /// Some of it stays in its place, which is not used again.
    fn give_up(&mut self, one: &Aside) {
        self.lost[one.slot] = true;
        self.aside.remove(one.id);
    }

    /// By moving it, or where that is refused (the mapping's rights changed meanwhile, the page is pinned, a part is gone) by its
    /// contents; of several candidates of its place to the likeliest, and on. It goes on until it is done: a page that is not put
    /// back is lost. Whether it was put where this entry says.
    pub(super) fn put_back(&mut self, id: u32) -> bool {
        let mut by_contents = None;
        let mut here = false;
        loop {
            if self.aside.has_candidates(id) && !self.inside.uffd.changing() {
                self.settled();
            }
            // What the process did may have changed this entry, or removed it.
            let Some(one) = self.aside.likeliest(id).copied() else {
                return here;
            };
            let guessed = self.aside.has_candidates(one.id);
            let error = if guessed && self.inside.uffd.changing() {
                libc::EAGAIN
            } else if one.is_whole() && by_contents != Some(one.id) {
                let (moved, error) =
                    self.inside
                        .move_pages(one.page, self.inside.address(one.slot), one.bytes);
                self.aside.done(one.slot, 0, moved / SMALL);
                if error == 0 {
                    here = one.id == id;
                    self.doubtful |= guessed;
                    self.remove_all_of(one.slot);
                    self.settled();
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
                // It changes its memory, and waits until we have heard of it.
                self.wait_for([-1, self.inside.uffd.0], 1);
                if self.gone {
                    self.give_up(&one);
                    return here;
                }
                match self.inside.uffd.read() {
                    Some(event) => self.handle(event),
                    None => sleep_a_moment(),
                }
                continue;
            }
            self.settled();
            if let Some(one) = self.aside.get(one.id).copied()
                && one.first().is_none()
            {
                self.doubtful |= guessed;
                self.give_up(&one);
            }
        }
    }

    /// The slot is empty.
    fn remove_all_of(&mut self, slot: usize) {
        while let Some(one) = self.aside.all().iter().find(|one| one.slot == slot) {
            self.aside.remove(one.id);
        }
        self.lost[slot] = false;
    }

    /// Fills in what is left of a page, part by part: whether any was; none if it has to be tried again.
    fn put_back_contents(&mut self, one: &Aside) -> Option<bool> {
        let mut any = false;
        for part in (0..one.bytes / SMALL).filter(|part| !one.is_gone(*part)) {
            let error = self.fill(self.inside.uffd, one.address(part), one.slot, part);
            if error == libc::EAGAIN {
                return None;
            }
            any |= error == 0;
            self.aside.filled(one, part, error == 0);
        }
        Some(any)
    }

    /// Fills a small page with what is in a part of a slot, if there is such memory; `EAGAIN` if it has to be tried again.
    fn fill(&mut self, to: Descriptor, page: u64, slot: usize, part: u64) -> i32 {
        let from = self.inside.address(slot) + part * SMALL;
        let buffer = &mut self.buffer[..SMALL as usize];
        match self.inside.memory.read(from, buffer) {
            Ok(()) => match to.copy(page, buffer) {
                libc::ENOMEM => libc::EAGAIN,
                other => other,
            },
            Err(libc::ESRCH) => libc::ESRCH,
            Err(_) if self.gone => libc::ESRCH,
            Err(_) => libc::EAGAIN, // it could not be read from swap, for instance
        }
    }

    /// A child was forked while pages were aside: it gets them, and is none of ours from then on. `pages`: where they belong
    /// in the child, which may change that meanwhile.
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
            // It changes its memory already, and waits until we have heard of it.
            self.wait_for([-1, child.0], 1);
            while let Some(event) = child.read() {
                match event {
                    Event::Fork(grandchild) => self.fill_child(Descriptor(grandchild), &mut pages.clone()),
                    Event::Remap(from, to, bytes) => pages.moved(from, to, bytes, |_| false),
                    Event::Unmap(start, end) => pages.unmapped(start, end, |_| false),
                    Event::Remove(start, end) => pages.given_up(start, end),
                    Event::Fault(_) | Event::Other => {}
                }
            }
        }
        child.close();
    }
}
