//! A folder for recordings and maps, removed when dropped; what a killed run left is removed by the next.

use anyhow::Context;
use nodewise_linux::lock;
use std::fs::File;
use std::path::{Path, PathBuf};

const NAME: &str = "nodewise-validate-";

/// The folder, and a lock on it for as long as its owner lives.
pub struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Below the folder for temporary files.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> anyhow::Result<Self> {
        let parent = std::env::temp_dir();
        remove_abandoned(&parent);
        let path = parent.join(format!("{NAME}{}", std::process::id()));
        let made = std::fs::create_dir(&path).and_then(|()| File::open(&path));
        let folder = made.with_context(|| format!("cannot create {}; set TMPDIR", path.display()))?;
        lock::try_exclusive(&folder)?;
        Ok(Self { path, _lock: folder })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.path));
    }
}

/// Removes the folders that no process has locked, where permissions allow it.
fn remove_abandoned(parent: &Path) {
    for entry in parent.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix(NAME).unwrap_or_default();
        let ours = number.parse::<u32>().is_ok() && entry.file_type().is_ok_and(|t| t.is_dir());
        if ours && File::open(entry.path()).is_ok_and(|f| lock::try_exclusive(&f).is_ok_and(|free| free)) {
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}
