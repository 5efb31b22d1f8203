//! Settings and results of runs in which threads or pages move.

use nodewise_control::{Settings, asym};
use nodewise_placement::MigrationPolicy;

/// What is moved while programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// No threads and no pages: placements are static.
    Nothing,
    /// Pages, by the page policy.
    Pages,
    /// Threads, and pages after them.
    ThreadsAndPages,
}

/// Settings common to all runs.
pub struct Limits<'a> {
    /// Time between decisions, seconds.
    pub period_s: f64,
    /// Least length of a run on the mean static placement, seconds.
    pub least_s: f64,
    /// Cost of moving 10⁹ bytes, including the copy, seconds.
    pub seconds_per_gb: f64,
    /// Pages are moved dynamically while all programs together fetch at least this number of lines from memory per
    /// microsecond.
    pub least_rate: f64,
    /// Parameters of the scheduler of threads.
    pub threads: asym::Settings,
    /// Limits of the page policy.
    pub pages: Settings,
    /// Makes the page policy of a program.
    pub policy: &'a (dyn Fn() -> Box<dyn MigrationPolicy> + Sync),
}

/// The result of one run of all programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunOutcome {
    /// The result of each program, in the given order.
    pub programs: Vec<ProgramOutcome>,
    /// Number of decisions by the scheduler of threads.
    pub decisions: u64,
    /// Number of decisions in which the migration of some program was over budget.
    pub refused: u64,
    /// Placements that the searches could choose from, summed over decisions.
    pub placements: f64,
    /// Of [`RunOutcome::placements`], those whose bandwidth was computed.
    pub evaluated: f64,
}

/// The result of one program in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramOutcome {
    /// Time of its work, seconds.
    pub seconds: f64,
    /// Mean latency of a line as its CPUs see it, nanoseconds.
    pub latency_ns: f64,
    /// Threads that changed nodes.
    pub threads_moved: u64,
    /// Bytes that the page policy moved.
    pub dynamic_bytes: f64,
    /// Bytes of full migrations, as dynamic migration was not enough.
    pub full_bytes: f64,
    /// Time that moving took, seconds; part of `seconds`.
    pub moving_s: f64,
    /// Nodes of its threads at the end, ascending.
    pub nodes: Vec<u32>,
}
