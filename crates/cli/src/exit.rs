//! Exit statuses: 0 for success, 1 if a check failed, 2 for an error; otherwise the status of the child.

use std::process::ExitCode;

/// How a command ended that did not fail.
pub enum Outcome {
    /// The command did what it was asked.
    Done,
    /// A check did not pass.
    CheckFailed,
    /// A program was run: its exit status in a shell's form.
    Child(u8),
}

/// Prints an error in one line (what, where, and the remedy); returns the status to exit with.
pub fn code(result: anyhow::Result<Outcome>) -> ExitCode {
    match result {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::CheckFailed) => ExitCode::from(1),
        Ok(Outcome::Child(status)) => ExitCode::from(status),
        Err(error) => {
            let own = error.downcast_ref::<OwnFailure>().map_or(2, |f| f.status);
            crate::output::message(&format!("{error:#}"));
            ExitCode::from(own)
        }
    }
}

/// A failure of a command that otherwise passes its child's status through; its status is 125 to 127, as with `env` and
/// `timeout`.
#[derive(Debug)]
pub struct OwnFailure {
    /// 125 for our own failure, 126 if the program is not executable, 127 if it was not found.
    pub status: u8,
    /// The error message, in one line.
    pub message: String,
}

impl std::fmt::Display for OwnFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for OwnFailure {}
