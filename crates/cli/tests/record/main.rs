//! `nodewise record` on real programs.

mod advice;
mod behaviour;
mod contents;
mod emulated;
mod failures;
mod support;
