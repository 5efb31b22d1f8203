//! The process that sets pages of another one aside and puts them back: small, forked, making system calls alone, so that
//! nothing but SIGKILL ends it while pages are aside, and whoever asked for them may end at any time.
//!
//! What is aside lies in the process's own memory, in an area that children do not inherit. Until it is back, whoever
//! accesses such a page waits; a fork waits until we have filled the child's pages as well (Linux keeps us from changing the
//! memory until we have read of it, so that the child gets what the parent had).

use super::abi::{Descriptor, Event};
use super::aside::Aside;
use super::injection::Memory;
use super::inside::{Inside, SLOTS};
use super::{Place, Reply, SMALL, Window, mappings};
use crate::clock;
use std::ptr;

const COMMANDS: i32 = 0;
const REPLIES: i32 = 1;
const MEMORY: i32 = 2;
/// For how long pages are left alone whose contents the program gives up. It tells us before it does (`madvise`), and a page that
/// is set aside between the two would come back with what was given up: the time must be more than any thread takes from
/// one to the other.
const LEFT_ALONE_MS: u64 = 10_000;
/// Ranges left alone at a time; if there are more, all pages are.
const RANGES: usize = 64;

struct Keeper<'a> {
    inside: Inside,
    /// The path of the process's `/proc/PID/maps`, ending in 0.
    maps: &'a [u8],
    /// The descriptor that [`children`] opens.
    children: i32,
    aside: [Aside; Window::MOST],
    count: usize,
    /// Slots whose last page could not be taken out again.
    lost: [bool; SLOTS],
    /// As large as a huge page.
    buffer: &'a mut [u8],
    window: (u64, u64),
    /// Nothing more is set aside, and all is put back.
    ending: bool,
    /// More may be registered than the window: its parts changed their places, or somebody waits elsewhere.
    astray: bool,
    /// When a thread began to wait that only the window's end will help, nanoseconds.
    waiting_since: Option<u64>,
    /// What threads have waited for us, nanoseconds.
    waited: u64,
    /// Ranges whose contents were given up: from, to, and when, in milliseconds.
    given_up: [(u64, u64, u64); RANGES],
    /// Nothing is set aside until then.
    alone_until: u64,
}

/// All that the process does. Descriptors 0, 1 and 2: where commands come from, where replies go, and the process's memory.
pub fn run(place: &Place, buffer: &mut [u8]) {
    protect_from_out_of_memory();
    let inside = match Inside::enter(place, Memory(MEMORY)) {
        Ok(inside) => inside,
        Err(error) => return answer(&Reply::failed(error)),
    };
    let mut keeper = Keeper {
        inside,
        maps: &place.maps,
        children: children(),
        aside: [Aside::default(); Window::MOST],
        count: 0,
        lost: [false; SLOTS],
        buffer,
        window: (0, 0),
        ending: false,
        astray: false,
        waiting_since: None,
        waited: 0,
        given_up: [(0, 0, 0); RANGES],
        alone_until: 0,
    };
    answer(&Reply::default());
    while let Some(window) = keeper.next() {
        answer(&keeper.sample(&window));
    }
    keeper.inside.leave();
}

/// A descriptor that can be read when a thread that we trace has stopped or ended.
fn children() -> i32 {
    // SAFETY: the set is ours.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    }
}

