//! `nodewise check`: how well placed running processes are, in one number and its reasons.
//! What the number means and how it is got: `docs/check.md`.

mod assessment;
mod json;
mod observation;
mod reason;
mod text;

use crate::exit::Outcome;
use crate::output::{self, Screen};
use anyhow::bail;
use assessment::Assessment;
use nodewise_linux::{Host, ReadError};
use nodewise_machine::Machine;
use observation::{Observation, observe};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

/// Smaller processes are not worth a look unless asked for by number.
const SMALLEST: u64 = 16 << 20;
/// So many processes fit a screen and are read in two seconds.
const MOST: usize = 12;

#[derive(clap::Args)]
pub struct Arguments {
    /// The processes to look at, worst first [default: your largest]
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',')]
    pid: Vec<u32>,
    /// Print JSON: every figure, stable keys
    #[arg(long)]
    json: bool,
    /// Exit with 1 when the number is below P per cent
    #[arg(long, value_name = "P", default_value_t = 70.0)]
    threshold: f64,
    /// How long to watch threads; 0 takes their CPU time since they started
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    seconds: f64,
    /// Take latencies from this machine instead of the kernel's distances: a name or a machine file
    #[arg(long, value_name = "M", default_value = "this")]
    machine: String,
    /// Read proc and sys below another root than /
    #[arg(long, value_name = "DIR", hide = true)]
    root: Option<PathBuf>,
}

/// Everything that was found out.
pub struct Findings {
    pub machine: Machine,
    /// As a fraction.
    pub threshold: f64,
    /// Worst first.
    pub processes: Vec<Assessment>,
    /// Processes that may not be looked into.
    pub unreadable: usize,
}

impl Findings {
    fn passed(&self) -> bool {
        self.processes.iter().all(|p| p.score >= self.threshold)
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    if !(0.0..=100.0).contains(&arguments.threshold) || !(0.0..=3600.0).contains(&arguments.seconds) {
        bail!("--threshold takes 0 to 100 per cent, --seconds 0 to 3600");
    }
    let host = arguments.root.as_deref().map_or_else(Host::default, Host::at);
    let machine = machine(&host, &arguments.machine)?;
    let watch = Duration::from_secs_f64(arguments.seconds);
    let (observations, unreadable) = match arguments.pid.as_slice() {
        [] => largest(&host, &machine, watch)?,
        pids => (named(&host, &machine, pids, watch)?, 0),
    };
    let assess = |o: &Observation| Assessment::of(o, &machine, &host);
    let mut processes: Vec<Assessment> = observations.iter().map(assess).collect();
    processes.sort_by(|a, b| a.score.total_cmp(&b.score));
    let threshold = arguments.threshold / 100.0;
    let findings = Findings {
        machine,
        threshold,
        processes,
        unreadable,
    };
    output::print(&written(&findings, arguments)?)?;
    Ok(if findings.passed() {
        Outcome::Done
    } else {
        Outcome::CheckFailed
    })
}

fn written(findings: &Findings, arguments: &Arguments) -> anyhow::Result<String> {
    let screen = Screen::of_stdout();
    Ok(match arguments.pid.len() {
        _ if arguments.json => serde_json::to_string_pretty(&json::Check::of(findings))? + "\n",
        1 => text::one(findings, screen),
        _ => text::table(findings, screen),
    })
}

/// The host's nodes; another machine lends its latencies when it has as many.
fn machine(host: &Host, name: &str) -> anyhow::Result<Machine> {
    let mut this = Machine::from_sysfs(&host.sys(), "this")?;
    if name != "this" {
        let other = Machine::load(name)?;
        if other.node_count() != this.node_count() {
            bail!(
                "{name} has {} nodes, this host {}; leave --machine out",
                other.node_count(),
                this.node_count()
            );
        }
        this.latency_ns = other.latency_ns;
        this.name = other.name;
    }
    Ok(this)
}

fn named(host: &Host, machine: &Machine, pids: &[u32], watch: Duration) -> anyhow::Result<Vec<Observation>> {
    if let Some(pid) = pids.iter().find(|pid| !host.has_process(**pid)) {
        bail!("no process {pid}; `nodewise check` alone lists yours");
    }
    let found = observe(host, machine, pids, watch);
    let explained = |(pid, found): (&u32, Result<Observation, ReadError>)| {
        found.map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied => anyhow::anyhow!("{error}; run as its owner, or as root"),
            ErrorKind::NotFound => anyhow::anyhow!("process {pid} ended meanwhile"),
            _ => error.into(),
        })
    };
    pids.iter().zip(found).map(explained).collect()
}

/// The largest processes of this user (of everybody for root), and how many could not be read.
fn largest(host: &Host, machine: &Machine, watch: Duration) -> anyhow::Result<(Vec<Observation>, usize)> {
    let own = host.own_status()?;
    let mut sizes: Vec<(u64, u32)> = Vec::new();
    for pid in host.pids()?.into_iter().filter(|pid| *pid != std::process::id()) {
        let Ok(status) = host.status(pid) else { continue };
        if status.resident >= SMALLEST && (own.uid == 0 || status.uid == own.uid) {
            sizes.push((status.resident, pid));
        }
    }
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let pids: Vec<u32> = sizes.iter().take(MOST).map(|(_, pid)| *pid).collect();
    let found = observe(host, machine, &pids, watch);
    let denied = |e: &ReadError| e.kind() == ErrorKind::PermissionDenied;
    let unreadable = found.iter().filter(|f| f.as_ref().is_err_and(denied)).count();
    Ok((found.into_iter().flatten().collect(), unreadable))
}
