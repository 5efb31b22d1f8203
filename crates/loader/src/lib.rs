//! Describes what starting a file involves: its kind, its loader, and the libraries that the loader maps.
//!
//! **Purpose.** [`kind`] distinguishes programs, scripts and other files. [`Program::foreign`] says why our libraries,
//! which are for glibc and this processor, cannot be preloaded into a program. [`libraries`] lists the libraries that
//! the dynamic loader would map at start-up, in its order.
//!
//! **Constraints.** Reads files and runs nothing. Asking a loader to list libraries, as `ldd` does, would execute a
//! program whose C library does not support that request.
//!
//! **Non-goals.** Symbols and debug information; libraries that a program opens while it runs.

#![forbid(unsafe_code)]

mod cache;
mod foreign;
mod kind;
mod program;
mod script;
mod search;
mod target;

pub use foreign::Foreign;
pub use kind::{Kind, interpreted, kind};
pub use program::{INTERFACE, Program, RUNTIME};
pub use script::MAX_INTERPRETERS;
pub use search::{Environment, Libraries, Missing, libraries};
