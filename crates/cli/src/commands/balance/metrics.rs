//! Figures for Prometheus, in its text format, through node_exporter's textfile collector: no port, no
//! library, and nothing listens in a process with privileges.

use super::report::{Locality, Report};
use std::fmt::Write;

/// The file's content.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    let ledger = &report.ledger;
    let mut one = |kind: &str, name: &str, help: &str, value: f64| {
        let _ = writeln!(out, "# HELP nodewise_{name} {help}\n# TYPE nodewise_{name} {kind}\nnodewise_{name} {value}");
    };
    one("gauge", "balance_processes", "Processes that are balanced.", report.processes as f64);
    one("gauge", "balance_paused", "1 while no decisions are made.", f64::from(u8::from(report.paused)));
    one("counter", "balance_intervals_total", "Decisions made.", report.intervals as f64);
    one("counter", "samples_total", "Accesses sampled by hint faults.", (report.figures.hints + report.figures.unknown) as f64);
    one("counter", "samples_lost_total", "Records that did not fit the kernel's buffers.", report.figures.lost as f64);
    one("counter", "migrated_bytes_total", "Bytes moved between nodes.", ledger.bytes as f64);
    one("counter", "migrations_total", "Pages moved between nodes.", ledger.migrations as f64);
    one("counter", "ping_pongs_total", "Pages moved back to where they came from.", ledger.ping_pongs as f64);
    one("counter", "migration_seconds_total", "Time spent on moving pages.", ledger.spent_ns as f64 / 1e9);
    one("counter", "kernel_migrated_pages_total", "Pages of 4 KiB that the kernel's balancing moved.", report.figures.kernel_moved as f64);
    one("gauge", "observing_cpu_ratio", "Share of the programs' CPU time that observing takes.", report.figures.cost);
    one("gauge", "migrating_ratio", "Share of run time that migrating took.", report.budget_used());
    if let Some(share) = report.last.and_then(Locality::fraction) {
        one("gauge", "local_samples_ratio", "Share of the last interval's samples from the page's own node.", share);
    }
    let _ = writeln!(out, "# HELP nodewise_stayed_pages_total Pages of 4 KiB that were to move and did not.\n# TYPE nodewise_stayed_pages_total counter");
    for (cause, pages) in report.failures() {
        let _ = writeln!(out, "nodewise_stayed_pages_total{{cause=\"{cause}\"}} {pages}");
    }
    out
}
