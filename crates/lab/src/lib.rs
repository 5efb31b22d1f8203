//! The laboratory: a real kernel on a virtual machine with the nodes, distances and memory of any machine file, and
//! exact counts of accesses by CPU node and memory node.
//!
//! **Purpose.** [`VirtualMachine`] scales a machine to what this host can emulate. [`prepare`] finds what is needed,
//! and checks everything that can be checked without booting. [`Lab::run`] boots QEMU, runs a command under each of
//! several placements, and returns the counts.
//!
//! **Constraints.** Works without KVM, without root, and offline once a kernel is cached. Nothing is left behind, even
//! if this process is killed: QEMU ends with its parent, and all its files are inherited descriptors.
//!
//! **Non-goals.** Time: the guest's clock says nothing about the cost of remote memory.

#![forbid(unsafe_code)]

mod attribution;
mod calibration;
mod closure;
mod command;
mod control;
mod cpio;
mod disk;
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
pub use experiment::{Experiment, HugePages, RunPlacement, Setup};
pub use guest_run::{GuestObject, GuestPage, GuestRun, GuestSlice};
pub use kernel::cached_kernel;
pub use prepare::{Lab, prepare};
pub use session::{Event, Session};
pub use virtual_machine::{Size, VirtualMachine};
