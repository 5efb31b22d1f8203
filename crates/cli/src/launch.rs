//! Starting a command under a plan: what `run` and `balance` have in common.

use crate::exit::OwnFailure;
use nodewise_enforce::{EnforceError, Plan};
use nodewise_linux::companion;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The file for the objects, empty: the processes append to it.
pub fn empty(file: &Path) -> anyhow::Result<PathBuf> {
    std::fs::write(file, "")
        .and_then(|()| file.canonicalize())
        .map_err(|e| failure(125, format!("cannot write {}: {e}", file.display())))
}

/// The placing library.
pub fn preload() -> anyhow::Result<PathBuf> {
    companion::find("libnodewise-preload.so").map_err(|e| failure(125, e.to_string()))
}

/// A folder for the table and the summaries, removed at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(plan: &Plan) -> Result<Self, EnforceError> {
        let name = |n| std::env::temp_dir().join(format!("nodewise-run-{}-{n}", std::process::id()));
        // A killed run leaves its folder, and its process number may be ours now.
        let path = (0..).map(name).find(|path| !path.exists()).unwrap_or_default();
        let made = std::fs::create_dir(&path).and_then(|()| match &plan.table {
            Some(table) => std::fs::write(path.join("table"), table.to_bytes()),
            None => Ok(()),
        });
        made.map_err(|e| EnforceError::usage(format!("cannot write {}: {e}; set TMPDIR", path.display())))?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// 127 and 126 as shells have them.
pub fn cannot_start(program: &OsStr, error: &std::io::Error) -> anyhow::Error {
    let status = if error.kind() == ErrorKind::NotFound {
        127
    } else {
        126
    };
    failure(status, format!("cannot start {}: {error}", program.display()))
}

#[allow(clippy::needless_pass_by_value)] // a mapper of errors
pub fn own_failure(error: EnforceError) -> anyhow::Error {
    failure(if error.is_not_found() { 127 } else { 125 }, error.to_string())
}

/// One of our own, with its status.
pub fn failure(status: u8, message: String) -> anyhow::Error {
    OwnFailure { status, message }.into()
}
