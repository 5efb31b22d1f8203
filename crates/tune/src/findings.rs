//! The results of a tuning. `tune --json` serialises them without changes; the keys are documented in `docs/tune.md`.

use crate::{CandidateResult, Conclusion};
use serde::Serialize;

/// The runs of the plain command, with their prediction.
#[derive(Debug, Serialize)]
pub struct Baseline {
    /// The command line to copy.
    pub command: String,
    /// Wall time of each run, seconds.
    pub seconds: Vec<f64>,
    /// Median of `seconds`, over all rounds.
    pub median_seconds: f64,
    /// Predicted wall time of the plain command, seconds.
    pub predicted_seconds: f64,
    /// Smallest and largest plausible value of the predicted wall time, seconds.
    pub predicted_range: [f64; 2],
}

/// The reason why predicted times are not compared with measured ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotScored {
    /// On one node all placements are the same, so there is nothing to predict.
    OneNode,
    /// More threads than CPUs: measured times include waiting for a CPU, predicted ones do not.
    Oversubscribed,
}

impl NotScored {
    /// The reason on a machine with this number of nodes, for a program with this number of threads.
    #[must_use]
    pub fn why(nodes: usize, threads: usize) -> Option<Self> {
        let cpus = std::thread::available_parallelism().map_or(usize::MAX, usize::from);
        match nodes {
            0 | 1 => Some(Self::OneNode),
            _ => (threads > cpus).then_some(Self::Oversubscribed),
        }
    }
}

/// All results of a tuning.
#[derive(Debug, Serialize)]
pub struct Findings {
    /// Version of the JSON.
    pub schema: u32,
    /// Name of the machine for which candidates were chosen.
    pub machine: String,
    /// Number of memory nodes of the machine.
    pub nodes: usize,
    /// Whether the model predicts that memory limits the plain run.
    pub memory_bound: bool,
    /// Folder of the profile from which candidates were chosen.
    pub profile: String,
    /// Whether the profile is of this program with these arguments. If not, predicted times are not compared with
    /// measured ones.
    pub comparable: bool,
    /// Why the prediction is not compared with the measurement although `comparable` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_scored: Option<NotScored>,
    /// Rounds that were run.
    pub rounds: usize,
    /// Runs of the plain command.
    pub baseline: Baseline,
    /// Runs of the candidates, in the order of their prediction, with stock commands last.
    pub candidates: Vec<CandidateResult>,
    /// The conclusion from the measurements.
    pub conclusion: Conclusion,
    /// The conclusion in words.
    pub sentence: String,
    /// The recommended command line.
    pub command: String,
}
