//! Addresses to source frames and variables, and back: DWARF and ELF symbol tables of a module.
//!
//! **Purpose.** [`Module`] answers three questions about one executable or shared library: which
//! inline-expanded source frames stand at an address, which code ranges a source frame became (so a
//! rule made on the instrumented build finds its place in the plain one), and which static and
//! thread-local variables there are. [`named_at`] reads the name of a heap object off the
//! line that allocates it.
//!
//! **Constraints.** Reads the files it is given and nothing else. All addresses are the module's own,
//! as linked: subtract the load bias first.
//!
//! **Non-goals.** Unwinding, running processes.

#![forbid(unsafe_code)]

mod avx512;
mod declarators;
mod function;
mod members;
mod module;
mod naming;
mod ranges;
mod variables;

pub use avx512::needs_avx512;
pub use declarators::{Named, named_at};
pub use function::base_name;
pub use members::assigned_member;
pub use module::{Module, SymbolError};
pub use naming::{assigned_variable, declared_variable};
pub use ranges::CodeRange;
pub use variables::Variable;
