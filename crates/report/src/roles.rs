//! The part of the report on how the threads of other runs take the parts of the data.

use nodewise_analysis::figures::{percent, plural};
use nodewise_analysis::{
    Assignment, Histogram, NotFollowed, OtherRuns as Predicted, Roles as AnalysedRoles, shared_counters,
};
use nodewise_profile::{Observer, Profile, Schedule};
use nodewise_simulation::RegionCost;
use serde::Serialize;

/// How the threads of other runs of the same command took the parts of the recorded run. A part is the set of pages of
/// which one thread made more than half of the accesses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Roles {
    /// `fixed`, `arrival` or `dynamic`.
    pub assignment: &'static str,
    /// Whether `assignment` was not observed in other runs, but is assumed because each thread takes a number from a
    /// shared counter.
    pub assumed: bool,
    /// Number of other runs.
    pub other_runs: u32,
    /// Share of the accesses to parts that were made by the thread of the same number.
    pub by_number: f64,
    /// Share of the accesses to parts that were made by the thread matched with the part by the pages that it uses.
    pub by_data: f64,
    /// Expected value of `by_data` if threads had taken work independently of the parts.
    pub by_chance: f64,
    /// Share of all accesses that went to parts.
    pub in_parts: f64,
    /// Parallel constructs that assign work dynamically to the next idle thread, the largest share first.
    pub loops: Vec<DynamicLoop>,
    /// Code that takes numbers from a counter shared by threads, that of most threads first.
    pub counters: Vec<Counter>,
    /// What keeps `run` from binding threads by data, or may, although they take their parts in order of arrival.
    /// `openmp`, `too-many-pages` or `not-written`; `None` if nothing does, or there is no need to.
    pub not_followed: Option<&'static str>,
    /// The same as a sentence.
    pub not_followed_sentence: Option<&'static str>,
    /// The command that records the program with these constructs dealt by a static schedule, to see what that would give;
    /// `None` if that is not possible, as for tasks.
    pub static_schedule: Option<String>,
    /// A summary in one or two sentences.
    pub sentence: String,
}

/// A parallel construct with dynamic scheduling: in another run, each thread may take a different part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DynamicLoop {
    /// The function that contains the construct.
    pub function: String,
    /// Start of the construct, as `file:line`.
    pub site: String,
    /// `dynamic`, `guided`, `ordered` or `tasks`.
    pub schedule: &'static str,
    /// Share of all fetched cache lines that are fetched in the construct.
    pub share: f64,
    /// The recommended change to the source code.
    pub advice: String,
}

/// Code that takes numbers from a counter shared by threads, by an atomic operation or under a lock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Counter {
    /// The function that contains the code.
    pub function: String,
    /// Location of the code, as `file:line`.
    pub site: String,
    /// Number of threads that took a number.
    pub threads: usize,
    /// Number of threads that took more than one number.
    pub again: usize,
}

