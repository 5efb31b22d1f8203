//! Errors of predictions, without calibration and calibrated with one point of each program.

use crate::{Point, ProgramResult};
use nodewise_tune::median;
use serde::Serialize;

/// Smallest clear difference of the measured times of two placements, as the absolute logarithm of their ratio.
const MIN_MEASURED_DIFFERENCE: f64 = 0.05;
/// Smallest difference of the predicted times, in the same measure, for which the prediction names a faster placement.
const MIN_PREDICTED_DIFFERENCE: f64 = 0.01;

/// Statistics of the absolute values of relative errors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ErrorSize {
    /// Number of errors that the median is of.
    pub points: usize,
    /// Median of the absolute errors.
    pub median: f64,
    /// 90th percentile of the absolute errors.
    pub p90: f64,
}

impl ErrorSize {
    /// Statistics of these errors, whose signs are ignored; `None` if there are none.
    pub(crate) fn of(errors: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sizes: Vec<f64> = errors.into_iter().map(f64::abs).collect();
        sizes.sort_by(f64::total_cmp);
        let last = sizes.len().checked_sub(1)?;
        // Linear interpolation between two ranks, as in bench/outside.
        let rank = 0.9 * last as f64;
        let below = sizes[rank as usize];
        let above = sizes[(rank as usize + 1).min(last)];
        Some(Self {
            points: sizes.len(),
            median: median(&sizes),
            p90: below + (above - below) * rank.fract(),
        })
    }
}

/// Pairs of placements of one program whose measured times differ clearly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pairs {
    /// Number of pairs of placements compared.
    pub of: usize,
    /// Number of pairs for which the prediction names the faster placement.
    pub right: usize,
    /// Number of pairs for which the prediction names the slower placement.
    pub wrong: usize,
    /// Number of pairs for which the predicted times are about equal.
    pub undecided: usize,
}

/// Summary of all points that count ([`Point::counted`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Errors of predictions from the recording alone.
    pub error: ErrorSize,
    /// Errors of predictions from the recording alone, without first-touch; these are the points of `calibrated`.
    pub error_without_first: Option<ErrorSize>,
    /// Errors of predictions calibrated on first-touch.
    pub calibrated: Option<ErrorSize>,
    /// Number of points whose measured median is in the predicted range.
    pub inside_range: usize,
    /// How often predictions from the recording alone name the faster of two placements.
    pub pairs: Pairs,
}

impl Summary {
    /// The summary of the points that count; `None` if there are none.
    pub(crate) fn of(programs: &[ProgramResult]) -> Option<Self> {
        let counted = |ran: &'_ ProgramResult| {
            ran.points
                .iter()
                .filter(|p| p.counted)
                .cloned()
                .collect::<Vec<_>>()
        };
        let programs: Vec<Vec<Point>> = programs.iter().map(counted).collect();
        let points = || programs.iter().flatten();
        let calibrated = || points().filter_map(|p| Some((p, p.calibrated?)));
        Some(Self {
            error: ErrorSize::of(points().map(|p| p.error))?,
            error_without_first: ErrorSize::of(calibrated().map(|(p, _)| p.error)),
            calibrated: ErrorSize::of(calibrated().map(|(_, c)| c.error)),
            inside_range: points().filter(|p| p.is_inside()).count(),
            pairs: pairs(&programs),
        })
    }
}

fn pairs(programs: &[Vec<Point>]) -> Pairs {
    let mut found = Pairs::default();
    for points in programs {
        for (at, a) in points.iter().enumerate() {
            for b in &points[at + 1..] {
                let measured = (a.median_seconds / b.median_seconds).ln();
                let predicted = (a.predicted_seconds / b.predicted_seconds).ln();
                if measured.abs() <= MIN_MEASURED_DIFFERENCE {
                    continue;
                }
                found.of += 1;
                if predicted.abs() <= MIN_PREDICTED_DIFFERENCE {
                    found.undecided += 1;
                } else if predicted.signum() == measured.signum() {
                    found.right += 1;
                } else {
                    found.wrong += 1;
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Calibrated;

    fn point(placement: &str, measured: f64, predicted: f64) -> Point {
        let mut point = Point::new(
            placement,
            vec![measured],
            [predicted, predicted * 0.9, predicted * 1.1],
        );
        point.calibrated = (placement != "first-touch").then_some(Calibrated {
            seconds: measured * 1.1,
            range: [measured, measured * 1.2],
            error: 0.1,
        });
        point
    }

    fn ran(points: Vec<Point>) -> ProgramResult {
        ProgramResult {
            points,
            ..ProgramResult::default()
        }
    }

    #[test]
    fn sizes_of_errors_are_those_of_the_outside_points() {
        // statistics.quantiles([1, 2, 3, 4, 10], n=10, method="inclusive")[8]
        let size = ErrorSize::of([-0.1, 0.2, 0.03, -0.04, 0.01].map(|e: f64| e * 100.0)).unwrap();
        assert_eq!((size.points, size.median), (5, 4.0));
        assert!((size.p90 - 16.0).abs() < 1e-9, "{size:?}");
        assert_eq!(ErrorSize::of([]), None);
        assert_eq!(ErrorSize::of([-0.5]).unwrap().p90, 0.5);
    }

    #[test]
    fn a_point_whose_pages_were_elsewhere_does_not_count() {
        let mut lost = point("interleave", 1.0, 9.0);
        lost.counted = false;
        let summary = Summary::of(&[ran(vec![point("first-touch", 1.0, 1.05), lost])]).unwrap();
        assert_eq!(
            (summary.error.points, summary.inside_range, summary.pairs.of),
            (1, 1, 0)
        );
        assert!((summary.error.median - 0.05).abs() < 1e-9);
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn calibration_is_on_first_touch_which_then_does_not_count() {
        let summary = Summary::of(&[ran(vec![
            point("first-touch", 1.0, 2.0),
            point("node:0", 2.0, 3.0),
        ])])
        .unwrap();
        assert_eq!(summary.error.points, 2);
        assert_eq!(summary.error_without_first.unwrap().median, 0.5);
        assert!((summary.calibrated.unwrap().median - 0.1).abs() < 1e-12);
    }

    #[test]
    fn pairs_are_told_apart_within_a_program_only() {
        let sor = ran(vec![
            point("a", 1.0, 1.0),
            point("b", 2.0, 2.0),
            point("c", 1.01, 5.0),
            point("d", 1.5, 1.0),
        ]);
        let cg = ran(vec![point("a", 9.0, 1.0)]);
        // a-b right, a-d undecided, b-c wrong, b-d right, c-d wrong; a-c are equal.
        let expected = Pairs {
            of: 5,
            right: 2,
            wrong: 2,
            undecided: 1,
        };
        assert_eq!(Summary::of(&[sor, cg]).unwrap().pairs, expected);
    }
}
