//! What can go wrong with a profile on disk.

use nodewise_input::one_line;
use std::fmt::Display;
use std::path::Path;

/// An error in one line: what, where, the mend.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// What sort of error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// There is no profile there.
    Missing,
    /// There is something there already.
    Exists,
    /// The profile was written by a newer version.
    Newer,
    /// The profile contradicts itself.
    Damaged,
    /// What was to be written contradicts itself.
    Invalid,
    /// The operating system said no.
    Io,
}

/// The result of everything here.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// What sort of error it is.
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
