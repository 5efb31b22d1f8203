//! `nodewise run`: runs an unmodified program under a placement.

mod document;
mod files;
mod label;
mod listing;
mod outcome;
mod warnings;

use crate::exit::Outcome;
use crate::launch::{cannot_start, check_objects, empty, failure, own_failure, preload};
use crate::output;
use files::Placed;
use nodewise_enforce::{
    Achieved, Binding, EnforceError, Host, LoopSchedule, Options, PageSize, Plan, Request, Roles, RunFolder,
    Table, Watch, dealt_loops,
};
use nodewise_linux::child::{Forwarding, shell_status};
use nodewise_linux::{companion, mark};
use nodewise_live::{FollowedThreads, ThreadFollower};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// An interval longer than any run, which disables periodic inspection: with an emulator that counts accesses, our own
/// accesses would be counted as the command's.
const NO_INSPECTION: Duration = Duration::from_secs(1 << 30);

#[derive(clap::Args)]
pub struct Arguments {
    /// map:FILE, first-touch, interleave, round-robin, node:N, weighted (by the kernel's weights), weighted:W,W,… (one for
    /// each node)
    #[arg(long, value_name = "P", default_value = "first-touch")]
    policy: OsString,
    /// Put objects on nodes, whatever the policy: a path or file:PATTERN, shm:PATTERN, memfd:PATTERN, sysv, shared,
    /// hugetlb, heap or mapping; then interleave, block, node:N, weighted:W,W, or `block by thread`. Repeatable; the first
    /// that names an object holds. Files are put there, and read, before the program starts. Threads are then bound only
    /// where --bind or a distribution by thread says so
    #[arg(long, value_name = "OBJECTS=HOW")]
    place: Vec<String>,
    /// Memory nodes to use, by the kernel's numbers: the map's node i is the i-th of them, ascending
    #[arg(long, value_name = "LIST")]
    nodes: Option<String>,
    /// How threads are bound: map (as the map says), compact, scatter, identity, cpus:LIST, likwid:EXPR, hwloc:EXPR,
    /// file:FILE, none
    #[arg(long, value_name = "T", default_value = "map")]
    bind: Binding,
    /// How a thread is matched with its part of the data: `number`, `data` (by what it writes while it runs), auto: by
    /// data where the map says that threads come in order of arrival
    #[arg(long, value_name = "R", default_value = "auto", value_parser = roles)]
    roles: Roles,
    /// Deal OpenMP's dynamic and guided loops statically, without a change to the program: static (a block for each
    /// thread), or static,N (N iterations at a time)
    #[arg(long, value_name = "S", value_parser = LoopSchedule::parse)]
    schedule: Option<LoopSchedule>,
    /// Threads to run with: sets `OMP_NUM_THREADS` [default: `OMP_NUM_THREADS`, else the CPUs, else as recorded]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Place pages of 4K or 2M [default: 2M where the kernel makes huge pages by itself, else 4K]
    #[arg(long, value_name = "SIZE", value_parser = page_size)]
    page_size: Option<PageSize>,
    /// Show what would be done, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Messages as JSON: of a dry run on standard output, else on standard error
    #[arg(long)]
    json: bool,
    /// Write what was achieved to a file, as JSON
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// List large objects with their pages, one per line: `process rule page pages thread`. Also emits the marks
    /// that the laboratory's counters use, and disables periodic inspection
    #[arg(long, value_name = "FILE")]
    objects: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

fn page_size(text: &str) -> Result<PageSize, String> {
    crate::arguments::page_shift(text).map(|shift| match shift {
        0 => PageSize::Base,
        _ => PageSize::Huge,
    })
}

fn roles(text: &str) -> Result<Roles, String> {
    match nodewise_input::resolve(text, ["auto", "number", "data"].into_iter()) {
        Ok("auto") => Ok(Roles::Auto),
        Ok("number") => Ok(Roles::Number),
        Ok(_) => Ok(Roles::Data),
        Err(_) => Err(format!("`{text}`: known are auto, number, data")),
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    check_files(arguments)?;
    let mut host = host(arguments).map_err(own_failure)?;
    let options = options(arguments);
    let request = Request::parse(&arguments.policy).map_err(own_failure)?;
    let planned = |host: &Host| Plan::new(&request, host, &arguments.command, &options).map_err(own_failure);
    let mut plan = planned(&host)?;
    if arguments.dry_run {
        outcome::print_plan(&plan, arguments.json)?;
        return Ok(Outcome::Done);
    }
    plan.objects = arguments.objects.as_deref().map(empty).transpose()?;
    let weights = match plan.hold_weights() {
        Ok(weights) => weights,
        Err(why) => {
            host.weights_refused = Some(why.to_string());
            plan = planned(&host)?;
            None
        }
    };
    let folder = RunFolder::new(&plan).map_err(own_failure)?;
    let files = files::place(&plan);
    if !arguments.json {
        plan.weights_line()
            .iter()
            .chain(&files::lines(&plan, &files))
            .for_each(|line| output::message(line));
    }
    let (status, watch, followed) = execute(arguments, &plan, folder.path())?;
    drop(weights);
    let achieved = achieved(&plan, folder.path(), &watch);
    plan.note_unplaced(folder.path());
    let ran = Ran {
        plan: &plan,
        dealt_loops: plan.schedule.map(|_| dealt_loops(folder.path())),
        files: &files,
        achieved: achieved.as_ref(),
        followed: followed.as_ref(),
    };
    outcome::print(ran, arguments.json)?;
    if let Some(path) = &arguments.summary {
        document::Document::of(ran).write(path)?;
    }
    Ok(Outcome::Child(shell_status(status)))
}

fn check_files(arguments: &Arguments) -> anyhow::Result<()> {
    let files = [&arguments.summary, &arguments.objects].into_iter().flatten();
    check_objects(arguments.objects.as_ref())
        .and_then(|()| output::check_new(files, arguments.force))
        .map_err(|e| failure(125, e.to_string()))
}

fn options(arguments: &Arguments) -> Options {
    Options {
        binding: arguments.bind.clone(),
        threads: arguments.threads,
        page_size: arguments.page_size.unwrap_or(PageSize::Auto),
        roles: arguments.roles,
        places: arguments.place.clone(),
        schedule: arguments.schedule,
    }
}

/// This host; for a trace, a pretended one.
fn host(arguments: &Arguments) -> Result<Host, EnforceError> {
    let number = |variable: &str, default| {
        std::env::var(variable)
            .ok()
            .and_then(|v| v.parse().ok())
            .unwrap_or(default)
    };
    if std::env::var_os("NODEWISE_PRELOAD_TRACE").is_some() {
        return Ok(Host::pretended(
            number("NODEWISE_PRELOAD_NODES", 4),
            number("NODEWISE_PRELOAD_CPUS", 4),
        ));
    }
    let list = arguments.nodes.as_deref().map(|text| {
        nodewise_machine::parse_list(text)
            .ok_or_else(|| EnforceError::usage(format!("--nodes {text}: not a list like 0-1,4")))
    });
    Host::this(&list.transpose()?.unwrap_or_default())
}

/// The result of role detection, or the reason why it did not run.
type Followed = Result<FollowedThreads, String>;

/// What was planned, and what came of it.
#[derive(Clone, Copy)]
struct Ran<'a> {
    plan: &'a Plan,
    /// The number of loops that were dealt otherwise than the program asks, if asked for.
    dealt_loops: Option<u64>,
    files: &'a Placed,
    achieved: Option<&'a Achieved>,
    followed: Option<&'a Followed>,
}

fn execute(
    arguments: &Arguments,
    plan: &Plan,
    folder: &Path,
) -> anyhow::Result<(ExitStatus, Watch, Option<Followed>)> {
    let mut command = Command::new(&arguments.command[0]);
    command.args(&arguments.command[1..]);
    let preload = plan.preloads().then(preload).transpose()?;
    if plan.schedule.is_some() {
        companion::find(LoopSchedule::LIBRARY).map_err(|e| failure(125, e.to_string()))?;
    }
    plan.prepare(&mut command, preload.as_deref().unwrap_or(Path::new("")), folder);
    let mut inspection = Inspection {
        table: plan.table.as_ref().filter(|_| plan.objects.is_none()),
        watch: Watch::default(),
        pause: Duration::from_secs(1),
        due: Instant::now() + Duration::from_secs(1),
    };
    let follower = plan.table.as_ref().filter(|_| plan.follows);
    let mut follower = follower.map(|table| ThreadFollower::new(table, folder.to_owned()));
    if plan.objects.is_some() {
        mark::before_exec(&mut command);
    }
    let child = Forwarding::start(&mut command).map_err(|e| cannot_start(&arguments.command[0], &e))?;
    let status = child.wait(Duration::ZERO, |_| {
        let follow = match &mut follower {
            Some(Ok(follower)) => follower.step(),
            _ => NO_INSPECTION,
        };
        follow.min(inspection.step(folder))
    })?;
    if plan.objects.is_some() {
        mark::end();
    }
    let followed = follower.map(|f| f.map(ThreadFollower::finish));
    Ok((status, inspection.watch, followed))
}

/// Inspects on which nodes pages are after 1, 2, 4 … seconds.
struct Inspection<'a> {
    table: Option<&'a Table>,
    watch: Watch,
    pause: Duration,
    due: Instant,
}

impl Inspection<'_> {
    /// Inspects the pages if it is time; returns when to call this again.
    fn step(&mut self, folder: &Path) -> Duration {
        let Some(table) = self.table else {
            return NO_INSPECTION;
        };
        let now = Instant::now();
        if now >= self.due {
            self.watch.look(folder, table);
            self.pause = (self.pause * 2).min(Duration::from_secs(60));
            self.due = now + self.pause;
        }
        self.due.saturating_duration_since(now)
    }
}

fn achieved(plan: &Plan, folder: &Path, watch: &Watch) -> Option<Achieved> {
    let table = plan.table.as_ref()?;
    Achieved::read(folder, table, &plan.origin, plan.rules.len(), watch).ok()
}
