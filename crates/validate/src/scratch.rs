//! A temporary folder for recordings and maps, removed when dropped. The folder of a killed run is removed by the next
//! run.

use anyhow::Context;
use nodewise_linux::lock;
use std::fs::File;
use std::path::{Path, PathBuf};

const NAME: &str = "nodewise-validate-";

/// The folder, with a lock that is held as long as the owning process lives.
pub struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Creates a folder in the system's folder for temporary files.
    ///
    /// # Errors
    /// The folder cannot be created.
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

/// Removes the folders of this kind that no process has locked, if permissions allow it.
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
