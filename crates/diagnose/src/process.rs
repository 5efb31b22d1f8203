//! Evaluates the placement of running processes from what the kernel reports: CPU time by thread and node, and
//! `numa_maps`. `docs/check.md` describes the score.

mod assessment;
mod observation;
mod reason;

pub use assessment::{Assessment, Placed};
pub use observation::{Observation, Thread, observe};
pub use reason::Reason;

use anyhow::bail;
use nodewise_linux::{Host, ReadError};
use nodewise_machine::Machine;
use serde::Serialize;
use std::io::ErrorKind;
use std::time::Duration;

/// Smallest resident memory, bytes, of a process that is checked without being named.
const MIN_RESIDENT_BYTES: u64 = 16 << 20;
/// Largest number of processes that are checked without being named: they fit a screen and are read in two seconds.
const MAX_PROCESSES: usize = 12;

/// The result of a check. `check --json` serialises it without changes.
#[derive(Serialize)]
pub struct Check {
    /// Name of the machine whose latencies were used.
    #[serde(rename = "machine")]
    pub name: String,
    /// Number of memory nodes of the machine.
    pub nodes: usize,
    /// Scores below this fail, 0 to 1.
    pub threshold: f64,
    /// Whether the score of every process reaches the threshold.
    pub passed: bool,
    /// Number of processes that this user may not inspect.
    pub unreadable: usize,
    /// Number of processes that are large enough, but not checked, as others are larger.
    pub left_out: usize,
    /// The checked processes, lowest score first.
    pub processes: Vec<Assessment>,
    /// The machine whose latencies were used.
    #[serde(skip)]
    pub machine: Machine,
}

impl Check {
    /// Observes the processes `pids` for the duration `watch`. If `pids` is empty, the largest processes of this user
    /// are observed (for root, of all users). `machine` is a name or file whose latencies replace the kernel's
    /// distances, or `this`.
    ///
    /// # Errors
    /// A process does not exist, ends, or may not be read; or the machine has another number of nodes than this host.
    pub fn of(
        host: &Host,
        machine: &str,
        pids: &[u32],
        watch: Duration,
        threshold: f64,
    ) -> anyhow::Result<Self> {
        let machine = machine_here(host, machine)?;
        let (observations, [unreadable, left_out]) = match pids {
            [] => largest(host, &machine, watch)?,
            pids => (named(host, &machine, pids, watch)?, [0, 0]),
        };
        let assess = |o: &Observation| Assessment::of(o, &machine, host);
        let mut processes: Vec<Assessment> = observations.iter().map(assess).collect();
        processes.sort_by(|a, b| a.score.total_cmp(&b.score));
        Ok(Self {
            name: machine.name.clone(),
            nodes: machine.node_count(),
            threshold,
            passed: processes.iter().all(|p| p.score >= threshold),
            unreadable,
            left_out,
            processes,
            machine,
        })
    }
}

/// The host's nodes. If `name` is another machine, its latencies are used; it must have the same number of nodes.
fn machine_here(host: &Host, name: &str) -> anyhow::Result<Machine> {
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

/// Observes the largest processes of this user (for root, of all users); also returns how many could not be read, and
/// how many are left out because others are larger.
fn largest(
    host: &Host,
    machine: &Machine,
    watch: Duration,
) -> anyhow::Result<(Vec<Observation>, [usize; 2])> {
    let own = host.own_status()?;
    let mut sizes: Vec<(u64, u32)> = Vec::new();
    for pid in host.pids()?.into_iter().filter(|pid| *pid != std::process::id()) {
        let Ok(status) = host.status(pid) else { continue };
        if status.resident >= MIN_RESIDENT_BYTES && (own.uid == 0 || status.uid == own.uid) {
            sizes.push((status.resident, pid));
        }
    }
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let pids: Vec<u32> = sizes.iter().take(MAX_PROCESSES).map(|(_, pid)| *pid).collect();
    let found = observe(host, machine, &pids, watch);
    let denied = |e: &ReadError| e.kind() == ErrorKind::PermissionDenied;
    let unreadable = found.iter().filter(|f| f.as_ref().is_err_and(denied)).count();
    let left_out = sizes.len() - pids.len();
    Ok((found.into_iter().flatten().collect(), [unreadable, left_out]))
}
