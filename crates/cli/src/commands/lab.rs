//! `nodewise lab`: runs a command on a virtual NUMA machine with a real kernel and exact access counters.

mod batch;
mod findings;
mod pages;
mod screen;
mod tree;

use crate::arguments::one_of;
use crate::exit::{Outcome, OwnFailure};
use crate::output::{Screen, check_folder, check_new, keep_existing, print, write_file};
use clap::ValueEnum;
use nodewise_lab::{
    Experiment, HugePages, LabError, RunPlacement, Session, Setup, Size, VirtualMachine, prepare,
};
use nodewise_machine::Machine;
use nodewise_report::lab as report;
use screen::Show;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(clap::Args)]
pub struct Arguments {
    /// A shipped machine's name, a machine file, or `this`
    #[arg(long, value_name = "M")]
    machine: String,
    /// Placement of pages: first-touch, interleave, round-robin, node:N, autonuma, map:FILE, balance:P [default: first-touch]
    #[arg(long, value_name = "P")]
    under: Option<RunPlacement>,
    /// Run the command under each of these in one boot, and compare
    #[arg(
        long,
        value_name = "P,…",
        value_delimiter = ',',
        num_args = 1,
        conflicts_with = "under"
    )]
    compare: Vec<RunPlacement>,
    /// Many commands in one boot: a line each, a policy and then the command, separated by blanks
    #[arg(long, value_name = "FILE", conflicts_with_all = ["under", "compare", "command"])]
    batch: Option<PathBuf>,
    /// File or directory that the command needs, copied to the same path; repeatable
    #[arg(long = "with", value_name = "PATH")]
    with: Vec<PathBuf>,
    /// What the command reads from standard input [default: nothing]
    #[arg(long, value_name = "FILE")]
    stdin: Option<PathBuf>,
    /// Set an environment variable, in addition to the current environment; repeatable
    #[arg(long = "env", value_name = "K=V", value_parser = variable)]
    environment: Vec<(OsString, OsString)>,
    /// How threads are bound: map, compact, scatter, identity, none. `map` is a map's own binding, and
    /// compact where there is no map; to compare under one affinity name it
    #[arg(long, value_name = "T", default_value = "map", value_parser = binding)]
    bind: String,
    /// Further options of `nodewise balance`, separated by blanks, for runs under balance:P
    #[arg(
        long,
        value_name = "OPTIONS",
        default_value = "",
        allow_hyphen_values = true,
        hide_default_value = true
    )]
    balancer: String,
    /// Threads to run with: sets `OMP_NUM_THREADS` [default: `OMP_NUM_THREADS`, else the virtual CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Option<u32>,
    /// Virtual CPUs of the whole machine [default: as many as this host can emulate well]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255))]
    cpus: Option<u32>,
    /// Memory of the whole machine, as 2G [default: what this host can spare]
    #[arg(long, value_name = "SIZE", value_parser = crate::arguments::bytes)]
    memory: Option<u64>,
    /// Give the guest a disk of this size at /disk, with an empty ext4 file system: files there are in the page cache
    #[arg(long, value_name = "SIZE", value_parser = crate::arguments::bytes)]
    disk: Option<u64>,
    /// Where the guest's kernel makes huge pages by itself
    #[arg(long, value_name = "WHEN", default_value = "always", value_parser = one_of::<Huge>())]
    huge_pages: Huge,
    /// A kernel: its version, such as 6.12 (of Debian's backports, fetched once), its vmlinuz, or a Debian package with one
    /// [default: Debian's cloud kernel, fetched once]
    #[arg(long, value_name = "PATH")]
    kernel: Option<PathBuf>,
    /// Give up after this time of running: 90s, 10m, 1h
    #[arg(long, value_name = "TIME", value_parser = crate::arguments::duration)]
    time_limit: Option<Duration>,
    /// CPU time (user and system) of a run on a real machine, from which it is said what the job will take: 1.5s
    #[arg(long, value_name = "TIME", value_parser = crate::arguments::cpu_time)]
    plain_cpu: Option<Duration>,
    /// Report the counts of each slice of this length too: 1s, 500ms
    #[arg(long, value_name = "TIME", value_parser = crate::arguments::duration, conflicts_with = "no_counters")]
    slice: Option<Duration>,
    /// Do not count accesses, which is faster
    #[arg(long)]
    no_counters: bool,
    /// Print JSON; the command's standard output goes to standard error
    #[arg(long)]
    json: bool,
    /// Draw the matrices
    #[arg(long, value_name = "FILE", conflicts_with = "no_counters")]
    svg: Option<PathBuf>,
    /// Write every page that was accessed, with its accesses by node of the CPU: CSV
    #[arg(long, value_name = "FILE", conflicts_with = "no_counters")]
    pages: Option<PathBuf>,
    /// File or directory to copy out of the guest after the run; repeatable
    #[arg(long, value_name = "PATH", requires = "into")]
    bring: Vec<PathBuf>,
    /// New directory for the files named by --bring
    #[arg(long, value_name = "DIR", requires = "bring")]
    into: Option<PathBuf>,
    /// Save what the guest's /sys shows of the machine; needs no command
    #[arg(long, value_name = "DIR")]
    capture: Option<PathBuf>,
    /// Write the scaled machine as a machine file, for `map` and `simulate`; needs no command
    #[arg(long, value_name = "FILE")]
    scaled: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// The program and its arguments
    #[arg(
        required_unless_present_any = ["capture", "batch", "scaled"],
        trailing_var_arg = true,
        value_name = "CMD"
    )]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Huge {
    /// Wherever they fit
    Always,
    /// Where the program asks
    Madvise,
    /// Nowhere
    Never,
}

