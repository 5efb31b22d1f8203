//! Placement: page policies, thread policies, and placements as rules.
//!
//! **Purpose.** A policy turns a histogram, an affinity and a machine into a [`Mapping`]; the
//! recogniser turns a mapping into the few rules that survive another address layout, input size
//! and thread count.
//!
//! **Constraints.** Pure and seeded; one policy a file, one line in the registry; a mapping is total.
//!
//! **Non-goals.** Applying anything (see `nodewise-enforce`), predicting time (`-simulation`).

#![forbid(unsafe_code)]

pub mod asym;
mod distribution;
pub mod formulas;
mod mapping;
pub mod migration;
pub mod policies;
mod policy;
mod rules;
mod threads;

#[cfg(test)]
mod fixtures;

pub use distribution::{ObjectPage, cumulative};
pub use mapping::Mapping;
pub use migration::{MIGRATION_POLICIES, MigrationPolicy, Move, Observed, Reason, migration_policy};
pub use policies::{Outside, page_policies, page_policy};
pub use policy::{Context, PagePolicy, PolicyError};
pub use rules::{
    Applied, Dealt, Distribution, DistributionError, Kept, Order, OtherRuns, Placement, PlacementError,
    Recognised, Rule, Run, Selector, ThreadBinding, apply, recognise,
};
pub use threads::{
    NodeCpus, Parts, Placements, SharingGraph, THREAD_POLICIES, VirtualNodes, partition, sharing_aware,
    thread_order, thread_policy, virtual_affinity,
};
