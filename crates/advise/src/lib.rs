//! The verdict on a program: whether a placement pays, which objects cost most, and what to change.
//!
//! **Purpose.** Turns a simulation into a verdict of one sentence (which may be that nothing should be done), and
//! histogram, first touches and regions into facts, advice and a code snippet for each object.
//!
//! **Order.** Facts ([`Blame`]) are computed first; texts ([`Advised`], [`Verdict`]) are made from them, so that
//! modules have no cyclic dependencies.
//!
//! **Constraints.** Pure. A gain is claimed only if the whole predicted range lies on its side; a stock command line is
//! preferred if it comes within [`MAX_STOCK_SLOWDOWN`] of the best placement. From sampled profiles nothing is claimed
//! that needs counts: no time, no load, no snippet.
//!
//! **Non-goals.** Printing (see `nodewise-report`), measuring (see the `tune` command).

#![forbid(unsafe_code)]

mod advice;
mod advised;
mod blame;
mod cost;
mod decision;
mod distribution;
mod few_lines;
mod gain;
mod loops;
mod matched;
mod next_command;
mod phrases;
mod sampled;
mod sentence;
mod snippet;
mod source;
mod square;
mod stock;
mod undecided;
mod users;
mod verdict;

pub use advised::Advised;
pub use blame::Blame;
pub use distribution::{Distribution, schedule};
pub use few_lines::FewLines;
pub use gain::{MAX_STOCK_SLOWDOWN, MIN_GAIN, is_valid_in_other_runs};
pub use matched::Matched;
pub use next_command::ReportOptions;
pub use phrases::FEW_LINES;
pub use stock::{StockCommand, omp_places, stock_command};
pub use users::{FirstTouched, Pass, UsedBy};
pub use verdict::{Verdict, VerdictKind};

use nodewise_analysis::{ContendedPage, Samples, Usage, contended_pages};
use nodewise_placement::{Context, Mapping};
use nodewise_simulation::Simulation;

/// Everything there is to say about a profile on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// What to do, in one sentence.
    pub verdict: Verdict,
    /// Objects, the one that costs most first.
    pub objects: Vec<Advised>,
    /// Estimates from samples, if accesses are samples.
    pub samples: Option<Samples>,
    /// Pages that several threads use, most of whose accesses are to a few lines.
    pub contended_pages: Vec<ContendedPage>,
}

/// Computes the facts, then the texts. `first_touch` is the mapping of `simulation.predictions[0]`, `matched` the
/// program with matching loops, `report_options` the options for the command to copy, and `samples` the estimates from
/// a profile of samples.
///
/// ```
/// # use nodewise_advise::{ReportOptions, VerdictKind, advise};
/// # use nodewise_analysis::Usage;
/// # use nodewise_simulation::{Parameters, Range, simulate};
/// # use nodewise_analysis::Histogram;
/// # use nodewise_machine::Machine;
/// # use nodewise_placement::policies::Nothing;
/// # use nodewise_placement::{Context, page_policies, thread_policy};
/// # use nodewise_profile::{Access, FirstTouch, InMemory, Object, ObjectId, ObjectKind, PageNumber, Profile, Thread, ThreadId};
/// // Thread 0 touches all eight pages first; then each of four threads reads two of them.
/// # let grid = Object { kind: ObjectKind::Heap, name: "grid".into(), pages: 8, bytes: 32_768, ..Object::default() };
/// # let first = FirstTouch { len: 8, object: ObjectId(1), ..FirstTouch::default() };
/// # let profile = Profile {
/// #     objects: vec![Object::default(), grid],
/// #     threads: vec![Thread::default(); 4],
/// #     first_touches: vec![first],
/// #     ..Profile::default()
/// # };
/// # let row = |t: u32| Access {
/// #     object: ObjectId(1),
/// #     thread: ThreadId(t),
/// #     page: PageNumber(u64::from(2 * t)),
/// #     len: 2,
/// #     reads: 4_000_000,
/// #     lines: 500_000,
/// #     ..Access::default()
/// # };
/// # let accesses = InMemory::new((0..4).map(row).collect());
/// let machine = Machine::named("nehalem-2s")?;
/// let histogram = Histogram::build(&accesses, 4, 0)?;
/// let affinity = thread_policy("scatter", &profile, &histogram, &machine, &Nothing)?;
/// let context = Context { profile: &profile, histogram: &histogram, affinity: &affinity, machine: &machine };
/// # let policies = page_policies("first-touch,locality", &machine, &Nothing)?;
/// # let mappings: Vec<_> = policies.iter().map(|policy| policy.place(&context)).collect();
/// // Without a recorded time the compute time of an access would be assumed, so it is given here.
/// let parameters = Parameters { assumed_ns: Range::exactly(0.5), ..Parameters::default() };
/// let simulation = simulate(&context, &mappings, &accesses, &parameters)?;
/// let usage = Usage::of(&accesses, &profile, &histogram)?;
/// let advice = advise(&context, &simulation, &mappings[0], &usage, None, &ReportOptions::default(), None);
/// assert_eq!(advice.verdict.outcome, VerdictKind::Place);
/// assert_eq!(advice.verdict.policy, "locality");
/// assert_eq!(advice.objects[0].blame.name, "grid");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn advise(
    context: &Context<'_>,
    simulation: &Simulation,
    first_touch: &Mapping,
    usage: &Usage,
    matched: Option<&Matched>,
    report_options: &ReportOptions,
    samples: Option<Samples>,
) -> Advice {
    let contended_pages = match samples {
        Some(_) => Vec::new(),
        None => contended_pages(context.histogram),
    };
    let few_lines = few_lines::few_lines(context.histogram, &contended_pages);
    let blame = match &samples {
        Some(samples) => blame::of_samples(context, simulation, first_touch, usage, samples),
        None => blame::blame(context, simulation, first_touch, usage, &few_lines),
    };
    let advised = |blame| Advised::of(blame, context, matched, samples.as_ref());
    let objects: Vec<Advised> = blame.into_iter().map(advised).collect();
    let program = samples.as_ref().map(|s| &s.program);
    let mut verdict = decision::verdict(context, simulation, &objects, matched, report_options, program);
    verdict.reasons.extend(decision::of_few_lines(&contended_pages));
    let least = decision::least_of_all_ranges(simulation, &verdict).filter(|_| samples.is_none());
    verdict.reasons.extend(least);
    if decision::is_decided(context) {
        let exact = samples.is_none().then(|| {
            [
                decision::of_one_run(simulation),
                decision::of_all_ranges(simulation, &verdict),
                decision::of_short_run(simulation),
                decision::of_part(context),
                decision::of_mostly_few_lines(&contended_pages),
            ]
        });
        let caveats = exact.into_iter().flatten().flatten();
        verdict.sentence.extend(
            caveats
                .chain(decision::of_signal(context))
                .chain(decision::of_truncated(context)),
        );
    }
    Advice {
        verdict,
        objects,
        samples,
        contended_pages,
    }
}
