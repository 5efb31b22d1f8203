//! Settings and progress of measurements, and the type of their results.

use nodewise_machine::inference::Estimate;
use std::time::Duration;

/// Precision, duration and memory of measurements.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Repeats until half the width of the confidence interval is this share of the median.
    pub precision: f64,
    /// Smallest and largest number of samples of a figure.
    pub samples: std::ops::RangeInclusive<usize>,
    /// Duration of one sample of a bandwidth.
    pub window: Duration,
    /// Starts no further measurement after this time.
    pub limit: Duration,
    /// Bytes of memory used on each node; by default four times the caches through which it is reached.
    pub memory: Option<u64>,
}

impl Settings {
    /// A precision of one percent, in at most ten minutes.
    #[must_use]
    pub fn thorough() -> Self {
        Self {
            precision: 0.01,
            samples: 12..=60,
            window: Duration::from_millis(20),
            limit: Duration::from_secs(600),
            memory: None,
        }
    }

    /// A precision of five percent, in at most a minute.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            precision: 0.05,
            samples: 6..=18,
            window: Duration::from_millis(5),
            limit: Duration::from_secs(60),
            memory: None,
        }
    }
}

/// Progress of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being measured.
    pub what: &'static str,
    /// Figures of this kind that have been measured.
    pub done: usize,
    /// Largest number of figures of this kind.
    pub of: usize,
}

/// One figure for each pair `[reader][memory]`; `None` if it was not measured.
pub type Matrix = Vec<Vec<Option<Estimate>>>;
