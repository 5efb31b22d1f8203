//! What tuning found; serialised as it is by `tune --json` (keys in `docs/tune.md`).

use crate::{Conclusion, Tried};
use serde::Serialize;

/// The runs of the command as it is, beside their prediction.
#[derive(Debug, Serialize)]
pub struct Baseline {
    /// The line to copy.
    pub command: String,
    /// Wall time of each run.
    pub seconds: Vec<f64>,
    /// Median of `seconds`, over all rounds.
    pub median_seconds: f64,
    /// Predicted wall time of the plain command, seconds.
    pub predicted_seconds: f64,
    /// Least and most of the predicted wall time, seconds.
    pub predicted_range: [f64; 2],
}

/// Why predicted seconds are not held against measured ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotScored {
    /// Every placement is the same one, so nothing was predicted.
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

/// Everything that was found out.
#[derive(Debug, Serialize)]
pub struct Findings {
    /// Version of the JSON.
    pub schema: u32,
    /// Name of the machine that was decided for.
    pub machine: String,
    /// Number of memory nodes of the machine.
    pub nodes: usize,
    /// Whether memory limits the plain run by the model.
    pub memory_bound: bool,
    /// Folder of the profile that was decided from.
    pub profile: String,
    /// Whether the profile is of this program with these arguments: else its times are not compared.
    pub comparable: bool,
    /// Why the prediction is not scored though it is comparable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_scored: Option<NotScored>,
    /// Rounds that were run.
    pub rounds: usize,
    /// The plain command's runs.
    pub baseline: Baseline,
    /// The others', in the order of their prediction, stock commands last.
    pub candidates: Vec<Tried>,
    /// What follows from the measurements.
    pub conclusion: Conclusion,
    /// The same in words.
    pub sentence: String,
    /// The line to use from now on.
    pub command: String,
}
