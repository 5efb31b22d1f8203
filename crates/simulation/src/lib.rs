//! Predicts the run time of a program under any number of mappings on a machine.
//!
//! **Purpose.** One streaming pass over a profile's accesses computes, for any number of mappings, the load on memory
//! controllers, directed links and backplane, slice by slice and region by region. From that it computes time: the
//! larger of what the slowest CPU needs at loaded latency and what the resources need to move the bytes.
//! `docs/model.md` has the formulas, their sources and their limits.
//!
//! **Constraints.** Pure and deterministic. Results are ranges: every uncertain parameter is varied over its stated
//! range. Traffic is the profile's `lines`, an estimate.
//!
//! Several programs that run at once contend for links and controllers, phase by phase: [`at_once`].
//!
//! Programs whose threads are moved as well, by the algorithm of the live loop: [`online`].
//!
//! **Non-goals.** Caches, TLBs, page tables; moves in the middle of a slice; ranking (see
//! `nodewise-advise`).

#![forbid(unsafe_code)]

mod assumed_bandwidth;
mod assumed_latency;
mod at_once;
mod calibration;
mod choice;
mod concurrency;
mod copying;
mod counts;
mod disjoint_placements;
mod latency_ratio;
mod limits;
mod memory_side_caches;
mod merged;
mod moving;
pub mod online;
mod parameters;
mod phase;
mod placed;
mod prediction;
mod program_phases;
mod recorded;
mod regions;
mod resources;
mod run;
mod share;
mod sharing;
mod simulation_visitor;
mod sums;
mod tally;
mod traffic;

pub use assumed_bandwidth::with_assumed_bandwidth;
pub use assumed_latency::with_assumed_latency;
pub use at_once::{AfterEnd, Program, ProgramPrediction, at_once};
pub use calibration::{Basis, Calibration, measured_cost};
pub use choice::{Choice, Spread};
pub use copying::Copied;
pub use disjoint_placements::{DisjointPlacements, Places, random_placement};
pub use latency_ratio::{latency_ratio, with_latency_ratio};
pub use moving::{Moved, Moving, migration_seconds_per_gb};
pub use parameters::{Parameters, Range, Scenario, Traffic, UNKNOWN_CORES, Varied};
pub use prediction::{ControllerUse, LinkUse, MEMORY_BOUND, Mapped, Prediction, ScenarioCost, Simulation};
pub use program_phases::ProgramPhases;
pub use regions::RegionCost;
pub use share::SliceShare;
pub use sharing::{Demand, drain_ns};
pub use simulation_visitor::SimulationVisitor;

use nodewise_analysis::read;
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::{Context, Copies, Mapping};
use nodewise_profile::{AccessSource, SliceId};

/// Predicts the cost of each mapping; `mappings[0]` is the baseline of every speed-up.
///
/// ```
/// # use nodewise_simulation::{Parameters, simulate};
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
/// let policies = page_policies("first-touch,locality", &machine, &Nothing)?;
/// let mappings: Vec<_> = policies.iter().map(|policy| policy.place(&context)).collect();
/// let simulation = simulate(&context, &mappings, &accesses, &Parameters::default())?;
/// let [first_touch, locality] = &simulation.predictions[..] else { unreachable!("one a mapping") };
/// assert_eq!((first_touch.local_fraction, locality.local_fraction), (0.5, 1.0));
/// assert!(locality.seconds.typical < first_touch.seconds.typical);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
/// Mappings are parallel to `context.histogram.pages`, made for `context.affinity` and
/// `context.machine`.
///
/// # Errors
/// When the accesses cannot be read to their end.
///
/// # Panics
/// If there is no mapping, or one is not parallel to the histogram.
pub fn simulate<S: AccessSource>(
    context: &Context<'_>,
    mappings: &[Mapping],
    accesses: &S,
    parameters: &Parameters,
) -> Result<Simulation, S::Error> {
    simulate_moving(context, mappings, Vec::new(), accesses, parameters)
}

/// Policies under which the homes of pages change during the run. Their predictions follow those of the mappings: those
/// that move pages first, then those that make copies, which start from the first mapping.
#[derive(Default)]
pub struct Changing {
    /// Policies that move pages between slices.
    pub moving: Vec<Moving>,
    /// Policies that copy objects to several nodes.
    pub copies: Vec<Copies>,
    /// The slice of the last copy of another simulation, with which this one's [`Prediction::speedup_later`] is compared.
    pub last_copy: Option<SliceId>,
}

impl Changing {
    /// The slice of the last copy; `None` if nothing is copied, or only before the first slice.
    #[must_use]
    pub fn last_copy(&self) -> Option<SliceId> {
        let copies = self.copies.iter().flat_map(|c| &c.objects);
        copies.map(|o| o.after).max().flatten().max(self.last_copy)
    }
}

