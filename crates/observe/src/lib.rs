//! Records running programs as profiles.
//!
//! **Purpose.** [`record`] runs a program that was built to count its accesses, reads its raw files
//! (`runtime/layout.h`) while it runs, and writes a profile slice by slice.
//!
//! **Constraints.** Memory grows with the pages that a program touches, not with its run time. The program is never
//! stopped: raw files are read while they are written, and keep the counts of a process that was killed. Their content
//! is checked before it is used.
//!
//! [`hardware`] measures latency and bandwidth between the machine's nodes.
//!
//! **Non-goals.** The meaning of the counts (see `nodewise-analysis`); printing (see the command line).

#![forbid(unsafe_code)]

mod alive;
mod checkpoints;
mod claims;
mod code;
mod control;
mod coverage;
mod damage;
mod emulator;
mod error;
mod events;
pub mod faults;
pub mod hardware;
mod image;
mod layout;
mod lineage;
mod objects;
mod origin;
mod plain;
mod pool;
mod program;
mod recorder;
mod recording;
mod recover;
mod rows;
mod slicing;
mod tables;
mod thread_file;

pub use emulator::Emulator;
pub use error::{Error, ErrorKind};
pub use origin::{command_of, host_meta};
pub use plain::{PlainRun, input_is_consumed, without_output};
pub use program::{check_instrumented, find, is_instrumented, unreached};
pub use recorder::{Options, Progress, Recorded, record};
pub use recover::{Recovered, recover};
pub use slicing::Slicing;
