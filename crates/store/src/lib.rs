//! Profiles on disk: a manifest and Parquet tables, streamed both ways.
//!
//! **Purpose.** [`Writer`] takes a recording slice by slice while the program runs; [`Reader`] gives
//! it back as a [`nodewise_profile::Profile`] and a [`nodewise_profile::AccessSource`]. pandas,
//! Polars, DuckDB and Spark read the tables as they are.
//!
//! **Constraints.** Memory is bounded by one slice when writing and one file when reading, whatever the
//! length of the recording. Files appear under their own names when they are whole, and `manifest.json`, replaced
//! last and at once, says which of them are the profile. Everything read is checked: size and
//! checksum of each file, then each row. Nothing that was written is ever half there.
//!
//! **Non-goals.** What the counts mean (see `nodewise-analysis`); raw counter files (see
//! `nodewise-observe`).
#![forbid(unsafe_code)]

mod accesses;
mod bounds;
mod error;
mod fence;
mod locate;
mod manifest;
mod pages;
mod reader;
mod table;
mod tables;
mod validate;
mod writer;

pub use bounds::THREADS;
pub use error::{Error, ErrorKind, Result};
pub use locate::{latest, unused};
pub use reader::Reader;
pub use writer::Writer;
