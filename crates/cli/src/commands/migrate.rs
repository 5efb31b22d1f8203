//! `nodewise migrate`: moves pages of a running process between nodes.

mod findings;
mod metric;
mod nodes;
mod search;

use crate::exit::Outcome;
use crate::output;
use anyhow::{Context, bail};
use findings::Findings;
use indicatif::{ProgressBar, ProgressStyle};
use nodewise_enforce::EnforceError;
use nodewise_enforce::mover::{self, CHUNK, Moved, Mover, Plan};
use nodewise_linux::Host;
use nodewise_linux::freeze::Frozen;
use nodewise_linux::mempolicy::decline_balancing;
use nodewise_linux::pages::Scope;
use nodewise_linux::process::Capability;
use nodewise_placement::Deal;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct Arguments {
    /// The process; also as --pid
    #[arg(value_name = "PID", required_unless_present = "option_pid")]
    pid: Option<u32>,
    /// The process
    #[arg(long = "pid", id = "option_pid", value_name = "N", conflicts_with = "pid")]
    option_pid: Option<u32>,
    /// Nodes to take pages from, by the kernel's numbers: 0, 0-3, 0,2 [with --shares default: all]
    #[arg(long, value_name = "LIST", required_unless_present = "shares")]
    from: Option<String>,
    /// Target nodes: pages of the i-th --from node go to the i-th node listed here; a shorter list is repeated [with
    /// --shares default: all nodes with memory]
    #[arg(long, value_name = "LIST", required_unless_present = "shares")]
    to: Option<String>,
    /// Deal all pages over the --to nodes in these proportions, exact to one page in each hundred: 70,30
    #[arg(long, value_name = "W,…", value_delimiter = ',', conflicts_with = "stock",
          allow_negative_numbers = true, value_parser = nodes::share)]
    shares: Vec<u32>,
    /// Find the share of pages on the --to nodes at which this shell command prints the largest number, in 15 steps; the
    /// others are on the --from nodes, and stay so
    #[arg(long, value_name = "CMD", conflicts_with_all = ["shares", "stock", "freeze", "dry_run"])]
    metric: Option<String>,
    /// The smallest number is the best one, as of a time
    #[arg(long, requires = "metric")]
    lowest: bool,
    /// The command prints a count that grows, such as requests served: its rate is the metric
    #[arg(long, requires = "metric")]
    counter: bool,
    /// How long each share is measured
    #[arg(long, value_name = "TIME", default_value = "2s", requires = "metric", value_parser = crate::arguments::duration)]
    period: Duration,
    /// Stop the process during the migration; a watchdog continues it if nodewise is killed
    #[arg(long)]
    freeze: bool,
    /// Pages of 4 KiB handed to the kernel at a time; AsymSched took 30000
    #[arg(long, value_name = "N", default_value_t = CHUNK as u32, value_parser = clap::value_parser!(u32).range(1..))]
    chunk: u32,
    /// Worker threads [default: 4 per pair of nodes, at most one per CPU of the target nodes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    workers: Option<u32>,
    /// Let the kernel do it in its own way, by one call of migrate_pages(2): for comparison
    #[arg(long, conflicts_with_all = ["chunk", "workers"])]
    stock: bool,
    /// Also move pages that other processes map too: shared memory, files (root). It moves them for those as well
    #[arg(long, conflicts_with = "stock")]
    shared: bool,
    /// Say what would move, and move nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: every figure and every chunk, stable keys
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn pid(&self) -> u32 {
        self.pid.or(self.option_pid).unwrap_or_default()
    }

    fn scope(&self) -> Scope {
        if self.shared {
            Scope::Shared
        } else {
            Scope::Exclusive
        }
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let host = Host::default();
    // Before Linux 6.6 querying a hidden page counts as an access: balancing must not move pages to the CPU that
    // queries them.
    decline_balancing();
    if let Some(command) = &arguments.metric {
        may_move_shared(arguments.shared, &host)?;
        return search::run(arguments, command);
    }
    let request = Request::of(arguments, &host)?;
    let (named, targets) = request.nodes();
    nodes::check(&host, arguments.pid(), &named, &targets)?;
    may_move_shared(arguments.shared, &host)?;
    let name = host.status(arguments.pid()).map(|s| s.name).unwrap_or_default();
    let frozen = freeze(arguments)?;
    let start = Instant::now();
    let plan = request.plan(arguments.pid(), arguments.scope())?;
    let planned = start.elapsed();
    let moved = match (arguments, &request) {
        (Arguments { dry_run: true, .. }, _) => None,
        (Arguments { stock: true, .. }, Request::Nodes(pairs)) => Some(mover::migrate_pages(&plan, pairs)?),
        _ => Some(ours(arguments, &plan)?),
    };
    let frozen = frozen.and_then(Frozen::resume);
    let nodes = match &request {
        Request::Shares { .. } if !arguments.dry_run => {
            host.resident_by_node(arguments.pid()).unwrap_or_default()
        }
        _ => BTreeMap::new(),
    };
    let findings = Findings {
        nodes,
        name,
        plan,
        planned,
        frozen,
        chunk: (!arguments.stock).then_some(arguments.chunk),
        moved,
    };
    output::print(&if arguments.json {
        findings.json()?
    } else {
        findings.text()
    })?;
    Ok(Outcome::Done)
}

