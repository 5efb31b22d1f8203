//! Thin safe wrappers over the kernel; the home of unsafe.
//!
//! **Purpose.** One module per kernel interface, each a safe function per system call.
//!
//! **Constraints.** No policy and no state: what to ask for is decided elsewhere. Every `unsafe` block
//! says why it is sound.
//!
//! **Non-goals.** Parsing what `procfs` already parses.

pub mod affinity;
pub mod child;
pub mod mempolicy;
