//! Results of a program under each placement.

use crate::PagesSeen;
use nodewise_tune::median;
use serde::Serialize;

/// Results of one program.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ProgramResult {
    /// Name of the program.
    pub program: &'static str,
    /// The program's access pattern.
    pub pattern: &'static str,
    /// The program's arguments, with which the run can be repeated.
    pub arguments: Vec<String>,
    /// Bytes of the program's arrays.
    pub bytes: u64,
    /// Number of rounds that were run.
    pub rounds: usize,
    /// Wall time of the recorded run, seconds.
    pub recording_seconds: f64,
    /// Share of the predicted time under first-touch that is spent on memory accesses.
    pub memory_share: f64,
    /// Share of the machine's CPU time that other processes used just before the runs.
    pub others_before: f64,
    /// Share of the machine's CPU time that other processes used during the runs.
    pub others_during: f64,
    /// Results under each placement, first-touch first.
    pub points: Vec<Point>,
}

/// A program under one placement: predicted and measured.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// The placement, as `run --policy` or `map --policy` names it.
    pub placement: String,
    /// Wall time of each run, seconds, in the order of the rounds.
    pub seconds: Vec<f64>,
    /// The median of `seconds`.
    pub median_seconds: f64,
    /// Smallest and largest of `seconds`.
    pub spread: [f64; 2],
    /// Wall time predicted from the recording and the machine alone, before the program was run, seconds.
    pub predicted_seconds: f64,
    /// Smallest and largest plausible value of `predicted_seconds`.
    pub predicted_range: [f64; 2],
    /// Relative error: predicted divided by measured time, minus 1.
    pub error: f64,
    /// Prediction calibrated with the measured time of first-touch; `null` for first-touch itself.
    pub calibrated: Option<Calibrated>,
    /// Actual and predicted distribution of pages over nodes.
    pub pages: Option<PagesSeen>,
    /// Whether the point counts in the summary: the distribution of pages was as predicted. If not, the measurement is
    /// of another placement.
    pub counted: bool,
}

impl Point {
    /// A point with `counted` set; `predicted` is the typical value and both ends of the range, seconds.
    pub(crate) fn new(placement: &str, seconds: Vec<f64>, predicted: [f64; 3]) -> Self {
        let middle = median(&seconds);
        let ends = |f: fn(f64, f64) -> f64| seconds.iter().copied().reduce(f).unwrap_or(0.0);
        Self {
            placement: placement.to_owned(),
            median_seconds: middle,
            spread: [ends(f64::min), ends(f64::max)],
            predicted_seconds: predicted[0],
            predicted_range: [predicted[1], predicted[2]],
            error: predicted[0] / middle - 1.0,
            calibrated: None,
            pages: None,
            counted: true,
            seconds,
        }
    }

    /// Whether the measured median is in the predicted range.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        (self.predicted_range[0]..=self.predicted_range[1]).contains(&self.median_seconds)
    }
}

/// A prediction calibrated with the measured time of first-touch: that time divided by the predicted speed-up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Calibrated {
    /// Predicted wall time, seconds.
    pub seconds: f64,
    /// Smallest and largest plausible value of `seconds`.
    pub range: [f64; 2],
    /// Relative error: predicted divided by measured time, minus 1.
    pub error: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_has_what_its_runs_say() {
        let point = Point::new("node:0", vec![2.0, 1.0, 4.0], [3.0, 2.5, 5.0]);
        assert_eq!(
            (point.median_seconds, point.spread, point.error),
            (2.0, [1.0, 4.0], 0.5)
        );
        assert!(!point.is_inside() && point.counted);
        let json = serde_json::to_value(&point).unwrap();
        assert_eq!(json["predicted_range"], serde_json::json!([2.5, 5.0]));
        assert!(json["calibrated"].is_null() && json["seconds"].as_array().unwrap().len() == 3);
    }
}
