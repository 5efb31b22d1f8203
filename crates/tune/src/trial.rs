//! Runs a command to measure its wall time, and checks that its output is that of the other runs.

use crate::event::note;
use crate::{Event, Listener};
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hasher};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// A command line and environment that run the program.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Environment variables that are set in addition to the inherited ones.
    pub environment: Vec<(&'static str, String)>,
}

/// The result of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunResult {
    /// Wall time of the run, seconds.
    pub seconds: f64,
    /// Hash of standard output.
    pub output: u64,
}

impl Invocation {
    /// The unchanged command, without further environment variables.
    pub fn plain(command: &[OsString]) -> Self {
        Self {
            command: command.to_vec(),
            environment: Vec::new(),
        }
    }

    /// The process to start, with empty standard input.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs the command once; its output is captured and not shown.
    ///
    /// # Errors
    /// The command cannot be started, or fails; the message contains the last line of its standard error.
    pub fn run(&self) -> anyhow::Result<RunResult> {
        let mut command = self.command();
        let start = Instant::now();
        let done = command
            .output()
            .with_context(|| format!("cannot run {}", self.command[0].display()))?;
        self.result_of(
            done.status,
            &done.stdout,
            &done.stderr,
            start.elapsed().as_secs_f64(),
        )
    }

    /// The result of a run that has ended.
    ///
    /// # Errors
    /// The command failed; the message contains the last line of its standard error.
    pub fn result_of(
        &self,
        status: ExitStatus,
        stdout: &[u8],
        stderr: &[u8],
        seconds: f64,
    ) -> anyhow::Result<RunResult> {
        if !status.success() {
            let errors = String::from_utf8_lossy(stderr);
            let last = errors.lines().last().unwrap_or("it said nothing");
            bail!(
                "`{}` failed ({status}): {last}",
                nodewise_input::shell_line(&self.command)
            );
        }
        let mut hash = DefaultHasher::new();
        hash.write(stdout);
        Ok(RunResult {
            seconds,
            output: hash.finish(),
        })
    }
}

/// A function that runs an invocation once: [`Invocation::run`], or one that also observes the process.
pub type Runner<'a> = &'a mut dyn FnMut(&Invocation) -> anyhow::Result<RunResult>;

/// Runs invocations in turn, alternately in forward and backward order (ABBA), so that slow drifts affect all of them
/// equally.
pub struct Trial<'a> {
    /// The commands to compare, the plain one first.
    pub invocations: Vec<&'a Invocation>,
    /// Hash of the output that every run must print; `None`: outputs are not compared.
    pub output: Option<u64>,
}

impl Trial<'_> {
    /// Runs up to `runs` rounds, every other one backwards. Once `is_over` returns true, no round but the first starts.
    /// Returns the wall times of each invocation, in seconds, in the order of `invocations`.
    ///
    /// # Errors
    /// A run fails, or its output differs.
    pub fn rounds(
        &self,
        runs: u32,
        is_over: &dyn Fn() -> bool,
        run: Runner<'_>,
        listener: Listener<'_>,
    ) -> anyhow::Result<Vec<Vec<f64>>> {
        listener(Event::Begins(u64::from(runs) * self.invocations.len() as u64));
        let mut times = Vec::new();
        for round in 0..runs {
            if round > 0 && is_over() {
                note(
                    listener,
                    format!("the time limit is reached after {round} of {runs} rounds"),
                );
                break;
            }
            times.push(self.round(round % 2 == 1, run, &mut || listener(Event::ProgramResult))?);
        }
        listener(Event::Ends);
        Ok(times)
    }

    /// Runs one round and returns the wall times, in the order of `invocations`. Calls `tick` after each run.
    fn round(&self, backwards: bool, run: Runner<'_>, tick: &mut dyn FnMut()) -> anyhow::Result<Vec<f64>> {
        let mut seconds = vec![0.0; self.invocations.len()];
        let mut order: Vec<usize> = (0..self.invocations.len()).collect();
        if backwards {
            order.reverse();
        }
        for at in order {
            let ran = run(self.invocations[at])?;
            if self.output.is_some_and(|wanted| wanted != ran.output) {
                let line = nodewise_input::shell_line(&self.invocations[at].command);
                bail!(
                    "`{line}` printed something else than the first run; add --any-output if it prints times"
                );
            }
            seconds[at] = ran.seconds;
            tick();
        }
        Ok(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Invocation {
        Invocation::plain(&["sh", "-c", script].map(OsString::from))
    }

    #[test]
    fn equal_output_has_an_equal_hash() {
        let hash = |script| shell(script).run().unwrap().output;
        assert_eq!(hash("echo a"), hash("printf 'a\\n'"));
        assert_ne!(hash("echo a"), hash("echo b"));
    }

    #[test]
    fn failures_are_one_line_with_the_programs_own_words() {
        let error = shell("echo first >&2; echo 'no such mesh' >&2; exit 3")
            .run()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("no such mesh") && error.contains('3') && !error.contains('\n'),
            "{error}"
        );
    }

    #[test]
    fn another_output_stops_the_trial() {
        let (a, b) = (shell("echo a"), shell("echo b"));
        let output = Some(a.run().unwrap().output);
        let mut ticks = 0;
        let error = Trial {
            invocations: vec![&a, &b],
            output,
        }
        .round(false, &mut Invocation::run, &mut || ticks += 1)
        .unwrap_err();
        assert!(error.to_string().contains("--any-output"), "{error}");
        assert_eq!(ticks, 1);
    }
}
