//! Metrics file for Prometheus in text format, read by node_exporter's textfile collector: a privileged process need
//! not open a port.

use crate::event::{Event, Subscriber};
use crate::status::{Locality, Status};
use crate::target::Target;
use nodewise_linux::files;
use nodewise_profile::BASE_PAGE_SIZE;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Writes the metrics file, and removes it when the session ends.
pub struct Metrics {
    file: PathBuf,
    /// The target of the session, as a label.
    target: String,
    written: bool,
}

impl Metrics {
    /// Metrics of a session that balances `target`.
    #[must_use]
    pub fn new(file: &Path, target: &Target) -> Self {
        Self {
            file: file.to_owned(),
            target: target.to_string(),
            written: false,
        }
    }
}

impl Subscriber for Metrics {
    /// Writes the file after each interval, atomically.
    fn receive(&mut self, _: Duration, event: &Event<'_>) -> Result<(), String> {
        let Event::Updated(status) = event else {
            return Ok(());
        };
        let text = text(&self.target, status);
        files::replace(&self.file, text.as_bytes()).map_err(|e| {
            format!(
                "cannot write {}: {e}; no metrics from here on",
                self.file.display()
            )
        })?;
        self.written = true;
        Ok(())
    }
}

/// Removes the file, because stale figures would be taken for current ones.
impl Drop for Metrics {
    fn drop(&mut self) {
        if self.written && self.file.is_file() {
            // A file that cannot be removed is left; the summary was printed anyway.
            let _ = std::fs::remove_file(&self.file);
        }
    }
}

/// The file's content. Each metric is labelled with the target; amounts of memory are in bytes.
fn text(target: &str, status: &Status) -> String {
    let mut out = Figures {
        labels: format!(
            "target=\"{}\",policy=\"{}\"",
            quoted(target),
            quoted(&status.policy)
        ),
        text: String::new(),
    };
    let ledger = &status.ledger;
    let page = (BASE_PAGE_SIZE << status.page_shift) as f64;
    out.gauge(
        "balance_processes",
        "Processes that are balanced.",
        status.processes as f64,
    );
    out.gauge(
        "balance_paused",
        "1 while no decisions are made.",
        f64::from(u8::from(status.paused)),
    );
    out.counter(
        "balance_intervals_total",
        "Decisions made.",
        status.intervals as f64,
    );
    out.counter(
        "samples_total",
        "Accesses sampled by hint faults.",
        status.samples() as f64,
    );
    out.counter(
        "samples_lost_total",
        "Records that did not fit the kernel's buffers.",
        status.figures.lost as f64,
    );
    out.counter(
        "migrated_bytes_total",
        "Bytes moved between nodes.",
        ledger.bytes as f64,
    );
    out.counter(
        "ping_pong_bytes_total",
        "Bytes moved back to where they came from.",
        ledger.ping_pongs as f64 * page,
    );
    out.counter(
        "forgotten_bytes_total",
        "Bytes whose earlier moves are forgotten: a next one counts as their first.",
        ledger.forgotten as f64 * page,
    );
    out.counter(
        "evicted_bytes_total",
        "Bytes whose samples made room for those of others.",
        status.evicted as f64 * page,
    );
    out.counter(
        "migration_seconds_total",
        "Time spent on moving pages.",
        ledger.spent_ns as f64 / 1e9,
    );
    if let Some(pages) = status.figures.kernel_moved {
        out.counter(
            "kernel_migrated_bytes_total",
            "Bytes that the kernel's balancing moved.",
            (pages * BASE_PAGE_SIZE) as f64,
        );
    }
    out.gauge(
        "observing_cpu_ratio",
        "Share of the programs' CPU time that observing takes.",
        status.figures.cost,
    );
    out.gauge(
        "migrating_ratio",
        "Share of run time that migrating took.",
        status.budget_used(),
    );
    if let Some(share) = status.last.and_then(Locality::fraction) {
        out.gauge(
            "local_samples_ratio",
            "Share of the last interval's samples from the page's own node.",
            share,
        );
    }
    if let Some(accesses) = status.last.and_then(Locality::accesses) {
        out.gauge(
            "local_accesses_ratio_low",
            "Least share of the accesses that is local, as far as the last interval's samples tell.",
            accesses.low,
        );
        out.gauge(
            "local_accesses_ratio_high",
            "Largest share of the accesses that is local, as far as the last interval's samples tell.",
            accesses.high,
        );
    }
    if let Some(fast) = &status.fast {
        out.gauge(
            "fast_memory_bytes",
            "Bytes of the programs' private memory on the nodes that the policy fills (in a dry run: that would be there).",
            fast.bytes as f64,
        );
        out.gauge(
            "ranked_memory_bytes",
            "Bytes of the programs' private memory that the policy ranks, there and elsewhere.",
            fast.of_bytes as f64,
        );
    }
    if let Some(threads) = &status.threads {
        out.counter(
            "thread_moves_total",
            "Threads put on another node.",
            threads.moves as f64,
        );
        out.gauge(
            "weighted_bandwidth_bytes_per_second",
            "Bandwidth between the nodes of each process, times its weight.",
            threads.now * 1e6,
        );
    }
    out.head("gauge", "stayed_bytes", "Bytes that were to move and have not.");
    for (cause, pages) in status.failures() {
        out.value(
            "stayed_bytes",
            &format!(",cause=\"{cause}\""),
            (pages * BASE_PAGE_SIZE) as f64,
        );
    }
    out.text
}

struct Figures {
    labels: String,
    text: String,
}

impl Figures {
    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head("gauge", name, help);
        self.value(name, "", value);
    }

    fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.head("counter", name, help);
        self.value(name, "", value);
    }

    fn head(&mut self, kind: &str, name: &str, help: &str) {
        let _ = writeln!(
            self.text,
            "# HELP nodewise_{name} {help}\n# TYPE nodewise_{name} {kind}"
        );
    }

    fn value(&mut self, name: &str, more: &str, value: f64) {
        let _ = writeln!(self.text, "nodewise_{name}{{{}{more}}} {value}", self.labels);
    }
}

/// Escapes a label's value as the text format requires.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_one_label() {
        assert_eq!(quoted("a\\x2db \"c\"\nd"), "a\\\\x2db \\\"c\\\"\\nd");
    }

    #[test]
    fn every_figure_says_whose_it_is() {
        let mut out = Figures {
            labels: "target=\"pid 7\",policy=\"out-w\"".into(),
            text: String::new(),
        };
        out.counter("migrated_bytes_total", "Bytes.", 4096.0);
        out.value("stayed_bytes", ",cause=\"busy\"", 0.0);
        let lines: Vec<&str> = out.text.lines().filter(|l| !l.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                "nodewise_migrated_bytes_total{target=\"pid 7\",policy=\"out-w\"} 4096",
                "nodewise_stayed_bytes{target=\"pid 7\",policy=\"out-w\",cause=\"busy\"} 0",
            ]
        );
    }

    #[test]
    fn only_a_file_that_was_written_here_goes() {
        let file = std::env::temp_dir().join(format!("nodewise-metrics-{}.prom", std::process::id()));
        let metrics = Metrics::new(&file, &Target::Processes(vec![7]));
        std::fs::write(&file, "another's\n").unwrap();
        drop(metrics);
        assert!(file.exists());
        let mut metrics = Metrics::new(&file, &Target::Processes(vec![7]));
        metrics.written = true;
        drop(metrics);
        assert!(!file.exists());
    }
}
