//! `nodewise migrate`: moves pages of a running process between nodes.

mod findings;
mod nodes;

use crate::exit::Outcome;
use crate::output;
use anyhow::{Context, bail};
use findings::Findings;
use indicatif::{ProgressBar, ProgressStyle};
use nodewise_enforce::mover::{self, CHUNK, Moved, Mover, Plan};
use nodewise_linux::Host;
use nodewise_linux::freeze::Frozen;
use nodewise_linux::mempolicy::decline_balancing;
use nodewise_linux::pages::Scope;
use nodewise_linux::process::Capability;
use std::time::Instant;

#[derive(clap::Args)]
pub struct Arguments {
    /// The process; also as --pid
    #[arg(value_name = "PID", required_unless_present = "option_pid")]
    pid: Option<u32>,
    /// The process
    #[arg(long = "pid", id = "option_pid", value_name = "N", conflicts_with = "pid")]
    option_pid: Option<u32>,
    /// Nodes to take pages from, by the kernel's numbers: 0, 0-3, 0,2
    #[arg(long, value_name = "LIST")]
    from: String,
    /// Target nodes: pages of the i-th --from node go to the i-th node listed here; a shorter list is repeated
    #[arg(long, value_name = "LIST")]
    to: String,
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
    let pairs = nodes::pairs(&arguments.from, &arguments.to, arguments.stock)?;
    nodes::check(&host, arguments.pid(), &pairs)?;
    let may_move_shared = || host.own_status().is_ok_and(|own| own.has(Capability::SysNice));
    if arguments.shared && !may_move_shared() {
        bail!(
            "--shared: moving pages that other processes map needs CAP_SYS_NICE; run as root, or leave it out"
        );
    }
    let name = host.status(arguments.pid()).map(|s| s.name).unwrap_or_default();
    // Before Linux 6.6 querying a hidden page counts as an access: balancing must not move pages to the CPU that
    // queries them.
    decline_balancing();
    let frozen = freeze(arguments)?;
    let start = Instant::now();
    let plan = Plan::of_nodes(arguments.pid(), &pairs, arguments.scope())?;
    let planned = start.elapsed();
    let moved = match arguments {
        Arguments { dry_run: true, .. } => None,
        Arguments { stock: true, .. } => Some(mover::migrate_pages(&plan, &pairs)?),
        _ => Some(ours(arguments, &plan)?),
    };
    let frozen = frozen.and_then(Frozen::resume);
    let findings = Findings {
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
