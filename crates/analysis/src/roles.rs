//! Roles: whether the threads of another run take the same parts of the work, and how well a placement fits there.
//!
//! A map binds data to threads by their numbers. That remains valid in another run if the program distributes its work
//! by thread number. If threads take parts in order of arrival, thread 3 of the next run may have the part of thread 7.
//! So two runs are compared. A *part* is what one thread of the recorded run did: the pages of which it made more than
//! half of the accesses. The threads of the other run are matched with parts by the pages that they access. Pages on
//! which several threads access only a few lines are left out, because how long a thread waits for a variable says
//! nothing about its part.

mod assign;
mod by_data;
mod doers;
mod expected;
mod taken;

pub use assign::{ThreadData, assign_threads};
pub use by_data::{MOST_WATCHED_PAGES, NotFollowed};
pub use expected::{Expected, LEAST_GAIN_BY_DATA, OtherRuns, left_to_first_touch};
pub use taken::taken;

use crate::thread_numbers;
use nodewise_profile::{CounterUse, Profile, Region, RegionKind, Schedule, SiteId};
use std::collections::{BTreeMap, BTreeSet};

/// How the threads of a program get their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// By thread number: the same thread has the same part in each run.
    Fixed,
    /// In order of arrival: each part has one thread, but another one in each run.
    Arrival,
    /// In pieces, while the program runs: most of a thread's accesses are to the parts of several others.
    Dynamic,
}

impl Assignment {
    /// The stable name used in reports, maps and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Arrival => "arrival",
            Self::Dynamic => "dynamic",
        }
    }

    /// The assignment with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Fixed, Self::Arrival, Self::Dynamic]
            .into_iter()
            .find(|a| a.name() == name)
    }
}

/// Threads count as taking parts in order of arrival if matching by number loses more than this share of the accesses
/// that matching by data explains.
const MAX_LOSS_BY_NUMBER: f64 = 0.05;
/// Smallest agreement beyond chance (Cohen's kappa) from which each part is said to have one thread.
const MIN_KAPPA: f64 = 0.5;
/// No statement is made if less than this share of the accesses goes to parts.
const MIN_SHARE_IN_PARTS: f64 = 0.5;
/// No statement is made either if matched threads would by chance make all but this share of the accesses, as where one
/// thread has nearly all of the work.
const MIN_UNEXPLAINED_BY_CHANCE: f64 = 0.1;

/// The threads of other runs, matched with the parts of the recorded one.
#[derive(Clone, Debug, PartialEq)]
pub struct Roles {
    /// Number of other runs.
    pub runs: u32,
    /// How threads get their parts.
    pub assignment: Assignment,
    /// The share of the accesses to parts that the thread with the part's number made, over all runs.
    pub by_number: f64,
    /// The share of the accesses to parts that the matched threads made, over all runs.
    pub by_data: f64,
    /// The share that matched threads would have made if threads had taken work independently of parts.
    pub by_chance: f64,
    /// The share of all accesses that went to parts.
    pub in_parts: f64,
    /// The threads that did each part in each run, by run and part.
    part_threads: BTreeMap<(u32, u32), Vec<PartShare>>,
    /// Without compared runs: the numbers of the threads that may each have the part of any other of them.
    team: BTreeSet<u32>,
    /// Without compared runs: the code at which each thread of the team takes one number, which may be that of its
    /// part.
    pub counter: Option<SiteId>,
}

/// Code at which threads take numbers from a counter that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedCounter {
    /// The code that takes the numbers.
    pub site: SiteId,
    /// Number of threads that took at least one number.
    pub threads: usize,
    /// Number of threads that took more than one.
    pub again: usize,
}

/// The code at which two or more threads of a process took numbers from a shared counter, in descending order of the
/// number of threads.
#[must_use]
pub fn shared_counters(profile: &Profile) -> Vec<SharedCounter> {
    let process = |t: &CounterUse| profile.threads.get(t.thread.index()).map(|t| t.process);
    let mut by_process: BTreeMap<_, SharedCounter> = BTreeMap::new();
    for ticket in &profile.tickets {
        let counter = by_process
            .entry((ticket.site, process(ticket)))
            .or_insert(SharedCounter {
                site: ticket.site,
                threads: 0,
                again: 0,
            });
        counter.threads += 1;
        counter.again += usize::from(ticket.again);
    }
    let mut found: Vec<SharedCounter> = by_process.into_values().filter(|c| c.threads > 1).collect();
    found.sort_by_key(|counter| std::cmp::Reverse(counter.threads));
    found
}

