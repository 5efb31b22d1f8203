//! Rules made real on a running kernel.
//!
//! **Purpose.** From a [`nodewise_placement::Placement`], this host and the actual binary to a
//! [`Plan`]: the table that the preload obeys, the environment, the process's memory policy. From the
//! summaries that placed processes leave to [`Achieved`]: what was wanted and what was got.
//!
//! **Constraints.** Prefers, never binds memory; keeps to allowed nodes and CPUs. A plan changes
//! nothing until it is carried out.
//!
//! [`mover`] moves pages of a process that already runs.
//!
//! **Non-goals.** Deciding where things should go.

#![forbid(unsafe_code)]

mod achieved;
mod actuator;
mod affinities;
mod companion;
mod error;
mod freezer;
#[cfg(fuzzing)]
pub mod fuzzing;
mod held;
mod host;
pub mod mover;
mod plan;
mod request;
mod rules;
mod sites;
mod summary;
mod table;
mod target;
mod threads;

pub use achieved::{Achieved, RuleAchieved, Watch};
pub use actuator::Linux;
pub use affinities::{Affinities, Restored};
pub use error::EnforceError;
pub use freezer::Stalls;
pub use held::{Held, Holder};
pub use host::{Host, HostNode, HugePages};
pub use plan::{Options, PageSize, Plan};
pub use request::Request;
pub use rules::RuleFound;
pub use table::Table;
pub use target::Target;
pub use threads::{Binding, Threads};
