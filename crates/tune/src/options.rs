//! Options of a tuning.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Options of a tuning; the fields correspond to the arguments of `nodewise tune`.
#[derive(Clone, Debug)]
pub struct Options {
    /// The plain program and its arguments; not empty.
    pub command: Vec<OsString>,
    /// The profile to use; `None`: the latest one of the same program in the current folder.
    pub profile: Option<PathBuf>,
    /// An instrumented build of the program, which is recorded first.
    pub instrumented: Option<PathBuf>,
    /// The machine to decide for, as [`nodewise_pipeline::Selection`] takes it.
    pub machine: String,
    /// The thread placement for the predictions.
    pub affinity: String,
    /// Number of runs of each candidate and of the plain command, at least 1.
    pub runs: u32,
    /// Time after which no further round starts.
    pub time_limit: Option<Duration>,
    /// Number of best predictions to measure.
    pub candidates: usize,
    /// Whether the outputs of runs may differ.
    pub any_output: bool,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// File for the winner's map; `None`: a new file named after program and policy.
    pub map: Option<PathBuf>,
}
