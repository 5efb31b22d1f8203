//! One candidate's runs, beside the plain ones and beside what was predicted.

use crate::Candidate;
use crate::statistics::{Comparison, compare, median};
use nodewise_simulation::Range;
use serde::Serialize;

/// One candidate after its runs.
#[derive(Debug, Serialize)]
pub struct Tried {
    /// Name of the page policy, or of the stock command.
    pub policy: String,
    /// The line to copy.
    pub command: String,
    /// Whether the command needs no nodewise.
    pub stock: bool,
    /// Wall time of each run.
    pub seconds: Vec<f64>,
    /// Median of `seconds`, over all rounds.
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
