//! A program with its runs, placement by placement.

use crate::PagesSeen;
use nodewise_tune::median;
use serde::Serialize;

/// One program with all its runs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Ran {
    /// Name of the program.
    pub program: &'static str,
    /// How it accesses its data.
    pub pattern: &'static str,
    /// Its arguments, by which the run can be repeated.
    pub arguments: Vec<String>,
    /// Bytes of its arrays.
    pub bytes: u64,
    /// Rounds that were run.
    pub rounds: usize,
    /// Wall time of the recorded run.
    pub recording_seconds: f64,
    /// The share of memory in the predicted time of first-touch.
    pub memory_share: f64,
    /// The share of CPU time that others used just before.
    pub others_before: f64,
    /// The same during all runs.
    pub others_during: f64,
    /// Each placement, first-touch first.
    pub points: Vec<Point>,
}

/// A program under one placement: predicted and measured.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// The placement, as `run --policy` or `map --policy` names it.
    pub placement: String,
    /// Wall time of each run, in the order of the rounds.
    pub seconds: Vec<f64>,
    /// The median of `seconds`.
    pub median_seconds: f64,
    /// Shortest and longest of them.
    pub spread: [f64; 2],
    /// Predicted from the recording and the machine alone, before anything was measured.
    pub predicted_seconds: f64,
    /// Least and most of that.
    pub predicted_range: [f64; 2],
    /// Predicted over measured, less one.
    pub error: f64,
    /// The prediction that knows the measured time of first-touch; none of first-touch itself.
    pub calibrated: Option<Calibrated>,
    /// Where pages were, and should have been.
    pub pages: Option<PagesSeen>,
    /// Whether pages were where they were predicted to be: else the point is of another placement.
    pub counted: bool,
}

impl Point {
    /// A point that counts; `predicted` is the typical value and both ends of the range.
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

/// A prediction that knows the measured time of first-touch: its ratio to that, times that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Calibrated {
    /// Run time as predicted then.
    pub seconds: f64,
    /// Least and most of it.
    pub range: [f64; 2],
    /// Predicted over measured, less one.
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
