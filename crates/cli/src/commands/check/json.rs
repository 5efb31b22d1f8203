//! The findings as JSON; keys are documented in `docs/check.md`.

use super::Findings;
use super::assessment::{Assessment, Placed};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub struct Check<'a> {
    machine: &'a str,
    nodes: usize,
    threshold: f64,
    passed: bool,
    unreadable: usize,
    processes: Vec<Process<'a>>,
}

#[derive(Serialize)]
struct Process<'a> {
    pid: u32,
    name: &'a str,
    score: f64,
    expected_locality: f64,
    page_balance: f64,
    mean_latency_ns: f64,
    measured_local: Option<f64>,
    cpu_share: &'a [f64],
    memory_bytes: &'a [u64],
    threads: usize,
    threads_moved: usize,
    moves: u32,
    watched_seconds: Option<f64>,
    policies: &'a BTreeMap<String, u64>,
    ranges: Vec<Range<'a>>,
    reasons: Vec<Reason<'a>>,
}

#[derive(Serialize)]
struct Range<'a> {
    start: String,
    what: &'a str,
    policy: &'a str,
    bytes: &'a [u64],
}

#[derive(Serialize)]
struct Reason<'a> {
    kind: &'a str,
    text: &'a str,
    mend: Option<&'a str>,
}

impl<'a> Check<'a> {
    pub fn of(findings: &'a Findings) -> Self {
        Self {
            machine: &findings.machine.name,
            nodes: findings.machine.node_count(),
            threshold: findings.threshold,
            passed: findings.passed(),
            unreadable: findings.unreadable,
            processes: findings.processes.iter().map(process).collect(),
        }
    }
}

fn process(process: &Assessment) -> Process<'_> {
    let range = |r: &'_ Placed| -> String { format!("{:x}", r.start) };
    let reasons = process.reasons.iter();
    Process {
        pid: process.pid,
        name: &process.name,
        score: process.score,
        expected_locality: process.expected_locality,
        page_balance: process.page_balance,
        mean_latency_ns: process.mean_latency_ns,
        measured_local: process.measured_local,
        cpu_share: &process.cpu_share,
        memory_bytes: &process.memory,
        threads: process.threads,
        threads_moved: process.moved_threads,
        moves: process.moves,
        watched_seconds: process.watched.map(|w| w.as_secs_f64()),
        policies: &process.policies,
        ranges: process
            .ranges
            .iter()
            .map(|r| Range {
                start: range(r),
                what: &r.what,
                policy: &r.policy,
                bytes: &r.bytes,
            })
            .collect(),
        reasons: reasons
            .map(|r| Reason {
                kind: r.kind,
                text: &r.text,
                mend: r.mend,
            })
            .collect(),
    }
}
