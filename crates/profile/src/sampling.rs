//! Sampling parameters and totals of a sampled profile.

use serde::Serialize;

/// How hint faults were sampled. A sample says that a thread used a page between two scans of the kernel; it says
/// nothing about how often.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sampling {
    /// Number of hint faults that were recorded as accesses.
    pub samples: u64,
    /// Number of faults that were the first touch of a page.
    pub first_touches: u64,
    /// Number of faults that copied a page on its first write.
    pub copies: u64,
    /// Number of faults that the kernel could not report.
    pub lost: u64,
    /// At the end of the recording, one of this many faults was recorded.
    pub period: u32,
    /// Limit of the observer's CPU time, as a share of the program's.
    pub budget: f64,
    /// CPU time that the observer used, as a share of the program's.
    pub cost: f64,
    /// Measured cost of one sample, nanoseconds.
    pub sample_ns: f64,
    /// Pages with fewer samples than this are not judged.
    pub minimum_samples: u32,
    /// Whether reads and writes are distinguished; otherwise all count as reads.
    pub writes: bool,
    /// Duration of sampling, seconds.
    pub seconds: f64,
}
