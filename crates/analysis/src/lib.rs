//! What the accesses mean: histograms, metrics, sharing, patterns.
//!
//! **Purpose.** From a stream of accesses to the page × thread histogram, and from that, under an
//! affinity and a mapping, to the figures of Diener et al. II and Majo & Gross 3.1.
//!
//! **Constraints.** Pure; one streaming pass over the accesses; linear in rows.
//!
//! **Non-goals.** Deciding anything (see `nodewise-placement`), predicting time (`-simulation`).

mod affinity;
mod histogram;

pub use affinity::Affinity;
pub use histogram::{Entry, Histogram, PageView};
