//! Placement: page policies, thread policies, and placements as rules.
//!
//! **Purpose.** A policy turns a histogram, an affinity and a machine into a [`Mapping`]. The recogniser turns a
//! mapping into a few rules, which remain valid for another address layout, input size and number of threads.
//!
//! **Constraints.** Pure, and deterministic for a given seed. Each policy has its own file and one line in the
//! registry. A mapping covers every page.
//!
//! **Non-goals.** Applying anything (see `nodewise-enforce`), predicting time (`-simulation`).

#![forbid(unsafe_code)]

pub mod asym;
mod copies;
mod deal;
mod distribution;
pub mod formulas;
mod instances;
mod listed_nodes;
mod mapping;
pub mod migration;
mod mirror;
pub mod policies;
mod policy;
mod rules;
mod threads;
mod tier;

#[cfg(test)]
mod fixtures;

pub use copies::{Copies, Mirrored};
pub use deal::{Deal, lowest_terms};
pub use distribution::{ObjectPage, cumulative};
pub use instances::{INSTANCES, instance_pages};
pub use mapping::Mapping;
pub use migration::{MIGRATION_POLICIES, MigrationPolicy, Move, Observed, Reason, Rows, migration_policy};
pub use mirror::{MIRROR, MIRROR_USAGE, Mirror, copies_fit};
pub use policies::{Outside, makes_copies, not_a_placement, page_policies, page_policy, plan_copies};
pub use policy::{Context, PagePolicy, PolicyError};
pub use rules::{
    Applied, Dealt, Distribution, DistributionError, Kept, NAMED_KINDS, Named, NodeRun, Order, OtherRuns,
    Placement, PlacementError, Recognised, Rule, Selector, ThreadBinding, apply, recognise,
};
pub use threads::{
    NodeCpus, Parts, Placements, SharingGraph, THREAD_POLICIES, VirtualNodes, partition, sharing_aware,
    thread_order, thread_policy, virtual_affinity,
};
pub use tier::Tier;
