//! A session's figures as JSON; the keys are documented in `docs/balance.md`.

use crate::status::{FastMemory, Locality, Status};
use crate::threads::ThreadSummary;
use nodewise_analysis::Interval;
use nodewise_control::HeldBack;
use serde::Serialize;
use std::collections::BTreeMap;

/// What `balance --json` prints at the end, and the page shows while the session runs.
#[derive(Serialize)]
pub struct Document<'a> {
    policy: &'a str,
    nodes: usize,
    page_bytes: u64,
    dry_run: bool,
    seconds: f64,
    intervals: u64,
    processes: usize,
    exit_status: Option<u8>,
    pages_moved: u64,
    bytes_moved: u64,
    migrations: u64,
    would_move: Option<u64>,
    ping_pongs: u64,
    forgotten: u64,
    evicted: u64,
    multiple: u64,
    incorrect: Option<u64>,
    failures: BTreeMap<&'static str, u64>,
    kernel_pages_moved: Option<u64>,
    host_moves: Option<HostMoves>,
    held_pages: u64,
    held_strictly: u64,
    held_refused: u64,
    stalls: Option<Stalls>,
    threads: Option<Threads<'a>>,
    held_back: HeldBack,
    fast_memory: Option<&'a FastMemory>,
    local_fraction: Ends<f64>,
    local_accesses: Ends<[f64; 2]>,
    budget: Budget,
    samples: u64,
    first_touches: u64,
    lost: u64,
    observing: f64,
    sensor: &'static str,
    regions: Option<u64>,
    pages_set_aside: Option<u64>,
    scan_period_ms: Option<u32>,
}

/// Pages of 4 KiB that were moved on the whole host meanwhile, by what.
#[derive(Serialize)]
struct HostMoves {
    all: u64,
    balanced: u64,
    promoted: u64,
    demoted: u64,
    /// Whether DAMON's schemes move pages: theirs are among the others'.
    damon: bool,
    others: u64,
}

#[derive(Serialize)]
struct Stalls {
    count: u64,
    seconds: f64,
    longest_seconds: f64,
    refused: u64,
}

/// A figure at the first interval with samples and at the last one.
#[derive(Serialize)]
struct Ends<T> {
    first: Option<T>,
    last: Option<T>,
}

#[derive(Serialize)]
struct Budget {
    limit: f64,
    used: f64,
    seconds: f64,
    seconds_per_gb: f64,
    /// Duration of the longest call that moved pages, seconds.
    longest_call_seconds: f64,
}

#[derive(Serialize)]
struct Threads<'a> {
    policy: &'static str,
    source: String,
    moves: u64,
    failures: u64,
    full_migrations: u64,
    full_bytes: u64,
    restored: Option<Restored>,
    undone: u64,
    remote: Option<Remote>,
    weighted_bandwidth: Bandwidth,
    trouble: Option<&'a str>,
    processes: Vec<Process<'a>>,
}

#[derive(Serialize)]
struct Restored {
    done: u64,
    others: u64,
    refused: u64,
}

/// Shares of samples that are remote, 0 to 1.
#[derive(Serialize)]
struct Remote {
    now: f64,
    expected: f64,
}

/// Weighted bandwidth of all applications, MB/s.
#[derive(Serialize)]
struct Bandwidth {
    before: Option<f64>,
    after: Option<f64>,
    now: f64,
    best: f64,
}

#[derive(Serialize)]
struct Process<'a> {
    pid: u32,
    name: &'a str,
    before: &'a str,
    after: &'a str,
    pinned: bool,
    refused: Option<Refused>,
}

#[derive(Serialize)]
struct Refused {
    bytes: u64,
    predicted_seconds: f64,
    spent_seconds: f64,
    allowed_seconds: f64,
}