fn variable(text: &str) -> Result<(OsString, OsString), String> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
    Ok((name.into(), value.into()))
}

/// Checked for syntax here; `run` in the guest resolves it.
fn binding(text: &str) -> Result<String, String> {
    let known = text.parse::<nodewise_enforce::Binding>();
    known.map(|_| text.to_owned()).map_err(|e| e.to_string())
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    run_experiment(arguments).map_err(|e| own_failure(&e))
}

fn run_experiment(arguments: &Arguments) -> anyhow::Result<Outcome> {
    check_files(arguments)?;
    let size = Size {
        cpus: arguments.cpus,
        memory: arguments.memory,
    };
    let machine = VirtualMachine::of(&Machine::load(&arguments.machine)?, &size)?;
    let experiment = experiment_of(arguments)?;
    if let Some(file) = &arguments.scaled {
        write_file(file, &machine_file(&machine), arguments.force)?;
        if experiment.runs.is_empty() && !experiment.capture {
            return Ok(Outcome::Done);
        }
    }
    let show = Show::new(
        arguments.json,
        &experiment.runs,
        setup(arguments),
        arguments.plain_cpu,
    );
    let lab = prepare(&machine, &experiment, &setup(arguments))?;
    show.booting(&machine);
    let session = lab.run(&mut |event| show.event(event));
    show.end();
    let session = session?;
    if let Some(folder) = &arguments.capture {
        tree::capture(folder, &session.capture, arguments.force)?;
    }
    if let Some(folder) = &arguments.into {
        let requested: Vec<PathBuf> = experiment.bring.iter().map(|p| experiment.cwd.join(p)).collect();
        tree::write_brought(folder, &requested, &session.brought_files)?;
    }
    if let Some(file) = &arguments.pages {
        let nodes = machine.machine.node_count();
        write_file(file, &pages::csv(&session.outcomes, nodes), arguments.force)?;
    }
    if experiment.runs.is_empty() {
        return Ok(Outcome::Done);
    }
    print_report(arguments, &findings::of(&machine, &experiment, &session))?;
    match session.stopped {
        Some(why) => Err(why.into()),
        None => Ok(Outcome::Child(status(&session))),
    }
}

/// The first exit status that is not 0.
fn status(session: &Session) -> u8 {
    let mut all = session.outcomes.iter().map(|o| o.exit_status);
    all.find(|s| *s != 0).unwrap_or(0)
}

