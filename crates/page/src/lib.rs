//! The interactive page: where data is and moves.
//!
//! **Purpose.** [`Documents`] provides all data of the page by name: the report, the address space as tiles, the run as
//! a film, the sharing graph. A server serves them one by one, a file contains them all; the page (`web/`) reads both
//! in the same way.
//!
//! **Constraints.** In addition to a profile's histogram, a view keeps only a few bytes per page. Tiles are made here,
//! so that a browser holds only the data that it shows. Names come from the observed program and are therefore passed
//! as JSON only.
//!
//! **Non-goals.** Figures of its own: all are those of the report, or sums over the histogram. Layout (see `web/`).
#![forbid(unsafe_code)]

mod archive;
mod base64;
mod cell_threads;
pub mod file;
mod film;
mod machine;
mod packed;
mod pyramid;
pub mod server;
mod session;
pub mod shell;
mod strip;
mod sums;
mod threads;
mod tile;
mod traffic;
mod truncated;
mod view;

pub use film::{Film, FilmBuilder};
pub use session::SessionDocuments;
pub use threads::{Placement, Placements};
pub use view::{Findings, View};

use std::borrow::Cow;

/// The page's bundled script.
pub const SCRIPT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/web/page.js"));
/// The page's style sheet.
pub const STYLE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/web/page.css"));

/// Documents by name, of which `session.json` is read first; the names are those in `web/src/source.ts`.
pub trait Documents: Send + Sync {
    /// The contents of a document; `None` if there is none with this name.
    fn document(&self, name: &str) -> Option<Cow<'_, [u8]>>;
}