/// Local fractions that another run is expected to have under a policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OtherRuns {
    /// Local fraction if threads are bound by their numbers.
    pub by_number: f64,
    /// Local fraction if `run` binds threads by the data that they take, where it can; else `by_number`.
    pub by_data: f64,
    /// `by_number`, limited to accesses to objects that a map can place.
    pub mapped_by_number: f64,
    /// `by_data`, limited to accesses to objects that a map can place.
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
    /// Builds this part of the report; `regions` is the cost of the program's parallel constructs.
    #[must_use]
    pub fn of(
        found: &AnalysedRoles,
        (profile, histogram): (&Profile, &Histogram),
        regions: &[RegionCost],
    ) -> Self {
        let not_followed = found.not_followed(profile, histogram);
        let loops = dynamic_loops(regions);
        Self {
            static_schedule: static_schedule(&loops, profile),
            loops,
            counters: counters(profile),
            assignment: found.assignment.name(),
            assumed: found.counter.is_some(),
            other_runs: found.runs,
            by_number: found.by_number,
            by_data: found.by_data,
            by_chance: found.by_chance,
            in_parts: found.in_parts,
            not_followed: not_followed.map(NotFollowed::name),
            not_followed_sentence: not_followed.map(NotFollowed::sentence),
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

/// Smallest share of the fetched cache lines for a construct to be listed.
const MIN_LOOP_SHARE: f64 = 0.02;

fn dynamic_loops(regions: &[RegionCost]) -> Vec<DynamicLoop> {
    let all: f64 = regions.iter().map(|r| r.lines).sum();
    let one = |region: &RegionCost| {
        let schedule = region.schedule.filter(|s| s.is_dynamic())?;
        let share = region.lines / all.max(1.0);
        (share >= MIN_LOOP_SHARE).then(|| DynamicLoop {
            function: region.frame.function.clone(),
            site: region.frame.place(),
            schedule: schedule.name(),
            share,
            advice: schedule_advice(schedule).to_owned(),
        })
    };
    let mut loops: Vec<DynamicLoop> = regions.iter().filter_map(one).collect();
    loops.sort_by(|a, b| b.share.total_cmp(&a.share));
    loops
}

fn static_schedule(loops: &[DynamicLoop], profile: &Profile) -> Option<String> {
    let deals = loops.iter().any(|l| {
        [Schedule::Dynamic, Schedule::Guided]
            .map(Schedule::name)
            .contains(&l.schedule)
    });
    // Also of instrumented programs, as a script may have started this one.
    let via = match profile.meta.observer {
        observer @ (Observer::Instrument | Observer::Emulate) => observer.name(),
        _ => return None,
    };
    let record = ["nodewise", "record", "--schedule", "static", "--via", via, "--"].map(str::to_owned);
    let words = record.into_iter().chain(profile.meta.command.iter().cloned());
    deals.then(|| nodewise_input::shell_line(&words.collect::<Vec<_>>()))
}

/// The change that gives each thread the same part in each run.
fn schedule_advice(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::Tasks => {
            "#pragma omp parallel for schedule(static) over the same pieces, or tasks with `affinity`"
        }
        _ => {
            "#pragma omp parallel for schedule(static); where pieces differ in cost, schedule(static, n) with a smaller n"
        }
    }
}

/// Smallest share of accesses to pages outside all parts for which that share is mentioned.
const MIN_OUTSIDE_SHARE: f64 = 0.1;

/// One or two sentences on what other runs, or the counters of the recorded program, show about its threads.
#[must_use]
pub fn sentence(found: &AnalysedRoles, profile: &Profile) -> String {
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
        Assignment::Fixed => {
            let text = format!(
                "Threads take their parts by number: in {runs}, {number} of the accesses to each part were the same thread's."
            );
            match AnalysedRoles::may_be_fixed_by_chance(profile) {
                true => text + " Or they came in the same order there by chance: `record --repeat 2` tells.",
                false => text,
            }
        }
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
        outside if outside >= MIN_OUTSIDE_SHARE => format!(
            "{text} The other {} of the accesses were to pages that no thread uses most.",
            percent(outside)
        ),
        _ => text,
    }
}

/// Of a profile without roles: that it is not known which parts threads of another run take, and what tells; `None` if this run
/// proves that they take the same.
#[must_use]
pub fn unknown(profile: &Profile) -> Option<String> {
    let sentence = || {
        format!(
            "Whether threads take the same parts in each run, {}.",
            what_tells(profile)
        )
    };
    (!AnalysedRoles::is_by_number(profile)).then(sentence)
}

/// What tells which parts threads of another run take, where that is not known.
#[must_use]
pub fn what_tells(profile: &Profile) -> &'static str {
    match () {
        () if !profile.taken.is_empty() => "the runs compared do not tell",
        () if profile.meta.observer.is_sampled() => {
            "samples do not tell; `record --repeat 2` without `--via faults` does"
        }
        () => "`record --repeat 2` tells",
    }
}

/// Largest loss of local fraction in another run that is not mentioned.
const MAX_UNREPORTED_LOSS: f64 = 0.01;

/// A sentence on the local fraction of a placement in another run, where `local` is that of the recorded run; `None` if
/// it does not become smaller by more than `MAX_UNREPORTED_LOSS`.
#[must_use]
pub fn other_run_sentence(policy: &str, local: f64, expected: &OtherRuns, assumed: bool) -> Option<String> {
    let run = if assumed {
        "In another run, if so,"
    } else {
        "In another run"
    };
    let (number, data) = (percent(expected.by_number), percent(expected.by_data));
    (expected.by_number < local - MAX_UNREPORTED_LOSS).then(|| match number == data {
        true => format!("{run} `{policy}` keeps {number} of the accesses local."),
        false => format!(
            "{run} `{policy}` keeps {number} of the accesses local with threads bound by number, {data} if `run` has \
             found where the part of each is."
        ),
    })
}
