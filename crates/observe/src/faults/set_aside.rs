//! Sets pages of the followed processes aside, so that the next access to each is a fault: which pages, and how often.
//!
//! Pages are drawn at random, two of a block of 64 KiB at a time: whether threads share memory is seen by their using the
//! same block. A window lasts until all its pages were accessed, [`HOLD`] at most. It is a whole mapping: a part would be a mapping
//! of its own meanwhile, and the program could not move it (`mremap`) as one.

use super::here::NotHere;
use super::sensor::{left_alone, not_entered};
use nodewise_linux::maps::Area;
use nodewise_linux::pagemap::{Pagemap, Run};
use nodewise_linux::userfaultfd::{HUGE, Reply, SMALL, Sampler, Window, robust_lists};
use nodewise_linux::{Host, clock};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// How long a page stays aside that is not accessed.
const HOLD: Duration = Duration::from_millis(50);
/// Longest pause between two windows of a process: one that slept may have woken.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The part of the budget that setting aside may take; the rest is for handling samples.
const PART: f64 = 0.5;
/// Our thread in the process takes about as much CPU time for its system calls as the process that keeps the pages.
const WITH_OUR_THREAD: f64 = 2.0;
/// The unit of which two pages are drawn, as large as that by which sharing is told.
const BLOCK: u64 = 64 << 10;
/// Time between two looks at which pages there are, and the share of time that these may take.
const LOOKED_AT: Duration = Duration::from_secs(2);
const LOOKING_SHARE: u32 = 200;
/// Time from the start of a program until it is entered: most end before.
const SETTLED: Duration = Duration::from_millis(100);
/// A mapping in which a window was cut short, by an access to memory that was not there or a change of the map, is left alone for this long,
/// twice as long each further time: where memory is new, threads would wait for us at every page.
const SHORTEST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);
/// The largest guard below a thread's stack, bytes; heaps have larger ranges without rights.
const LARGEST_GUARD: u64 = 256 << 10;
/// The usual size of a thread's stack (`ulimit -s`), which is left alone: stacks are their threads' own. Of larger ones, and of those
/// that a program places itself, the pages are left out that the kernel writes when a thread ends ([`robust_lists`]).
const STACK: u64 = 8 << 20;
/// Processes sampled at most; each has a process of ours that keeps its pages.
const MOST: usize = 64;
/// Windows without a page, one after the other, after which a process is given up; places that may be used up.
const MOST_IN_VAIN: u32 = 50;
const MOST_LOST: u64 = 256;

/// Pages set aside so far, with what that cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aside {
    /// Pages that were set aside.
    pub pages: u64,
    /// Those of them that were not accessed meanwhile.
    pub untouched: u64,
    /// Pages that Linux did not let us set aside: shared, pinned, or gone.
    pub refused: u64,
}

/// `set aside 3200 pages; 12 of them were not accessed in time, and 5 more could not be set aside`
impl fmt::Display for Aside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pages,
            untouched,
            refused,
        } = self;
        write!(
            f,
            "set aside {pages} pages; {untouched} of them were not accessed within {} ms, and {refused} more could not be set aside",
            HOLD.as_millis()
        )
    }
}

/// All processes that are sampled.
pub struct SetAside {
    share: f64,
    processes: BTreeMap<u32, State>,
    random: Random,
    totals: Aside,
    spent: Duration,
    /// Why processes are not sampled, until it has been told.
    failures: Vec<NotHere>,
}

enum State {
    /// Seen at this time.
    New(Duration),
    Sampled(Box<Process>),
    /// It cannot be sampled, or no longer.
    Out,
}

struct Process {
    sampler: Sampler,
    memory: Memory,
    looks_at: Duration,
    opened: Duration,
    opens_at: Duration,
    in_vain: u32,
    /// The window before the last one, and the last one.
    windows: [Opened; 2],
    /// Mappings in which windows were cut short, by their starts: for how long they are left alone, and until when.
    cut_short: BTreeMap<u64, (Duration, Duration)>,
    /// Whose rights the process had when it was entered.
    rights: String,
}

