//! Errors that end a session.

use std::error::Error;

/// A message of one line: what failed, where, and how to fix it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LiveError(String);

impl LiveError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Appends the chain of causes, which the `Display` of our errors leaves out.
    fn chain(error: &(dyn Error + 'static)) -> Self {
        let mut text = error.to_string();
        let mut error = error;
        while let Some(cause) = error.source() {
            text += &format!(": {cause}");
            error = cause;
        }
        Self(text)
    }

    /// The same, prefixed by what was being done.
    pub(crate) fn context(doing: &str, error: &(dyn Error + 'static)) -> Self {
        Self(format!("{doing}: {}", Self::chain(error)))
    }
}

macro_rules! from {
    ($($error:ty),*) => {
        $(impl From<$error> for LiveError {
            fn from(error: $error) -> Self {
                Self::chain(&error)
            }
        })*
    };
}

from!(
    nodewise_machine::MachineError,
    nodewise_observe::Error,
    nodewise_observe::faults::NotHere,
    nodewise_placement::PolicyError,
    nodewise_store::Error
);
