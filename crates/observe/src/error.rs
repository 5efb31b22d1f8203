//! What can go wrong with a recording.

use std::fmt::Display;
use std::path::Path;

/// An error in one line: what, where, the remedy.
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
    /// The program is not there.
    NotFound,
    /// The program is there and cannot be run.
    NotExecutable,
    /// The program does not count its accesses.
    NotInstrumented,
    /// There is no emulator that can do what is asked for.
    NoEmulator,
    /// This kernel, or this user, cannot observe so.
    NotHere,
    /// The profile or a raw file cannot be read or written.
    Io,
}

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

    /// The program has run, and its raw counters are still there.
    pub(crate) fn with_counters_left(self, folder: &Path) -> Self {
        let folder = nodewise_input::shell_word(&folder.display().to_string());
        Self {
            message: format!("{self}; what was counted is kept for: nodewise record --recover {folder}"),
            ..self
        }
    }

    pub(crate) fn raw(path: &Path, cause: &dyn Display) -> Self {
        Self::new(ErrorKind::Io, format!("{}: {cause}", path.display()))
    }
}

impl From<nodewise_store::Error> for Error {
    fn from(error: nodewise_store::Error) -> Self {
        Self::new(ErrorKind::Io, error.to_string())
    }
}