/// A window, and from when to when it was open, on the clock of the faults' times.
#[derive(Clone, Copy, Default)]
struct Opened {
    window: Window,
    from_ns: u64,
    until_ns: u64,
}

impl SetAside {
    /// May use a part of this share of the processes' CPU time.
    pub fn new(share: f64) -> Self {
        Self {
            share,
            processes: BTreeMap::new(),
            random: Random(clock::nanoseconds(clock::monotonic()) | 1),
            totals: Aside::default(),
            spent: Duration::ZERO,
            failures: Vec::new(),
        }
    }

    /// Enters running processes.
    ///
    /// # Errors
    /// None of them can be sampled.
    pub fn enter(&mut self, host: &Host, pids: &[u32]) -> Result<(), NotHere> {
        for pid in pids.iter().take(MOST) {
            self.attach(host, *pid);
        }
        let none = !self.processes.values().any(|s| matches!(s, State::Sampled(_)));
        match self.failures.first() {
            Some(failure) if none => Err(failure.clone()),
            _ => Ok(()),
        }
    }

    fn attach(&mut self, host: &Host, pid: u32) {
        if let Some(why) = left_alone(host, pid) {
            self.failures.push(why);
            self.processes.insert(pid, State::Out);
            return;
        }
        let rights = rights(host, pid);
        let state = match Sampler::attach(host, pid) {
            Ok(sampler) => State::Sampled(Box::new(Process::new(sampler, rights))),
            Err(error) => {
                if host.has_process(pid) {
                    self.failures.push(not_entered(host, pid, &error));
                }
                State::Out
            }
        };
        self.processes.insert(pid, state);
    }

    /// A process executes another program: nothing of ours is left in it.
    pub fn executed(&mut self, pid: u32) {
        self.processes.insert(pid, State::New(clock::monotonic()));
    }

    /// Opens windows that are due, unless `paused`; `cpus`: how many the processes use at present.
    pub fn turn(&mut self, host: &Host, pids: &[u32], cpus: f64, paused: bool) {
        let now = clock::monotonic();
        self.processes.retain(|pid, _| pids.binary_search(pid).is_ok());
        for pid in pids {
            let known = self.processes.len();
            match self.processes.get(pid) {
                None if known < MOST => {
                    self.processes.insert(*pid, State::New(now));
                }
                Some(State::New(since)) if now - *since >= SETTLED => self.attach(host, *pid),
                _ => {}
            }
        }
        let sampled = self.processes.values().filter(|s| matches!(s, State::Sampled(_)));
        // What one process may cost a second, seconds.
        let allowed = self.share * PART * cpus / sampled.count().max(1) as f64;
        for (pid, state) in &mut self.processes {
            let State::Sampled(process) = state else {
                continue;
            };
            match process.reply() {
                Ok(Some(reply)) => {
                    let cost = Duration::from_nanos(reply.cpu_ns).mul_f64(WITH_OUR_THREAD)
                        + Duration::from_nanos(reply.waited_ns);
                    self.spent += cost;
                    self.totals.pages += reply.aside;
                    self.totals.untouched += reply.untouched;
                    self.totals.refused += reply.refused;
                    process.note(&reply, cost, allowed);
                }
                Ok(None) => {}
                Err(_) => {
                    *state = State::Out; // it has ended
                    continue;
                }
            }
            if process.in_vain > MOST_IN_VAIN {
                *state = State::Out;
            } else if !paused && !process.sampler.busy() && now >= process.opens_at {
                if now >= process.looks_at
                    && let Some(why) = left_alone(host, *pid)
                {
                    self.failures.push(why);
                    *state = State::Out;
                } else if process.rights == rights(host, *pid) {
                    process.open(host, *pid, &mut self.random, now);
                } else {
                    *state = State::New(now); // entered anew, with a thread that has the process's rights
                }
            }
        }
    }

