//! What samples of some pages say of the accesses to them, as intervals.

// Why: docs/decisions/analysis.md

use crate::interval::Interval;

/// What is assumed of intensity, of which samples say nothing: a sample of one node's stands for at most so
/// many times as many accesses to the page as one of another's.
///
/// A stencil's owner makes six to eight accesses to each element where a neighbour reads it once. One who
/// transforms rows in place reads and writes each element log₂ of a row's length times, where others fetch it
/// once: 32 for rows of 65,536.
pub const INTENSITY: f64 = 32.0;

/// The share of an object's pages of which not even that is assumed: a flag, an end or a key that others look
/// at alone makes one access of theirs stand beside a thousand of the owner's.
pub(super) const EXCEPTED: f64 = 0.02;

/// What samples say of some pages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Number of samples in pages of the object (or program).
    pub samples: u64,
    /// Number of pages that have at least one sample.
    pub pages: u64,
    /// Those with enough to be judged.
    pub judged: u64,
    /// Share of the pages known that have no samples: of these only the first touch was seen.
    pub unseen: f64,
    /// The share of *samples* from the node with most, mean over the judged pages; `None` if no page is judged.
    pub shares: Option<Interval>,
    /// E_Page (Diener et al., equation 1), the share of *accesses*, mean over the judged pages: the same
    /// share, its bounds widened by [`INTENSITY`] and `EXCEPTED`.
    pub exclusivity: Option<Interval>,
}

impl Sampled {
    /// What it says of the accesses that `share` of its samples are local.
    #[must_use]
    pub fn share(&self, share: f64) -> Interval {
        sampled_share(share, self.samples, self.unseen)
    }
}

/// What `samples` samples, `share` of them local (or whatever else is asked of them), say of the accesses.
///
/// Samples of a page come from whoever touches it first after a scan, and neighbours from the same pass, so √n
/// of them count as independent; what they do not see of intensity is allowed for as above. Of pages that were
/// not sampled, `unseen` of all, nothing is known.
#[must_use]
pub fn sampled_share(share: f64, samples: u64, unseen: f64) -> Interval {
    let independent = (samples as f64).sqrt();
    let seen = Interval::wilson(share, independent)
        .weighed(INTENSITY)
        .loosened(EXCEPTED);
    let unseen = unseen.clamp(0.0, 1.0);
    Interval {
        low: seen.low * (1.0 - unseen),
        high: seen.high * (1.0 - unseen) + unseen,
        ..seen
    }
}
