//! What others wrote: files read within a bound, and their text quoted in messages.
//!
//! **Purpose.** Profiles, maps and machine files come from elsewhere. [`bytes`] and [`text`] read one without waiting
//! for a pipe that has no writer and without following a device that has no end; [`quoted`] and [`one_line`] make what
//! stands in it fit to be printed, [`shell_line`] fit to be typed.
//!
//! **Constraints.** No dependencies on other rooms: everything that reads may use it.
//!
//! **Non-goals.** What the files mean; files of the kernel's (`/proc`, `/sys`), which have no size.
#![forbid(unsafe_code)]

mod file;
mod names;
mod quote;

pub use file::{TEXT, bytes, open, text};
pub use names::resolve;
pub use quote::{one_line, quoted, reorders, shell_line, shell_word};