    /// Whether we had set aside the page at this address at this time: a fault there is a sample of ours.
    pub fn sampled(&self, pid: u32, address: u64, time_ns: u64) -> bool {
        let Some(State::Sampled(process)) = self.processes.get(&pid) else {
            return false;
        };
        process.windows.iter().any(|opened| {
            let window = &opened.window;
            let pages = &window.pages[..window.count as usize];
            (opened.from_ns..=opened.until_ns).contains(&time_ns)
                && pages
                    .binary_search(&(address / window.page_bytes * window.page_bytes))
                    .is_ok()
        })
    }

    /// What was spent since the last call: CPU time of ours, and time that threads waited for us.
    pub fn take_spent(&mut self) -> Duration {
        std::mem::take(&mut self.spent)
    }

    /// Why some processes are not sampled, once.
    pub fn take_failures(&mut self) -> Vec<NotHere> {
        std::mem::take(&mut self.failures)
    }

    pub fn totals(&self) -> Aside {
        self.totals
    }
}

impl Process {
    fn new(sampler: Sampler, rights: String) -> Self {
        Self {
            sampler,
            memory: Memory::default(),
            looks_at: Duration::ZERO,
            opened: Duration::ZERO,
            opens_at: Duration::ZERO,
            in_vain: 0,
            windows: [Opened::default(); 2],
            cut_short: BTreeMap::new(),
            rights,
        }
    }

    /// The reply to the window, if it is over.
    fn reply(&mut self) -> Result<Option<Reply>, ()> {
        let reply = self.sampler.reply().map_err(|_| ())?;
        let gone = |r: &Reply| r.gone() || r.lost > MOST_LOST;
        match reply {
            Some(reply) if gone(&reply) => Err(()),
            other => Ok(other),
        }
    }

    fn note(&mut self, reply: &Reply, cost: Duration, allowed: f64) {
        self.windows[1].until_ns = clock::nanoseconds(clock::monotonic());
        if reply.cut_short > 0 {
            let rest = self.cut_short.entry(self.windows[1].window.start).or_default();
            rest.0 = (rest.0 * 2).clamp(SHORTEST_REST, LONGEST_REST);
            rest.1 = clock::monotonic() + rest.0;
        }
        self.in_vain = if reply.aside == 0 { self.in_vain + 1 } else { 0 };
        if reply.aside == 0 {
            self.look_again(clock::monotonic());
        }
        let pause = cost.as_secs_f64() / allowed.max(f64::MIN_POSITIVE);
        self.opens_at =
            self.opened + LONGEST_PAUSE.min(Duration::try_from_secs_f64(pause).unwrap_or(LONGEST_PAUSE));
    }

    /// What is known of the memory is older than a change of it.
    fn look_again(&mut self, now: Duration) {
        self.looks_at = self.looks_at.min(now + HOLD);
    }

    fn open(&mut self, host: &Host, pid: u32, random: &mut Random, now: Duration) {
        // What has become of a mapping since is looked at when the window opens.
        if now >= self.looks_at {
            let areas = host.maps(pid).unwrap_or_default();
            self.memory = Memory::of(pid, &areas);
            let exists = |start: u64| areas.binary_search_by_key(&start, |area| area.start).is_ok();
            self.cut_short.retain(|start, _| exists(*start));
            let took = clock::monotonic() - now;
            self.looks_at = now + LOOKED_AT.max(took * LOOKING_SHARE);
        }
        self.opened = now;
        self.opens_at = now + LONGEST_PAUSE;
        let rests = |start| self.cut_short.get(&start).is_some_and(|(_, until)| now < *until);
        let ends = robust_lists(host, pid);
        let window = self.memory.draw(random).map(|window| window.without(&ends));
        let window = window.filter(|window| window.count > 0 && !rests(window.start));
        match window {
            Some(window) if self.sampler.open(&window).is_ok() => {
                let opened = Opened {
                    window,
                    from_ns: clock::nanoseconds(now),
                    until_ns: u64::MAX,
                };
                self.windows = [self.windows[1], opened];
            }
            _ => {
                self.look_again(now);
                self.opens_at = now + HOLD;
                self.in_vain += 1;
            }
        }
    }
}

