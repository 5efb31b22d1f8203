//! `nodewise record` on real programs.

mod advice;
mod allocations;
mod behaviour;
mod contents;
mod crowds;
mod emulated;
mod failures;
mod instructions;
mod interfaces;
mod lines;
mod loader;
mod names;
mod plain;
mod recovery;
mod stops;
mod support;
