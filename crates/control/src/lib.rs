//! Online migration control: which of the page moves that a policy proposes are made now.
//!
//! **Purpose.** The same code runs in the simulator, the laboratory and on a live process. A [`Controller`] calls a
//! migration policy once an interval, filters its proposals by cost budget, rate limit, statistical significance and
//! per-page cooldown, and keeps a [`Ledger`] of the results. A [`Tracker`] holds sampled access counts in 16 bytes a
//! page. An [`asym::Scheduler`] decides at the same interval which nodes the threads of all programs run on.
//!
//! **Constraints.** Pure: no system call, no clock. Time is an argument and may go backwards.
//!
//! **Non-goals.** Policies (see `nodewise-placement`), observing (`-observe`), moving (`-enforce`).

#![forbid(unsafe_code)]

mod actuator;
pub mod asym;
mod batch_result;
mod budget;
mod climb;
mod controller;
mod exchanges;
mod failed_pages;
mod filter;
pub mod groups;
mod ledger;
mod settings;
mod tracker;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tier_properties;

pub use actuator::{Actuator, DryRun, Observer};
pub use batch_result::{BatchResult, PageResult};
pub use climb::Climb;
pub use controller::{Controller, Decision, Interval, run_interval};
pub use filter::HeldBack;
pub use ledger::Ledger;
pub use settings::Settings;
pub use tracker::Tracker;
