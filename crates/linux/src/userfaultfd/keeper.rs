//! The process that sets pages of another one aside and puts them back: small, forked, making system calls alone, so that
//! nothing but SIGKILL ends it while pages are aside, and whoever asked for them may end at any time.
//!
//! What is aside lies in the process's own memory, in an area that children do not inherit. Until it is back, whoever
//! accesses such a page waits; a fork waits until we have filled the child's pages as well (Linux keeps us from changing the
//! memory until we have read of it, so that the child gets what the parent had).

mod putting_back;

use super::abi::{Descriptor, Event};
use super::aside::Pages;
use super::injection::{Memory, sleep_a_moment};
use super::inside::{Inside, SLOTS};
use super::mappings::{self, Surroundings};
use super::{Place, Reply, Window};
use crate::clock;
use std::ptr;

const COMMANDS: i32 = 0;
const REPLIES: i32 = 1;
const MEMORY: i32 = 2;
/// For how long pages are left alone whose contents the program gives up. It tells us before it does (`madvise`), and a page that
/// is set aside between the two would come back with what was given up: the time must be more than any thread takes from
/// one to the other.
const LEFT_ALONE_MS: u64 = 10_000;
/// How long a thread may take to go on once we have read what it tells.
const SETTLES_MS: u64 = 2;
/// How often it is looked for that at once; then others get the CPU.
const LOOKS: u32 = 50;
/// Ranges left alone at a time; if there are more, all pages are. Ranges registered, likewise.
const RANGES: usize = 64;

