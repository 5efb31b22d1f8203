//! Diagnosis without a recording.
//!
//! **Purpose.** How well running processes are placed ([`process`], behind `nodewise check`), and which observers and
//! actuators work on this host, with a remedy for those that do not ([`host`], behind `nodewise doctor`).
//!
//! **Constraints.** It only reads `/proc` and `/sys` and makes short attempts on memory of its own; no process is
//! changed.
//!
//! **Non-goals.** Advice on what to do with a program: that needs a profile (`nodewise-advise`).

#![forbid(unsafe_code)]

pub mod host;
pub mod process;
