//! Roles: whether the threads of another run take the same parts of the work, and what a placement is worth there.
//!
//! A map binds data to threads by their numbers. That holds in another run where the program deals its work by number. Where
//! threads take parts in order of arrival, thread 3 of the next run may have the part of thread 7. So two runs are
//! compared: a *part* is what one thread of the recorded run did, the pages of which it made more than half of the
//! accesses, and the threads of the other run are matched with parts by the pages that they access. Pages on which several
//! threads access a few lines only are left out: who waits longer for a variable says nothing about parts.

use crate::{Affinity, Histogram, PageView, contended_pages, first_touches, thread_numbers};
use nodewise_machine::NodeId;
use nodewise_profile::{
    Object, ObjectId, ObjectKind, PageNumber, Profile, Region, RegionKind, Schedule, SiteId, TakenPart,
    ThreadId, Ticket,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How the threads of a program get their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// By their numbers: the same thread has the same part in each run.
    Fixed,
    /// In order of arrival: each part has one thread, another one in each run.
    Arrival,
    /// Piece by piece while the program runs: most of a thread's accesses are to the parts of several others.
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

/// What numbering may lose against matching by data before threads are said to come in order of arrival.
const LOST: f64 = 0.05;
/// Agreement beyond chance (Cohen's kappa) from which parts are said to have one thread each.
const AGREED: f64 = 0.5;
/// Nothing is said of a program that makes less than this share of its accesses to parts.
const IN_PARTS: f64 = 0.5;
/// Nor where one thread has all but this share of the work, so that threads would match by chance.
const ENOUGH: f64 = 0.1;

/// The threads of other runs, matched with the parts of the recorded one.
#[derive(Clone, Debug, PartialEq)]
pub struct Roles {
    /// Number of other runs.
    pub runs: u32,
    /// How threads get their parts.
    pub assignment: Assignment,
    /// The share of the accesses to parts that the thread of the same number made, over all runs.
    pub by_number: f64,
    /// The share that the matched threads made, over all runs.
    pub by_data: f64,
    /// The share that matched threads would have made if each had taken work without regard to parts.
    pub by_chance: f64,
    /// The share of all accesses that went to parts.
    pub in_parts: f64,
    /// For each run and part.
    players: BTreeMap<(u32, u32), Vec<Player>>,
    /// Where no runs were compared: any of these may have the part of any of them.
    team: BTreeSet<u32>,
    /// Where no runs were compared: the code by which each of the team takes a number, which may be that of its part.
    pub counter: Option<SiteId>,
}

/// Code that takes numbers from a counter which threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedCounter {
    /// The code that takes them.
    pub site: SiteId,
    /// Number of threads that took one.
    pub threads: usize,
    /// Number of threads that took more than one.
    pub again: usize,
}

/// Where two or more threads of a process took numbers from a shared counter, those of most threads first.
#[must_use]
pub fn shared_counters(profile: &Profile) -> Vec<SharedCounter> {
    let process = |t: &Ticket| profile.threads.get(t.thread.index()).map(|t| t.process);
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

/// A thread that has a part in another run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Player {
    /// Its number in the other run.
    by: u32,
    /// The part that it is matched with: where it is by data.
    matched: u32,
    /// Its share of the accesses to the part.
    share: f64,
}

/// Local fractions that another run is expected to have under a mapping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// With threads bound by their numbers.
    pub by_number: f64,
    /// With each thread on the node of the part that it takes.
    pub by_data: f64,
}

impl Roles {
    /// What a profile says about its threads; `None` where no other run was recorded, or it does not tell. Where OpenMP is
    /// asked for nothing but dynamic schedules and tasks, no other run is needed: any thread of the team may have any part.
    /// Where most threads take one number each from a shared counter, it is assumed that the number is that of their part:
    /// [`Roles::counter`] says so, and only another run can tell.
    #[must_use]
    pub fn of(profile: &Profile) -> Option<Self> {
        let dynamic = || is_dealt_dynamically(profile).then(|| Self::dealt_by_chance(profile));
        match Self::compared(profile).or_else(dynamic) {
            None if profile.taken.is_empty() && !is_dealt_by_number(profile) => {
                Self::numbered_by_arrival(profile)
            }
            known => known,
        }
    }