struct Keeper<'a> {
    inside: Inside,
    /// The path of the process's `/proc/PID/maps`, ending in 0.
    maps: &'a [u8],
    /// The descriptor that [`children`] opens.
    children: i32,
    aside: Pages,
    /// Slots whose last page could not be taken out again.
    lost: [bool; SLOTS],
    /// As large as a huge page.
    buffer: &'a mut [u8],
    window: (u64, u64),
    /// Where else something is registered: start and end. How many, of which the first [`RANGES`] are known.
    elsewhere: [(u64, u64); RANGES],
    elsewhere_count: usize,
    /// Our thread is not there any more: the process has ended, or executes another program.
    gone: bool,
    /// Nothing more is set aside, and all is put back.
    ending: bool,
    /// Something may be registered: the window, or what its parts have become.
    astray: bool,
    /// Changes of places told since none was under way; whether there were several together, and pages in doubt by that.
    moves: u32,
    together: bool,
    doubtful: bool,
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
    raise_priority();
    let inside = match Inside::enter(place, Memory(MEMORY)) {
        Ok(inside) => inside,
        Err(error) => return answer(&Reply::failed(error)),
    };
    let mut keeper = Keeper {
        inside,
        maps: &place.maps,
        children: children(),
        aside: Pages::new(),
        lost: [false; SLOTS],
        buffer,
        window: (0, 0),
        elsewhere: [(0, 0); RANGES],
        elsewhere_count: 0,
        gone: false,
        ending: false,
        astray: false,
        moves: 0,
        together: false,
        doubtful: false,
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
            let [command, event] = self.wait(-1);
            if event {
                // Forks that began while a range was registered; and who waits in what is still registered.
                self.handle_all();
                self.unregister();
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

    /// Waits for a command (or the end of who gives them), an event of the process, or news of our thread, which are seen to:
    /// whether there is a command, and an event.
    fn wait(&mut self, milliseconds: i32) -> [bool; 2] {
        self.wait_for([COMMANDS, self.inside.uffd.0], milliseconds)
    }

    /// The same of two descriptors, or of one where the other is -1.
    fn wait_for(&mut self, [first, second]: [i32; 2], milliseconds: i32) -> [bool; 2] {
        let wanted = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut all = [first, second, self.children].map(wanted);
        // SAFETY: reads and writes three entries.
        unsafe { libc::poll(all.as_mut_ptr(), 3, milliseconds) };
        let [first, second, child] = all.map(|one| one.revents != 0);
        if child {
            let mut signal = std::mem::MaybeUninit::<libc::signalfd_siginfo>::uninit();
            let size = size_of::<libc::signalfd_siginfo>();
            // SAFETY: the kernel writes at most `size` bytes, which are not read.
            while unsafe { libc::read(self.children, signal.as_mut_ptr().cast(), size) } > 0 {}
            // At once, whoever waits here: a process that ends waits for this.
            self.gone |= !self.inside.keep_asleep();
        }
        [first, second]
    }

    /// Sets the pages of a window aside and puts them back as they are accessed, the others at its end.
    fn sample(&mut self, window: &Window) -> Reply {
        let began = cpu_time();
        let refused = Reply {
            refused: window.count,
            ..Reply::default()
        };
        // What is ours in the process is not to be sampled: our thread would wait for itself.
        if self.inside.owns(window.start, window.bytes) {
            return refused;
        }
        if let Err(error) = self.inside.wake() {
            return Reply::failed(error);
        }
        self.window = (window.start, window.bytes);
        let Some(before) = self.surroundings() else {
            self.inside.rest();
            return refused;
        };
        (self.ending, self.astray, self.waiting_since, self.waited) = (false, false, None, 0);
        (self.moves, self.together, self.doubtful) = (0, false, false);
        self.elsewhere_count = 0;
        // With the room above: of memory that has just grown into it a part would be registered otherwise, and it could not move.
        let room = before.room - window.start;
        let registered = self.inside.uffd.register(window.start, room);
        let error = match registered {
            0 => self.inside.register_area(),
            error => error,
        };
        let mut reply = Reply::failed(error);
        // What is mapped later is not registered: pages of it could be taken, but nobody would wait for them. From here on we are
        // told of every change before the next page is taken. What joined the mapping just before is not registered either, and
        // the program could not move the whole.
        let after = (error == 0).then(|| self.surroundings()).flatten();
        if after.is_some_and(|after| after.touching == before.touching) {
            self.set_all_aside(window, &mut reply);
            self.inside.unregister_area();
            self.hold(window.milliseconds);
            reply.untouched = self.aside.count();
            reply.cut_short = u64::from(self.ending);
            while let Some(one) = self.aside.all().last() {
                self.put_back(one.id);
            }
        } else if error == 0 {
            self.inside.unregister_area();
            reply.refused = window.count;
        }
        // What the program has registered with a descriptor of its own stays so: kernels before 6.17 would let us end that.
        self.astray = registered != libc::EBUSY;
        self.unregister();
        self.inside.rest();
        self.handle_all();
        self.unregister();
        if let Some(since) = self.waiting_since.take() {
            self.waited += now_ns() - since;
        }
        reply.waited_ns = self.waited;
        reply.together = u64::from(self.together);
        reply.doubtful = u64::from(self.doubtful);
        reply.lost = self.lost.iter().filter(|lost| **lost).count() as u64;
        reply.cpu_ns = cpu_time() - began;
        reply
    }

    /// The window's, if it still is a mapping as a whole.
    fn surroundings(&mut self) -> Option<Surroundings> {
        let (start, bytes) = self.window;
        mappings::surroundings(self.maps, self.buffer, start, start + bytes)
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

    /// What is registered is not from here on, wherever its parts are. All between two files at once, as what is mapped there may
    /// change meanwhile: memory that has grown beyond what is unregistered would be two mappings, and could not be moved as
    /// one. Who waits goes on.
    fn unregister(&mut self) {
        if std::mem::take(&mut self.astray) {
            let (start, bytes) = self.window;
            let known = &self.elsewhere[..self.elsewhere_count.min(RANGES)];
            let all = self.elsewhere_count > RANGES;
            let touches = |start_of: u64, end: u64| {
                let mut ranges = known.iter().copied().chain([(start, start + bytes)]);
                all || ranges.any(|(from, to)| start_of <= to && from <= end)
            };
            let uffd = self.inside.uffd;
            let mut refused = false;
            mappings::ranges(self.maps, self.buffer, |start, end| {
                refused |= touches(start, end) && uffd.unregister(start, end - start) != 0;
            });
            if refused {
                // Something in it cannot be registered, or is registered by the program itself.
                mappings::anonymous(self.maps, self.buffer, |mapping| {
                    let upto = |end| uffd.unregister(mapping.start, end - mapping.start);
                    if touches(mapping.start, mapping.end) && upto(mapping.room) != 0 {
                        upto(mapping.end);
                    }
                });
            }
            self.elsewhere_count = 0;
        }
        self.inside.uffd.wake_all();
    }

    fn set_aside(&mut self, page: u64, bytes: u64) -> bool {
        let now = now_ms();
        let left_alone =
            |(from, to, at): &(u64, u64, u64)| *from < page + bytes && page < *to && now < at + LEFT_ALONE_MS;
        if now < self.alone_until || self.given_up.iter().any(left_alone) {
            return false;
        }
        let used = |slot| self.lost[slot] || self.aside.all().iter().any(|a| a.slot == slot);
        let Some(slot) = Inside::slots(bytes).find(|slot| !used(*slot)) else {
            return false;
        };
        let (moved, error) = self.inside.move_pages(self.inside.address(slot), page, bytes);
        if moved > 0 {
            self.aside.add(page, slot, bytes, moved);
        } else if error == libc::EAGAIN {
            // What the process does to its memory may concern this page: another time.
            self.handle_all();
        }
        moved > 0
    }

    /// Until all is back, the time is over, or whoever asked has ended.
    fn hold(&mut self, milliseconds: u64) {
        let until = now_ms() + milliseconds;
        while !self.aside.all().is_empty() && !self.ending {
            let left = until.saturating_sub(now_ms());
            if left == 0 {
                return;
            }
            let [ended, event] = self.wait(left as i32);
            if event {
                self.handle_all();
            }
            self.ending |= self.gone;
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
                && let Some(id) = self.aside.at(address)
            {
                if self.put_back(id) {
                    self.waited += now_ns() - woken;
                    continue;
                }
                self.waiting_since.get_or_insert(woken);
            }
            self.handle(event);
        }
    }

    fn handle(&mut self, event: Event) {
        let changes = matches!(event, Event::Remap(..) | Event::Unmap(..));
        if changes && self.is_of_one_thread() {
            // What it tells is in order.
            self.aside.settled();
            self.moves = 0;
        }
        self.note(event);
        if changes {
            self.settle();
        }
    }

    fn note(&mut self, event: Event) {
        match event {
            // A page that was never there, or one whose turn comes at the end: its thread goes on once nothing is registered.
            Event::Fault(address) => {
                self.waiting_since.get_or_insert_with(now_ns);
                self.registered(address, address);
            }
            Event::Fork(child) => {
                let mut pages = self.aside.clone();
                // It has one thread: what it tells is in order.
                pages.settled();
                self.fill_child(Descriptor(child), &mut pages);
            }
            Event::Remap(from, to, bytes) => {
                self.registered(to, to + bytes);
                self.moves += 1;
                self.together |= self.moves > 1;
                let mapped = |address| mappings::contains(self.maps, self.buffer, address);
                self.aside.moved(from, to, bytes, mapped);
            }
            Event::Remove(start, end) => {
                self.leave_alone(start, end);
                self.aside.given_up(start, end);
            }
            Event::Unmap(start, end) => {
                (self.ending, self.astray) = (true, true);
                let mapped = |address| mappings::contains(self.maps, self.buffer, address);
                self.aside.unmapped(start, end, mapped);
            }
            Event::Other => {}
        }
        self.take_empty();
    }

    /// Whether the process has one thread besides ours.
    fn is_of_one_thread(&self) -> bool {
        let mut path = [0; 40];
        let Some(end) = self.maps.iter().rposition(|byte| *byte == b'/') else {
            return false;
        };
        path[..=end].copy_from_slice(&self.maps[..=end]);
        path[end + 1..end + 5].copy_from_slice(b"task");
        // SAFETY: the path ends in 0, and the kernel writes to a structure that is ours.
        unsafe {
            let mut found: libc::stat = std::mem::zeroed();
            // A folder for each thread.
            libc::stat(path.as_ptr().cast(), &raw mut found) == 0 && found.st_nlink <= 2 + 2
        }
    }

    /// What is given up stays in its place, which is not used again.
    fn take_empty(&mut self) {
        while let Some(one) = self.aside.take_empty() {
            self.lost[one.slot] |= !self.aside.has(one.slot);
        }
    }

    /// No change is under way, as far as we have read: places in doubt are looked at.
    fn settled(&mut self) {
        self.aside.settled();
        self.moves = 0;
        if self.aside.is_doubtful() {
            let mut left = self.aside.clone();
            left.keep_mapped(|address| mappings::contains(self.maps, self.buffer, address));
            // Otherwise what is not mapped may just have been moved on.
            if !self.inside.uffd.changing() {
                self.aside = left;
                self.take_empty();
            }
        }
    }

    /// The window ends: what is registered is elsewhere, too.
    fn registered(&mut self, start: u64, end: u64) {
        (self.ending, self.astray) = (true, true);
        if let Some(range) = self.elsewhere.get_mut(self.elsewhere_count) {
            *range = (start, end);
        }
        self.elsewhere_count += 1;
    }

    /// Hears of changes until none is under way, for a while: what comes together may be told in any order, and one call tells of
    /// several (`mremap` of the new place, and then of the old one).
    fn settle(&mut self) {
        let until = now_ms() + SETTLES_MS;
        let mut looks = 0;
        while self.inside.uffd.changing() {
            if let Some(event) = self.inside.uffd.read() {
                self.note(event);
            } else if looks < LOOKS {
                looks += 1;
            } else {
                sleep_a_moment();
            }
            if now_ms() >= until {
                return;
            }
        }
        self.settled();
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

/// The kernel's out-of-memory killer chooses another process as long as there is one.
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

/// Sets niceness −20, as threads of the program wait for us. Without `CAP_SYS_NICE` it stays what we inherited.
fn raise_priority() {
    // SAFETY: takes numbers alone.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
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
