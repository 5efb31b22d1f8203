//! Errors that end a session.

use std::error::Error;

/// A message of one line: what failed, where, and how to fix it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct LiveError {
    message: String,
    scan_period: bool,
}

impl LiveError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            scan_period: false,
        }
    }

    /// The kernel's scan period cannot be set.
    pub(crate) fn scan_period(error: &(dyn Error + 'static)) -> Self {
        let cause = Self::chain(error).message;
        Self {
            message: format!(
                "the scan period cannot be set: {cause}; it lies in /sys/kernel/debug, which is root's: \
                 leave it as it is, or run as root with debugfs mounted"
            ),
            scan_period: true,
        }
    }

    /// The chosen sensor causes its own faults, so the kernel's scan period has no effect.
    pub(crate) fn without_scans(sensor: &str) -> Self {
        Self {
            message: format!(
                "there are no scans: accesses are sampled by {sensor}; leave it out, or --sensor hint-faults"
            ),
            scan_period: true,
        }
    }

    /// Whether it is about the option [`scan_period`](crate::Options::scan_period).
    #[must_use]
    pub fn is_about_scan_period(&self) -> bool {
        self.scan_period
    }

    /// Appends the chain of causes, which the `Display` of our errors leaves out.
    fn chain(error: &(dyn Error + 'static)) -> Self {
        let mut text = error.to_string();
        let mut error = error;
        while let Some(cause) = error.source() {
            text += &format!(": {cause}");
            error = cause;
        }
        Self::new(text)
    }

    /// The same error, prefixed by what was being done.
    pub(crate) fn context(doing: &str, error: &(dyn Error + 'static)) -> Self {
        Self::new(format!("{doing}: {}", Self::chain(error)))
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
    nodewise_observe::faults::Unavailable,
    nodewise_placement::PolicyError,
    nodewise_store::Error
);