    /// Whether one run tells that threads take their parts by number: there is one thread a process, or all parallel
    /// constructs deal their work so and no thread is outside their teams; and none takes numbers again and again.
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
            players: BTreeMap::new(),
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
        if seen == 0.0 || roles.in_parts < IN_PARTS || roles.by_chance > 1.0 - ENOUGH {
            return None;
        }
        let agreed = roles.by_data - roles.by_chance >= AGREED * (1.0 - roles.by_chance);
        roles.assignment = match roles {
            _ if !agreed || is_dealt_dynamically(profile) => Assignment::Dynamic,
            _ if roles.by_number >= (1.0 - LOST) * roles.by_data => Assignment::Fixed,
            _ => Assignment::Arrival,
        };
        Some(roles)
    }

    /// Any thread of an OpenMP team may have any part of it.
    fn dealt_by_chance(profile: &Profile) -> Self {
        let numbers = thread_numbers(profile).into_iter().zip(&profile.threads);
        let team: BTreeSet<u32> = numbers
            .filter(|(_, thread)| thread.openmp.is_some())
            .map(|(n, _)| n)
            .collect();
        Self::by_chance(team, Assignment::Dynamic)
    }

    /// Of a team each thread of which may have any part: while the program runs, or in another run.
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
            players: BTreeMap::new(),
            team,
            counter: None,
        }
    }

    /// Half of the threads or more take one number each at the same place.
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

    /// Adds a run: how often each part was accessed by which thread. Sums stay undivided until all runs are in.
    fn add(&mut self, run: u32, cells: &[(u32, u32, u64)]) {
        let matched = matched(cells);
        self.by_chance += chance(cells);
        let mut parts: BTreeMap<u32, f64> = BTreeMap::new();
        for &(part, _, accesses) in cells {
            *parts.entry(part).or_default() += accesses as f64;
        }
        for &(part, by, accesses) in cells {
            let accesses = accesses as f64;
            let own = matched.get(&by).copied().unwrap_or(by);
            self.in_parts += accesses;
            self.by_number += if part == by { accesses } else { 0.0 };
            self.by_data += if part == own { accesses } else { 0.0 };
            self.players.entry((run, part)).or_default().push(Player {
                by,
                matched: own,
                share: accesses / parts[&part],
            });
        }
    }

    /// The local fractions of another run, of the accesses to pages that `counts`, with pages where `homes` has them: what
    /// a thread of the recorded run accessed is accessed in another run by those that have its part there. Pages that are
    /// `left` to first touch are on the node of those that have the part of the thread that touched them.
    #[must_use]
    pub fn expected(
        &self,
        profile: &Profile,
        histogram: &Histogram,
        affinity: &Affinity,
        (homes, left): (&[NodeId], &[bool]),
        counts: impl Fn(&PageView<'_>) -> bool,
    ) -> Expected {
        let touches = first_touches(profile, histogram);
        let by = |on: fn(&Player) -> u32, anywhere: bool| {
            let mut places = Places::new(self, profile, affinity, (on, anywhere));
            let (mut sum, mut local) = (0.0, 0.0);
            for page in histogram.iter().filter(|page| counts(page)) {
                let touch = touches[page.index].filter(|_| left[page.index]);
                for entry in page.entries {
                    let accesses = entry.accesses() as f64;
                    sum += accesses;
                    local += accesses
                        * match touch {
                            Some(touch) => places.together(entry.thread, touch.thread),
                            None => places.on(entry.thread, homes[page.index]),
                        };
                }
            }
            if sum > 0.0 { local / sum } else { 1.0 }
        };
        Expected {
            by_number: by(|p| p.by, true),
            by_data: by(|p| p.matched, self.assignment == Assignment::Dynamic),
        }
    }
}

/// What rules would leave to first touch: pages that are where it puts them, of objects nearly all of whose accesses are to
/// such pages.
#[must_use]
pub fn left_to_first_touch(
    profile: &Profile,
    histogram: &Histogram,
    affinity: &Affinity,
    homes: &[NodeId],
) -> Vec<bool> {
    const NEARLY_ALL: f64 = 0.95;
    let touches = first_touches(profile, histogram);
    let there: Vec<bool> = touches
        .iter()
        .zip(homes)
        .map(|(touch, home)| touch.is_some_and(|touch| affinity.node(touch.thread) == *home))
        .collect();
    let mut sums: BTreeMap<ObjectId, (u64, u64)> = BTreeMap::new();
    for page in histogram.iter() {
        let (all, at_home) = sums.entry(page.object).or_default();
        *all += page.accesses();
        *at_home += page.accesses() * u64::from(there[page.index]);
    }
    let is_left = |object: ObjectId| {
        let (all, at_home) = sums[&object];
        at_home as f64 >= NEARLY_ALL * all as f64
    };
    histogram
        .iter()
        .map(|page| there[page.index] && is_left(page.object))
        .collect()
}