/// The pages of a process that can be set aside.
#[derive(Default)]
struct Memory {
    mappings: Vec<Mapping>,
    pages: u64,
}

struct Mapping {
    start: u64,
    end: u64,
    runs: Vec<Run>,
    pages: u64,
}

impl Memory {
    /// Those that are there now.
    fn of(pid: u32, areas: &[Area]) -> Self {
        let Ok(pagemap) = Pagemap::of(pid) else {
            return Self::default();
        };
        let mappings = areas.iter().filter(|area| can_be_set_aside(area)).map(|area| {
            let mut runs = Vec::new();
            let from = area.start + if is_above_guard(areas, area) { STACK } else { 0 };
            // A process that has ended has none.
            let _ = pagemap.runs(from, area.end, |run| runs.push(run));
            Mapping::new(area.start, area.end, runs)
        });
        Self::new(mappings.collect())
    }

    fn new(mappings: Vec<Mapping>) -> Self {
        Self {
            pages: mappings.iter().map(|m| m.pages).sum(),
            mappings,
        }
    }

    /// Pages at random of those that there are, all of one mapping and of one size.
    fn draw(&self, random: &mut Random) -> Option<Window> {
        let mut at = random.below(self.pages)?;
        let mapping = self.mappings.iter().find(|m| within(&mut at, m.pages))?;
        let (_, first) = mapping.at(at)?;
        let page_bytes = if first.huge { HUGE } else { SMALL };
        let most = if first.huge {
            Window::MOST_HUGE
        } else {
            Window::MOST
        };
        let mut chosen: Vec<u64> = Vec::with_capacity(most);
        for _ in 0..most / 2 {
            let Some((page, run)) = mapping.at(random.below(mapping.pages)?) else {
                continue;
            };
            let page = page / page_bytes * page_bytes;
            let other = page / BLOCK * BLOCK + random.below(BLOCK / SMALL)? * SMALL;
            if run.huge == first.huge {
                chosen.push(page);
                chosen.extend(Some(other).filter(|other| !run.huge && (run.start..run.end).contains(other)));
            }
        }
        chosen.sort_unstable();
        chosen.dedup();
        let mut window = Window {
            start: mapping.start,
            bytes: mapping.end - mapping.start,
            page_bytes,
            milliseconds: HOLD.as_millis() as u64,
            count: chosen.len() as u64,
            ..Window::default()
        };
        window.pages[..chosen.len()].copy_from_slice(&chosen);
        (window.count > 0).then_some(window)
    }
}

impl Mapping {
    fn new(start: u64, end: u64, runs: Vec<Run>) -> Self {
        Self {
            start,
            end,
            pages: runs.iter().map(pages).sum(),
            runs,
        }
    }

    /// The address of the nth page that is there, counted in small ones, and its run.
    fn at(&self, mut nth: u64) -> Option<(u64, Run)> {
        let run = self.runs.iter().find(|run| within(&mut nth, pages(run)))?;
        Some((run.start + nth * SMALL, *run))
    }
}

/// Whether the nth is among this many; otherwise what is left to count.
fn within(nth: &mut u64, count: u64) -> bool {
    let here = *nth < count;
    *nth -= if here { 0 } else { count };
    here
}

fn pages(run: &Run) -> u64 {
    (run.end - run.start) / SMALL
}

/// Whether a mapping begins with a thread's stack, by the guard below it; other memory may be joined to it above.
fn is_above_guard(areas: &[Area], area: &Area) -> bool {
    let guards = |below: &Area| {
        below.end == area.start && below.permissions == "---p" && below.end - below.start <= LARGEST_GUARD
    };
    let at = areas.partition_point(|a| a.start < area.start);
    at > 0 && guards(&areas[at - 1])
}

