//! Running a command for its wall time, and making sure that it did the same as before.

use anyhow::{Context, bail};
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hasher};
use std::process::{Command, Stdio};
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

    /// Runs it once, with nothing on standard input; its output is kept from the terminal.
    ///
    /// # Errors
    /// It cannot be started, or fails: the last line of its standard error says why.
    pub fn run(&self) -> anyhow::Result<RunResult> {
        let program = &self.command[0];
        let mut command = Command::new(program);
        command
            .args(&self.command[1..])
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        let start = Instant::now();
        let done = command
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let seconds = start.elapsed().as_secs_f64();
        if !done.status.success() {
            let errors = String::from_utf8_lossy(&done.stderr);
            let last = errors.lines().last().unwrap_or("it said nothing").to_owned();
            bail!(
                "`{}` failed ({}): {last}",
                nodewise_input::shell_line(&self.command),
                done.status
            );
        }
        let mut hash = DefaultHasher::new();
        hash.write(&done.stdout);
        Ok(RunResult {
            seconds,
            output: hash.finish(),
        })
    }
}

/// Invocations run in turn, forwards and backwards (ABBA), so that slow drifts hit all of them alike.
pub struct Trial<'a> {
    /// What is compared, the plain command first.
    pub invocations: Vec<&'a Invocation>,
    /// What every run must print; `None` to not compare.
    pub output: Option<u64>,
}

impl Trial<'_> {
    /// One round; wall times in the order of `invocations`. `tick` is called after each run.
    ///
    /// # Errors
    /// A run fails, or prints something else.
    pub fn round(&self, backwards: bool, tick: &mut dyn FnMut()) -> anyhow::Result<Vec<f64>> {
        let mut seconds = vec![0.0; self.invocations.len()];
        let mut order: Vec<usize> = (0..self.invocations.len()).collect();
        if backwards {
            order.reverse();
        }
        for at in order {
            let ran = self.invocations[at].run()?;
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
        .round(false, &mut || ticks += 1)
        .unwrap_err();
        assert!(error.to_string().contains("--any-output"), "{error}");
        assert_eq!(ticks, 1);
    }
}
