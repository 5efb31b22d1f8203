//! Compares predictions with measurements on this machine (`nodewise validate`, `docs/validate.md`).
//!
//! **Purpose.** A built-in set of programs is recorded; their times under several placements are predicted, measured
//! and compared. [`Validation::run`] returns a [`Document`] that can be sent to the developers. [`Validation::new`]
//! determines what is run, and with which sizes, by a fixed rule.
//!
//! **Constraints.** Sizes depend on the machine and the time limit, never on results. All figures of a document can be
//! recomputed from the raw times in it. It contains no name of a host, a user or a folder.
//!
//! **Non-goals.** Measuring the machine (`nodewise-observe`), prediction (`nodewise-pipeline`), choosing a placement
//! for a user's program (`nodewise-tune`, whose rounds and statistics are used here).

#![forbid(unsafe_code)]

mod busy;
mod comparison;
mod document;
mod pages;
mod placements;
mod program_trial;
mod programs;
mod ran;
mod site;
mod sizes;
mod validation;

pub use comparison::{ErrorSize, Pairs, Summary};
pub use document::{DescribedMachine, Document, SCHEMA, Settings};
pub use pages::PagesSeen;
pub use programs::{PROGRAMS, Program};
pub use ran::{Calibrated, Point, ProgramResult};
pub use site::Site;
pub use sizes::{Job, Rule, chosen};
pub use validation::{Options, Validation};
