//! Exit statuses: 0 done, 1 a check failed, 2 an error; the child's own status where one ran.

use std::process::ExitCode;

/// How a command that did not fail ended.
pub enum Outcome {
    /// Did what it was asked.
    Done,
    /// A check came out negative.
    CheckFailed,
    /// Ran a program: its exit status as a shell gives it.
    Child(u8),
}

/// Prints an error as one line (what, where, the mend) and gives the status to exit with.
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

/// A failure of a command that otherwise passes its child's status through (125–127, as `env` and
/// `timeout` do).
#[derive(Debug)]
pub struct OwnFailure {
    /// 125 ours, 126 not executable, 127 not found.
    pub status: u8,
    /// One line.
    pub message: String,
}

impl std::fmt::Display for OwnFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for OwnFailure {}
