//! Errors before the program starts.

use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NotFound,
    NotExecutable,
    Script,
    Foreign,
    Other,
}

/// Why a program cannot be run under a placement, in one line: the cause, the place, and the remedy.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct EnforceError {
    message: String,
    kind: Kind,
}

impl EnforceError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        let (message, kind) = (message.into(), Kind::Other);
        Self { message, kind }
    }

    /// An error in the arguments, in one line.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        let (message, kind) = (message.into(), Kind::NotFound);
        Self { message, kind }
    }

    pub(crate) fn not_executable(message: impl Into<String>) -> Self {
        let (message, kind) = (message.into(), Kind::NotExecutable);
        Self { message, kind }
    }

    pub(crate) fn script(message: impl Into<String>) -> Self {
        let (message, kind) = (message.into(), Kind::Script);
        Self { message, kind }
    }

    pub(crate) fn foreign(message: impl Into<String>) -> Self {
        let (message, kind) = (message.into(), Kind::Foreign);
        Self { message, kind }
    }

    pub(crate) fn io(what: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::new(format!("cannot {what} {}: {error}", path.display()))
    }

    /// Whether the program does not exist; a shell exits with 127 then.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind == Kind::NotFound
    }

    /// Whether the program exists and cannot be executed; a shell exits with 126 then.
    #[must_use]
    pub fn is_not_executable(&self) -> bool {
        self.kind == Kind::NotExecutable
    }

    /// Whether the program can be run, but not placed.
    pub(crate) fn is_foreign(&self) -> bool {
        self.kind == Kind::Foreign
    }

    pub(crate) fn is_script(&self) -> bool {
        self.kind == Kind::Script
    }
}
