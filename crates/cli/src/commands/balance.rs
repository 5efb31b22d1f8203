//! `nodewise balance`: moves pages of running programs to the nodes that use them. Behaviour and guarantees:
//! `docs/balance.md`.

mod attach;
mod command;
mod document;
mod page;
mod settings;
mod start;
mod terminal;

use crate::arguments::{one_of, period, share};
use crate::exit::Outcome;
use nodewise_enforce::Binding;
use nodewise_live::Target;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args)]
pub struct Arguments {
    /// The migration policy: out-u, out-w, in-w, next-touch, dominant, carrefour, …, with parameters:
    /// out-w:threshold=3. It alone moves pages of a command then [default: dominant, beside the kernel's own balancing]
    #[arg(long, value_name = "P")]
    policy: Option<String>,
    /// Running processes, with the children they start
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',')]
    pid: Vec<u32>,
    /// All processes of a control group (version 2), those that come into it too
    #[arg(long, value_name = "PATH", conflicts_with = "pid")]
    cgroup: Option<PathBuf>,
    /// How threads get nodes: groups of threads that share memory are kept together; asym: each process has nodes of its
    /// own with the widest links; auto: asym with --machine, else groups
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_value = "auto", default_missing_value = "asym",
          value_parser = one_of::<settings::Threads>())]
    move_threads: settings::Threads,
    /// Threads to run CMD with: sets `OMP_NUM_THREADS`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,
    /// How nodes are linked: a machine's name or file, as `topo --measure -o` writes it [default: guessed from
    /// distances]
    #[arg(long, value_name = "M")]
    machine: Option<String>,
    /// Give threads back the CPUs that they had, at the end
    #[arg(long)]
    restore: bool,
    /// How CMD's threads are bound: compact, scatter, identity, cpus:LIST, likwid:EXPR, hwloc:EXPR, file:FILE, none
    #[arg(long, value_name = "T", default_value = "none", requires = "command")]
    bind: Binding,
    /// Time between two decisions
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = period)]
    interval: Duration,
    /// The share of run time that migrating may take
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = share)]
    migrate_budget: f64,
    /// The share of the programs' CPU time that observing may take
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = share)]
    observe_budget: f64,
    /// Limit migration bandwidth, in MB/s
    #[arg(long, value_name = "MB/s")]
    rate_limit: Option<f64>,
    /// Samples of a page before it is judged
    #[arg(long, value_name = "K", default_value_t = 2)]
    minimum_samples: u32,
    /// Decide for pages of 4K or 2M [default: 2M where the kernel makes huge pages by itself, else 4K]
    #[arg(long, value_name = "SIZE", value_parser = crate::arguments::page_shift)]
    page_size: Option<u32>,
    /// How accesses are sampled: by the kernel's hint faults (kernel.numa_balancing=1), or by userfaultfd, which needs no balancing
    /// but Linux 6.8 and root; by DAMON, which counts accesses to all mapped memory and does not say whose, for hot:NODES; auto: hint
    /// faults where they are on
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = one_of::<settings::SamplingMethod>())]
    sensor: settings::SamplingMethod,
    /// Set the kernel's NUMA scan period for all processes (root; restored on exit)
    #[arg(long, value_name = "TIME", value_parser = period)]
    scan_period: Option<Duration>,
    /// Also move pages that several processes map, for all of them: shared memory (root). Their samples count as one
    #[arg(long)]
    shared: bool,
    /// Stop the process (SIGSTOP) around each batch of moves; a watchdog continues it if nodewise is killed
    #[arg(long)]
    freeze: bool,
    /// Decide and log, and move nothing
    #[arg(long)]
    dry_run: bool,
    /// Log every migration as it is made, not only their number
    #[arg(long, short)]
    verbose: bool,
    /// Print the summary as JSON on standard output
    #[arg(long)]
    json: bool,
    /// Write the summary to a file, as JSON
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Write figures to a file after each interval, for node_exporter's textfile collector
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// Write what was sampled and moved as a profile
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Show the session as a page while it runs, as `serve` does, at this port or any; without -o its profile goes to
    /// the first unused nodewise-profile-N
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    page: Option<u16>,
    /// List the large objects of CMD with their pages, in the same format as `run --objects`
    #[arg(long, value_name = "FILE", requires = "command")]
    objects: Option<PathBuf>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// A program to start, and its arguments
    #[arg(trailing_var_arg = true, value_name = "CMD", conflicts_with_all = ["pid", "cgroup"])]
    command: Vec<OsString>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    match settings::target(arguments)? {
        Target::Command(words) => command::run(arguments, words),
        target => attach::run(arguments, &target),
    }
}
