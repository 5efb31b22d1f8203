//! Errors of machine descriptions.

/// Classes of [`MachineError`], for callers that handle them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No machine of that name is shipped and no such file exists.
    Unknown,
    /// A file or sysfs entry could not be read.
    Unreadable,
    /// The text or the figures do not describe a valid machine.
    Invalid,
}

/// An error as one line: what, where, the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct MachineError {
    kind: ErrorKind,
    text: String,
}

impl MachineError {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, text)
    }

    /// Prefixes the message with its origin: `machines/mine.toml: …`.
    pub(crate) fn at(self, origin: &str) -> Self {
        Self::new(self.kind, format!("{origin}: {}", self.text))
    }

    /// The class of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}
