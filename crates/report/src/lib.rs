//! The report: one model, several writers.
//!
//! **Purpose.** [`Report`] holds every figure that a reader may want to see; [`text`] and [`json`]
//! write it. The terminal summary fits one screen and opens with the verdict; the JSON is stable and
//! documented (`docs/report.md`).
//!
//! **Constraints.** Writers compute only layout, so that all of them show the same figures. Names come from the
//! observed program and are escaped wherever they are written. Callers pass the width and whether colours are
//! supported: this crate does not inspect the terminal.
//!
//! **Non-goals.** Metrics (see `nodewise-analysis`), predictions (`-simulation`), advice (`-advise`), the
//! page (`-page`).
#![forbid(unsafe_code)]

mod copies;
mod findings;
pub mod json;
pub mod lab;
mod markup;
mod model;
mod moves;
mod page_show;
mod roles;
mod sampling;
mod sizes_svg;
mod sweep_svg;
mod table;
pub mod text;
mod topology_svg;

pub use copies::{Copied, CopiedObject};
pub use findings::{Findings, coverage as recorded_coverage};
pub use markup::Text;
pub use model::{
    Affinity, Coverage, Division, Dynamicity, FewLines, Host, Machine, MissedModule, Node, Object, Policy,
    Program, Report, SCHEMA, Sharing, Slice, Totals, UniformSharing,
};
pub use moves::{
    HeldBack, HomeChange, HomePeriod, Migration, MovedBy, MovedObject, Moves, PageJourney, Step,
};
pub use nodewise_analysis::figures::{
    amount, and_more, between, bytes, count, gigabytes, noun, pages, percent, plural, ratio, seconds, spread,
    whole_percent,
};
pub use page_show::{PageShow, page_show};
pub use roles::{
    DynamicLoop, OtherRuns, Roles, other_run_sentence, sentence as roles_sentence, unknown as roles_unknown,
    what_tells,
};
pub use sampling::{Sampled, Sampling};
pub use sizes_svg::{SizePoint, sizes_svg};
pub use sweep_svg::{SweepPoint, sweep_svg};
pub use table::{matrix_line, table};
pub use topology_svg::{links_svg, places, topology_svg};
