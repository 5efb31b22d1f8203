//! Which candidate is reliably faster than the plain command, if any.

use crate::CandidateResult;
use nodewise_advise::MAX_STOCK_SLOWDOWN;
use serde::Serialize;

/// Smallest median gain that is worth a change, even if a smaller one is significant.
const MIN_MEDIAN_GAIN: f64 = 0.02;
/// Familywise error rate: the probability that any candidate is called faster although none is.
const ALPHA: f64 = 0.05;
/// Smallest number of runs of each command that can show a significant gain: with five, p can reach 2/252, which is
/// below 5 % divided by six candidates; with four, only 2/70.
pub const FEWEST_RUNS: usize = 5;

/// The conclusion from the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// A placement is significantly faster.
    Place,
    /// A stock command is as fast as the best placement.
    Stock,
    /// No candidate is significantly faster.
    LeaveAlone,
    /// Fewer than [`FEWEST_RUNS`] rounds were completed.
    TooFewRuns,
}

impl CandidateResult {
    /// Whether the candidate is significantly faster, and by at least [`MIN_MEDIAN_GAIN`]. The error rate is divided by
    /// the number of candidates, `among` (Bonferroni correction).
    fn wins(&self, among: usize) -> bool {
        let c = self.measured;
        c.ratio >= 1.0 + MIN_MEDIAN_GAIN && c.interval[0] > 1.0 && c.p < ALPHA / among as f64
    }
}

/// The conclusion and the index of the candidate it is about.
pub fn conclude(tried: &[CandidateResult], rounds: usize, nodes: usize) -> (Conclusion, Option<usize>) {
    if nodes < 2 {
        return (Conclusion::LeaveAlone, None);
    }
    if rounds < FEWEST_RUNS {
        return (Conclusion::TooFewRuns, None);
    }
    let winners = || (0..tried.len()).filter(|&i| tried[i].wins(tried.len()));
    let ratio = |i: &usize| tried[*i].measured.ratio;
    let Some(best) = winners().max_by(|a, b| ratio(a).total_cmp(&ratio(b))) else {
        return (Conclusion::LeaveAlone, None);
    };
    let close = |i: &usize| tried[*i].stock && ratio(i) * (1.0 + MAX_STOCK_SLOWDOWN) >= ratio(&best);
    match winners().find(close) {
        Some(stock) => (Conclusion::Stock, Some(stock)),
        None => (Conclusion::Place, Some(best)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compare, median};

    fn tried(seconds: &[f64], stock: bool) -> CandidateResult {
        let baseline = [2.0, 2.02, 1.98, 2.01, 1.99, 2.0];
        CandidateResult {
            policy: String::new(),
            command: String::new(),
            stock,
            median_seconds: median(seconds),
            seconds: seconds.to_vec(),
            predicted_speedup: None,
            predicted_range: None,
            measured: compare(&baseline, seconds, 1),
            prediction_error: None,
            prediction_held: None,
        }
    }

    const FAST: [f64; 6] = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98];

    #[test]
    fn a_clear_winner_is_chosen_unless_a_stock_command_is_as_good() {
        let slow = [1.5, 1.51, 1.49, 1.5, 1.52, 1.48];
        let winner = conclude(&[tried(&slow, true), tried(&FAST, false)], 6, 4);
        assert_eq!(winner, (Conclusion::Place, Some(1)));
        let close = FAST.map(|s| s * 1.01);
        let stock = conclude(&[tried(&FAST, false), tried(&close, true)], 6, 4);
        assert_eq!(stock, (Conclusion::Stock, Some(1)));
    }

    #[test]
    fn noise_one_node_and_few_runs_change_nothing() {
        let noise = [1.9, 2.1, 2.0, 1.95, 2.05, 2.0];
        assert_eq!(
            conclude(&[tried(&noise, false)], 6, 4),
            (Conclusion::LeaveAlone, None)
        );
        assert_eq!(
            conclude(&[tried(&FAST, false)], 6, 1),
            (Conclusion::LeaveAlone, None)
        );
        assert_eq!(
            conclude(&[tried(&FAST, false)], 4, 4),
            (Conclusion::TooFewRuns, None)
        );
    }
}