/// The lines of a process's status that say whose rights it has. A thread of ours would keep those that it gives up.
fn rights(host: &Host, pid: u32) -> String {
    let text = host.read(&format!("proc/{pid}/status")).unwrap_or_default();
    let says = |line: &&str| {
        ["Uid:", "Gid:", "CapPrm:", "Seccomp:"]
            .iter()
            .any(|name| line.starts_with(name))
    };
    text.lines().filter(says).collect::<Vec<_>>().join("\n")
}

/// Private anonymous memory that is read and written. Not less than a block: a page by which a library learns that it was forked
/// (`MADV_WIPEONFORK`) would come to the child as it was, and where so little lies costs nobody time.
fn can_be_set_aside(area: &Area) -> bool {
    if area.end - area.start < BLOCK {
        return false;
    }
    let anonymous = area.file == (0, 0)
        && (area.name.is_empty() || area.name == "[heap]" || area.name.starts_with("[anon:"));
    anonymous && area.permissions == "rw-p"
}

/// Splitmix64 (Steele, Lea, Flood 2014): which pages are drawn needs no better one.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> Option<u64> {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)).checked_rem(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A mapping of one run, with as many pages on both sides that are not there.
    fn mapping(place: u64, pages: u64, huge: bool) -> Mapping {
        let bytes = pages * if huge { HUGE } else { SMALL };
        let start = place * (HUGE << 8);
        let run = Run {
            start: start + (bytes.next_multiple_of(HUGE)),
            end: start + bytes.next_multiple_of(HUGE) + bytes,
            huge,
        };
        Mapping::new(start, run.end + bytes, vec![run])
    }

    proptest! {
        #[test]
        fn what_is_drawn_is_there(parts in prop::collection::vec((1u64..40, any::<bool>()), 1..8), seed in any::<u64>()) {
            let mappings = parts.iter().zip(1..).map(|((pages, huge), at)| mapping(at, *pages, *huge)).collect();
            let memory = Memory::new(mappings);
            let window = memory.draw(&mut Random(seed)).unwrap();
            let whole = |m: &&Mapping| (m.start, m.end - m.start) == (window.start, window.bytes);
            let run = memory.mappings.iter().find(whole).unwrap().runs[0];
            prop_assert_eq!(window.page_bytes, if run.huge { HUGE } else { SMALL });
            let drawn = &window.pages[..window.count as usize];
            prop_assert!(drawn.is_sorted_by(|a, b| a < b));
            for page in drawn {
                prop_assert_eq!(page % window.page_bytes, 0);
                prop_assert!((run.start..run.end).contains(page));
            }
        }
    }

    #[test]
    fn every_page_of_a_large_mapping_is_drawn_some_time() {
        let memory = Memory::new(vec![mapping(1, 30_000, false)]);
        let start = memory.mappings[0].runs[0].start;
        let mut random = Random(7);
        let mut seen = vec![false; 30_000];
        for _ in 0..20_000 {
            let window = memory.draw(&mut random).unwrap();
            for page in &window.pages[..window.count as usize] {
                seen[((page - start) / SMALL) as usize] = true;
            }
        }
        assert!(
            seen.iter().all(|s| *s),
            "{} never",
            seen.iter().filter(|s| !**s).count()
        );
        assert!(Memory::default().draw(&mut random).is_none());
    }

    #[test]
    fn stacks_files_and_shared_memory_are_left_alone() {
        let area = |line| can_be_set_aside(&Area::parse(line).unwrap());
        assert!(area("7f0000000000-7f0000100000 rw-p 00000000 00:00 0 "));
        assert!(area("55d000000000-55d000021000 rw-p 00000000 00:00 0    [heap]"));
        assert!(!area("7f0000000000-7f000000f000 rw-p 00000000 00:00 0 "));
        assert!(!area(
            "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0    [stack]"
        ));
        assert!(!area("7f0000000000-7f0000100000 r--p 00000000 00:00 0 "));
        assert!(!area(
            "7f0000000000-7f0000100000 rw-s 00000000 00:01 9  /dev/zero (deleted)"
        ));
        assert!(!area(
            "7f0000000000-7f0000100000 rw-p 00000000 08:01 9  /usr/lib/x.so"
        ));
    }
}
