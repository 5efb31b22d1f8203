//! The laboratory: a real kernel on a virtual machine with the nodes, distances and memory of any
//! machine file, and exactly who accessed which memory node there.
//!
//! **Purpose.** [`Virtual`] scales a machine to what this host can emulate; [`prepare`] finds what
//! is needed and checks all that can be known without booting; [`Lab::run`] boots QEMU, runs a
//! command under each of several placements, and says what the counters saw.
//!
//! **Constraints.** Runs without KVM, without root, offline once a kernel is cached. Whatever
//! happens, even a kill of this process, nothing is left behind: QEMU dies with its parent, and
//! all it reads and writes are inherited descriptors.
//!
//! **Non-goals.** Time: the guest's clock says nothing about the cost of remote memory.

#![forbid(unsafe_code)]

mod attribution;
mod calibration;
mod closure;
mod command;
mod control;
mod cpio;
mod error;
mod experiment;
#[cfg(fuzzing)]
pub mod fuzzing;
mod guest;
mod guest_run;
mod image;
mod kernel;
mod owners;
mod plan;
mod prepare;
mod qemu;
mod rows;
mod session;
mod virtual_machine;

pub use error::LabError;
pub use experiment::{Experiment, HugePages, Setup, Under};
pub use guest_run::{GuestRun, ObjectSeen, PageSeen, SliceSeen};
pub use kernel::kept_kernel;
pub use prepare::{Lab, prepare};
pub use session::{Event, Session};
pub use virtual_machine::{Size, Virtual};
