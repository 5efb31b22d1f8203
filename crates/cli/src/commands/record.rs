//! `nodewise record`: records a program that counts by itself, runs under an emulator, or is sampled.

// Why: docs/decisions/structure.md

mod faults;
mod repeat;
mod setup;
mod summary;

use crate::arguments::{one_of, slicing};
use crate::exit::{Outcome, OwnFailure};
use clap::ValueEnum;
use nodewise_enforce::LoopSchedule;
use nodewise_linux::companion;
use nodewise_observe::{Emulator, Error, ErrorKind, Options, Slicing};
use nodewise_report::amount;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(clap::Args)]
pub struct Arguments {
    /// Where a slice ends: a time (1s, 100ms), accesses:N, or region
    #[arg(long, value_name = "S", default_value = "1s", value_parser = slicing)]
    slice: Slicing,
    /// Where the profile goes [default: the first unused nodewise-profile-N]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Replace a profile that is there
    #[arg(long)]
    force: bool,
    /// Threads to run with: sets `OMP_NUM_THREADS`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,
    /// How to observe
    #[arg(long, default_value = "auto", value_parser = one_of::<Via>())]
    via: Via,
    /// The plain build of CMD: run once afterwards, in the same folder with the same arguments and without output, to know
    /// what recording costs
    #[arg(long, value_name = "PATH", conflicts_with_all = ["recover", "pids"])]
    plain: Option<PathBuf>,
    /// Record CMD N times, without output after the first, the threads beginning in another order each time: the profile
    /// then says whether threads take the same parts in each run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100),
          conflicts_with_all = ["recover", "pids"])]
    repeat: u32,
    /// Deal OpenMP's dynamic and guided loops statically while CMD is recorded, as `run --schedule` does: static, or static,N
    #[arg(long, value_name = "S", value_parser = LoopSchedule::parse, conflicts_with_all = ["recover", "pids"])]
    schedule: Option<LoopSchedule>,
    /// Make a profile of what an interrupted recording left in DIR
    #[arg(long, value_name = "DIR", conflicts_with_all = ["command", "output", "threads"])]
    recover: Option<PathBuf>,
    #[command(flatten)]
    faults: faults::Faults,
    /// The program and its arguments
    #[arg(
        required_unless_present_any = ["recover", "pids"],
        trailing_var_arg = true,
        value_name = "CMD"
    )]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Via {
    /// CMD is built with nodewise-cc and counts its accesses itself; checked beforehand
    Auto,
    /// As above, without checking CMD: for scripts and launchers that start an instrumented program
    Instrument,
    /// Any program as it is, under QEMU: exact, 10 to 50 times slower
    Emulate,
    /// Any program as it is, running ones too, at 2 % of its time: which threads use which pages, sampled by
    /// the kernel's page faults
    #[value(alias = "hint-faults")]
    Faults,
    /// As faults, without the kernel's balancing (kernel.numa_balancing=0): pages are set aside one by one; Linux 6.8, root
    Userfaultfd,
}