/// The guest's machine as a machine file; its title says how it was scaled.
fn machine_file(machine: &VirtualMachine) -> String {
    let mut scaled = machine.machine.clone();
    if let Some(scale) = findings::scale(machine) {
        scaled.title = format!("{}; scaled: {scale}", scaled.title);
    }
    scaled.to_toml()
}

/// The placements to run one command under.
fn placements(arguments: &Arguments) -> Vec<RunPlacement> {
    match (&arguments.under, arguments.command.is_empty()) {
        (_, true) => Vec::new(),
        (Some(one), _) => vec![one.clone()],
        (None, _) if arguments.compare.is_empty() => vec![RunPlacement::FirstTouch],
        _ => arguments.compare.clone(),
    }
}

fn experiment_of(arguments: &Arguments) -> anyhow::Result<Experiment> {
    let (runs, commands) = match &arguments.batch {
        Some(file) => batch::read(file)?,
        None => (placements(arguments), Vec::new()),
    };
    let huge_pages = match arguments.huge_pages {
        Huge::Always => HugePages::Always,
        Huge::Madvise => HugePages::Madvise,
        Huge::Never => HugePages::Never,
    };
    Ok(Experiment {
        command: arguments.command.clone(),
        cwd: std::env::current_dir()?,
        environment: environment(&arguments.environment),
        stdin: arguments.stdin.clone(),
        with: arguments.with.clone(),
        runs,
        commands,
        bind: arguments.bind.clone(),
        balancer: arguments.balancer.split_whitespace().map(Into::into).collect(),
        threads: arguments.threads,
        huge_pages,
        slice: arguments.slice,
        capture: arguments.capture.is_some(),
        bring: arguments.bring.clone(),
    })
}

/// The environment of the command: that of this process without variables that name files missing in the guest, and
/// with those of `--env`.
fn environment(set: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    const HOST_ONLY_VARIABLES: [&str; 4] = ["LD_PRELOAD", "LD_AUDIT", "TMPDIR", "PWD"];
    let here = std::env::vars_os().filter(|(name, _)| !HOST_ONLY_VARIABLES.iter().any(|n| name == n));
    let kept = here.filter(|(name, _)| !set.iter().any(|(n, _)| n == name));
    kept.chain(set.iter().cloned()).collect()
}

fn setup(arguments: &Arguments) -> Setup {
    Setup {
        kernel: arguments.kernel.clone(),
        time_limit: arguments.time_limit,
        counters: !arguments.no_counters,
        disk: arguments.disk,
    }
}

/// Checks the files and folders to be written, before minutes are spent on a result that cannot be kept.
fn check_files(arguments: &Arguments) -> anyhow::Result<()> {
    let files = [&arguments.svg, &arguments.pages, &arguments.scaled];
    check_new(files.into_iter().flatten(), arguments.force)?;
    // A captured tree makes the folders above it.
    let captured = arguments
        .capture
        .as_deref()
        .map(|f| check_unused(f, arguments.force));
    captured.transpose()?;
    if let Some(folder) = &arguments.into {
        check_unused(folder, false)?;
        check_folder(folder)?;
    }
    Ok(())
}

/// Checks that a folder can be made: it is empty or not there.
fn check_unused(folder: &Path, force: bool) -> anyhow::Result<()> {
    match std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none()) {
        true => Ok(()),
        false => keep_existing(folder, force),
    }
}

fn print_report(arguments: &Arguments, found: &report::Experiment) -> anyhow::Result<()> {
    if let Some(file) = &arguments.svg {
        write_file(file, &report::svg::write(found), arguments.force)?;
    }
    if arguments.json {
        return print(&found.json());
    }
    let Screen { width, colour } = Screen::of_stdout();
    print(&report::text::write(
        found,
        nodewise_report::text::Screen { width, colour },
    ))
}

/// Sets the exit status of our own failures, 125 to 127: `lab` passes its command's status through.
fn own_failure(error: &anyhow::Error) -> anyhow::Error {
    let known = error.downcast_ref::<LabError>().map(LabError::exit_status);
    let status = known.filter(|s| [126, 127].contains(s)).unwrap_or(125);
    OwnFailure {
        status,
        message: format!("{error:#}"),
    }
    .into()
}
