//! The pipeline from a profile to metrics, predictions and advice.
//!
//! **Purpose.** Joins the crates below in the order in which every command needs them: a [`Selection`] says which
//! profile on which machine, [`Selected`] has read it, [`Analysed`] has judged it (what `report`, `serve` and `top`
//! show), [`compare`] predicts policies side by side (`simulate`). [`Followed`] does so again while a profile grows.
//!
//! **Constraints.** Nothing here reads arguments or writes to a terminal: what there is to say besides a result is in
//! its `notes`.
//!
//! **Non-goals.** Measuring, deciding and predicting: see the crates below.

#![forbid(unsafe_code)]

mod analysed;
mod asym;
pub mod compare;
mod folded;
mod followed;
mod passes;
mod roles;
mod selection;

pub use analysed::Analysed;
pub use asym::{ASYM, Asym};
pub use followed::{Followed, Look, PAUSE, pause_after};
pub use roles::compared;
pub use selection::{Files, Selected, Selection};
