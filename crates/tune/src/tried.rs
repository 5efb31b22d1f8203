//! The measurements of one candidate, compared with the plain runs and with the prediction.

use crate::Candidate;
use crate::statistics::{Comparison, compare, median};
use nodewise_simulation::Range;
use serde::Serialize;

/// The measurements of one candidate.
#[derive(Debug, Serialize)]
pub struct CandidateResult {
    /// Name of the page policy, or of the stock command.
    pub policy: String,
    /// The command line to copy.
    pub command: String,
    /// Whether the command line works without nodewise.
    pub stock: bool,
    /// Wall time of each run, seconds.
    pub seconds: Vec<f64>,
    /// Median of `seconds`, over all rounds.
    pub median_seconds: f64,
    /// Predicted speed-up over first-touch; `None` where no policy corresponds to the command.
    pub predicted_speedup: Option<f64>,
    /// Range of the predicted speed-up, widened by the spread of the plain runs.
    pub predicted_range: Option<[f64; 2]>,
    /// Comparison with the plain runs.
    pub measured: Comparison,
    /// Predicted speed-up divided by the measured one, minus 1.
    pub prediction_error: Option<f64>,
    /// Whether the measured speed-up lies in the predicted range.
    pub prediction_held: Option<bool>,
}

impl CandidateResult {
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

/// Widens a predicted range by the spread of the plain runs: a measured ratio varies at least that much, so a
/// prediction cannot be more accurate.
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