impl Keeper<'_> {
    /// The next command; none when whoever gives them has ended.
    fn next(&mut self) -> Option<Window> {
        loop {
            let [command, event, child] = self.wait(-1);
            if event {
                // Forks that began while a range was registered; and who waits in what is still registered.
                self.handle_all();
                if self.astray {
                    self.unregister_all();
                }
            }
            if child {
                self.inside.lives();
            }
            if command {
                let mut window = Window::default();
                let size = size_of::<Window>();
                // SAFETY: writes at most `size` bytes to a window, which any bytes are one of.
                let got = unsafe { libc::read(COMMANDS, (&raw mut window).cast(), size) };
                return (got == size as isize).then_some(window);
            }
        }
    }

    /// Waits for a command (or the end of who gives them), an event of the process, or news of our thread.
    fn wait(&self, milliseconds: i32) -> [bool; 3] {
        let wanted = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut all = [
            wanted(COMMANDS),
            wanted(self.inside.uffd.0),
            wanted(self.children),
        ];
        // SAFETY: reads and writes three entries.
        unsafe { libc::poll(all.as_mut_ptr(), 3, milliseconds) };
        let found = all.map(|one| one.revents != 0);
        let mut signal = std::mem::MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the kernel writes at most `size` bytes, which are not read.
        while found[2] && unsafe { libc::read(self.children, signal.as_mut_ptr().cast(), size) } > 0 {}
        found
    }

    /// Sets the pages of a window aside and puts them back as they are accessed, the others at its end.
    fn sample(&mut self, window: &Window) -> Reply {
        let began = cpu_time();
        // What is ours in the process is not to be sampled: our thread would wait for itself.
        if self.inside.owns(window.start, window.bytes) {
            return Reply {
                refused: window.count,
                ..Reply::default()
            };
        }
        if let Err(error) = self.inside.wake() {
            return Reply::failed(error);
        }
        self.window = (window.start, window.bytes);
        (self.ending, self.astray, self.waiting_since, self.waited) = (false, false, None, 0);
        let error = match self.inside.uffd.register(window.start, window.bytes) {
            0 => self.inside.register_area(),
            error => error,
        };
        let mut reply = Reply::failed(error);
        if error == 0 {
            self.set_all_aside(window, &mut reply);
            self.inside.unregister_area();
            self.hold(window.milliseconds);
            reply.untouched = self.count as u64;
            reply.cut_short = u64::from(self.ending);
            while self.count > 0 {
                self.put_back(self.count - 1);
            }
        }
        self.unregister();
        self.inside.rest();
        self.handle_all();
        if self.astray {
            self.unregister_all();
        }
        if let Some(since) = self.waiting_since.take() {
            self.waited += now_ns() - since;
        }
        reply.waited_ns = self.waited;
        reply.lost = self.lost.iter().filter(|lost| **lost).count() as u64;
        reply.cpu_ns = cpu_time() - began;
        reply
    }

    fn set_all_aside(&mut self, window: &Window, reply: &mut Reply) {
        let count = (window.count as usize).min(Window::MOST);
        for page in &window.pages[..count] {
            if !self.ending && self.set_aside(*page, window.page_bytes) {
                reply.aside += 1;
            } else {
                reply.refused += 1;
            }
        }
    }

    fn unregister(&mut self) {
        let (start, bytes) = self.window;
        self.astray |= self.inside.uffd.unregister(start, bytes) != 0;
    }

    /// Whatever became of the mappings: a part may have grown, or have moved and grown, which we are not told.
    fn unregister_all(&mut self) {
        self.astray = false;
        let uffd = self.inside.uffd;
        mappings::anonymous(self.maps, self.buffer, |start, end| {
            uffd.unregister(start, end - start);
        });
    }

    fn set_aside(&mut self, page: u64, bytes: u64) -> bool {
        let now = now_ms();
        let left_alone =
            |(from, to, at): &(u64, u64, u64)| *from < page + bytes && page < *to && now < at + LEFT_ALONE_MS;
        if now < self.alone_until || self.given_up.iter().any(left_alone) {
            return false;
        }
        let used = |slot| self.lost[slot] || self.aside[..self.count].iter().any(|a| a.slot == slot);
        let Some(slot) = Inside::slots(bytes).find(|slot| !used(*slot)) else {
            return false;
        };
        let (moved, error) = self.inside.move_pages(self.inside.address(slot), page, bytes);
        if moved > 0 {
            let mut aside = Aside::new(page, slot, bytes);
            aside.forget_all(moved / SMALL, bytes / SMALL);
            self.aside[self.count] = aside;
            self.count += 1;
        } else if error == libc::EAGAIN {
            // What the process does to its memory may concern this page: another time.
            self.handle_all();
        }
        moved > 0
    }

    /// Until all is back, the time is over, or whoever asked has ended.
    fn hold(&mut self, milliseconds: u64) {
        let until = now_ms() + milliseconds;
        while self.count > 0 && !self.ending {
            let left = until.saturating_sub(now_ms());
            if left == 0 {
                return;
            }
            let [ended, event, child] = self.wait(left as i32);
            if event {
                self.handle_all();
            }
            // Between two calls it is told of nothing but the thread's end.
            self.ending |= child && !self.inside.lives();
            // No command is given while a window is open.
            if ended {
                return;
            }
        }
    }

    /// Handles what the process did since the last time.
    fn handle_all(&mut self) {
        let woken = now_ns();
        while let Some(event) = self.inside.uffd.read() {
            if let Event::Fault(address) = event
                && let Some(which) = self.aside[..self.count].iter().position(|a| a.contains(address))
            {
                self.put_back(which);
                self.waited += now_ns() - woken;
            } else {
                self.handle(event);
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            // A page that was never there, or one whose turn comes at the end: its thread goes on once nothing is registered.
            Event::Fault(_) => {
                self.waiting_since.get_or_insert_with(now_ns);
                (self.ending, self.astray) = (true, true);
            }
            Event::Fork(child) => self.fill_child(Descriptor(child)),
            Event::Remap(from, to, bytes) => {
                (self.ending, self.astray) = (true, true);
                for which in (0..self.count).rev() {
                    self.follow(which, from, to, bytes);
                }
            }
            Event::Remove(start, end) => {
                self.leave_alone(start, end);
                self.forget(start, end);
            }
            Event::Unmap(start, end) => {
                (self.ending, self.astray) = (true, true);
                self.forget(start, end);
            }
            Event::Other => {}
        }
    }

    /// What is given up need not come back.
    fn forget(&mut self, start: u64, end: u64) {
        for which in (0..self.count).rev() {
            let (first, last) = self.aside[which].parts_in(start, end);
            self.aside[which].forget_all(first, last);
            if self.aside[which].first().is_none() {
                self.give_up(which);
            }
        }
    }

    /// A page has changed its place, or a part of it has.
    fn follow(&mut self, which: usize, from: u64, to: u64, bytes: u64) {
        let one = self.aside[which];
        if from <= one.page && one.page + one.bytes <= from + bytes {
            self.aside[which].page = one.page - from + to;
            return;
        }
        let (first, end) = one.parts_in(from, from + bytes);
        for part in (first..end).filter(|part| !one.is_gone(*part)) {
            let there = one.page + part * SMALL - from + to;
            while self.inside.lives() && self.fill(self.inside.uffd, there, one.slot, part) == libc::EAGAIN {
                self.wait(1);
            }
            self.aside[which].forget(part);
        }
        if self.aside[which].first().is_none() {
            self.give_up(which);
        }
    }

    fn leave_alone(&mut self, start: u64, end: u64) {
        let now = now_ms();
        let free = self
            .given_up
            .iter_mut()
            .find(|(_, _, at)| now >= at + LEFT_ALONE_MS || *at == 0);
        match free {
            Some(range) => *range = (start, end, now),
            None => self.alone_until = now + LEFT_ALONE_MS,
        }
    }

    /// Some of it stays in its place, which is not used again.
    fn give_up(&mut self, which: usize) {
        self.lost[self.aside[which].slot] = true;
        self.remove(which);
    }

    fn remove(&mut self, which: usize) {
        self.count -= 1;
        self.aside[which] = self.aside[self.count];
    }

    /// By moving it, or where that is refused (the mapping's rights changed meanwhile, the page is pinned, a part is gone) by its
    /// contents. It goes on until it is done: a page that is not put back is lost.
    fn put_back(&mut self, which: usize) {
        let slot = self.aside[which].slot;
        let mut by_contents = false;
        loop {
            // What the process did may have changed the order of the entries, or removed this one.
            let Some(which) = self.aside[..self.count].iter().position(|a| a.slot == slot) else {
                return;
            };
            let one = self.aside[which];
            let error = if one.is_whole() && !by_contents {
                let (moved, error) = self
                    .inside
                    .move_pages(one.page, self.inside.address(slot), one.bytes);
                if error == 0 {
                    return self.remove(which);
                }
                self.aside[which].forget_all(0, moved / SMALL);
                by_contents = error != libc::EAGAIN || moved > 0;
                if by_contents { 0 } else { error }
            } else {
                self.put_back_contents(which)
            };
            match error {
                libc::EAGAIN => {}
                _ if self.aside[which].first().is_none() => return self.give_up(which),
                _ => continue,
            }
            // It changes its memory, and waits until we have heard of it.
            let [_, event, child] = self.wait(1);
            if child && !self.inside.lives() {
                return self.give_up(which);
            }
            while let Some(event) = event.then(|| self.inside.uffd.read()).flatten() {
                self.handle(event);
            }
        }
    }

    /// Fills in what is left of a page, part by part; `EAGAIN` if it has to be tried again.
    fn put_back_contents(&mut self, which: usize) -> i32 {
        while let Some(part) = self.aside[which].first() {
            let one = self.aside[which];
            match self.fill(self.inside.uffd, one.page + part * SMALL, one.slot, part) {
                libc::EAGAIN | libc::ENOMEM => return libc::EAGAIN,
                // Done, or there is no such memory any more.
                _ => self.aside[which].forget(part),
            }
        }
        0
    }

    /// Fills a small page with what is in a part of a slot; 0 or the error's number.
    fn fill(&mut self, to: Descriptor, page: u64, slot: usize, part: u64) -> i32 {
        let from = self.inside.address(slot) + part * SMALL;
        let buffer = &mut self.buffer[..SMALL as usize];
        match self.inside.memory.read(from, buffer) {
            Ok(()) => to.copy(page, buffer),
            Err(error) => error,
        }
    }

    /// A child was forked while pages were aside: it gets them, and is none of ours from then on.
    fn fill_child(&mut self, child: Descriptor) {
        for which in 0..self.count {
            let one = self.aside[which];
            for part in (0..one.bytes / SMALL).filter(|part| !one.is_gone(*part)) {
                while self.fill(child, one.page + part * SMALL, one.slot, part) == libc::EAGAIN {
                    // It changes its memory already, and waits until we have heard of it.
                    while let Some(event) = child.read() {
                        if let Event::Fork(grandchild) = event {
                            self.fill_child(Descriptor(grandchild));
                        }
                    }
                }
            }
        }
        child.close();
    }
}

/// Whether a descriptor of our own can do what is needed: 0, or the error's number.
pub fn probe() -> i32 {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: takes numbers alone.
    let descriptor = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
    if descriptor < 0 {
        return super::abi::errno();
    }
    let descriptor = Descriptor(descriptor as i32);
    let error = descriptor.begin();
    descriptor.close();
    error
}

/// Whoever looks for memory to free finds another process first.
fn protect_from_out_of_memory() {
    // SAFETY: system calls with a constant path and constant bytes.
    unsafe {
        let file = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY);
        if file >= 0 {
            libc::write(file, c"-1000".as_ptr().cast(), 5);
            libc::close(file);
        }
    }
}

fn answer(reply: &Reply) {
    // SAFETY: reads a reply of ours.
    unsafe { libc::write(REPLIES, ptr::from_ref(reply).cast(), size_of::<Reply>()) };
}

fn now_ns() -> u64 {
    clock::nanoseconds(clock::monotonic())
}

fn now_ms() -> u64 {
    now_ns() / 1_000_000
}

/// CPU time of this process, which has one thread.
fn cpu_time() -> u64 {
    clock::nanoseconds(clock::own_cpu_time())
}