/// Shares of work by node.
type Shares = BTreeMap<NodeId, f64>;

/// On which nodes the parts of the recorded threads are in each run.
struct Places {
    /// Number of each thread of the recorded run, and the node that a number runs on.
    numbers: Vec<u32>,
    nodes: Vec<NodeId>,
    /// For each run, the parts of which something is known.
    runs: Vec<HashMap<u32, Shares>>,
    /// Where the parts of the team are, each by any of its threads.
    anywhere: Option<Shares>,
    team: BTreeSet<u32>,
    /// Pairs of threads that were asked for.
    together: HashMap<(ThreadId, ThreadId), f64>,
}

impl Places {
    /// Each player where `on` says; where no runs were compared, the team's parts anywhere or each with its own thread.
    fn new(
        roles: &Roles,
        profile: &Profile,
        affinity: &Affinity,
        (on, anywhere): (fn(&Player) -> u32, bool),
    ) -> Self {
        let team = if anywhere {
            roles.team.clone()
        } else {
            BTreeSet::new()
        };
        let nodes = affinity.by_number(profile);
        let mut runs: BTreeMap<u32, HashMap<u32, Shares>> = BTreeMap::new();
        for (&(run, part), players) in &roles.players {
            let shares = runs.entry(run).or_default().entry(part).or_default();
            for player in players {
                if let Some(node) = nodes.get(on(player) as usize) {
                    *shares.entry(*node).or_default() += player.share;
                }
            }
        }
        let mut anywhere = Shares::new();
        for node in team.iter().filter_map(|n| nodes.get(*n as usize)) {
            *anywhere.entry(*node).or_default() += 1.0 / team.len() as f64;
        }
        let mut runs: Vec<_> = runs.into_values().collect();
        if runs.is_empty() {
            runs.push(HashMap::new());
        }
        Self {
            numbers: thread_numbers(profile),
            nodes,
            runs,
            anywhere: (!anywhere.is_empty()).then_some(anywhere),
            team,
            together: HashMap::new(),
        }
    }

    /// The share of a thread's part that is done on a node in a run.
    fn share(&self, run: &HashMap<u32, Shares>, thread: ThreadId, node: NodeId) -> f64 {
        let part = self.numbers[thread.index()];
        let shares = run
            .get(&part)
            .or_else(|| self.anywhere.as_ref().filter(|_| self.team.contains(&part)));
        match shares {
            Some(shares) => shares.get(&node).copied().unwrap_or(0.0),
            None => f64::from(u8::from(self.nodes[part as usize] == node)),
        }
    }

    /// The same, mean over the runs.
    fn on(&self, thread: ThreadId, node: NodeId) -> f64 {
        let shares = self.runs.iter().map(|run| self.share(run, thread, node));
        shares.sum::<f64>() / self.runs.len() as f64
    }

    /// The share of a thread's part that is done on the node where the other's is, mean over the runs.
    fn together(&mut self, one: ThreadId, other: ThreadId) -> f64 {
        if one == other {
            return 1.0;
        }
        let pair = (one.min(other), one.max(other));
        if let Some(known) = self.together.get(&pair) {
            return *known;
        }
        let all: BTreeSet<NodeId> = self.nodes.iter().copied().collect();
        let in_run = |run: &HashMap<u32, Shares>| {
            let both = |node: &NodeId| self.share(run, one, *node) * self.share(run, other, *node);
            all.iter().map(both).sum::<f64>()
        };
        let share = self.runs.iter().map(in_run).sum::<f64>() / self.runs.len() as f64;
        self.together.insert(pair, share);
        share
    }
}

/// Whether each process has one thread.
fn is_of_single_threads(profile: &Profile) -> bool {
    let processes: BTreeSet<u16> = profile.threads.iter().map(|t| t.process).collect();
    processes.len() == profile.threads.len()
}

/// Whether all parallel constructs deal their work by number, and all threads but the first of each process are of teams.
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

/// Whether all parallel constructs deal their work dynamically: one of which that is not known may deal it by number.
fn is_dealt_dynamically(profile: &Profile) -> bool {
    let is_openmp = |region: &&Region| region.kind == RegionKind::OpenMp;
    let mut constructs = profile.regions.iter().filter(is_openmp).peekable();
    constructs.peek().is_some() && constructs.all(|region| region.schedule.is_some_and(Schedule::is_dynamic))
}

