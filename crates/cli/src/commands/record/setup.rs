//! What every way to record sets up: the profile's folder and metadata, OpenMP, the progress bar.

use super::{Arguments, Via};
use crate::output::say;
use indicatif::{ProgressBar, ProgressStyle};
use nodewise_enforce::LoopSchedule;
use nodewise_linux::companion;
use nodewise_observe::{command_of, host_meta};
use nodewise_profile::{Meta, Observer};
use nodewise_report::plural;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn folder(arguments: &Arguments) -> PathBuf {
    let unused = || nodewise_store::unused(Path::new(""));
    arguments.output.clone().unwrap_or_else(unused)
}

/// With more OpenMP threads than CPUs, makes waiting threads sleep instead of spinning through the others' time slices.
pub fn set_openmp(command: &mut Command, threads: Option<u32>, cpus: usize) {
    if let Some(threads) = threads {
        command.env("OMP_NUM_THREADS", threads.to_string());
    }
    let inherited = || {
        std::env::var("OMP_NUM_THREADS")
            .ok()?
            .split(',')
            .next()?
            .trim()
            .parse()
            .ok()
    };
    let crowded = threads.or_else(inherited).is_some_and(|t| t as usize > cpus);
    if crowded && std::env::var_os("OMP_WAIT_POLICY").is_none() {
        say!("more threads than the {cpus} CPUs: waiting threads sleep (OMP_WAIT_POLICY=passive)");
        command.env("OMP_WAIT_POLICY", "passive");
    }
}

/// `program` with the environment in which its loops are dealt as asked for. But under the emulator, whose own library does the
/// same, `run`'s library takes ours out of the environment of programs that bear none.
pub fn dealt(program: &OsStr, arguments: &Arguments) -> anyhow::Result<Command> {
    let mut command = Command::new(program);
    if let Some(schedule) = arguments.schedule {
        LoopSchedule::check(&arguments.command)?;
        if arguments.via != Via::Emulate {
            companion::preload(&mut command, &[companion::find("libnodewise-preload.so")?]);
        }
        schedule.prepare(&mut command, companion::find(LoopSchedule::LIBRARY)?);
    }
    Ok(command)
}

pub fn meta(arguments: &Arguments, cpus: usize) -> Meta {
    let host = nodewise_linux::Host::default();
    Meta {
        observer: match arguments.via {
            Via::Emulate => Observer::Emulate,
            Via::Faults | Via::Userfaultfd => Observer::Faults,
            Via::Auto if !arguments.faults.pids.is_empty() => Observer::Faults,
            Via::Auto | Via::Instrument => Observer::Instrument,
        },
        command: command(arguments, &host),
        slicing: arguments.slice.to_string(),
        host_cpus: cpus as u32,
        loop_schedule: arguments.schedule.map(|schedule| schedule.to_string()),
        plain_program: arguments.plain.as_ref().map(|p| p.to_string_lossy().into_owned()),
        ..host_meta(&host)
    }
}

/// The command line as given, or that of the first running process.
fn command(arguments: &Arguments, host: &nodewise_linux::Host) -> Vec<String> {
    match arguments.faults.pids.first() {
        Some(pid) => command_of(host, *pid),
        None => arguments
            .command
            .iter()
            .map(|a| a.to_string_lossy().into_owned())
            .collect(),
    }
}

pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A progress bar on a terminal; otherwise a hidden one.
pub fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_style(ProgressStyle::with_template("recording {elapsed} {msg}").expect("a valid template"));
    bar
}

pub fn show(bar: &ProgressBar, seen: &str, slices: usize) {
    bar.set_message(format!("{seen}, {}", plural(slices, "slice")));
    bar.tick();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_renames_itself_keeps_its_name() {
        let root = std::env::temp_dir().join(format!("nodewise-command-{}", std::process::id()));
        let folder = root.join("proc/7");
        std::fs::create_dir_all(&folder).unwrap();
        let host = nodewise_linux::Host::at(&root);
        let named = |text: &str| {
            std::fs::write(folder.join("cmdline"), text).unwrap();
            command_of(&host, 7)
        };
        assert_eq!(named("/usr/bin/solve\0a b\0"), ["/usr/bin/solve", "a b"]);
        let redis = "redis-server unixsocket:/tmp/r.sock\0\0\0";
        assert_eq!(named(redis), ["redis-server", "unixsocket:/tmp/r.sock"]);
        assert_eq!(named("postgres: 15/main: walwriter\0")[0], "postgres");
        std::fs::remove_dir_all(&root).unwrap();
    }
}
