//! Diagnosis without a recording: how well running processes are placed ([`process`], behind `nodewise check`), and
//! which observers and actuators work on this host, with a remedy for those that do not ([`host`], behind
//! `nodewise doctor`).

pub mod host;
pub mod process;
