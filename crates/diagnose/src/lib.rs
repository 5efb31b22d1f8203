//! Diagnosis without a recording.
//!
//! **Purpose.** Evaluates the placement of running processes ([`process`], for `nodewise check`), and checks which
//! observers and actuators work on this host, with a remedy for those that do not ([`host`], for `nodewise doctor`).
//!
//! **Constraints.** Reads `/proc` and `/sys`, and tests system calls only on memory of this process; changes no other
//! process.
//!
//! **Non-goals.** Advice on the placement of a program, which needs a profile (`nodewise-advise`).

#![forbid(unsafe_code)]

pub mod host;
pub mod process;