/// A thread that accessed a part in another run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PartShare {
    /// The thread's number in the other run.
    by: u32,
    /// The part that the thread is matched with, which determines its node if threads are bound by data; `None` if it is
    /// matched with none, as where the other run has more threads than there are parts.
    matched: Option<u32>,
    accesses: f64,
    /// The thread's share of the accesses to the part.
    share: f64,
}

impl Roles {
    /// The roles that a profile shows; `None` if it shows none, for instance because no other run was recorded. If all
    /// OpenMP constructs have dynamic schedules or tasks, no other run is needed: any thread of the team may have any
    /// part. If most threads take one number each from a shared counter, the number is assumed to be that of their
    /// part. [`Roles::counter`] then names the code, and only another run can confirm it, if its threads are made to come in another
    /// order.
    #[must_use]
    pub fn of(profile: &Profile) -> Option<Self> {
        let dynamic = || is_dealt_dynamically(profile).then(|| Self::dealt_dynamically(profile));
        match Self::compared(profile).or_else(dynamic) {
            Some(found) if found.assignment == Assignment::Fixed && profile.order_may_be_the_same => {
                Some(Self::numbered_by_arrival(profile).unwrap_or(found))
            }
            None if profile.taken.is_empty() && !is_dealt_by_number(profile) => {
                Self::numbered_by_arrival(profile)
            }
            known => known,
        }
    }

    /// Whether threads that seem to take their parts by number may have come in the same order by chance, in runs that were
    /// recorded by themselves.
    #[must_use]
    pub fn may_be_fixed_by_chance(profile: &Profile) -> bool {
        profile.order_may_be_the_same && !Self::is_by_number(profile)
    }

    /// Whether a single run proves that threads take their parts by number: each process has one thread, or all
    /// parallel constructs distribute their work by number and no thread is outside their teams; and no thread takes
    /// numbers from a shared counter repeatedly.
    #[must_use]
    pub fn is_by_number(profile: &Profile) -> bool {
        let draws = shared_counters(profile).iter().any(|counter| counter.again > 0);
        !draws && (is_of_single_threads(profile) || is_dealt_by_number(profile))
    }

    fn compared(profile: &Profile) -> Option<Self> {
        let runs: BTreeSet<u32> = profile.taken.iter().map(|t| t.run).collect();
        let all: u64 = profile.taken.iter().map(|t| t.accesses).sum();
        let mut roles = Self {
            runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
            assignment: Assignment::Dynamic,
            by_number: 0.0,
            by_data: 0.0,
            by_chance: 0.0,
            in_parts: 0.0,
            part_threads: BTreeMap::new(),
            team: BTreeSet::new(),
            counter: None,
        };
        for run in runs {
            let of_run = profile.taken.iter().filter(|t| t.run == run && t.accesses > 0);
            let cells: Vec<(u32, u32, u64)> =
                of_run.filter_map(|t| Some((t.part?, t.by, t.accesses))).collect();
            roles.add(run, &cells);
        }
        let seen = roles.in_parts;
        roles.in_parts /= all.max(1) as f64;
        roles.by_number /= seen;
        roles.by_data /= seen;
        roles.by_chance /= seen;
        if seen == 0.0
            || roles.in_parts < MIN_SHARE_IN_PARTS
            || roles.by_chance > 1.0 - MIN_UNEXPLAINED_BY_CHANCE
        {
            return None;
        }
        let agreed = roles.by_data - roles.by_chance >= MIN_KAPPA * (1.0 - roles.by_chance);
        roles.assignment = match roles {
            _ if !agreed || is_dealt_dynamically(profile) => Assignment::Dynamic,
            _ if roles.by_number >= (1.0 - MAX_LOSS_BY_NUMBER) * roles.by_data => Assignment::Fixed,
            _ => Assignment::Arrival,
        };
        Some(roles)
    }

    /// Roles if any thread of an OpenMP team may have any part.
    fn dealt_dynamically(profile: &Profile) -> Self {
        let numbers = thread_numbers(profile).into_iter().zip(&profile.threads);
        let team: BTreeSet<u32> = numbers
            .filter(|(_, thread)| thread.openmp.is_some())
            .map(|(n, _)| n)
            .collect();
        Self::by_chance(team, Assignment::Dynamic)
    }

    /// Roles of a team in which any thread may have any part: while the program runs ([`Assignment::Dynamic`]) or in
    /// another run.
    fn by_chance(team: BTreeSet<u32>, assignment: Assignment) -> Self {
        let share = 1.0 / team.len().max(1) as f64;
        Self {
            runs: 0,
            assignment,
            by_number: share,
            by_data: match assignment {
                Assignment::Dynamic => share,
                _ => 1.0,
            },
            by_chance: share,
            in_parts: 1.0,
            part_threads: BTreeMap::new(),
            team,
            counter: None,
        }
    }

