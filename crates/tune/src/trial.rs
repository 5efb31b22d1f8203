//! Running a command for its wall time, and making sure that it did the same as before.

use crate::{Event, Listener, note};
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
    /// Variables set for it.
    pub environment: Vec<(&'static str, String)>,
}

/// What one run came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunResult {
    /// Wall time of the run, seconds.
    pub seconds: f64,
    /// Hash of standard output.
    pub output: u64,
}

impl Invocation {
    /// The command as it is.
    pub fn plain(command: &[OsString]) -> Self {
        Self {
            command: command.to_vec(),
            environment: Vec::new(),
        }
    }

    /// The process that it is, with nothing on standard input.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Runs it once; its output is kept from the terminal.
    ///
    /// # Errors
    /// It cannot be started, or fails: the last line of its standard error says why.
    pub fn run(&self) -> anyhow::Result<RunResult> {
        let mut command = self.command();
        let start = Instant::now();
        let done = command
            .output()
            .with_context(|| format!("cannot run {}", self.command[0].display()))?;
        self.came_to(
            done.status,
            &done.stdout,
            &done.stderr,
            start.elapsed().as_secs_f64(),
        )
    }

    /// What a run that has ended came to.
    ///
    /// # Errors
    /// It failed: the last line of its standard error says why.
    pub fn came_to(
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

/// Runs an invocation once: [`Invocation::run`], or what looks at the process meanwhile.
pub type Runner<'a> = &'a mut dyn FnMut(&Invocation) -> anyhow::Result<RunResult>;

/// Invocations run in turn, forwards and backwards (ABBA), so that slow drifts hit all of them alike.
pub struct Trial<'a> {
    /// What is compared, the plain command first.
    pub invocations: Vec<&'a Invocation>,
    /// What every run must print; `None` to not compare.
    pub output: Option<u64>,
}

impl Trial<'_> {
    /// Up to `runs` rounds, every other one backwards; none but the first starts once time `is_over`. The wall times of
    /// each, in the order of `invocations`.
    ///
    /// # Errors
    /// A run fails, or prints something else.
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
            times.push(self.round(round % 2 == 1, run, &mut || listener(Event::Ran))?);
        }
        listener(Event::Ends);
        Ok(times)
    }

    /// One round; wall times in the order of `invocations`. `tick` is called after each run.
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
