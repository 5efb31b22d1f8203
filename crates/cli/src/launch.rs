//! Starts a command under a plan; shared by `run` and `balance`.

use crate::exit::OwnFailure;
use crate::output;
use nodewise_enforce::{EnforceError, empty_list};
use nodewise_linux::companion;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Refuses standard output as the file for the list of objects, because the placed processes append to that file.
pub fn check_objects(file: Option<&PathBuf>) -> anyhow::Result<()> {
    output::check_named("--objects", file, "each process of the program appends its own")
}

/// Creates the file for the objects, empty.
pub fn empty(file: &Path) -> anyhow::Result<PathBuf> {
    empty_list(file).map_err(|e| failure(125, format!("cannot write {}: {e}", file.display())))
}

/// Path of the library that is preloaded to place pages.
pub fn preload() -> anyhow::Result<PathBuf> {
    companion::find("libnodewise-preload.so").map_err(|e| failure(125, e.to_string()))
}

/// The error for a program that cannot be started; its status is 127 or 126 as in shells.
pub fn cannot_start(program: &OsStr, error: &std::io::Error) -> anyhow::Error {
    let status = if error.kind() == ErrorKind::NotFound {
        127
    } else {
        126
    };
    failure(status, format!("cannot start {}: {error}", program.display()))
}

#[allow(clippy::needless_pass_by_value)] // used with `map_err`
pub fn own_failure(error: EnforceError) -> anyhow::Error {
    let status = match (error.is_not_found(), error.is_not_executable()) {
        (true, _) => 127,
        (_, true) => 126,
        _ => 125,
    };
    failure(status, error.to_string())
}

/// A failure of our own with this exit status.
pub fn failure(status: u8, message: String) -> anyhow::Error {
    OwnFailure { status, message }.into()
}
