//! The part of the report on which threads take which parts in other runs.

use nodewise_analysis::figures::{percent, plural};
use nodewise_analysis::{Assignment, Roles as Found, shared_counters};
use nodewise_profile::{Profile, Schedule};
use nodewise_simulation::{OtherRuns as Predicted, RegionCost};
use serde::Serialize;

/// How the threads of other runs of the same command took the parts of the recorded one. A part is the pages of which
/// one thread made more than half of the accesses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Roles {
    /// `fixed`, `arrival` or `dynamic`.
    pub assignment: &'static str,
    /// Whether it is assumed because each thread takes one number from a shared counter, not seen.
    pub assumed: bool,
    /// Number of other runs.
    pub other_runs: u32,
    /// Share of the accesses to parts that the thread of the same number made.
    pub by_number: f64,
    /// Share that threads made which were matched with parts by the pages that they use.
    pub by_data: f64,
    /// Share that matched threads would have made if each had taken work without regard to parts.
    pub by_chance: f64,
    /// Share of all accesses that went to parts.
    pub in_parts: f64,
    /// Parallel constructs that deal pieces of work to the next thread that asks, the largest share first.
    pub loops: Vec<DynamicLoop>,
    /// Code that takes numbers from counters which threads share, those of most threads first.
    pub counters: Vec<Counter>,
    /// The same in a sentence.
    pub sentence: String,
}

/// A parallel construct of which another run may give each thread another part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DynamicLoop {
    /// The function that it is in.
    pub function: String,
    /// Where it begins, as `file:line`.
    pub site: String,
    /// `dynamic`, `guided` or `tasks`.
    pub schedule: &'static str,
    /// Share of all lines that its threads fetch.
    pub share: f64,
    /// What to write instead.
    pub advice: String,
}

/// Code that takes numbers from a counter which threads share, by an atomic operation or under a lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counter {
    /// The function that it is in.
    pub function: String,
    /// Where that is, as `file:line`.
    pub site: String,
    /// Number of threads that took one.
    pub threads: usize,
    /// Number of threads that took more than one.
    pub again: usize,
}

/// Local fractions that another run is expected to have under a policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OtherRuns {
    /// With threads bound by their numbers.
    pub by_number: f64,
    /// With each thread on the node of the part that it takes.
    pub by_data: f64,
    /// The first, of the accesses to objects that maps reach.
    pub mapped_by_number: f64,
    /// The second of those.
    pub mapped_by_data: f64,
}

impl From<Predicted> for OtherRuns {
    fn from(p: Predicted) -> Self {
        Self {
            by_number: p.all.by_number,
            by_data: p.all.by_data,
            mapped_by_number: p.mapped.by_number,
            mapped_by_data: p.mapped.by_data,
        }
    }
}

impl Roles {
    /// What was found of a recorded program, the constructs of which cost `regions`.
    #[must_use]
    pub fn of(found: &Found, profile: &Profile, regions: &[RegionCost]) -> Self {
        Self {
            loops: dynamic_loops(regions),
            counters: counters(profile),
            assignment: found.assignment.name(),
            assumed: found.counter.is_some(),
            other_runs: found.runs,
            by_number: found.by_number,
            by_data: found.by_data,
            by_chance: found.by_chance,
            in_parts: found.in_parts,
            sentence: sentence(found, profile),
        }
    }
}

fn counters(profile: &Profile) -> Vec<Counter> {
    let one = |counter: nodewise_analysis::SharedCounter| {
        let frame = profile.site(counter.site)?.own()?;
        Some(Counter {
            function: frame.function.clone(),
            site: frame.place(),
            threads: counter.threads,
            again: counter.again,
        })
    };
    shared_counters(profile).into_iter().filter_map(one).collect()
}

/// Constructs that fetch a smaller share of the lines are not worth a line.
const SMALL: f64 = 0.02;

fn dynamic_loops(regions: &[RegionCost]) -> Vec<DynamicLoop> {
    let all: f64 = regions.iter().map(|r| r.lines).sum();
    let one = |region: &RegionCost| {
        let schedule = region.schedule.filter(|s| s.is_dynamic())?;
        let share = region.lines / all.max(1.0);
        (share >= SMALL).then(|| DynamicLoop {
            function: region.frame.function.clone(),
            site: region.frame.place(),
            schedule: schedule.name(),
            share,
            advice: instead(schedule).to_owned(),
        })
    };
    let mut loops: Vec<DynamicLoop> = regions.iter().filter_map(one).collect();
    loops.sort_by(|a, b| b.share.total_cmp(&a.share));
    loops
}

/// What gives each thread the same part in each run.
fn instead(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::Tasks => {
            "#pragma omp parallel for schedule(static) over the same pieces, or tasks with `affinity`"
        }
        _ => {
            "#pragma omp parallel for schedule(static); where pieces differ in cost, schedule(static, n) with a smaller n"
        }
    }
}

/// Pages of no part that are worth a word.
const OUTSIDE: f64 = 0.1;

/// What other runs, or the counters of a recorded program, show of its threads, in a sentence or two.
#[must_use]
pub fn sentence(found: &Found, profile: &Profile) -> String {
    if let Some(site) = found.counter {
        let at = profile.site(site).and_then(|s| s.own());
        let at = at.map_or_else(
            || "a shared counter".to_owned(),
            |frame| format!("the counter at {frame}"),
        );
        return format!(
            "Each thread takes one number from {at}. If that chooses its part, parts are taken in order of arrival, and another \
             run deals them otherwise: `record --repeat 2` tells."
        );
    }
    let runs = plural(found.runs as usize, "other run");
    let [number, data, chance] = [found.by_number, found.by_data, found.by_chance].map(percent);
    let text = match found.assignment {
        Assignment::Fixed => format!(
            "Threads take their parts by number: in {runs}, {number} of the accesses to each part were the same thread's."
        ),
        Assignment::Arrival => format!(
            "Threads take their parts in order of arrival: in {runs}, {number} of the accesses to each part were those of the \
             thread of the same number, and {data} those of one thread, mostly another."
        ),
        Assignment::Dynamic if found.runs == 0 => {
            return "Threads take work as it comes: OpenMP is asked for dynamic schedules or tasks only."
                .to_owned();
        }
        Assignment::Dynamic => format!(
            "Threads take work as it comes: in {runs}, {data} of the accesses to each part were those of one thread; by chance \
             it would be {chance}."
        ),
    };
    match 1.0 - found.in_parts {
        outside if outside >= OUTSIDE => format!(
            "{text} The other {} of the accesses were to pages that no thread uses most.",
            percent(outside)
        ),
        _ => text,
    }
}

/// A share that a placement may lose in another run without a word.
const KEPT: f64 = 0.01;

/// What a placement, of which `local` of the accesses are local in the recorded run, is worth in another one; nothing where
/// it keeps that.
#[must_use]
pub fn worth(policy: &str, local: f64, expected: &OtherRuns, assumed: bool) -> Option<String> {
    let run = if assumed {
        "In another run, if so,"
    } else {
        "In another run"
    };
    let (number, data) = (percent(expected.by_number), percent(expected.by_data));
    (expected.by_number < local - KEPT).then(|| match number == data {
        true => format!("{run} `{policy}` keeps {number} of the accesses local."),
        false => format!(
            "{run} `{policy}` keeps {number} of the accesses local with threads bound by number, {data} if each runs \
             where its part is."
        ),
    })
}
