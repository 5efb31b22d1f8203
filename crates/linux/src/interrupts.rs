//! Orderly end on Ctrl-C: signals that would end this process are accepted while children run, and between children.

use crate::signals::{self, Signals};
use std::cell::Cell;
use std::io;
use std::process::{Command, ExitStatus};
use std::time::Duration;

const ENDING: [i32; 3] = [signals::SIGHUP, signals::SIGINT, signals::SIGTERM];

/// Blocks the signals that would end this process, as long as this value lives. Its owner checks [`Interrupts::taken`]
/// between two steps.
pub struct Interrupts {
    signals: Signals,
    taken: Cell<Option<i32>>,
}

impl Interrupts {
    /// Blocks the signals from here on. Call it before starting threads, or signals may reach those.
    ///
    /// # Errors
    /// As the kernel answers.
    pub fn hold() -> io::Result<Self> {
        let watched = [&ENDING[..], &[signals::SIGCHLD]].concat();
        Ok(Self {
            signals: Signals::block(&watched)?,
            taken: Cell::new(None),
        })
    }

    /// The first signal that would have ended this process, if there was one.
    #[must_use]
    pub fn taken(&self) -> Option<i32> {
        while self.taken.get().is_none() {
            let signal = self.signals.wait(Duration::ZERO)?;
            self.take(signal.number);
        }
        self.taken.get()
    }

    /// Runs a child to its end, and calls `look` every `pause` meanwhile. Signals are forwarded to the child, except
    /// for those from the terminal, which it gets directly.
    ///
    /// # Errors
    /// The child cannot be started or waited for.
    pub fn run(
        &self,
        command: &mut Command,
        pause: Duration,
        mut look: impl FnMut(u32),
    ) -> io::Result<ExitStatus> {
        self.signals.before_exec(command);
        let mut child = command.spawn()?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            match self.signals.wait(pause) {
                None => look(child.id()),
                Some(signal) => {
                    self.take(signal.number);
                    if ENDING.contains(&signal.number) && !signal.by_kernel {
                        signals::send(child.id(), signal.number);
                    }
                }
            }
        }
    }

    fn take(&self, number: i32) {
        if ENDING.contains(&number) {
            self.taken.set(Some(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_reaches_the_child_and_is_remembered() {
        let interrupts = Interrupts::hold().unwrap();
        let mut sleep = Command::new("/bin/sleep");
        let mut calls = 0;
        // To this thread alone: the others of the tests have not blocked it.
        let raise_signal = |_| {
            calls += 1;
            // SAFETY: a signal to the calling thread, which holds it back.
            unsafe { libc::raise(signals::SIGTERM) };
        };
        let status = interrupts.run(sleep.arg("600"), Duration::from_millis(20), raise_signal);
        assert_eq!(shell(status), 128 + signals::SIGTERM);
        assert!(calls >= 1 && interrupts.taken() == Some(signals::SIGTERM));
    }

    fn shell(status: io::Result<ExitStatus>) -> i32 {
        i32::from(crate::child::shell_status(status.unwrap()))
    }

    #[test]
    fn a_child_has_the_mask_from_before() {
        let interrupts = Interrupts::hold().unwrap();
        let mut grep = Command::new("/bin/grep");
        grep.args(["-q", "SigBlk:.0000000000000000", "/proc/self/status"]);
        let status = interrupts.run(&mut grep, Duration::from_secs(9), |_| ());
        assert!(status.unwrap().success() && interrupts.taken().is_none());
    }
}
