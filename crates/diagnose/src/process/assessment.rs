//! Computes the score of a process from an observation.
//!
//! Without a recording it is unknown which thread uses which page, and how often. Let c be the shares of CPU time and p
//! the shares of memory by node. The score is Σ min(c, p), the share of the memory that is on the nodes where threads
//! run. It is an upper bound of the local fraction if every byte is accessed equally often. If, in addition, every
//! thread accesses all pages equally, the local fraction is Σ c·p.

use super::Observation;
use super::reason::{self, Figures, Reason};
use nodewise_analysis::balance;
use nodewise_linux::Host;
use nodewise_linux::named::Kind;
use nodewise_linux::numa_maps::{Range, RangeKind};
use nodewise_machine::{Machine, NodeId};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::time::Duration;

/// Largest number of memory ranges on overfull nodes that are listed.
const MAX_RANGES_LISTED: usize = 5;

/// Evaluation of a process's placement; the keys are documented in `docs/check.md`.
#[derive(Serialize)]
pub struct Assessment {
    /// Process identifier on this host.
    pub pid: u32,
    /// Name of the process, as the kernel reports it.
    pub name: String,
    /// Σ min(c, p): the share of the memory that is on the nodes where threads run, 0 to 1. It is not a share of
    /// accesses.
    pub score: f64,
    /// Σ c·p: the local fraction if every thread accessed all pages equally.
    pub expected_locality: f64,
    /// Balance of resident bytes over nodes (Diener et al., eq. 3).
    pub page_balance: f64,
    /// Σ c·p·latency: the mean latency if every thread accessed all pages equally, nanoseconds.
    pub mean_latency_ns: f64,
    /// Share of the process's memory traffic that stayed local; `None` if resctrl does not measure it.
    pub measured_local: Option<f64>,
    /// Share of CPU time by node.
    pub cpu_share: Vec<f64>,
    /// Resident bytes by node.
    #[serde(rename = "memory_bytes")]
    pub memory: Vec<u64>,
    /// Number of observed threads.
    pub threads: usize,
    /// Number of threads that changed node.
    #[serde(rename = "threads_moved")]
    pub moved_threads: usize,
    /// Number of changes of node, over all threads.
    pub moves: u32,
    /// How long threads were observed; `None` if they were idle.
    #[serde(rename = "watched_seconds", serialize_with = "seconds")]
    pub watched: Option<Duration>,
    /// Resident bytes by memory policy.
    pub policies: BTreeMap<String, u64>,
    /// The largest memory ranges on overfull nodes, the largest first.
    pub ranges: Vec<Placed>,
    /// Number of further ranges on overfull nodes.
    pub ranges_left_out: usize,
    /// The reasons for the score, the most important first.
    pub reasons: Vec<Reason>,
}

/// A memory range and its distribution over nodes.
#[derive(Serialize)]
pub struct Placed {
    /// First address of the range.
    #[serde(serialize_with = "hexadecimal")]
    pub start: u64,
    /// `heap`, `stack`, `anonymous`, a file's path, or how shared memory is called: `shm:NAME`, `memfd:NAME`, `shared:`.
    pub what: String,
    /// Whether other processes can map it too.
    pub shared: bool,
    /// Memory policy as `numa_maps` writes it: `default`, `interleave:0-3`.
    pub policy: String,
    /// Resident bytes by node.
    pub bytes: Vec<u64>,
}

fn seconds<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|t| t.as_secs_f64()).serialize(to)
}

fn hexadecimal<S: Serializer>(address: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{address:x}"))
}

impl Assessment {
    /// Evaluates an observation; `host` tells whether automatic NUMA balancing is on.
    #[must_use]
    pub fn of(observation: &Observation, machine: &Machine, host: &Host) -> Self {
        let placed: Vec<Placed> = observation
            .ranges
            .iter()
            .map(|r| Placed::of(r, machine))
            .collect();
        let memory = memory(observation, &placed, machine.node_count());
        let (c, p) = (
            shares(&cpu_time(observation, machine.node_count())),
            shares(&memory),
        );
        let bounds = Bounds::of(&c, &p, machine);
        let moves = observation.threads.iter().map(|t| t.moves);
        let policies = policies(&placed);
        let figures = Figures {
            cpu_share: &c,
            memory: &memory,
            memory_share: &p,
            policies: &policies,
            threads: observation.threads.len(),
            moved_threads: moves.clone().filter(|m| *m > 0).count(),
            moves: moves.sum(),
            watched: observation.watched,
            measured_local: observation.measured_local,
        };
        let reasons = reason::of(&figures, &observation.status, machine, host);
        let mut ranges = ranges_on_overfull_nodes(placed, &c, &p);
        let ranges_left_out = ranges.len().saturating_sub(MAX_RANGES_LISTED);
        ranges.truncate(MAX_RANGES_LISTED);
        Self {
            pid: observation.pid,
            name: observation.status.name.clone(),
            score: bounds.most,
            expected_locality: bounds.alike,
            page_balance: balance(&memory),
            mean_latency_ns: bounds.latency_ns,
            threads: figures.threads,
            moved_threads: figures.moved_threads,
            moves: figures.moves,
            watched: figures.watched,
            measured_local: figures.measured_local,
            policies,
            ranges,
            ranges_left_out,
            cpu_share: c,
            memory,
            reasons,
        }
    }

