//! Converts the command line to the settings of the live loop.

use super::Arguments;
use crate::commands::migrate::may_move_shared;
use crate::launch::check_objects;
use crate::output;
use anyhow::bail;
use clap::ValueEnum;
use nodewise_enforce::Binding;
use nodewise_linux::Host;
use nodewise_live::{Options, Target, ThreadMoves, Topology};
use nodewise_machine::{Machine, MemoryKind};
use nodewise_observe::faults::Sensor;
use nodewise_placement::migration_policy;

/// What decides about threads, as written.
#[derive(Clone, Copy, ValueEnum)]
pub enum Threads {
    /// Asym with --machine, else groups
    Auto,
    /// Groups of threads that share memory
    Groups,
    /// Nodes with the widest links (AsymSched)
    Asym,
    /// Threads stay where the kernel puts them
    Off,
}

impl Threads {
    fn of(self, links_known: bool) -> ThreadMoves {
        match self {
            Self::Auto if links_known => ThreadMoves::Asym,
            Self::Auto | Self::Groups => ThreadMoves::Groups,
            Self::Asym => ThreadMoves::Asym,
            Self::Off => ThreadMoves::Off,
        }
    }
}

/// The processes to balance: running ones, a control group, or a command to start.
pub fn target(arguments: &Arguments) -> anyhow::Result<Target> {
    if arguments.threads.is_some() && arguments.command.is_empty() {
        bail!(
            "--threads: running processes have the threads they have; it is for a command to start, --move-threads for both"
        );
    }
    match (
        &arguments.cgroup,
        arguments.pid.as_slice(),
        arguments.command.as_slice(),
    ) {
        (Some(path), _, _) => Ok(Target::group(path)?),
        (None, [], []) => {
            bail!("balance what? --pid N, --cgroup PATH or -- CMD; see nodewise balance --help")
        }
        (None, [], words) => Ok(Target::Command(words.to_vec())),
        (None, pids, _) => Ok(Target::Processes(pids.to_vec())),
    }
}

/// How accesses are sampled, as written.
#[derive(Clone, Copy, ValueEnum)]
pub enum SamplingMethod {
    Auto,
    #[value(alias = "faults")]
    HintFaults,
    Userfaultfd,
    Damon,
}

impl From<SamplingMethod> for Sensor {
    fn from(by: SamplingMethod) -> Self {
        match by {
            SamplingMethod::Auto => Self::Auto,
            SamplingMethod::HintFaults => Self::HintFaults,
            SamplingMethod::Userfaultfd => Self::Userfaultfd,
            SamplingMethod::Damon => Self::Damon,
        }
    }
}

/// Refuses a policy that does not exist, or that is not written as its kind is. Where one node leaves nothing to decide, that is all:
/// a policy that names other nodes, up to 63, of whatever memory, passes.
pub fn check_policy(arguments: &Arguments, topology: &Topology) -> anyhow::Result<()> {
    let policy = options(arguments).policy;
    match topology.single() {
        true => migration_policy(&policy, &with_nodes_of_all_kinds()?)?,
        false => migration_policy(&policy, &topology.machine)?,
    };
    Ok(())
}

/// Refuses what the kernel would.
pub fn check_privileges(arguments: &Arguments) -> anyhow::Result<()> {
    may_move_shared(arguments.shared, &Host::default())
}

/// This machine, as if it had 64 nodes with memory of every kind.
fn with_nodes_of_all_kinds() -> anyhow::Result<Machine> {
    let mut machine = Topology::this(&Host::default(), None, Some(64))?.machine;
    let kinds = MemoryKind::all().into_iter().cycle();
    for (node, kind) in machine.nodes.iter_mut().zip(kinds) {
        (node.kind, node.memory) = (Some(kind), 1 << 40);
    }
    Ok(machine)
}

/// Options of the live loop.
pub fn options(arguments: &Arguments) -> Options {
    let defaults = Options::default();
    let move_threads = arguments.move_threads.of(arguments.machine.is_some());
    Options {
        policy: arguments.policy.clone().unwrap_or(defaults.policy),
        interval: arguments.interval,
        budget: arguments.migrate_budget,
        observe: arguments.observe_budget,
        rate_limit: arguments.rate_limit,
        minimum_samples: arguments.minimum_samples,
        page_shift: arguments.page_size,
        sensor: arguments.sensor.into(),
        scan_period: arguments.scan_period,
        shared: arguments.shared,
        freeze: arguments.freeze,
        dry_run: arguments.dry_run,
        move_threads,
        // Under AsymSched a binding says where threads begin; otherwise it is there to stay.
        bound: arguments.bind != Binding::None && move_threads == ThreadMoves::Asym,
        restore: arguments.restore,
        niceness_while_held: None,
    }
}

/// Environment variable with a number of nodes to make up, between which nothing is really moved.
const PRETENDED_NODES_VARIABLE: &str = "NODEWISE_PRETEND_NODES";

/// The nodes of this host and their links.
pub fn topology(arguments: &Arguments) -> anyhow::Result<Topology> {
    let pretend = std::env::var(PRETENDED_NODES_VARIABLE)
        .ok()
        .and_then(|n| n.parse().ok());
    Ok(Topology::this(
        &Host::default(),
        arguments.machine.as_deref(),
        pretend,
    )?)
}

/// Checks that output files can be written, before anything is started.
pub fn check_files(arguments: &Arguments) -> anyhow::Result<()> {
    check_objects(arguments.objects.as_ref())?;
    let metrics = arguments.metrics.as_ref();
    output::check_named("--metrics", metrics, "it is replaced after each interval")?;
    metrics.map_or(Ok(()), |file| output::check_folder(file))?;
    let files = [&arguments.summary, &arguments.objects].into_iter().flatten();
    output::check_new(files, arguments.force)
}
