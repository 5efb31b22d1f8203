//! `nodewise record` on real programs.

mod behaviour;
mod contents;
mod emulated;
mod failures;
mod support;
