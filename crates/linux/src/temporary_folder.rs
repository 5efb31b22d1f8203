//! A temporary folder that is removed at its owner's end; if the owner was killed, the next one of the same kind removes it.

use crate::lock;
use std::fs::{DirBuilder, DirEntry, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Age up to which an unlocked folder is kept: its owner may not have locked it yet.
const UNLOCKED_GRACE: Duration = Duration::from_secs(60);

/// The folder, with a lock that is held as long as its owner lives.
#[derive(Debug)]
pub struct TemporaryFolder {
    path: PathBuf,
    lock: File,
}

impl TemporaryFolder {
    /// Creates a folder `nodewise-KIND-…` in the system's folder for temporary files; only this user can enter it.
    ///
    /// # Errors
    /// It cannot be created; the message names the folder and the remedy.
    pub fn new(kind: &str) -> io::Result<Self> {
        let parent = std::env::temp_dir();
        Self::below(&parent, kind).map_err(|error| {
            let text = format!("cannot write to {}: {error}; set TMPDIR", parent.display());
            io::Error::new(error.kind(), text)
        })
    }

    /// Creates it in this folder.
    ///
    /// # Errors
    /// As the kernel answers.
    pub fn below(parent: &Path, kind: &str) -> io::Result<Self> {
        let prefix = format!("nodewise-{kind}-");
        remove_abandoned(parent, &prefix);
        let name = |n| parent.join(format!("{prefix}{}-{n}", std::process::id()));
        // A killed process may have left a folder with the identifier that this process has now.
        let exists = |path: &PathBuf| path.symlink_metadata().is_ok();
        let path = (0..).map(name).find(|path| !exists(path)).unwrap_or_default();
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = Self {
            lock: lock::open_folder(&path).inspect_err(|_| drop(std::fs::remove_dir(&path)))?,
            path,
        };
        // A file system without locks cannot tell an abandoned folder: none is removed there.
        match lock::try_exclusive(&folder.lock) {
            Ok(false) => Err(ErrorKind::WouldBlock.into()),
            _ => Ok(folder),
        }
    }

    /// Its path, valid until this is dropped.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Removes the folders of this kind that no process has locked, if permissions allow it.
fn remove_abandoned(parent: &Path, prefix: &str) {
    let old = |entry: &DirEntry| {
        let made = entry.metadata().and_then(|m| m.modified());
        made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > UNLOCKED_GRACE))
    };
    let free =
        |path: &Path| lock::open_folder(path).is_ok_and(|f| lock::try_exclusive(&f).is_ok_and(|free| free));
    for entry in parent.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = name
            .strip_prefix(prefix)
            .is_some_and(|numbers| numbers.chars().all(|c| c == '-' || c.is_ascii_digit()));
        if ours && entry.file_type().is_ok_and(|t| t.is_dir()) && old(&entry) && free(&entry.path()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn age(path: &Path) {
        let then = SystemTime::now() - 2 * UNLOCKED_GRACE;
        lock::open_folder(path).unwrap().set_modified(then).unwrap();
    }

    #[test]
    fn a_folder_goes_with_its_owner_or_with_the_next_of_its_kind() {
        let parent = TemporaryFolder::new("temporary-folder-test").unwrap();
        let below = |kind| TemporaryFolder::below(parent.path(), kind).unwrap();
        let abandoned = parent.path().join("nodewise-kind-1-0");
        let young = parent.path().join("nodewise-kind-2-0");
        let foreign = parent.path().join("nodewise-kind-of-another");
        for path in [&abandoned, &young, &foreign] {
            std::fs::create_dir(path).unwrap();
            std::fs::write(path.join("file"), "").unwrap();
        }
        let held = below("kind");
        for path in [&abandoned, &foreign, &held.path().to_owned()] {
            age(path);
        }
        let (one, other) = (below("kind"), below("kind"));
        assert_ne!(one.path(), other.path());
        assert!(!abandoned.exists());
        assert!([&young, &foreign].iter().all(|path| path.exists()));
        assert!(held.path().exists(), "its owner lives");
        let path = one.path().to_owned();
        std::fs::write(path.join("file"), "").unwrap();
        drop(one);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_error() {
        let error = TemporaryFolder::below(Path::new("/proc/none"), "kind").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
}
