//! What samples of some pages say of the accesses to them, as intervals.

// Why: docs/decisions/analysis.md

use crate::interval::Interval;

/// Assumed bound on the intensity of use, which samples do not show: a sample from one node stands for at most this
/// many times as many accesses to the page as a sample from another node.
///
/// A stencil's owner makes six to eight accesses to each element that a neighbour reads once. A thread that transforms
/// rows in place reads and writes each element log₂ of the row length times where others fetch it once: 32 accesses for
/// rows of 65,536 elements.
pub const MAX_INTENSITY_RATIO: f64 = 32.0;

/// Share of an object's pages for which [`MAX_INTENSITY_RATIO`] is not assumed either: where other nodes only read a
/// flag, an end mark or a key, one access of theirs may stand beside a thousand of the owner's.
pub(super) const UNBOUNDED_INTENSITY_SHARE: f64 = 0.02;

/// Estimates from the samples of an object's or a program's pages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Number of samples in pages of the object (or program).
    pub samples: u64,
    /// Number of pages that have at least one sample.
    pub pages: u64,
    /// Number of pages with enough samples to be judged.
    pub judged: u64,
    /// Share of all known pages that have no samples: only their first touch was seen.
    pub unseen: f64,
    /// The share of a page's *samples* that come from the node with most of them, mean over the judged pages; `None` if
    /// no page is judged.
    pub shares: Option<Interval>,
    /// E_Page (Diener et al., equation 1), the share of a page's *accesses* that come from the node with most of them,
    /// mean over the judged pages: `shares` with bounds widened by [`MAX_INTENSITY_RATIO`] and
    /// `UNBOUNDED_INTENSITY_SHARE`.
    pub exclusivity: Option<Interval>,
}

impl Sampled {
    /// Interval of the share of accesses that are local if `share` of the samples are.
    #[must_use]
    pub fn share(&self, share: f64) -> Interval {
        sampled_share(share, self.samples, self.unseen)
    }
}

/// Interval of the share of accesses with some property, such as being local, if `share` of `samples` samples have it.
///
/// Samples of a page come from the thread that touches it first after a scan, and samples of neighbouring pages from
/// the same sweep, so only √n of them count as independent. The interval is widened by [`MAX_INTENSITY_RATIO`] and
/// `UNBOUNDED_INTENSITY_SHARE`. Nothing is known about pages without samples, which are `unseen` of all pages.
#[must_use]
pub fn sampled_share(share: f64, samples: u64, unseen: f64) -> Interval {
    let independent = (samples as f64).sqrt();
    let seen = Interval::wilson(share, independent)
        .with_scaled_odds(MAX_INTENSITY_RATIO)
        .widened_by_unknown(UNBOUNDED_INTENSITY_SHARE);
    let unseen = unseen.clamp(0.0, 1.0);
    Interval {
        low: seen.low * (1.0 - unseen),
        high: seen.high * (1.0 - unseen) + unseen,
        ..seen
    }
}
