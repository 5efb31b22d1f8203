//! Where things should go: page policies, thread policies, and placements as rules.
//!
//! **Purpose.** A policy turns a histogram, an affinity and a machine into a [`Mapping`]; the
//! recogniser turns a mapping into the few rules that survive another address layout, input size
//! and thread count.
//!
//! **Constraints.** Pure and seeded; one policy a file, one line in the registry; a mapping is total.
//!
//! **Non-goals.** Applying anything (see `nodewise-enforce`), predicting time (`-simulation`).

#![forbid(unsafe_code)]

mod distribution;
mod mapping;
mod policy;
mod rules;

pub use distribution::{ObjectPage, cumulative};
pub use mapping::Mapping;
pub use policy::{Context, PagePolicy};
pub use rules::{
    Distribution, DistributionError, Kept, Placement, PlacementError, Rule, Run, Selector, ThreadBinding,
};
