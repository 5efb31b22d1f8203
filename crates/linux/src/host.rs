//! The root of `/proc` and `/sys`, which tests replace by copies.

use std::fs::File;
use std::io;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The roots of procfs and sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    root: PathBuf,
}

/// A kernel file that could not be read or parsed.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {cause}", path.display())]
pub struct ReadError {
    path: PathBuf,
    cause: io::Error,
}

impl ReadError {
    /// The kernel's reason; `InvalidData` when the text makes no sense.
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.cause.kind()
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::at(Path::new("/"))
    }
}

impl Host {
    /// A host whose `proc` and `sys` lie below `root`; [`Host::default`] is the live one.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
        }
    }

    /// Whether this is the running machine rather than a copy of another's files.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The root of sysfs.
    #[must_use]
    pub fn sys(&self) -> PathBuf {
        self.root.join("sys")
    }

    /// The folder for notes that are valid until the next boot.
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// The root of procfs.
    #[must_use]
    pub fn proc(&self) -> PathBuf {
        self.root.join("proc")
    }

    /// The text of a file given as `proc/…` or `sys/…`. Bytes that are no UTF-8 (file names) are
    /// replaced.
    ///
    /// # Errors
    /// As the kernel answers.
    pub fn read(&self, below: &str) -> Result<String, ReadError> {
        let path = self.path(below);
        // The kernel's files have no known size, and most are small: two reads instead of seven further system calls.
        let mut bytes = Vec::with_capacity(4096);
        let read = File::open(&path).and_then(|file| file.take(u64::MAX).read_to_end(&mut bytes));
        match read.map(|_| bytes) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(cause) => Err(ReadError { path, cause }),
        }
    }

    /// The trimmed text of a one-line file, if it can be read.
    #[must_use]
    pub fn line(&self, below: &str) -> Option<String> {
        self.read(below).ok().map(|text| text.trim().to_owned())
    }

    /// Memory that programs can still allocate, bytes.
    #[must_use]
    pub fn available_memory(&self) -> Option<u64> {
        let text = self.read("proc/meminfo").ok()?;
        let value = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
        let kilobytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes * 1024)
    }

    /// The names in a folder, sorted.
    ///
    /// # Errors
    /// As the kernel answers.
    pub fn names(&self, below: &str) -> Result<Vec<String>, ReadError> {
        let path = self.path(below);
        let entries = std::fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.map_err(|cause| ReadError { path, cause })?;
        let mut names: Vec<String> = entries
            .iter()
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Where a file given as `proc/…` or `sys/…` is.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    pub(crate) fn odd(&self, below: &str, why: &str) -> ReadError {
        ReadError {
            path: self.path(below),
            cause: io::Error::new(io::ErrorKind::InvalidData, why),
        }
    }
}
