//! Handles untrusted input: reads files up to a size limit, and quotes their text in messages.
//!
//! **Purpose.** Profiles, maps and machine files may come from any source. [`bytes`] and [`text`] read a file without
//! blocking on a pipe that has no writer and without reading endlessly from a device; [`quoted`] and [`one_line`] make
//! text safe to print, [`shell_line`] makes a command safe to copy into a shell.
//!
//! **Constraints.** Does not depend on other crates of the workspace, so that all of them can use it.
//!
//! **Non-goals.** The meaning of the files; files of the kernel (`/proc`, `/sys`), which report no size.
#![forbid(unsafe_code)]

mod file;
mod names;
mod quote;

pub use file::{MAX_TEXT_BYTES, bytes, open, text};
pub use names::resolve;
pub use quote::{escaped, one_line, quoted, reorders, shell_line, shell_word};