impl Via {
    fn samples(self) -> bool {
        matches!(self, Self::Faults | Self::Userfaultfd)
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    if let Some(folder) = &arguments.recover {
        summary::recovered(folder, &nodewise_observe::recover(folder)?);
        return Ok(Outcome::Done);
    }
    record(arguments).map_err(|e| own_failure(&e))
}

fn record(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let attach = !arguments.faults.pids.is_empty();
    match arguments.via {
        via if via.samples() && arguments.repeat > 1 => {
            anyhow::bail!("--repeat: samples do not tell who takes which part; leave out --via")
        }
        via if via.samples() && arguments.plain.is_some() => {
            anyhow::bail!("--plain: samples at 2 % of the time are not calibrated; leave it out")
        }
        via if via.samples() && arguments.schedule.is_some() => {
            anyhow::bail!(
                "--schedule: what is sampled runs as it is; leave out --via, or write --via emulate"
            )
        }
        Via::Faults | Via::Userfaultfd => return faults::run(arguments),
        Via::Auto if attach => return faults::run(arguments),
        _ if attach => anyhow::bail!(
            "--pid: a running program can only be sampled; leave out --via, or write --via faults"
        ),
        _ => {}
    }
    let program = &arguments.command[0];
    let file = nodewise_observe::find(program, std::env::var_os("PATH").as_deref())?;
    if arguments.via == Via::Auto {
        nodewise_observe::check_instrumented(&file)?;
    }
    let folder = setup::folder(arguments);
    let emulator = (arguments.via == Via::Emulate).then(emulator).transpose()?;
    let rest = &arguments.command[1..];
    let mut command = setup::dealt(program, arguments)?;
    if let Some(emulator) = &emulator {
        let set: Vec<(OsString, OsString)> = set_variables(&command).collect();
        let inherited = std::env::vars_os().filter(|(name, _)| set.iter().all(|(other, _)| other != name));
        let variables = inherited.chain(set.iter().cloned());
        command = emulator.command(program, &file, rest, arguments.slice, variables)?;
        command.envs(set.into_iter().filter(|(name, _)| name != "LD_PRELOAD"));
    } else {
        command.args(rest);
    }
    let cpus = setup::cpus();
    setup::set_openmp(&mut command, arguments.threads, cpus);
    let bar = setup::progress_bar();
    let again = repeat::Repetitions::of(&command, arguments.repeat)?;
    let plain = arguments.plain.as_deref();
    let plain = plain
        .map(|plain| plain_command(plain, arguments, &command))
        .transpose()?;
    let options = Options {
        command,
        folder: &folder,
        force: arguments.force,
        slicing: arguments.slice,
        meta: setup::meta(arguments, cpus),
        plain,
    };
    let recorded = nodewise_observe::record(
        options,
        |p| setup::show(&bar, &amount(p.accesses, "access"), p.slices),
        |elapsed| {
            bar.set_message(format!("done; the plain build, {:.0} s", elapsed.as_secs_f64()));
            bar.tick();
        },
    );
    bar.finish_and_clear();
    let recorded = recorded?;
    let roles = again.record(&folder, &recorded, arguments)?;
    summary::recorded(&folder, &recorded, emulator.as_ref(), roles.as_deref());
    Ok(Outcome::Child(recorded.status))
}

/// The variables that a command sets.
fn set_variables(command: &Command) -> impl Iterator<Item = (OsString, OsString)> + '_ {
    command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
}

/// The plain build with the arguments and the environment of the recorded one.
fn plain_command(plain: &Path, arguments: &Arguments, recorded: &Command) -> anyhow::Result<Command> {
    let file = nodewise_observe::find(plain.as_os_str(), std::env::var_os("PATH").as_deref())?;
    anyhow::ensure!(
        !nodewise_observe::is_instrumented(&file),
        "--plain {}: this build counts its accesses; name the one made without nodewise-cc",
        plain.display()
    );
    anyhow::ensure!(
        !nodewise_observe::input_is_consumed(),
        "--plain: standard input is a pipe, which only one of two runs can read; give it a file, or `< /dev/null`"
    );
    let mut command = setup::dealt(file.as_os_str(), arguments)?;
    command.args(&arguments.command[1..]);
    match arguments.via {
        Via::Emulate => setup::set_openmp(&mut command, arguments.threads, setup::cpus()),
        _ => {
            command.envs(set_variables(recorded));
        }
    }
    Ok(command)
}

/// QEMU with our plugin; `NODEWISE_QEMU_USER` overrides the one in `PATH`.
fn emulator() -> anyhow::Result<Emulator> {
    let runtime = companion::find("libnodewise-rt.so")?;
    let libraries = runtime.parent().unwrap_or(Path::new("/"));
    let chosen = std::env::var_os("NODEWISE_QEMU_USER").filter(|v| !v.is_empty());
    let path = std::env::var_os("PATH");
    Ok(Emulator::find(libraries, chosen.as_deref(), path.as_deref())?)
}

/// Sets the exit status of our own failures, 125 to 127: `record` passes its child's status through.
fn own_failure(error: &anyhow::Error) -> anyhow::Error {
    let status = match error.downcast_ref::<Error>().map(Error::kind) {
        Some(ErrorKind::NotFound) => 127,
        Some(ErrorKind::NotExecutable) => 126,
        _ => 125,
    };
    OwnFailure {
        status,
        message: format!("{error:#}"),
    }
    .into()
}
