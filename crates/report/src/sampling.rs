//! What sampled counts rest on, as a report says it.

use nodewise_analysis::{INTENSITY, Sampled as Analysed};
use nodewise_profile::Meta;
use serde::Serialize;

/// How hinting faults were sampled.
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
    /// At the end, one of so many faults was taken.
    pub period: u32,
    /// CPU time the observer was allowed, as a share of the program's.
    pub budget: f64,
    /// CPU time it took, as a share of the program's.
    pub cost: f64,
    /// Measured cost of one sample, nanoseconds.
    pub sample_ns: f64,
    /// Samples below which a page is not judged.
    pub minimum_samples: u32,
    /// Whether reads and writes were told apart.
    pub writes: bool,
    /// How long was sampled.
    pub seconds: f64,
    /// What bounds of exclusivity assume, since samples do not see it: one of a node's stands for so many
    /// times as many accesses as one of another's, at most.
    pub intensity: f64,
    /// The program's exclusivity.
    pub exclusivity: Sampled,
    /// Share of the sampled pages whose first touch nobody saw: their home is guessed.
    pub unknown_first_touch: f64,
    /// Share of the pages known that have no samples: of them only the first touch was seen.
    pub unseen: f64,
}

/// How surely exclusivity is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sampled {
    /// Pages with samples.
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
        let s = meta.sampling.clone().unwrap_or_default();
        meta.observer.is_sampled().then(|| Self {
            samples: s.samples,
            first_touches: s.first_touches,
            copies: s.copies,
            lost: s.lost,
            period: s.period,
            budget: s.budget,
            cost: s.cost,
            sample_ns: s.sample_ns,
            minimum_samples: s.minimum_samples,
            writes: s.writes,
            seconds: s.seconds,
            intensity: INTENSITY,
            exclusivity: exclusivity.into(),
            unknown_first_touch,
            unseen: exclusivity.unseen,
        })
    }
}
