//! Memory that has a name: files in the page cache, shared memory segments, memfds, huge pages, the memory of guests.
//!
//! **Purpose.** Says on which nodes it lies and who maps it ([`survey`]), and puts it on nodes ([`request`]), for
//! `nodewise files`. Such memory belongs to no process: it may have been brought in by a program that has ended, so it
//! is looked at through its file, not through who maps it.
//!
//! **Constraints.** Looking reads nothing from a disk and makes no page count as used. Placing moves pages and, where it
//! is told to, loads or drops them; their contents are the kernel's business throughout.
//!
//! **Non-goals.** Memory of one process alone (`nodewise-enforce`, `nodewise-diagnose`).

#![forbid(unsafe_code)]

pub mod entry;
mod gather;
pub mod guests;
mod mapped;
pub mod nodes;
pub mod pieces;
pub mod placing;
pub mod request;
pub mod residence;
mod shared_memory;
pub mod survey;
mod users;
mod windows;

pub use gather::{Found, gather};
pub use nodewise_linux::named::Kind;
pub use shared_memory::SharedMemory;
