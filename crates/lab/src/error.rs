//! Errors before, during and after a laboratory run.

use std::fmt::Display;
use std::path::Path;

/// An error as one line: what, where, the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct LabError {
    status: u8,
    text: String,
}

impl LabError {
    /// An error of the laboratory itself: something is missing on this host, or the guest failed.
    pub(crate) fn own(text: impl Into<String>) -> Self {
        Self::with(125, text)
    }

    /// The time limit was reached; exit status as that of `timeout`.
    pub(crate) fn time(text: impl Into<String>) -> Self {
        Self::with(124, text)
    }

    /// An error in the arguments.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::with(2, text)
    }

    /// The command exists but cannot run.
    pub(crate) fn not_executable(text: impl Into<String>) -> Self {
        Self::with(126, text)
    }

    /// There is no such command.
    pub(crate) fn not_found(text: impl Into<String>) -> Self {
        Self::with(127, text)
    }

    /// `cannot read /some/file: No such file or directory`.
    pub(crate) fn io(doing: &str, path: &Path, error: &dyn Display) -> Self {
        Self::own(format!("cannot {doing} {}: {error}", path.display()))
    }

    fn with(status: u8, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
        }
    }

    /// The exit status: 2 for bad arguments, 124 when the time limit was reached, 126 and 127 as a shell uses them,
    /// else 125.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        self.status
    }
}
