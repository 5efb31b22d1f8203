//! What tuning found; serialised as it is by `tune --json` (keys in `docs/tune.md`).

use crate::statistics::{Comparison, compare, median};
use crate::{Candidate, Conclusion};
use nodewise_simulation::Range;
use serde::Serialize;

/// One candidate after its runs.
#[derive(Debug, Serialize)]
pub struct Tried {
    /// The policy's name.
    pub policy: String,
    /// The line to copy.
    pub command: String,
    /// Whether the command needs no nodewise.
    pub stock: bool,
    /// Wall time of each run.
    pub seconds: Vec<f64>,
    /// Their median.
    pub median_seconds: f64,
    /// Predicted speed-up over first-touch; `None` where no policy corresponds to the command.
    pub predicted_speedup: Option<f64>,
    /// Its range, widened by the spread of the plain runs.
    pub predicted_range: Option<[f64; 2]>,
    /// Against the plain runs.
    pub measured: Comparison,
    /// Predicted over measured speed-up, minus one.
    pub prediction_error: Option<f64>,
    /// Whether the measured speed-up lies in the predicted range.
    pub prediction_held: Option<bool>,
}

/// The plain command.
#[derive(Debug, Serialize)]
pub struct Baseline {
    /// The line to copy.
    pub command: String,
    /// Wall time of each run.
    pub seconds: Vec<f64>,
    /// Their median.
    pub median_seconds: f64,
    /// Predicted wall time.
    pub predicted_seconds: f64,
    /// Its range.
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
    pub(crate) fn why(nodes: usize, threads: usize) -> Option<Self> {
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
    /// The machine's name.
    pub machine: String,
    /// Its memory nodes.
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
    /// What follows.
    pub conclusion: Conclusion,
    /// The same in words.
    pub sentence: String,
    /// The line to use from now on.
    pub command: String,
}

impl Tried {
    pub(crate) fn new(candidate: &Candidate, baseline: &[f64], seconds: Vec<f64>, seed: u64) -> Self {
        let measured = compare(baseline, &seconds, seed);
        let predicted = candidate.predicted.map(|p| widened(p, baseline));
        Self {
            policy: candidate.policy.clone(),
            command: candidate.line.clone(),
            stock: candidate.stock,
            median_seconds: median(&seconds),
            seconds,
            predicted_speedup: predicted.map(|p| p.typical),
            predicted_range: predicted.map(|p| [p.min, p.max]),
            prediction_error: predicted.map(|p| p.typical / measured.ratio - 1.0),
            prediction_held: predicted
                .map(|p| measured.interval[1] >= p.min && measured.interval[0] <= p.max),
            measured,
        }
    }
}

/// A measured ratio varies as the plain runs do: a prediction cannot be held to less.
fn widened(predicted: Range, baseline: &[f64]) -> Range {
    let ends = Range::spanning(baseline);
    let middle = median(baseline).max(f64::MIN_POSITIVE);
    Range::new(
        predicted.min * ends.min / middle,
        predicted.typical,
        predicted.max * ends.max / middle,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_is_as_wide_as_plain_runs_spread() {
        let exact = Range::exactly(1.0);
        assert_eq!(widened(exact, &[2.0, 1.0, 5.0]), Range::new(0.5, 1.0, 2.5));
        assert_eq!(widened(exact, &[2.0]), exact);
    }
}
