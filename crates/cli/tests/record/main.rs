//! `nodewise record` on real programs.

mod behaviour;
mod contents;
mod failures;
mod support;
