//! Decides which pages of the followed processes are set aside and how often, so that the next access to each is a
//! fault.
//!
//! Pages are chosen at random, two from a block of 64 KiB at a time, since sharing is detected by threads using the
//! same block. Pages are chosen less often where earlier ones were not accessed in time ([`AccessRates`]). A window
//! lasts until all its pages were accessed, [`MAX_HOLD`] at most. It always covers a whole mapping: registering a part
//! would split the mapping for that time, and the program could not move it (`mremap`) as one.

use super::cooldown::Cooldown;
use super::drawing::{AccessRates, MAX_HOLD, Memory};
use super::here::Unavailable;
use super::sensor::{left_alone, moves_memory, not_entered};
use nodewise_analysis::figures::{exact, grouped};
use nodewise_analysis::random::SplitMix;
use nodewise_linux::userfaultfd::{Reply, Sampler, Window, robust_lists};
use nodewise_linux::{Host, clock};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Longest pause between two windows of a process, since a sleeping process may have woken.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The share of the budget that setting aside may take; the rest is for processing samples.
const SET_ASIDE_SHARE: f64 = 0.5;
/// Our thread in the process takes about as much CPU time for its system calls as the keeper does.
const THREAD_COST_FACTOR: f64 = 2.0;
/// Interval at which the resident pages are read, and the largest share of the time that this may take (1 / n).
const RESIDENTS_INTERVAL: Duration = Duration::from_secs(2);
const RESIDENTS_DIVISOR: u32 = 200;
/// Delay before a new program is attached, since most programs end earlier.
const ATTACH_DELAY: Duration = Duration::from_millis(100);
/// Cooldown of a mapping in which a window was cut short, by an access to a missing page or a change of mappings;
/// doubled each further time. In memory that is being touched for the first time, threads would wait for us at every
/// page.
const SHORTEST_COOLDOWN: Duration = Duration::from_secs(1);
const LONGEST_COOLDOWN: Duration = Duration::from_secs(60);
/// Cooldown of a process of several threads that moved memory (`mremap`) again before the last move had settled;
/// doubled for each further time within an hour. The order of such moves is not always known. The process is not
/// sampled again once a page was put back at one of several possible places.
const SHORTEST_COOLDOWN_OF_MOVES: Duration = Duration::from_secs(10);
const LONGEST_COOLDOWN_OF_MOVES: Duration = Duration::from_secs(600);
const MOVE_MEMORY: Duration = Duration::from_secs(3600);
/// Largest number of processes that are sampled; each has a keeper process of ours.
const MAX_SAMPLED_PROCESSES: usize = 64;
/// Number of consecutive windows without any page after which a process is given up; number of unusable slots after
/// which it is.
const MAX_EMPTY_WINDOWS: u32 = 50;
const MAX_LOST_SLOTS: u64 = 256;

/// Totals of setting pages aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAsideTotals {
    /// Pages that were set aside.
    pub pages: u64,
    /// Those of them that were not accessed in time.
    pub untouched: u64,
    /// Pages that could not be set aside, since they are shared, pinned, or gone.
    pub refused: u64,
}

/// `set aside 3,200 pages, of which 12 without an access within 50 ms; 5 could not be set aside`
impl fmt::Display for SetAsideTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pages,
            untouched,
            refused,
        } = self;
        write!(
            f,
            "set aside {}, of which {} without an access within {} ms; {} could not be set aside",
            exact(*pages, "page"),
            grouped(*untouched),
            MAX_HOLD.as_millis(),
            grouped(*refused),
        )
    }
}

/// All processes that are sampled.
pub struct SetAside {
    share: f64,
    processes: BTreeMap<u32, State>,
    random: SplitMix,
    totals: SetAsideTotals,
    spent: Duration,
    /// Reasons why processes are not sampled that have not been reported yet.
    failures: Vec<Unavailable>,
}

enum State {
    /// First seen at this time, not attached yet.
    New(Duration),
    Sampled(Box<SampledProcess>),
    /// The process cannot be sampled, or not any more.
    Out,
}

struct SampledProcess {
    sampler: Sampler,
    memory: Memory,
    access_rates: AccessRates,
    looks_at: Duration,
    opened: Duration,
    opens_at: Duration,
    empty_windows: u32,
    /// The window before the last one, and the last one.
    windows: [OpenedWindow; 2],
    /// The cooldown of each mapping in which a window was cut short, by its start.
    cut_short: BTreeMap<u64, Cooldown>,
    /// The cooldown of the process after concurrent moves of memory.
    after_moves: Cooldown,
    /// The credentials that the process had when it was attached.
    rights: String,
}

