//! The part of the report on samples.

use nodewise_analysis::{INTENSITY, Sampled as Analysed};
use nodewise_profile::{Meta, Sampling as Recorded};
use serde::Serialize;

/// How hint faults were sampled, and what that says of the figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sampling {
    /// As it was recorded.
    #[serde(flatten)]
    pub recorded: Recorded,
    /// What bounds of exclusivity assume, since samples do not see it: one of a node's stands for this many
    /// times as many accesses as one of another's, at most.
    pub intensity: f64,
    /// Exclusivity over the whole program.
    pub exclusivity: Sampled,
    /// Share of the sampled pages whose first touch was not observed, so that their home is guessed.
    pub unknown_first_touch: f64,
    /// Share of the pages known that have no samples: of them only the first touch was seen.
    pub unseen: f64,
}

/// How surely exclusivity is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sampled {
    /// Number of pages with samples.
    pub pages: u64,
    /// Those with enough to be judged.
    pub judged: u64,
    /// Bounds of the mean over the judged pages at 95 %, of their accesses (see [`Sampling::intensity`]);
    /// `null` when none is judged.
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
    /// From the manifest; `None` where counts are counts.
    pub(crate) fn of(meta: &Meta, exclusivity: Analysed, unknown_first_touch: f64) -> Option<Self> {
        meta.observer.is_sampled().then(|| Self {
            recorded: meta.sampling.clone().unwrap_or_default(),
            intensity: INTENSITY,
            exclusivity: exclusivity.into(),
            unknown_first_touch,
            unseen: exclusivity.unseen,
        })
    }
}
