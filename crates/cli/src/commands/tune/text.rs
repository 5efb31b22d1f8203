//! Text output of `tune`.

use nodewise_report::{plural, table, whole_percent};
use nodewise_tune::{Conclusion, Findings, NotScored, median};
use std::fmt::Write;

/// The table of measurements, the accuracy of the prediction, and the conclusion.
pub fn text(findings: &Findings) -> String {
    let mut out = format!(
        "{} on {} ({}), decided from {}\n\n",
        plural(findings.rounds, "round"),
        findings.machine,
        plural(findings.nodes, "node"),
        findings.profile
    );
    let header = ["", "median", "measured speed-up", "predicted", "p"].map(str::to_owned);
    let plain = [
        "first-touch (plain)".to_owned(),
        format!("{:.3} s", findings.baseline.median_seconds),
        String::new(),
        String::new(),
        String::new(),
    ];
    let candidates = findings.candidates.iter().map(|c| {
        let predicted = match (c.predicted_speedup, c.predicted_range) {
            (Some(p), Some([low, high])) => format!("{p:.2} ({low:.2}–{high:.2})"),
            _ => "-".to_owned(),
        };
        let m = c.measured;
        [
            c.policy.clone(),
            format!("{:.3} s", c.median_seconds),
            format!("{:.3} [{:.3}–{:.3}]", m.ratio, m.interval[0], m.interval[1]),
            predicted,
            format!("{:.3}", m.p),
        ]
    });
    out += &table("lrrrr", [header, plain].into_iter().chain(candidates));
    let _ = writeln!(out, "\n{}\n{}", score(findings), findings.sentence);
    if findings.conclusion != Conclusion::LeaveAlone {
        let _ = writeln!(out, "\n  {}", findings.command);
    }
    out
}

/// Compares the prediction with the measurement, in one sentence.
fn score(findings: &Findings) -> String {
    let why = findings.not_scored.map(|why| match why {
        NotScored::OneNode => "with one memory node all placements are the same",
        NotScored::Oversubscribed => {
            "the program has more threads than there are CPUs, so measured times include waiting for a CPU"
        }
    });
    if let Some(why) = why {
        return format!("Prediction not scored: {why}.");
    }
    let b = &findings.baseline;
    let [low, high] = b.predicted_range;
    let off = (b.predicted_seconds / b.median_seconds - 1.0) * 100.0;
    let mut text = if findings.comparable {
        format!(
            "Prediction scored: plain run {:.3} s predicted ({low:.3}–{high:.3}), {off:+.0} % off",
            b.predicted_seconds
        )
    } else {
        "Prediction scored: seconds not, the profile is of another run".to_owned()
    };
    let errors = findings.candidates.iter().filter_map(|c| c.prediction_error);
    let errors: Vec<f64> = errors.map(f64::abs).collect();
    if !errors.is_empty() {
        let held = findings
            .candidates
            .iter()
            .filter(|c| c.prediction_held == Some(true));
        let _ = write!(
            text,
            "; speed-ups {} off (median), {} of {} within range",
            whole_percent(median(&errors)),
            held.count(),
            errors.len()
        );
    }
    text + "."
}
