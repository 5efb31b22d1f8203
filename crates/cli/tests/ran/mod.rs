//! Runs of nodewise on a profile, and the document that it prints.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// What `nodewise COMMAND PROFILE ARGUMENTS…` came to.
pub fn nodewise(command: &str, profile: &Path, arguments: &[&str]) -> Output {
    let mut nodewise = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    let words = nodewise.arg(command).arg(profile).args(arguments);
    words.output().unwrap()
}

/// The document of a run with `--json`, which must succeed.
pub fn json(command: &str, profile: &Path, arguments: &[&str]) -> Value {
    let output = nodewise(command, profile, &[arguments, &["--json"]].concat());
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    serde_json::from_slice(&output.stdout).unwrap()
}
