//! Sets pages of the followed processes aside, so that the next access to each is a fault: which pages, and how often.
//!
//! Pages are drawn at random, two of a block of 64 KiB at a time: whether threads share memory is seen by their using the
//! same block; less often where earlier ones were not accessed in time ([`Heat`]). A window lasts until all its pages were
//! accessed, [`HOLD`] at most. It is a whole mapping: a part would be a mapping of its own meanwhile, and the program could
//! not move it (`mremap`) as one.

use super::drawing::{HOLD, Heat, Memory, Random};
use super::here::NotHere;
use super::sensor::{left_alone, moves_memory, not_entered};
use nodewise_linux::userfaultfd::{Reply, Sampler, Window, robust_lists};
use nodewise_linux::{Host, clock};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Longest pause between two windows of a process: one that slept may have woken.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The part of the budget that setting aside may take; the rest is for handling samples.
const PART: f64 = 0.5;
/// Our thread in the process takes about as much CPU time for its system calls as the process that keeps the pages.
const WITH_OUR_THREAD: f64 = 2.0;
/// Time between two looks at which pages there are, and the share of time that these may take.
const LOOKED_AT: Duration = Duration::from_secs(2);
const LOOKING_SHARE: u32 = 200;
/// Time from the start of a program until it is entered: most end before.
const SETTLED: Duration = Duration::from_millis(100);
/// A mapping in which a window was cut short, by an access to memory that was not there or a change of the map, is left alone for this long,
/// twice as long each further time: where memory is new, threads would wait for us at every page.
const SHORTEST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(60);
/// A process of several threads that moves memory (`mremap`) again before the last move has settled is left alone for this long,
/// twice as long each further time within an hour: who moved what is not always known then. It is left alone for good once a page
/// was put back in one of several possible places.
const SHORTEST_REST_OF_MOVES: Duration = Duration::from_secs(10);
const LONGEST_REST_OF_MOVES: Duration = Duration::from_secs(600);
const FORGETS_MOVES: Duration = Duration::from_secs(3600);
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
    heat: Heat,
    looks_at: Duration,
    opened: Duration,
    opens_at: Duration,
    in_vain: u32,
    /// The window before the last one, and the last one.
    windows: [Opened; 2],
    /// Mappings in which windows were cut short, by their starts: for how long they are left alone, and until when.
    cut_short: BTreeMap<u64, (Duration, Duration)>,
    /// For how long the process was last left alone since it moved memory again and again, and when.
    rest: Duration,
    rested: Duration,
    heat_decays: Duration,
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
            random: Random::new(clock::nanoseconds(clock::monotonic())),
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
                    if reply.doubtful > 0 {
                        self.failures.push(moves_memory(*pid));
                        *state = State::Out;
                        continue;
                    }
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

    /// Whether we had set aside the page at this address at this time: then a fault there is a sample of ours, and is counted
    /// as an access.
    /// `period`: of how many faults one is reported.
    pub fn take_fault(&mut self, pid: u32, address: u64, time_ns: u64, period: u64) -> bool {
        let Some(State::Sampled(process)) = self.processes.get_mut(&pid) else {
            return false;
        };
        let ours = process.windows.iter().any(|opened| {
            let window = &opened.window;
            let pages = &window.pages[..window.count as usize];
            (opened.from_ns..=opened.until_ns).contains(&time_ns)
                && pages
                    .binary_search(&(address / window.page_bytes * window.page_bytes))
                    .is_ok()
        });
        if ours {
            process.heat.accessed(address, period as f64);
        }
        ours
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
            heat: Heat::default(),
            looks_at: Duration::ZERO,
            opened: Duration::ZERO,
            opens_at: Duration::ZERO,
            in_vain: 0,
            windows: [Opened::default(); 2],
            cut_short: BTreeMap::new(),
            rest: Duration::ZERO,
            rested: Duration::ZERO,
            heat_decays: Duration::ZERO,
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
        if reply.cut_short > 0 || reply.aside == 0 {
            let rest = self.cut_short.entry(self.windows[1].window.start).or_default();
            rest.0 = (rest.0 * 2).clamp(SHORTEST_REST, LONGEST_REST);
            rest.1 = clock::monotonic() + rest.0;
        }
        // A window that ended early, or of which pages were refused, does not tell whether its pages are used.
        if reply.cut_short == 0 && reply.refused == 0 {
            self.heat.tried(&self.windows[1].window);
        }
        self.in_vain = if reply.aside == 0 { self.in_vain + 1 } else { 0 };
        if reply.aside == 0 {
            self.look_again(clock::monotonic());
        }
        let pause = cost.as_secs_f64() / allowed.max(f64::MIN_POSITIVE);
        let mut pause = LONGEST_PAUSE.min(Duration::try_from_secs_f64(pause).unwrap_or(LONGEST_PAUSE));
        if reply.together > 0 {
            let now = clock::monotonic();
            if now - std::mem::replace(&mut self.rested, now) > FORGETS_MOVES {
                self.rest = Duration::ZERO;
            }
            self.rest = (self.rest * 2).clamp(SHORTEST_REST_OF_MOVES, LONGEST_REST_OF_MOVES);
            pause = self.rest;
        }
        self.opens_at = self.opened + pause;
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
            if now >= self.heat_decays {
                self.heat.decay();
                self.heat_decays = now + LOOKED_AT;
            }
            let exists = |start: u64| areas.binary_search_by_key(&start, |area| area.start).is_ok();
            self.cut_short.retain(|start, _| exists(*start));
            let took = clock::monotonic() - now;
            self.looks_at = now + LOOKED_AT.max(took * LOOKING_SHARE);
        }
        self.opened = now;
        self.opens_at = now + LONGEST_PAUSE;
        let rests = |start| self.cut_short.get(&start).is_some_and(|(_, until)| now < *until);
        let Some(window) = self.memory.draw(random, &self.heat, rests) else {
            if self.memory.pages == 0 {
                self.look_again(now);
                self.opens_at = now + HOLD;
                self.in_vain += 1;
            } else {
                // All of it is left alone for a while.
                let wakes = self.cut_short.values().map(|(_, until)| *until);
                let first = wakes.filter(|until| *until > now).min().unwrap_or(now);
                self.opens_at = first.clamp(now + HOLD, now + LONGEST_PAUSE);
            }
            return;
        };
        let window = Some(window.without(&robust_lists(host, pid))).filter(|window| window.count > 0);
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
