//! Addresses to source frames and variables, and back: DWARF and ELF symbol tables of a module.
//!
//! **Purpose.** [`Module`] answers three questions about an executable or shared library: which source frames, inlined
//! ones included, are at an address; which code ranges belong to a source frame (so that a rule made from the
//! instrumented build is found in the plain one); and which static and thread-local variables there are. [`named_at`]
//! finds the name of a heap object on the source line that allocates it.
//!
//! **Constraints.** Reads only the files it is given. All addresses are those of the module as linked: subtract the
//! load bias first.
//!
//! **Non-goals.** Unwinding, running processes.

#![forbid(unsafe_code)]

mod avx512;
mod called;
mod declarators;
mod function;
mod marked;
mod members;
mod module;
mod naming;
mod ranges;
mod schedule;
mod statements;
mod variables;

pub use avx512::needs_avx512;
pub use declarators::{Named, named_at};
pub use function::base_name;
pub use members::assigned_member;
pub use module::{Module, SymbolError};
pub use naming::{assigned_variable, declared_variable};
pub use ranges::CodeRange;
pub use variables::Variable;
