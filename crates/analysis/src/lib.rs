//! Analysis of access counts: histograms, metrics, sharing and patterns.
//!
//! **Purpose.** Turns a stream of accesses into the page × thread histogram, and that, under an affinity and a mapping,
//! into the figures of Diener et al. II and Majo & Gross 3.1.
//!
//! **Constraints.** Pure; linear in rows. A consumer of rows is a [`Visitor`]; all consumers that are ready at the same
//! time share one pass ([`read`]).
//!
//! **Non-goals.** Deciding anything (see `nodewise-placement`), predicting time (`-simulation`).

#![forbid(unsafe_code)]

mod affinity;
mod balance;
mod builder;
mod conflict;
mod contended_page;
mod division;
mod dynamicity;
pub mod figures;
mod first_touch;
mod histogram;
mod home_counts;
mod interval;
mod last_writes;
mod metrics;
mod moves;
mod node_counts;
mod object_names;
mod page_use;
mod pattern;
pub mod random;
mod region_sums;
mod roles;
mod sampled;
mod sharing;
mod slices;
mod thread_set;
mod timeline;
mod usage;
mod visitor;
mod votes;

#[cfg(test)]
mod fixtures;

pub use affinity::{Affinity, compact_order, identity_order, scatter_order, thread_numbers};
pub use balance::balance;
pub use builder::HistogramBuilder;
pub use conflict::{Conflict, Remedy};
pub use contended_page::{ContendedPage, contended_pages};
pub use division::Division;
pub use dynamicity::Dynamicity;
pub use first_touch::{first_touch_nodes, first_touches};
pub use histogram::{Entry, Histogram, PageView};
pub use home_counts::HomeCounts;
pub use interval::Interval;
pub use last_writes::{LastWrite, LastWrites};
pub use metrics::{Measured, Metrics, measure};
pub use moves::{Journey, MoveCounts, Moves};
pub use node_counts::NodeCounts;
pub use object_names::object_names;
pub use pattern::Pattern;
pub use region_sums::RegionUse;
pub use roles::{
    Assignment, Expected, LEAST_GAIN_BY_DATA, MOST_WATCHED_PAGES, NotFollowed, OtherRuns, Roles,
    SharedCounter, ThreadData, assign_threads, left_to_first_touch, shared_counters, taken,
};
pub use sampled::{MAX_INTENSITY_RATIO, SampleEstimator, Sampled, Samples, sampled_share};
pub use sharing::{SharingClass, SharingMatrix};
pub use slices::{SliceVisitor, Slices};
pub use timeline::{SliceMetrics, Timeline, TimelineBuilder};
pub use usage::{Usage, UsageMaps};
pub use visitor::{Visitor, read};
pub use votes::Votes;