impl Status {
    /// The document of the figures so far.
    #[must_use]
    pub fn document(&self) -> Document<'_> {
        Document {
            policy: &self.policy,
            nodes: self.nodes,
            page_bytes: 4096_u64 << self.page_shift,
            dry_run: self.dry,
            seconds: self.seconds,
            intervals: self.intervals,
            processes: self.processes,
            exit_status: self.status,
            pages_moved: self.base_pages(),
            bytes_moved: self.ledger.bytes,
            migrations: self.ledger.migrations,
            would_move: self.dry.then_some(self.would_move),
            ping_pongs: self.ledger.ping_pongs,
            forgotten: self.ledger.forgotten,
            evicted: self.evicted,
            multiple: self.ledger.multiple,
            incorrect: self.ledger.incorrect,
            failures: self.failures().collect(),
            kernel_pages_moved: self.figures.kernel_moved,
            host_moves: self.host_moves.map(|moves| HostMoves {
                all: moves.all,
                balanced: moves.balanced(),
                promoted: moves.promoted,
                demoted: moves.demoted,
                damon: self.damon_migrates,
                others: moves.others(self.moved_here()),
            }),
            held_pages: self.held.pages,
            held_strictly: self.held.strict,
            held_refused: self.held.refused,
            stalls: self.stalls.map(|s| Stalls {
                count: s.count,
                seconds: s.total.as_secs_f64(),
                longest_seconds: s.longest.as_secs_f64(),
                refused: s.refused,
            }),
            threads: self.threads.as_ref().map(ThreadSummary::document),
            held_back: self.held_back,
            fast_memory: self.fast.as_ref(),
            local_fraction: self.ends(Locality::fraction),
            local_accesses: self.ends(|l| l.accesses().map(|Interval { low, high, .. }| [low, high])),
            budget: Budget {
                limit: self.budget,
                used: self.budget_used(),
                seconds: self.ledger.spent_ns as f64 / 1e9,
                seconds_per_gb: self.seconds_per_gb,
                longest_call_seconds: self.longest_call.as_secs_f64(),
            },
            samples: self.samples(),
            first_touches: self.figures.firsts,
            lost: self.figures.lost,
            observing: self.figures.cost,
            sensor: self.figures.sensor.name(),
            regions: self.regions,
            pages_set_aside: self.figures.aside.map(|aside| aside.pages),
            scan_period_ms: self.figures.scan_ms,
        }
    }

    fn ends<T>(&self, figure: impl Fn(Locality) -> Option<T>) -> Ends<T> {
        Ends {
            first: self.first.and_then(&figure),
            last: self.last.and_then(&figure),
        }
    }
}

impl ThreadSummary {
    fn document(&self) -> Threads<'_> {
        Threads {
            policy: self.rule.name(),
            source: self.source().to_string(),
            moves: self.moves,
            undone: self.undone,
            remote: self.remote.map(|(now, expected)| Remote { now, expected }),
            failures: self.failures,
            full_migrations: self.full_migrations,
            full_bytes: self.full_bytes,
            restored: self.restored.map(|r| Restored {
                done: r.done,
                others: r.others,
                refused: r.refused,
            }),
            weighted_bandwidth: Bandwidth {
                before: self.moved.map(|m| m.0),
                after: self.moved.map(|m| m.1),
                now: self.now,
                best: self.best,
            },
            trouble: self.trouble.as_deref(),
            processes: self
                .processes
                .iter()
                .map(|(pid, p)| Process::of(*pid, p))
                .collect(),
        }
    }
}

impl<'a> Process<'a> {
    fn of(pid: u32, process: &'a crate::threads::Process) -> Self {
        Self {
            pid,
            name: &process.name,
            before: &process.before,
            after: &process.after,
            pinned: process.pinned,
            refused: process.refused.as_ref().map(|r| Refused {
                bytes: r.bytes,
                predicted_seconds: r.predicted_ns / 1e9,
                spent_seconds: r.spent_ns / 1e9,
                allowed_seconds: r.allowed_ns / 1e9,
            }),
        }
    }
}