/// The part of each thread: pairs of a part and a thread in descending order of accesses, each taken if neither is
/// taken yet. Where each thread makes most of its accesses in one part this is the best matching.
fn matched(cells: &[(u32, u32, u64)]) -> BTreeMap<u32, u32> {
    let mut cells = cells.to_vec();
    // Of equals, the thread of the same number: a tie is no change.
    cells.sort_by_key(|&(part, by, accesses)| (std::cmp::Reverse(accesses), part != by, part, by));
    let (mut parts, mut of) = (BTreeSet::new(), BTreeMap::new());
    for (part, by, _) in cells {
        if !of.contains_key(&by) && parts.insert(part) {
            of.insert(by, part);
        }
    }
    of
}

/// Accesses that matched threads would make if parts and threads were independent.
fn chance(cells: &[(u32, u32, u64)]) -> f64 {
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

/// What finds an object again in another run; the thread that allocated it may be another one there.
type Key<'a> = (u16, ObjectKind, String, &'a str, u32, u64);

/// First page of each object that can be found again: those that have their key alone.
fn keys(profile: &Profile) -> HashMap<Key<'_>, PageNumber> {
    let sites: Vec<String> = profile.sites.iter().map(ToString::to_string).collect();
    let mut found: HashMap<Key<'_>, Option<PageNumber>> = HashMap::new();
    for object in profile.objects.iter().filter(|o| o.kind.is_mappable()) {
        found
            .entry(key(object, &sites))
            .and_modify(|first| *first = None)
            .or_insert(Some(object.first_page));
    }
    found
        .into_iter()
        .filter_map(|(key, first)| Some((key, first?)))
        .collect()
}

fn key<'a>(object: &'a Object, sites: &[String]) -> Key<'a> {
    let site = sites.get(object.site.index()).cloned().unwrap_or_default();
    (
        object.first_page.process(),
        object.kind,
        site,
        &object.name,
        object.sequence,
        object.pages,
    )
}

/// Who took which part of a recorded run in another one of the same command, the rows of which are numbered `run`.
/// Histograms are of base pages. Objects of another size, and those that several threads allocate at one site, are
/// left out: which is which in the other run is not known.
#[must_use]
pub fn taken(
    run: u32,
    (profile, histogram): (&Profile, &Histogram),
    (other, others): (&Profile, &Histogram),
) -> Vec<TakenPart> {
    let keys = keys(profile);
    let sites: Vec<String> = other.sites.iter().map(ToString::to_string).collect();
    let again: Vec<Option<PageNumber>> = other
        .objects
        .iter()
        .map(|o| keys.get(&key(o, &sites)).copied())
        .collect();
    let (parts, numbers) = (thread_numbers(profile), thread_numbers(other));
    let waits = |histogram: &Histogram| -> BTreeSet<usize> {
        contended_pages(histogram)
            .iter()
            .map(|contended| contended.page)
            .collect()
    };
    let (waits_here, waits_there) = (waits(histogram), waits(others));
    let mut sums: BTreeMap<(Option<u32>, u32), u64> = BTreeMap::new();
    for page in others.iter() {
        let object = &other.objects[page.object.index()];
        let Some(first) = again[page.object.index()] else {
            continue;
        };
        let here = PageNumber(first.0 + page.page.0.saturating_sub(object.first_page.0));
        let part = histogram.pages.binary_search(&here).ok();
        if waits_there.contains(&page.index) || part.is_some_and(|at| waits_here.contains(&at)) {
            continue;
        }
        let part = part.and_then(|at| user(&histogram.page(at)));
        for entry in page.entries {
            let by = numbers[entry.thread.index()];
            *sums.entry((part.map(|thread| parts[thread]), by)).or_default() += entry.accesses();
        }
    }
    let rows = sums.into_iter().filter(|(_, accesses)| *accesses > 0);
    rows.map(|((part, by), accesses)| TakenPart {
        run,
        part,
        by,
        accesses,
    })
    .collect()
}

/// The thread that makes more than half of a page's accesses.
fn user(page: &PageView<'_>) -> Option<usize> {
    let most = page.entries.iter().max_by_key(|e| e.accesses())?;
    (2 * most.accesses() > page.accesses()).then_some(most.thread.index())
}

#[cfg(test)]
#[path = "roles_tests.rs"]
mod tests;
