//! Applies placements to programs on a running kernel.
//!
//! **Purpose.** Makes a [`Plan`] from a [`nodewise_placement::Placement`], this host and the actual binary: the table
//! that the preload reads, the environment, and the process's memory policy. Computes [`Achieved`], which compares
//! wanted and actual nodes, from the summaries that placed processes leave.
//!
//! **Constraints.** Memory policies only prefer nodes and never bind memory to them; only allowed nodes and CPUs are
//! used. Making a plan changes nothing.
//!
//! [`mover`] moves pages of running processes.
//!
//! **Non-goals.** Deciding where pages and threads should be.

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
mod live;
mod loop_schedule;
pub mod mover;
mod placed_files;
mod placed_objects;
mod places;
mod plan;
mod request;
mod rules;
mod run_folder;
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
pub use loop_schedule::{LoopSchedule, dealt_loops};
pub use placed_files::FilesOfRule;
pub use placed_objects::PlacedObjects;
pub use plan::{Options, PageSize, Plan, Roles};
pub use request::Request;
pub use rules::RuleFound;
pub use run_folder::{RunFolder, empty_list};
pub use table::Table;
pub use target::Target;
pub use threads::{Binding, Threads};