    /// Roles if at least half of the threads take one number each at the same place; `None` otherwise.
    fn numbered_by_arrival(profile: &Profile) -> Option<Self> {
        let counters = shared_counters(profile);
        let once = counters
            .iter()
            .find(|c| c.again == 0 && 2 * c.threads >= profile.threads.len())?;
        let numbers = thread_numbers(profile);
        let takers = profile.tickets.iter().filter(|t| t.site == once.site);
        let team = takers.map(|t| numbers[t.thread.index()]).collect();
        Some(Self {
            counter: Some(once.site),
            ..Self::by_chance(team, Assignment::Arrival)
        })
    }

    /// Adds a run. `cells` are part, thread and accesses. Sums are divided only when all runs have been added.
    fn add(&mut self, run: u32, cells: &[(u32, u32, u64)]) {
        let matched = matched(cells);
        self.by_chance += accesses_by_chance(cells);
        let mut parts: BTreeMap<u32, f64> = BTreeMap::new();
        for &(part, _, accesses) in cells {
            *parts.entry(part).or_default() += accesses as f64;
        }
        for &(part, by, accesses) in cells {
            let accesses = accesses as f64;
            let own = matched.get(&by).copied();
            self.in_parts += accesses;
            self.by_number += if part == by { accesses } else { 0.0 };
            self.by_data += if own == Some(part) { accesses } else { 0.0 };
            self.part_threads.entry((run, part)).or_default().push(PartShare {
                by,
                matched: own,
                accesses,
                share: accesses / parts[&part],
            });
        }
    }
}

/// Whether each process has one thread.
fn is_of_single_threads(profile: &Profile) -> bool {
    let processes: BTreeSet<u16> = profile.threads.iter().map(|t| t.process).collect();
    processes.len() == profile.threads.len()
}

/// Whether all parallel constructs distribute their work by thread number, and all threads but the first of each
/// process belong to OpenMP teams.
fn is_dealt_by_number(profile: &Profile) -> bool {
    let is_openmp = |region: &&Region| region.kind == RegionKind::OpenMp;
    let mut constructs = profile.regions.iter().filter(is_openmp).peekable();
    let mut processes = BTreeSet::new();
    let in_teams = profile.threads.iter().all(|thread| {
        let is_first = processes.insert(thread.process);
        is_first || thread.openmp.is_some()
    });
    constructs.peek().is_some()
        && constructs.all(|region| region.schedule == Some(Schedule::Static))
        && in_teams
}

/// Whether all parallel constructs are known to distribute their work dynamically. A construct with an unknown schedule
/// may distribute it by number.
fn is_dealt_dynamically(profile: &Profile) -> bool {
    let is_openmp = |region: &&Region| region.kind == RegionKind::OpenMp;
    let mut constructs = profile.regions.iter().filter(is_openmp).peekable();
    constructs.peek().is_some() && constructs.all(|region| region.schedule.is_some_and(Schedule::is_dynamic))
}

/// Matches threads with parts: takes pairs in descending order of accesses, each if neither its part nor its thread is
/// taken yet. This is the best matching if each thread makes most of its accesses in one part.
fn matched(cells: &[(u32, u32, u64)]) -> BTreeMap<u32, u32> {
    let mut cells = cells.to_vec();
    // Of tied pairs, the one with equal numbers comes first: a tie is no evidence of a change.
    cells.sort_by_key(|&(part, by, accesses)| (std::cmp::Reverse(accesses), part != by, part, by));
    let (mut parts, mut of) = (BTreeSet::new(), BTreeMap::new());
    for (part, by, _) in cells {
        if !of.contains_key(&by) && parts.insert(part) {
            of.insert(by, part);
        }
    }
    of
}

/// The number of accesses that matched threads would make if parts and threads were independent.
fn accesses_by_chance(cells: &[(u32, u32, u64)]) -> f64 {
    let (mut parts, mut threads): (BTreeMap<u32, f64>, BTreeMap<u32, f64>) = Default::default();
    for &(part, by, accesses) in cells {
        *parts.entry(part).or_default() += accesses as f64;
        *threads.entry(by).or_default() += accesses as f64;
    }
    let descending = |sums: BTreeMap<u32, f64>| {
        let mut sums: Vec<f64> = sums.into_values().collect();
        sums.sort_by(|a, b| b.total_cmp(a));
        sums
    };
    let (parts, threads) = (descending(parts), descending(threads));
    let all: f64 = parts.iter().sum();
    parts.iter().zip(&threads).map(|(p, t)| p * t).sum::<f64>() / all.max(1.0)
}

#[cfg(test)]
#[path = "roles_tests.rs"]
mod tests;
