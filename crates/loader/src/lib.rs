//! Describes what starting a file involves: its kind, its loader, and the libraries that the loader maps.
//!
//! **Purpose.** [`kind`] tells programs from scripts and other files. [`Program::foreign`] says why a library of
//! ours, which is glibc's and this processor's, cannot be preloaded into a program. [`libraries`] lists what the
//! dynamic loader would map at the start, in its order.
//!
//! **Constraints.** Reads files and runs nothing: a loader asked to list libraries executes a program whose C
//! library does not know that question.
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
pub use program::Program;
pub use script::MOST_INTERPRETERS;
pub use search::{Environment, Libraries, Missing, libraries};
