//! The part of the report on samples.

use nodewise_analysis::{MAX_INTENSITY_RATIO, Sampled as Analysed};
use nodewise_profile::{Meta, Sampling as Recorded};
use serde::Serialize;

/// How hint faults were sampled, and the resulting accuracy of the figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sampling {
    /// Settings and statistics of the recording.
    #[serde(flatten)]
    pub recorded: Recorded,
    /// Assumption behind the bounds of exclusivity: a sample of one node stands for at most this many times as many
    /// accesses as a sample of another node. Samples cannot show this ratio.
    pub intensity: f64,
    /// Exclusivity over the whole program.
    pub exclusivity: Sampled,
    /// Share of the sampled pages whose first touch was not observed; their home node is a guess.
    pub unknown_first_touch: f64,
    /// Share of the known pages that have no samples: only their first touch was observed.
    pub unseen: f64,
}

/// Confidence of an exclusivity that was computed from samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sampled {
    /// Number of pages with samples.
    pub pages: u64,
    /// Number of pages with enough samples to be evaluated.
    pub judged: u64,
    /// 95 % bounds of the mean exclusivity over these pages, in terms of accesses (see [`Sampling::intensity`]); `null`
    /// if there is no such page.
    pub range: Option<[f64; 2]>,
}

impl From<Analysed> for Sampled {
    fn from(seen: Analysed) -> Self {
        Self {
            pages: seen.pages,
            judged: seen.judged,
            range: seen.exclusivity.map(|e| [e.low, e.high]),
        }
    }
}

impl Sampling {
    /// Builds it from the manifest; `None` if accesses are not samples.
    pub(crate) fn of(meta: &Meta, exclusivity: Analysed, unknown_first_touch: f64) -> Option<Self> {
        meta.observer.is_sampled().then(|| Self {
            recorded: meta.sampling.clone().unwrap_or_default(),
            intensity: MAX_INTENSITY_RATIO,
            exclusivity: exclusivity.into(),
            unknown_first_touch,
            unseen: exclusivity.unseen,
        })
    }
}