/// A window with the time for which it was open, on the clock of the fault records.
#[derive(Clone, Copy, Default)]
struct OpenedWindow {
    window: Window,
    from_ns: u64,
    until_ns: u64,
}

impl SetAside {
    /// `share`: of the processes' CPU time that observation may take, of which setting aside takes a part.
    pub fn new(share: f64) -> Self {
        Self {
            share,
            processes: BTreeMap::new(),
            random: SplitMix(clock::nanoseconds(clock::monotonic())),
            totals: SetAsideTotals::default(),
            spent: Duration::ZERO,
            failures: Vec::new(),
        }
    }

    /// Attaches to running processes.
    ///
    /// # Errors
    /// None of them can be sampled.
    pub fn enter(&mut self, host: &Host, pids: &[u32]) -> Result<(), Unavailable> {
        for pid in pids.iter().take(MAX_SAMPLED_PROCESSES) {
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
            Ok(sampler) => State::Sampled(Box::new(SampledProcess::new(sampler, rights))),
            Err(error) => {
                if host.has_process(pid) {
                    self.failures.push(not_entered(host, pid, &error));
                }
                State::Out
            }
        };
        self.processes.insert(pid, state);
    }

    /// Records that a process executes another program, which has nothing of ours in it.
    pub fn executed(&mut self, pid: u32) {
        self.processes.insert(pid, State::New(clock::monotonic()));
    }

    /// Opens windows that are due, unless `paused`. `cpus`: the number of CPUs that the processes use at present.
    pub fn turn(&mut self, host: &Host, pids: &[u32], cpus: f64, paused: bool) {
        let now = clock::monotonic();
        self.processes.retain(|pid, _| pids.binary_search(pid).is_ok());
        for pid in pids {
            let known = self.processes.len();
            match self.processes.get(pid) {
                None if known < MAX_SAMPLED_PROCESSES => {
                    self.processes.insert(*pid, State::New(now));
                }
                Some(State::New(since)) if now - *since >= ATTACH_DELAY => self.attach(host, *pid),
                _ => {}
            }
        }
        let sampled = self.processes.values().filter(|s| matches!(s, State::Sampled(_)));
        // The cost that one process may cause per second, seconds.
        let allowed = self.share * SET_ASIDE_SHARE * cpus / sampled.count().max(1) as f64;
        for (pid, state) in &mut self.processes {
            let State::Sampled(process) = state else {
                continue;
            };
            match process.reply() {
                Ok(Some(reply)) => {
                    let cost = Duration::from_nanos(reply.cpu_ns).mul_f64(THREAD_COST_FACTOR)
                        + Duration::from_nanos(reply.waited_ns);
                    self.spent += cost;
                    self.totals.pages += reply.set_aside;
                    self.totals.untouched += reply.untouched;
                    self.totals.refused += reply.refused;
                    process.note(&reply, cost, allowed);
                    if reply.ambiguous_place > 0 {
                        self.failures.push(moves_memory(*pid));
                        *state = State::Out;
                        continue;
                    }
                }
                Ok(None) => {}
                Err(_) => {
                    *state = State::Out; // the process has ended
                    continue;
                }
            }
            if process.empty_windows > MAX_EMPTY_WINDOWS {
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
                    *state = State::New(now); // attached again, with a thread of the present credentials
                }
            }
        }
    }

    /// Whether the page at this address was set aside at this time. If so, a fault there is a sample of ours, and is
    /// counted as an access. `period`: one of every `period` faults is reported.
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
            process.access_rates.accessed(address, period as f64);
        }
        ours
    }

    /// The cost since the last call: our CPU time, and the time that threads waited for us.
    pub fn take_spent(&mut self) -> Duration {
        std::mem::take(&mut self.spent)
    }

    /// The reasons why processes are not sampled that were not returned before.
    pub fn take_failures(&mut self) -> Vec<Unavailable> {
        std::mem::take(&mut self.failures)
    }

    pub fn totals(&self) -> SetAsideTotals {
        self.totals
    }
}

impl SampledProcess {
    fn new(sampler: Sampler, rights: String) -> Self {
        Self {
            sampler,
            memory: Memory::default(),
            access_rates: AccessRates::default(),
            looks_at: Duration::ZERO,
            opened: Duration::ZERO,
            opens_at: Duration::ZERO,
            empty_windows: 0,
            windows: [OpenedWindow::default(); 2],
            cut_short: BTreeMap::new(),
            after_moves: Cooldown::default(),
            rights,
        }
    }

