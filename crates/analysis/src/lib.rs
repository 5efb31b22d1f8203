//! What the accesses mean: histograms, metrics, sharing, patterns.
//!
//! **Purpose.** From a stream of accesses to the page × thread histogram, and from that, under an
//! affinity and a mapping, to the figures of Diener et al. II and Majo & Gross 3.1.
//!
//! **Constraints.** Pure; one streaming pass over the accesses; linear in rows.
//!
//! **Non-goals.** Deciding anything (see `nodewise-placement`), predicting time (`-simulation`).

#![forbid(unsafe_code)]

mod affinity;
mod balance;
mod builder;
mod conflict;
mod division;
mod dynamicity;
mod first_touch;
mod histogram;
mod interval;
mod merge;
mod metrics;
mod moves;
mod node_counts;
mod page_use;
mod pattern;
mod sampled;
mod sharing;
mod spot;
mod timeline;
mod usage;

#[cfg(test)]
mod fixtures;

pub use affinity::{Affinity, compact_order, identity_order, scatter_order, thread_numbers};
pub use balance::balance;
pub use builder::for_each_slice;
pub use conflict::{Conflict, Remedy};
pub use division::Division;
pub use dynamicity::Dynamicity;
pub use first_touch::{first_touch_nodes, first_touches};
pub use histogram::{Entry, Histogram, PageView};
pub use interval::Interval;
pub use metrics::{Measured, Metrics, access_matrix, measure};
pub use moves::{Journey, MoveCounts, Moves};
pub use node_counts::NodeCounts;
pub use pattern::Pattern;
pub use sampled::{INTENSITY, Sampled, Samples, sampled_share};
pub use sharing::{SharingClass, SharingMatrix};
pub use spot::{Spot, spots};
pub use timeline::{SliceMetrics, Timeline};
pub use usage::{RegionUse, Usage};