impl From<Vec<Moving>> for Changing {
    fn from(moving: Vec<Moving>) -> Self {
        Self {
            moving,
            ..Self::default()
        }
    }
}

/// As [`simulate`], with policies that move or copy pages between slices. A policy's decision at the end of a slice takes
/// effect from the next slice on.
///
/// # Errors
/// When the accesses cannot be read to their end.
///
/// # Panics
/// If there is no mapping, one is not parallel to the histogram, or a policy starts from a mapping
/// that is not in the list.
pub fn simulate_moving<S: AccessSource>(
    context: &Context<'_>,
    mappings: &[Mapping],
    changing: impl Into<Changing>,
    accesses: &S,
    parameters: &Parameters,
) -> Result<Simulation, S::Error> {
    let mut simulating = SimulationVisitor::new(context, mappings, changing, parameters);
    read(accesses, &mut [&mut simulating])?;
    Ok(simulating.finish())
}

/// As [`simulate_moving`], each policy on nodes of its own: `context.machine` has virtual nodes, and virtual
/// node i of policy p is `machine`'s node `on[p][i]`.
///
/// # Errors
/// When the accesses cannot be read to their end.
///
/// # Panics
/// As [`simulate_moving`]; if `on` is not parallel to mappings and policies that move pages, in this order.
pub fn simulate_on<S: AccessSource>(
    context: &Context<'_>,
    (machine, on): (&Machine, &[Vec<NodeId>]),
    mappings: &[Mapping],
    moving: Vec<Moving>,
    accesses: &S,
    parameters: &Parameters,
) -> Result<Simulation, S::Error> {
    let run = run::SimulationRun::new(context, mappings, moving.into(), Some((machine, on)), parameters);
    Ok(played(run, accesses, parameters, &mut |_, _| {})?.finish())
}

/// The time of each policy on every placement of `context.machine`'s virtual nodes on the nodes of `machine`. Mappings
/// come first, then policies that move pages, which decide as they would on the first placement.
///
/// # Errors
/// When the accesses cannot be read to their end.
///
/// # Panics
/// As [`simulate_moving`]; if there is no placement.
pub fn survey<S: AccessSource>(
    context: &Context<'_>,
    (machine, placements): (&Machine, &[Vec<NodeId>]),
    mappings: &[Mapping],
    moving: Vec<Moving>,
    accesses: &S,
    parameters: &Parameters,
) -> Result<Vec<Choice>, S::Error> {
    let policies = mappings.len() + moving.len();
    let on = vec![placements[0].clone(); policies];
    let run = run::SimulationRun::new(context, mappings, moving.into(), Some((machine, &on)), parameters);
    let mut survey = choice::Survey::new(context, machine, placements, policies);
    let run = played(run, accesses, parameters, &mut |slice, run| {
        survey.add(slice, run);
    })?;
    Ok(survey.finish(&run))
}

/// The phases of a program, from which [`at_once`] predicts its time beside other programs. `context.machine` has
/// virtual nodes; policies that move pages decide as if the program ran alone on the nodes `on`. Slices are merged into
/// at most `steps` steps.
///
/// # Errors
/// When the accesses cannot be read to their end.
///
/// # Panics
/// As [`simulate_on`].
pub fn program_phases<S: AccessSource>(
    context: &Context<'_>,
    (machine, on): (&Machine, &[Vec<NodeId>]),
    mappings: &[Mapping],
    moving: Vec<Moving>,
    steps: usize,
    accesses: &S,
    parameters: &Parameters,
) -> Result<ProgramPhases, S::Error> {
    let run = run::SimulationRun::new(context, mappings, moving.into(), Some((machine, on)), parameters);
    let mut recorder = program_phases::CourseBuilder::new(context, steps);
    let run = played(run, accesses, parameters, &mut |slice, run| {
        recorder.add(slice, run);
    })?;
    Ok(recorder.finish(&run))
}

/// Streams the accesses through a run. `also` is called with each slice before it is added.
fn played<'a, S: AccessSource>(
    mut run: run::SimulationRun<'a>,
    accesses: &S,
    parameters: &Parameters,
    also: &mut dyn FnMut(&tally::SliceTally<'_>, &run::SimulationRun<'a>),
) -> Result<run::SimulationRun<'a>, S::Error> {
    let mut tally = run.tally(parameters);
    let mut add = |slice: &tally::SliceTally<'_>| {
        also(slice, &run);
        run.add(slice)
    };
    accesses.visit(&mut |rows| tally.add(rows, &mut add))?;
    tally.finish(&mut add);
    Ok(run)
}
