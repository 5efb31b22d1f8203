//! Finds the profile that a command uses by default, and names for new ones.

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::FILE;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Prefix of a profile's directory unless the user names it.
const FOLDER_PREFIX: &str = "nodewise-profile";

/// The most recently written profile in `folder`; `folder` itself if it is one.
///
/// # Errors
/// When there is no profile, or the folder cannot be read.
pub fn latest(folder: &Path) -> Result<PathBuf> {
    if folder.join(FILE).is_file() {
        return Ok(folder.to_owned());
    }
    let entries = std::fs::read_dir(folder).map_err(|e| Error::io(folder, "read", &e))?;
    let newest = entries
        .flatten()
        .filter_map(|e| Some((written(&e.path())?, e.path())))
        .max();
    newest.map(|(_, path)| path).ok_or_else(|| {
        let message = "holds no profile; make one with `nodewise record`, or name its directory";
        Error::new(ErrorKind::Missing, format!("{}: {message}", folder.display()))
    })
}

/// When the profile at `path` was written, if it is one.
fn written(path: &Path) -> Option<SystemTime> {
    let manifest = std::fs::metadata(path.join(FILE)).ok()?;
    let parquet = |e: std::fs::DirEntry| e.path().extension().is_some_and(|x| x == "parquet");
    let profile = std::fs::read_dir(path).ok()?.flatten().any(parquet);
    if profile { manifest.modified().ok() } else { None }
}

/// The first unused name for a new profile in `folder`: `nodewise-profile-1`, `-2`, …
#[must_use]
pub fn unused(folder: &Path) -> PathBuf {
    let names = (1u64..).map(|n| folder.join(format!("{FOLDER_PREFIX}-{n}")));
    names
        .into_iter()
        .find(|p| !p.exists())
        .expect("numbers do not run out")
}
