//! What can go wrong before, in and after a laboratory.

use std::fmt::Display;
use std::path::Path;

/// One line: what, where, the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct LabError {
    status: u8,
    text: String,
}

impl LabError {
    /// Our own failure: something is missing on this host, or the guest broke.
    pub(crate) fn own(text: impl Into<String>) -> Self {
        Self::with(125, text)
    }

    /// Time ran out, as `timeout` says it.
    pub(crate) fn time(text: impl Into<String>) -> Self {
        Self::with(124, text)
    }

    /// An error in the arguments.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::with(2, text)
    }

    /// The command exists and cannot run.
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

    /// The status to exit with: 2 for bad arguments, 124 when time ran out, 126 and 127 as a shell has
    /// them, else 125.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        self.status
    }
}
