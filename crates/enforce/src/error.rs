//! What can go wrong before the program starts.

use std::path::Path;

/// Why a program cannot be run under a placement: one line, what, where and the mend.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct EnforceError {
    message: String,
    not_found: bool,
}

impl EnforceError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            not_found: false,
        }
    }

    /// A wrong argument: one line.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            not_found: true,
        }
    }

    pub(crate) fn io(what: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::new(format!("cannot {what} {}: {error}", path.display()))
    }

    /// Whether the program does not exist: a shell says 127.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.not_found
    }
}
