//! Sampling parameters and totals of a sampled profile.

use serde::Serialize;

/// How hint faults were sampled. A sample says that a thread used a page between two of
/// the kernel's scans; it says nothing about how often.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sampling {
    /// Hinting faults that became accesses.
    pub samples: u64,
    /// Faults that were a page's first touch.
    pub first_touches: u64,
    /// Faults that copied a page on its first write.
    pub copies: u64,
    /// Faults the kernel could not hand over.
    pub lost: u64,
    /// At the end, one of this many faults was taken.
    pub period: u32,
    /// CPU time the observer was allowed, as a share of the program's.
    pub budget: f64,
    /// CPU time it took, as a share of the program's.
    pub cost: f64,
    /// Measured cost of one sample, nanoseconds.
    pub sample_ns: f64,
    /// Samples below which a page is not judged.
    pub minimum_samples: u32,
    /// Whether reads and writes are told apart; else all count as reads.
    pub writes: bool,
    /// How long was sampled, seconds.
    pub seconds: f64,
}
