//! The regular files at given paths, and in the folders among them.

use crate::mapped::Mapped;
use anyhow::{Context, bail};
use nodewise_linux::{Host, dax, page_cache};
use std::collections::HashSet;
use std::fs::{File, FileType};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A file that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its path, as it was given or below the folder that was; of shared memory without a path what it is called.
    pub path: PathBuf,
    /// Size in bytes when it was found.
    pub size: u64,
    /// Whether its path was given, and not that of a folder above it.
    pub named: bool,
    /// Of shared memory that has no path: where a process maps it.
    pub(crate) mapped: Option<Mapped>,
}

impl Found {
    /// Opens it for reading. A file of a folder that has become a link meanwhile is not followed.
    ///
    /// # Errors
    /// As the kernel answers, or it is no regular file any more.
    pub fn open(&self) -> io::Result<File> {
        match &self.mapped {
            Some(object) => object.open(&Host::default()),
            None => page_cache::open(&self.path, self.named),
        }
    }
}

/// The regular files at these paths; of a folder all that have something in them, below it on the same file system.
/// Links in a folder are not followed. A file with several of the paths is one. What cannot be listed, and other file
/// systems below a folder, are added to `failed`.
///
/// # Errors
/// A path does not exist, or is neither a file nor a folder.
pub fn gather(paths: &[PathBuf], failed: &mut Vec<String>) -> anyhow::Result<Vec<Found>> {
    let (mut files, mut seen) = (Vec::new(), HashSet::new());
    for path in paths {
        let metadata =
            std::fs::metadata(path).with_context(|| format!("cannot look at {}", path.display()))?;
        if metadata.is_file() {
            if seen.insert((metadata.dev(), metadata.ino())) {
                files.push(Found {
                    path: path.clone(),
                    size: metadata.len(),
                    named: true,
                    mapped: None,
                });
            }
        } else if metadata.is_dir() {
            below(path, &mut files, &mut seen, failed)?;
        } else if let Some(why) = dax::stays(&Host::default(), path) {
            bail!("{}: is {why}", path.display());
        } else {
            bail!(
                "{}: is {}, and has no pages in the page cache; name a file or a folder",
                path.display(),
                kind(metadata.file_type())
            );
        }
    }
    Ok(files)
}

fn kind(of: FileType) -> &'static str {
    match () {
        () if of.is_fifo() => "a pipe",
        () if of.is_socket() => "a socket",
        () => "a device",
    }
}

/// The files of a folder and of those in it, by their paths.
fn below(
    folder: &Path,
    files: &mut Vec<Found>,
    seen: &mut HashSet<(u64, u64)>,
    failed: &mut Vec<String>,
) -> anyhow::Result<()> {
    let device = folder.metadata()?.dev();
    let (mut folders, first) = (vec![folder.to_owned()], files.len());
    while let Some(next) = folders.pop() {
        let entries = match std::fs::read_dir(&next) {
            Ok(entries) => entries,
            Err(error) if next == folder => bail!("cannot list {}: {error}", folder.display()),
            Err(error) => {
                failed.push(format!("{}: {error}", next.display()));
                continue;
            }
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(metadata) = path.symlink_metadata() else {
                continue;
            };
            if metadata.is_dir() && metadata.dev() == device {
                folders.push(path);
            } else if metadata.is_dir() {
                failed.push(format!("{}: another file system; name it too", path.display()));
            } else if metadata.is_file()
                && metadata.len() > 0
                && seen.insert((metadata.dev(), metadata.ino()))
            {
                files.push(Found {
                    path,
                    size: metadata.len(),
                    named: false,
                    mapped: None,
                });
            }
        }
    }
    files[first..].sort_by(|a, b| a.path.cmp(&b.path));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_two_names_is_one_and_links_are_not_followed() {
        let folder = std::env::temp_dir().join(format!("nodewise-gather-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("below")).unwrap();
        let file = folder.join("below/b");
        std::fs::write(&file, "1").unwrap();
        std::fs::write(folder.join("empty"), "").unwrap();
        std::fs::hard_link(&file, folder.join("c")).unwrap();
        std::os::unix::fs::symlink("/proc/kcore", folder.join("link")).unwrap();
        let mut failed = Vec::new();
        let found = gather(&[folder.clone(), file.clone()], &mut failed).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!((found.len(), found[0].size, found[0].named), (1, 1, false));
        assert!(failed.is_empty(), "{failed:?}");
    }

    #[test]
    fn what_is_no_file_is_called_what_it_is() {
        let refused = gather(&["/dev/null".into()], &mut Vec::new());
        assert!(refused.unwrap_err().to_string().contains("is a device"));
        assert!(gather(&["/nonexistent-file".into()], &mut Vec::new()).is_err());
    }
}