    /// Share of memory by node.
    #[must_use]
    pub fn memory_share(&self) -> Vec<f64> {
        shares(&self.memory)
    }
}

/// Local fractions that follow from the shares of CPU time and memory.
struct Bounds {
    most: f64,
    alike: f64,
    latency_ns: f64,
}

impl Bounds {
    fn of(cpu: &[f64], memory: &[f64], machine: &Machine) -> Self {
        let sum = |shares: &[f64]| shares.iter().sum::<f64>();
        if machine.node_count() == 1 || sum(cpu) == 0.0 || sum(memory) == 0.0 {
            return Self {
                most: 1.0,
                alike: 1.0,
                latency_ns: machine.latency(NodeId(0), NodeId(0)),
            };
        }
        let both = |reader: NodeId, at: NodeId| cpu[reader.index()] * memory[at.index()];
        let cells = machine
            .node_ids()
            .flat_map(|r| machine.node_ids().map(move |m| (r, m)));
        Self {
            most: cpu.iter().zip(memory).map(|(c, p)| c.min(*p)).sum(),
            alike: machine.node_ids().map(|n| both(n, n)).sum(),
            latency_ns: cells.map(|(r, m)| both(r, m) * machine.latency(r, m)).sum(),
        }
    }
}

fn cpu_time(observation: &Observation, nodes: usize) -> Vec<u64> {
    let mut cpu = vec![0; nodes];
    for (node, time) in observation.threads.iter().flat_map(|t| &t.time) {
        cpu[node.index()] += time;
    }
    cpu
}

/// Resident bytes by node. On one node, the size in the process's status is used, because ranges are not read.
fn memory(observation: &Observation, placed: &[Placed], nodes: usize) -> Vec<u64> {
    match nodes {
        1 => vec![observation.status.resident],
        _ => (0..nodes)
            .map(|n| placed.iter().map(|p| p.bytes[n]).sum())
            .collect(),
    }
}

fn policies(placed: &[Placed]) -> BTreeMap<String, u64> {
    let mut held = BTreeMap::new();
    for range in placed {
        *held.entry(range.policy.clone()).or_default() += range.bytes.iter().sum::<u64>();
    }
    held
}

impl Placed {
    fn of(range: &Range, machine: &Machine) -> Self {
        let mut bytes = vec![0; machine.node_count()];
        for (os_index, amount) in range.bytes() {
            if let Some(node) = machine.nodes.iter().position(|n| n.os_index == os_index) {
                bytes[node] += amount;
            }
        }
        let what = match &range.kind {
            RangeKind::Heap => "heap".to_owned(),
            RangeKind::Stack => "stack".to_owned(),
            RangeKind::File(path) => Kind::called(path).into_owned(),
            RangeKind::Anonymous => "anonymous".to_owned(),
        };
        Self {
            start: range.start,
            what,
            shared: matches!(range.kind, RangeKind::File(_)),
            policy: range.policy.clone(),
            bytes,
        }
    }
}

/// Ranges in descending order of their bytes on overfull nodes, which have a larger share of the memory than of the CPU
/// time.
fn ranges_on_overfull_nodes(mut ranges: Vec<Placed>, cpu: &[f64], memory: &[f64]) -> Vec<Placed> {
    let overfull = |n: usize| memory[n] > cpu[n] + 0.05;
    let misplaced = |range: &Placed| -> u64 {
        (0..cpu.len())
            .filter(|n| overfull(*n))
            .map(|n| range.bytes[n])
            .sum()
    };
    ranges.retain(|r| misplaced(r) > 0);
    ranges.sort_by_key(|r| std::cmp::Reverse(misplaced(r)));
    ranges
}

fn shares(amounts: &[u64]) -> Vec<f64> {
    let total: u64 = amounts.iter().sum();
    amounts
        .iter()
        .map(|a| if total > 0 { *a as f64 / total as f64 } else { 0.0 })
        .collect()
}
