//! What tuning found, for people and as JSON.

use super::candidates::Candidate;
use super::statistics::{Comparison, median};
use nodewise_advise::CLOSE;
use nodewise_simulation::Range;
use serde::Serialize;
use std::fmt::Write;

/// A median gain below this is not worth a change, however certain.
const WORTH_IT: f64 = 0.02;
/// All candidates together may err this often.
const ALPHA: f64 = 0.05;
/// Fewer runs than this cannot tell a gain from luck.
pub const FEWEST_RUNS: usize = 5;

/// One candidate after its runs.
#[derive(Debug, Serialize)]
pub struct Tried {
    pub policy: String,
    pub command: String,
    /// Whether the command needs no nodewise.
    pub stock: bool,
    pub seconds: Vec<f64>,
    pub median_seconds: f64,
    pub predicted_speedup: Option<f64>,
    pub predicted_range: Option<[f64; 2]>,
    pub measured: Comparison,
    /// Predicted over measured speed-up, minus one.
    pub prediction_error: Option<f64>,
    /// Whether the measured speed-up lies in the predicted range.
    pub prediction_held: Option<bool>,
}

#[derive(Debug, Serialize)]
pub struct Baseline {
    pub command: String,
    pub seconds: Vec<f64>,
    pub median_seconds: f64,
    pub predicted_seconds: f64,
    pub predicted_range: [f64; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    Place,
    Stock,
    LeaveAlone,
    TooFewRuns,
}

#[derive(Debug, Serialize)]
pub struct Findings {
    pub schema: u32,
    pub machine: String,
    pub nodes: usize,
    pub memory_bound: bool,
    pub profile: String,
    /// Whether the profile is of this program with these arguments: else its times are not compared.
    pub comparable: bool,
    pub rounds: usize,
    pub baseline: Baseline,
    pub candidates: Vec<Tried>,
    pub conclusion: Conclusion,
    pub sentence: String,
    pub command: String,
}

impl Tried {
    pub fn new(candidate: &Candidate, baseline: &[f64], seconds: Vec<f64>, seed: u64) -> Self {
        let measured = super::statistics::compare(baseline, &seconds, seed);
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

    /// Certainly faster, and by enough. `among` candidates share the error rate (Bonferroni).
    fn wins(&self, among: usize) -> bool {
        let c = self.measured;
        c.ratio >= 1.0 + WORTH_IT && c.interval[0] > 1.0 && c.p < ALPHA / among as f64
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

/// The conclusion and the index of the candidate it is about.
pub fn conclude(tried: &[Tried], rounds: usize, nodes: usize) -> (Conclusion, Option<usize>) {
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
    let close = |i: &usize| tried[*i].stock && ratio(i) * (1.0 + CLOSE) >= ratio(&best);
    match winners().find(close) {
        Some(stock) => (Conclusion::Stock, Some(stock)),
        None => (Conclusion::Place, Some(best)),
    }
}

impl Findings {
    /// The table, the score of the prediction, the conclusion.
    pub fn text(&self) -> String {
        let mut out = format!(
            "{} rounds on {} ({} node{}), decided from {}\n\n",
            self.rounds,
            self.machine,
            self.nodes,
            if self.nodes == 1 { "" } else { "s" },
            self.profile
        );
        let width = self
            .candidates
            .iter()
            .map(|c| c.policy.len())
            .max()
            .unwrap_or(0)
            .max(20);
        let b = &self.baseline;
        let _ = writeln!(
            out,
            "{:<width$}  {:>9}  {:>22}  {:>22}  {:>7}",
            "", "median", "measured speed-up", "predicted", "p"
        );
        let _ = writeln!(
            out,
            "{:<width$}  {:>7.3} s",
            "first-touch (plain)", b.median_seconds
        );
        for c in &self.candidates {
            let predicted = match (c.predicted_speedup, c.predicted_range) {
                (Some(p), Some([low, high])) => format!("{p:.2} ({low:.2}–{high:.2})"),
                _ => "-".to_owned(),
            };
            let m = c.measured;
            let measured = format!("{:.3} [{:.3}–{:.3}]", m.ratio, m.interval[0], m.interval[1]);
            let _ = writeln!(
                out,
                "{:<width$}  {:>7.3} s  {measured:>22}  {predicted:>22}  {:>7.3}",
                c.policy, c.median_seconds, m.p
            );
        }
        let _ = writeln!(out, "\n{}", self.score());
        let _ = writeln!(out, "{}", self.sentence);
        if self.conclusion != Conclusion::LeaveAlone {
            let _ = writeln!(out, "\n  {}", self.command);
        }
        out
    }

    /// The prediction against the measurement, in one sentence.
    fn score(&self) -> String {
        let b = &self.baseline;
        let [low, high] = b.predicted_range;
        let off = (b.predicted_seconds / b.median_seconds - 1.0) * 100.0;
        let mut text = match self.comparable {
            true => format!(
                "Prediction scored: plain run {:.3} s predicted ({low:.3}–{high:.3}), {off:+.0} % off",
                b.predicted_seconds
            ),
            false => "Prediction scored: seconds not, the profile is of another run".to_owned(),
        };
        let errors: Vec<f64> = self
            .candidates
            .iter()
            .filter_map(|c| c.prediction_error)
            .map(f64::abs)
            .collect();
        if !errors.is_empty() {
            let held = self
                .candidates
                .iter()
                .filter(|c| c.prediction_held == Some(true))
                .count();
            let middle = median(&errors) * 100.0;
            let _ = write!(
                text,
                "; speed-ups {middle:.0} % off (median), {held} of {} within range",
                errors.len()
            );
        }
        text + "."
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::tune::statistics::compare;

    fn tried(seconds: &[f64], stock: bool) -> Tried {
        let baseline = [2.0, 2.02, 1.98, 2.01, 1.99, 2.0];
        Tried {
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

    #[test]
    fn a_prediction_is_as_wide_as_plain_runs_spread() {
        let exact = Range::exactly(1.0);
        assert_eq!(widened(exact, &[2.0, 1.0, 5.0]), Range::new(0.5, 1.0, 2.5));
        assert_eq!(widened(exact, &[2.0]), exact);
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
