//! The live decision: of the moves that a policy proposes, those that are worth it now.
//!
//! **Purpose.** One code for the simulator, the laboratory and a running process: a [`Controller`] asks a
//! migration policy once an interval, holds back what the budget, the rate, a lack of samples or a recent
//! move speak against, and keeps a [`Ledger`] of what was done. A [`Tracker`] holds what was sampled, in
//! 16 bytes a page. An [`asym::Scheduler`] says, as often, which nodes the threads of all programs are to have.
//!
//! **Constraints.** Pure: no system call, no clock; time is what the caller says, and may go backwards.
//!
//! **Non-goals.** Policies (see `nodewise-placement`), observing (`-observe`), moving (`-enforce`).

#![forbid(unsafe_code)]

pub mod asym;
mod batch_result;
mod budget;
mod controller;
mod interval;
mod ledger;
mod settings;
mod stayed;
mod tracker;

#[cfg(test)]
mod laws;

pub use batch_result::{BatchResult, PageResult};
pub use controller::{Controller, Decision, HeldBack};
pub use interval::{Actuator, DryRun, Interval, Observer, run_interval};
pub use ledger::Ledger;
pub use settings::Settings;
pub use tracker::Tracker;
