//! `nodewise record --via faults`: samples a program that is started, or running processes.

use super::setup::{cpus, folder, meta, progress_bar, set_openmp, show};
use super::{Arguments, Via, summary};
use crate::exit::Outcome;
use crate::output::say;
use nodewise_enforce::Holder;
use nodewise_linux::{Host, clock, companion};
use nodewise_observe::faults::{Options, PeriodicTask, SETS_ASIDE, Sensor, Target, record};
use nodewise_observe::{Error, ErrorKind, Slicing, host_meta};
use nodewise_report::amount;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const SAMPLING: &str = "Sampling (--pid, --via faults, --via userfaultfd)";

#[derive(clap::Args)]
pub struct Faults {
    /// Watch running processes and what they start, by the sensor that works here
    #[arg(long = "pid", value_name = "N", num_args = 1.., value_delimiter = ',', conflicts_with_all = ["command", "recover", "threads"], help_heading = SAMPLING)]
    pub pids: Vec<u32>,
    /// With `--pid`: stop after this time: 10s, 5m [default: when it ends, or at Ctrl-C]
    #[arg(long, value_name = "TIME", requires = "pids", value_parser = crate::arguments::duration, help_heading = SAMPLING)]
    duration: Option<Duration>,
    /// The share of the program's CPU time that observing may take
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = crate::arguments::share_above_0, help_heading = SAMPLING)]
    observe_budget: f64,
    /// Samples below which a page is not judged
    #[arg(long, value_name = "K", default_value_t = 2, help_heading = SAMPLING)]
    minimum_samples: u32,
    /// Set the kernel's NUMA scan period for all processes (root; restored on exit)
    #[arg(long, value_name = "TIME", value_parser = crate::arguments::period, help_heading = SAMPLING)]
    scan_period: Option<Duration>,
}

/// Records until the processes end or the time is over, then prints a summary.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let Slicing::Time(slice) = arguments.slice else {
        anyhow::bail!("--via faults sees neither accesses nor regions: --slice needs a time, such as 1s");
    };
    let folder = folder(arguments);
    let faults = &arguments.faults;
    let (target, seen_from_outside) = target(arguments)?;
    let options = Options {
        target,
        folder: &folder,
        force: arguments.force,
        slice,
        meta: meta(arguments, cpus()),
        budget: faults.observe_budget,
        minimum_samples: faults.minimum_samples,
        scan: faults.scan_period.map(clock::milliseconds),
        sensor: sensor(arguments)?,
    };
    let bar = progress_bar();
    let mut untold = options.sensor == Sensor::Userfaultfd;
    let recorded = record(options, |p| {
        // Printed only once sampling is known to work, so that an error remains a single line.
        if std::mem::take(&mut untold) {
            bar.suspend(|| say!("{SETS_ASIDE}"));
        }
        show(&bar, &amount(p.samples, "sample"), p.slices);
    });
    bar.finish_and_clear();
    let recorded = recorded.map_err(named)?;
    if let Some(why) = seen_from_outside {
        say!("{why}: seen from outside, its objects are its mappings");
    }
    summary::sampled(&folder, &recorded, faults.minimum_samples);
    Ok(recorded.status.map_or(Outcome::Done, Outcome::Child))
}

/// The sensor that was requested by name; else hint faults if a scan period is set, else the first one that works.
fn sensor(arguments: &Arguments) -> anyhow::Result<Sensor> {
    let scans = arguments.faults.scan_period.is_some();
    let wanted = match arguments.via {
        Via::Userfaultfd if scans => {
            anyhow::bail!(
                "--scan-period: without the kernel's balancing there are no scans; leave it out, or --via faults"
            )
        }
        Via::Userfaultfd => Sensor::Userfaultfd,
        Via::Auto if !scans => Sensor::Auto,
        _ => Sensor::HintFaults,
    };
    Ok(wanted.choose(&Host::default()).map_err(Error::from)?)
}

/// Adds the name of the relevant option to an error.
fn named(error: Error) -> anyhow::Error {
    let about_scans = error.kind() == ErrorKind::ScanPeriod;
    let error = anyhow::Error::from(error);
    if about_scans {
        error.context("--scan-period")
    } else {
        error
    }
}

/// The processes to watch, and why nothing can be preloaded into the program, if so.
fn target(arguments: &Arguments) -> anyhow::Result<(Target, Option<String>)> {
    let faults = &arguments.faults;
    let Some((program, rest)) = arguments.command.split_first() else {
        let (pids, duration) = (faults.pids.clone(), faults.duration);
        return Ok((Target::Processes { pids, duration }, None));
    };
    let file = nodewise_observe::find(program, std::env::var_os("PATH").as_deref())?;
    let mut command = Command::new(program);
    command.args(rest);
    set_openmp(&mut command, arguments.threads, cpus());
    let mut preload: Vec<PathBuf> = Vec::new();
    let unreached = nodewise_observe::unreached(&file);
    let periodic_task = match unreached {
        Some(_) => None,
        None => {
            preload.extend(companion::find("libnodewise-rt.so"));
            held(&mut command, &mut preload)
        }
    };
    let target = Target::Command {
        command: Box::new(command),
        preload,
        periodic_task,
    };
    Ok((target, unreached))
}

/// Makes the kernel leave the sampled pages where they are, if possible; if not, the pages it moves are counted. Not
/// needed on a single node, where pages cannot move.
fn held(command: &mut Command, preload: &mut Vec<PathBuf>) -> Option<PeriodicTask> {
    if host_meta(&Host::default()).host_nodes < 2 {
        return None;
    }
    let library = companion::find("libnodewise-preload.so").ok()?;
    let mut holder = Holder::new().ok()?;
    holder.prepare(command);
    preload.push(library);
    Some(Box::new(move || holder.look()))
}
