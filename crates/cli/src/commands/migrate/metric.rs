//! The command that prints a metric of a running process.

use super::Arguments;
use anyhow::anyhow;
use nodewise_linux::signals::{self, SIGTERM, Signals};
use nodewise_linux::{Host, memfd};
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long the command may take.
const LIMIT: Duration = Duration::from_secs(60);
/// Pause between two looks at it.
const PAUSE: Duration = Duration::from_millis(5);
/// A rate of nothing, of an idle period, counts as this part of the rate at the beginning.
const IDLE: f64 = 1e-3;

/// Why a measurement came to nothing.
pub enum Stopped {
    /// A signal asked for it.
    Asked,
    /// The process has ended.
    Ended,
    /// The command printed no number, or cannot be run.
    Failed(anyhow::Error),
}

/// A metric as the arguments ask for it.
pub struct Metric<'a> {
    pub arguments: &'a Arguments,
    pub command: &'a str,
    pub signals: &'a Signals,
}

impl Metric<'_> {
    /// The number after a period; of a counter, by how much it grew per second.
    pub fn measured(&self) -> Result<f64, Stopped> {
        let found = self.measured_at_all();
        match found {
            Err(Stopped::Asked) => found,
            _ if !is_there(self.arguments.pid()) => Err(Stopped::Ended),
            _ => found,
        }
    }

    fn measured_at_all(&self) -> Result<f64, Stopped> {
        let first = self.arguments.counter.then(|| self.printed()).transpose()?;
        let begun = Instant::now();
        if self.signals.wait(self.arguments.period).is_some() {
            return Err(Stopped::Asked);
        }
        let last = self.printed()?;
        let value = first.map_or(last, |first| (last - first) / begun.elapsed().as_secs_f64());
        match self.arguments.lowest || value >= 0.0 {
            true => Ok(value),
            false => Err(failed(format!(
                "{value} is below 0; where the largest number is best, it is a rate (--lowest: the smallest is best)"
            ))),
        }
    }

    /// A cost of a value: what is to be large counts by its inverse, as a rate does. `before`: the value before any move.
    pub fn cost(&self, value: f64, before: f64) -> f64 {
        let least = (IDLE * before).max(f64::MIN_POSITIVE.sqrt());
        if self.arguments.lowest {
            value
        } else {
            1.0 / value.max(least)
        }
    }

    /// The last line as a number. The command has a process group of its own, which ends with it: a signal to us, as
    /// Ctrl-C is, ends both.
    fn printed(&self) -> Result<f64, Stopped> {
        let mut printed = memfd::create(c"metric").map_err(failed)?;
        let mut shell = Command::new("sh");
        shell
            .args(["-c", self.command])
            .stdin(Stdio::null())
            .process_group(0);
        shell.stdout(printed.try_clone().map_err(failed)?);
        self.signals.before_exec(&mut shell);
        let mut child = shell.spawn().map_err(|e| failed(format!("sh: {e}")))?;
        let until = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break Ok(status);
            }
            if self.signals.wait(PAUSE).is_some() {
                break Err(Stopped::Asked);
            }
            if Instant::now() >= until {
                break Err(failed(format!(
                    "the command has not ended after {} s",
                    LIMIT.as_secs()
                )));
            }
        };
        let status = match status {
            Ok(status) => status,
            Err(why) => {
                signals::send_to_group(child.id(), SIGTERM);
                let _ = child.kill();
                let _ = child.wait();
                return Err(why);
            }
        };
        if self.signals.wait(Duration::ZERO).is_some() {
            return Err(Stopped::Asked);
        }
        if !status.success() {
            return Err(failed(format!("the command ended with {status}")));
        }
        let mut bytes = Vec::new();
        let read = printed
            .rewind()
            .and_then(|()| printed.take(1 << 16).read_to_end(&mut bytes));
        read.map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes);
        let last = text
            .lines()
            .rfind(|l| !l.trim().is_empty())
            .unwrap_or_default()
            .trim();
        let number = last.parse::<f64>().ok().filter(|n| n.is_finite());
        number.ok_or_else(|| failed(format!("the last line that it printed is no number: `{last}`")))
    }
}

fn failed(why: impl std::fmt::Display) -> Stopped {
    Stopped::Failed(anyhow!("--metric: {why}"))
}

/// Whether the process has memory: one that has ended, and is not waited for, has none.
pub fn is_there(pid: u32) -> bool {
    Host::default().status(pid).is_ok_and(|s| s.resident > 0)
}
