//! The pipeline from a profile to metrics, predictions and advice.
//!
//! **Purpose.** Joins the crates below in the order in which every command needs them: a [`Selection`] names a profile
//! and a machine, [`Selected`] is the profile opened on that machine, [`Analysed`] adds predictions and advice (which
//! `report`, `serve` and `top` show), and [`compare`] predicts several policies (`simulate`). [`Followed`] repeats this
//! while a profile grows.
//!
//! **Constraints.** Nothing here reads arguments or writes to a terminal: remarks on a result are in its `notes`.
//!
//! **Non-goals.** Measuring, deciding and predicting: see the crates below.

#![forbid(unsafe_code)]

mod analysed;
mod asym;
pub mod compare;
mod folded;
mod followed;
mod live_documents;
mod passes;
mod roles;
mod selection;

pub use analysed::{Analysed, unused_map};
pub use asym::{ASYM, Asym};
pub use followed::{Followed, Look, PAUSE, pause_after};
pub use live_documents::LiveDocuments;
pub use roles::compared;
pub use selection::{Files, Selected, Selection};
