//! Predictions held against measurements on this machine (`nodewise validate`, `docs/validate.md`).
//!
//! **Purpose.** A built-in set of programs is recorded, predicted under named placements, run under them and compared;
//! [`Validation::run`] yields a [`Document`] that can be sent to us. What is run, and how large, follows a rule that is
//! known before: [`Validation::new`] states it.
//!
//! **Constraints.** Sizes follow the machine and the time limit, never a result. What a document says can be recomputed
//! from the raw times in it. No name of a host, a user or a folder is in it.
//!
//! **Non-goals.** Measuring the machine (`nodewise-observe`), prediction (`nodewise-pipeline`), deciding what is best for a
//! program of the user's (`nodewise-tune`, whose rounds and statistics are used here).

#![forbid(unsafe_code)]

mod busy;
mod comparison;
mod document;
mod pages;
mod placements;
mod program_trial;
mod programs;
mod ran;
mod scratch;
mod site;
mod sizes;
mod validation;

pub use comparison::{ErrorSize, Pairs, Summary};
pub use document::{DescribedMachine, Document, SCHEMA, Settings};
pub use pages::PagesSeen;
pub use programs::{PROGRAMS, Program};
pub use ran::{Calibrated, Point, Ran};
pub use site::Site;
pub use sizes::{Job, Rule, chosen};
pub use validation::{Options, Validation};
