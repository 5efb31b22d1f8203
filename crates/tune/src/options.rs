//! What a tuning is asked for.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What to tune, and how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// The plain program and its arguments; not empty.
    pub command: Vec<OsString>,
    /// Decide from this profile; `None`: the latest one here of the same program.
    pub profile: Option<PathBuf>,
    /// Record this build of the program first.
    pub instrumented: Option<PathBuf>,
    /// The machine to decide for, as [`nodewise_pipeline::Selection`] takes it.
    pub machine: String,
    /// The thread placement for the predictions.
    pub affinity: String,
    /// Runs of each candidate and of the plain command, at least 1.
    pub runs: u32,
    /// No further round starts after this time.
    pub time_limit: Option<Duration>,
    /// How many of the best predictions to run.
    pub candidates: usize,
    /// Outputs need not be equal.
    pub any_output: bool,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Where the winner's map goes; `None`: a new file named after program and policy.
    pub map: Option<PathBuf>,
}
