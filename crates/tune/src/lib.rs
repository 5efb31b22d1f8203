//! Tuning by trial (`nodewise tune`, `docs/tune.md`).
//!
//! **Purpose.** Candidates are chosen by prediction and measured against the plain command; the fastest is kept if it
//! is significantly faster. [`Tuning::open`] finds or records the profile, [`Tuning::predicted`] lists what would be
//! run, [`Tuning::measure`] runs it.
//!
//! **Constraints.** Messages and progress are reported as [`Event`]s, so that a command line, a server or a test can
//! show them; this crate neither reads arguments nor writes to a terminal.
//!
//! **Non-goals.** Prediction (`nodewise-pipeline`) and enforcement of placements (`nodewise-enforce`).

#![forbid(unsafe_code)]

mod candidates;
mod conclusion;
mod event;
mod findings;
mod options;
mod prediction;
mod profile;
mod statistics;
mod trial;
mod tried;
mod tuning;

pub use candidates::{Candidate, Map};
pub use conclusion::{Conclusion, FEWEST_RUNS};
pub use event::{Event, Listener};
pub use findings::{Baseline, Findings, NotScored};
pub use options::Options;
pub use prediction::{Predicted, predict};
pub use statistics::{Comparison, compare, median};
pub use trial::{Invocation, RunResult, Runner, Trial};
pub use tried::CandidateResult;
pub use tuning::Tuning;
