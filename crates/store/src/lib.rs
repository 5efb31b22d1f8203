//! Profiles on disk: a manifest and Parquet tables, written and read as streams.
//!
//! **Purpose.** [`Writer`] takes a recording slice by slice while the program runs; [`Reader`] gives
//! it back as a [`nodewise_profile::Profile`] and a [`nodewise_profile::AccessSource`]. pandas,
//! Polars, DuckDB and Spark read the tables as they are.
//!
//! **Constraints.** Memory is bounded by one slice when writing and one file when reading, whatever the length of the
//! recording. A file gets its own name once it is complete. `manifest.json` is replaced last, atomically, and lists the
//! files of the profile; so no reader ever sees half a profile. Everything read is checked: size and checksum of each
//! file, then each row.
//!
//! **Non-goals.** The meaning of the counts (see `nodewise-analysis`); raw counter files (see `nodewise-observe`).
#![forbid(unsafe_code)]

mod accesses;
mod accounted;
mod bounds;
mod error;
mod locate;
mod manifest;
mod pages;
mod panics;
mod reader;
mod runs;
mod table;
mod tables;
mod taken;
mod validate;
mod writer;

pub use bounds::THREADS;
pub use error::{Error, ErrorKind, Result};
pub use locate::{latest, unused};
pub use reader::Reader;
pub use taken::set_taken;
pub use writer::Writer;