    /// The result of the window, if it is over; an error if the process cannot be sampled any more.
    fn reply(&mut self) -> Result<Option<Reply>, ()> {
        let reply = self.sampler.reply().map_err(|_| ())?;
        let gone = |r: &Reply| r.gone() || r.lost > MAX_LOST_SLOTS;
        match reply {
            Some(reply) if gone(&reply) => Err(()),
            other => Ok(other),
        }
    }

    fn note(&mut self, reply: &Reply, cost: Duration, allowed: f64) {
        self.windows[1].until_ns = clock::nanoseconds(clock::monotonic());
        if reply.cut_short > 0 || reply.set_aside == 0 {
            let cooldown = self.cut_short.entry(self.windows[1].window.start).or_default();
            cooldown.begin(clock::monotonic(), SHORTEST_COOLDOWN, LONGEST_COOLDOWN);
        }
        // A window that ended early or had refused pages does not show whether its pages are used.
        if reply.cut_short == 0 && reply.refused == 0 {
            self.access_rates.tried(&self.windows[1].window);
        }
        self.empty_windows = if reply.set_aside == 0 {
            self.empty_windows + 1
        } else {
            0
        };
        if reply.set_aside == 0 {
            self.look_again(clock::monotonic());
        }
        let pause = cost.as_secs_f64() / allowed.max(f64::MIN_POSITIVE);
        let mut pause = LONGEST_PAUSE.min(Duration::try_from_secs_f64(pause).unwrap_or(LONGEST_PAUSE));
        if reply.concurrent_moves > 0 {
            let now = clock::monotonic();
            self.after_moves.forget_after(MOVE_MEMORY, now);
            self.after_moves
                .begin(now, SHORTEST_COOLDOWN_OF_MOVES, LONGEST_COOLDOWN_OF_MOVES);
            pause = self.after_moves.length();
        }
        self.opens_at = self.opened + pause;
    }

    /// Schedules a new reading of the resident pages, as the memory has changed.
    fn look_again(&mut self, now: Duration) {
        self.looks_at = self.looks_at.min(now + MAX_HOLD);
    }

    fn open(&mut self, host: &Host, pid: u32, random: &mut SplitMix, now: Duration) {
        // Outdated information is harmless: the keeper checks the mapping when the window opens.
        if now >= self.looks_at {
            let areas = host.maps(pid).unwrap_or_default();
            self.memory = Memory::of(pid, &areas);
            self.access_rates.decay(now);
            let exists = |start: u64| areas.binary_search_by_key(&start, |area| area.start).is_ok();
            self.cut_short.retain(|start, _| exists(*start));
            let took = clock::monotonic() - now;
            self.looks_at = now + RESIDENTS_INTERVAL.max(took * RESIDENTS_DIVISOR);
        }
        self.opened = now;
        self.opens_at = now + LONGEST_PAUSE;
        let rests = |start| self.cut_short.get(&start).is_some_and(|c| now < c.ends());
        let Some(window) = self.memory.draw(random, &self.access_rates, rests) else {
            if self.memory.pages == 0 {
                self.look_again(now);
                self.opens_at = now + MAX_HOLD;
                self.empty_windows += 1;
            } else {
                // All mappings are in cooldown.
                let ends = self.cut_short.values().map(Cooldown::ends);
                let first = ends.filter(|end| *end > now).min().unwrap_or(now);
                self.opens_at = first.clamp(now + MAX_HOLD, now + LONGEST_PAUSE);
            }
            return;
        };
        let window = Some(window.without(&robust_lists(host, pid))).filter(|window| window.count > 0);
        match window {
            Some(window) if self.sampler.open(&window).is_ok() => {
                let opened = OpenedWindow {
                    window,
                    from_ns: clock::nanoseconds(now),
                    until_ns: u64::MAX,
                };
                self.windows = [self.windows[1], opened];
            }
            _ => {
                self.look_again(now);
                self.opens_at = now + MAX_HOLD;
                self.empty_windows += 1;
            }
        }
    }
}

/// The lines of a process's status that show its credentials. They are compared because our thread would keep
/// credentials that the process gives up.
fn rights(host: &Host, pid: u32) -> String {
    let values = host.status_values(pid, ["Uid", "Gid", "CapPrm", "Seccomp"]);
    values.map(Option::unwrap_or_default).join("\n")
}
