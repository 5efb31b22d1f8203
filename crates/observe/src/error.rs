//! Why something cannot be recorded here, in one line with its remedy.

use std::fmt::Display;
use std::path::Path;
use std::process::Command;

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
    /// The program does not exist.
    NotFound,
    /// The program exists and cannot be run.
    NotExecutable,
    /// The program is not built to count its accesses.
    NotInstrumented,
    /// There is no emulator that supports what is asked for.
    NoEmulator,
    /// This kernel, or this user, does not permit this kind of observation.
    Unavailable,
    /// The kernel's scan period cannot be set.
    ScanPeriod,
    /// The profile or a raw file cannot be read or written.
    Io,
}

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

    /// Adds to the message that the program has run and its raw counters are still in `folder`.
    pub(crate) fn with_counters_left(self, folder: &Path) -> Self {
        let folder = nodewise_input::shell_word(folder.display().to_string());
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

/// The error for a command that could not be started, with the kind that determines the exit status.
pub(crate) fn cannot_start(command: &Command, error: &std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorKind::NotFound,
        _ => ErrorKind::NotExecutable,
    };
    Error::new(
        kind,
        format!("cannot run {}: {error}", command.get_program().to_string_lossy()),
    )
}
