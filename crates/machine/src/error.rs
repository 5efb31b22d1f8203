//! Errors of machine descriptions.

/// Broad classes of [`MachineError`], for callers that react differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No machine of that name is shipped and no such file exists.
    Unknown,
    /// A file or sysfs entry could not be read.
    Unreadable,
    /// The text or the figures make no machine.
    Invalid,
}

/// One line: what, where, the remedy.
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

    /// Says where: `machines/mine.toml: …`.
    pub(crate) fn at(self, origin: &str) -> Self {
        Self::new(self.kind, format!("{origin}: {}", self.text))
    }

    /// The class of this error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}
