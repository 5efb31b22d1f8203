//! `record --repeat`: runs the command again, to see whether its threads take the same parts.

use super::Arguments;
use super::setup::{cpus, meta, progress_bar, show};
use indicatif::ProgressBar;
use nodewise_analysis::Roles;
use nodewise_observe::{Options, Recorded};
use nodewise_profile::Profile;
use nodewise_report::{amount, roles_sentence};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variable that makes the threads of a repetition start in another order (`runtime/threads.c`).
const ARRIVAL_VARIABLE: &str = "NODEWISE_ARRIVAL";

/// The repetitions of a recording.
pub struct Repetitions(Vec<Command>);

impl Repetitions {
    /// The repetitions of a command that is to be recorded `times` times in total.
    pub fn of(command: &Command, times: u32) -> anyhow::Result<Self> {
        anyhow::ensure!(
            times == 1 || !nodewise_observe::input_is_consumed(),
            "--repeat: standard input is a pipe, which only one run can read; give it a file, or `< /dev/null`"
        );
        Ok(Self((1..times).map(|run| again(command, run)).collect()))
    }

    /// Records the repetitions next to the profile in `folder`, and stores in that profile which threads took which
    /// parts. Returns a sentence on the result, if any.
    pub fn record(
        self,
        folder: &Path,
        first: &Recorded,
        arguments: &Arguments,
    ) -> anyhow::Result<Option<String>> {
        if self.0.is_empty() {
            return Ok(from_counters(&first.profile));
        }
        if first.status != 0 {
            let status = first.status;
            return Ok(Some(format!(
                "not repeated, as this run ended with status {status}"
            )));
        }
        let bar = progress_bar();
        let mut folders = Folders(Vec::new());
        let failed = (1..)
            .zip(self.0)
            .find_map(|(run, command)| record_beside(folder, run, command, arguments, &bar, &mut folders));
        bar.finish_and_clear();
        match failed {
            Some(why) => Ok(Some(format!("not compared: {why}"))),
            None => compare(folder, &folders.0),
        }
    }
}

/// A sentence on counters from which threads take numbers, if there are any.
fn from_counters(profile: &Profile) -> Option<String> {
    let roles = Roles::of(profile).filter(|roles| roles.counter.is_some());
    roles.map(|roles| roles_sentence(&roles, profile))
}

/// Records one repetition. Returns the reason if it cannot be compared; the first recording is kept in any case.
fn record_beside(
    folder: &Path,
    run: u32,
    command: Command,
    arguments: &Arguments,
    bar: &ProgressBar,
    folders: &mut Folders,
) -> Option<String> {
    let beside = beside(folder, run);
    folders.0.push(beside.clone());
    let options = Options {
        command,
        folder: &beside,
        force: false,
        slicing: arguments.slice,
        meta: meta(arguments, cpus()),
        plain: None,
    };
    let recorded = nodewise_observe::record(
        options,
        |p| {
            let seen = format!("{}, repetition {run}", amount(p.accesses, "access"));
            show(bar, &seen, p.slices);
        },
        |_| (),
    );
    match recorded {
        Ok(recorded) if recorded.status == 0 => None,
        Ok(recorded) => Some(format!("repetition {run} ended with status {}", recorded.status)),
        Err(why) => Some(why.to_string()),
    }
}

/// Profiles of repetitions, removed once they are compared.
struct Folders(Vec<PathBuf>);

impl Drop for Folders {
    fn drop(&mut self) {
        for folder in &self.0 {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

fn again(command: &Command, run: u32) -> Command {
    let mut again = Command::new(command.get_program());
    again.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => again.env(name, value),
            None => again.env_remove(name),
        };
    }
    again.env(ARRIVAL_VARIABLE, run.to_string());
    nodewise_observe::without_output(&mut again);
    again
}

fn beside(folder: &Path, run: u32) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(format!(".repetition-{run}-{}", std::process::id()));
    PathBuf::from(name)
}

fn compare(folder: &Path, others: &[PathBuf]) -> anyhow::Result<Option<String>> {
    let reader = nodewise_store::Reader::open(folder)?;
    let taken = match nodewise_pipeline::compared(&reader, others) {
        Ok(taken) => taken,
        Err(why) => return Ok(Some(format!("not compared: {why:#}"))),
    };
    nodewise_store::set_taken(folder, &taken)?;
    let mut profile = reader.into_profile();
    profile.taken = taken;
    Ok(Some(match Roles::of(&profile) {
        Some(roles) => roles_sentence(&roles, &profile),
        None => "whether threads take the same parts in each run is not known: few pages are used mostly by one thread, or one \
                 thread uses nearly all"
            .into(),
    }))
}
