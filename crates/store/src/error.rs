//! Errors of reading and writing profiles.

use nodewise_input::one_line;
use std::fmt::Display;
use std::path::Path;

/// An error in one line: what is wrong, where, and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// The kind of an error, for callers that act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no profile at the path.
    Missing,
    /// There is something at the path already.
    Exists,
    /// The profile was written by a newer version.
    Newer,
    /// The profile is damaged: a checksum, a size or a reference is wrong.
    Damaged,
    /// The profile to be written contradicts itself.
    Invalid,
    /// The operating system refused an operation on a file.
    Io,
}

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    pub(crate) fn io(path: &Path, doing: &str, error: &std::io::Error) -> Self {
        Self::new(
            ErrorKind::Io,
            format!("{}: cannot {doing}: {error}", path.display()),
        )
    }

    pub(crate) fn damaged(path: &Path, what: impl Display) -> Self {
        let what = one_line(&what.to_string());
        Self::new(
            ErrorKind::Damaged,
            format!(
                "{}: damaged: {what}; record again, or restore it from a copy",
                path.display()
            ),
        )
    }

    pub(crate) fn invalid(what: impl Display) -> Self {
        Self::new(ErrorKind::Invalid, format!("profile not written: {what}"))
    }
}
