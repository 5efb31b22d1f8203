//! Thin safe wrappers over kernel interfaces; the only crate with unsafe system calls.
//!
//! **Purpose.** One module per kernel interface, each a safe function per system call.
//!
//! **Constraints.** No policy and no state: what to ask for is decided elsewhere. Every `unsafe` block
//! says why it is sound.
//!
//! **Non-goals.** A full reading of `/proc`: only what placement needs, from an injected root.

pub mod affinity;
pub mod affinity_guard;
pub mod child;
mod cleanup_process;
pub mod clock;
pub mod companion;
mod control_group;
mod cpu_model;
pub mod cpu_ticks;
pub mod cpuset;
pub mod damon;
pub mod dax;
pub mod faults;
pub mod file_pages;
pub mod files;
pub mod frames;
mod free_memory;
pub mod freeze;
pub mod futex;
mod held_setting;
mod host;
mod huge_mappings;
pub mod interleave_weights;
pub mod interrupts;
pub mod loads;
pub mod lock;
pub mod mapping;
pub mod maps;
pub mod mark;
pub mod memfd;
mod memory_left;
pub mod mempolicy;
pub mod named;
pub mod node_mask;
pub mod node_memory;
pub mod numa_maps;
pub mod page_cache;
mod page_moves;
pub mod pagemap;
pub mod pages;
pub mod peer;
pub mod perf;
pub mod plugin;
pub mod privileges;
pub mod probe;
pub mod process;
pub mod qemu;
pub mod resctrl;
pub mod scan;
pub mod signals;
#[cfg(test)]
mod sleeper;
pub mod soft_dirty;
pub mod stdout;
pub mod switches;
mod temporary_folder;
pub mod tracepoint;
pub mod userfaultfd;

pub use control_group::ControlGroup;
pub use free_memory::FreeMemory;
pub use held_setting::HeldSetting;
pub use host::{Host, ReadError};
pub use page_moves::PageMoves;
pub use temporary_folder::TemporaryFolder;