/// Refuses `--shared` where the kernel would.
pub fn may_move_shared(shared: bool, host: &Host) -> anyhow::Result<()> {
    let may = || host.own_status().is_ok_and(|own| own.has(Capability::SysNice));
    if shared && !may() {
        bail!(
            "--shared: moving pages that other processes map needs CAP_SYS_NICE; run as root, or leave it out"
        );
    }
    Ok(())
}

/// What is to go where.
enum Request {
    /// All pages of a node to another one.
    Nodes(Vec<(u32, u32)>),
    /// Pages on some nodes dealt over others.
    Shares {
        from: Vec<u32>,
        to: Vec<u32>,
        deal: Deal,
    },
}

impl Request {
    fn of(arguments: &Arguments, host: &Host) -> anyhow::Result<Self> {
        let named = |text: &Option<String>| text.clone().unwrap_or_default();
        let (from, to) = (named(&arguments.from), named(&arguments.to));
        if arguments.shares.is_empty() {
            return Ok(Self::Nodes(nodes::pairs(&from, &to, arguments.stock)?));
        }
        if nodes::with_memory(host)?.len() < 2 {
            return Ok(Self::Nodes(Vec::new())); // which is said next
        }
        let all = nodes::of_process(host, arguments.pid())?;
        let listed = |option, text: &Option<String>| match text {
            Some(text) => nodes::distinct(option, text),
            None => Ok(all.clone()),
        };
        let (from, to) = (listed("--from", &arguments.from)?, listed("--to", &arguments.to)?);
        let deal = nodes::deal(&arguments.shares, &to)?;
        Ok(Self::Shares { from, to, deal })
    }

    /// The nodes that are named, and those of them that pages go to.
    fn nodes(&self) -> (Vec<u32>, Vec<u32>) {
        match self {
            Self::Nodes(pairs) => {
                let (from, to): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
                ([from, to.clone()].concat(), to)
            }
            Self::Shares { from, to, deal } => {
                let gets_pages = |n: &usize| deal.nodes().any(|node| node.index() == *n);
                let targets = (0..to.len()).filter(gets_pages).map(|n| to[n]);
                ([from.clone(), to.clone()].concat(), targets.collect())
            }
        }
    }

    fn plan(&self, pid: u32, scope: Scope) -> Result<Plan, EnforceError> {
        match self {
            Self::Nodes(pairs) => Plan::of_nodes(pid, pairs, scope),
            Self::Shares { from, to, deal } => Plan::of_shares(pid, from, (to, deal), scope),
        }
    }
}

fn freeze(arguments: &Arguments) -> anyhow::Result<Option<Frozen>> {
    if !arguments.freeze || arguments.dry_run {
        return Ok(None);
    }
    let frozen = Frozen::stop(arguments.pid());
    let frozen = frozen.with_context(|| {
        format!(
            "cannot stop process {}; run as its owner or as root (CAP_KILL), or leave --freeze out",
            arguments.pid()
        )
    })?;
    Ok(Some(frozen))
}

fn ours(arguments: &Arguments, plan: &Plan) -> anyhow::Result<Moved> {
    let mover = Mover::new(arguments.workers.unwrap_or(0) as usize)
        .with_chunk(arguments.chunk as usize)
        .with_scope(arguments.scope());
    let bar = ProgressBar::new(plan.pages() << 12);
    let style = "{bar:40} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
    let moved = mover.carry_out(plan, &|pages| bar.inc(pages << 12))?;
    bar.finish_and_clear();
    Ok(moved)
}
