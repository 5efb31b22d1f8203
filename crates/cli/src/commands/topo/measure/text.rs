//! Text output of measurements.

use super::MeasuredMachine;
use crate::output::Screen;
use nodewise_machine::inference::{BottleneckKind, Estimate, Survey};
use nodewise_machine::{Flow, NodeId, format_list};
use nodewise_observe::hardware::Matrix;
use nodewise_report::{and_more, bytes, gigabytes, seconds, table, whole_percent};
use std::fmt::Write;

/// Largest number of bottlenecks shown; JSON has all.
const MAX_BOTTLENECKS_SHOWN: usize = 40;

impl MeasuredMachine {
    pub(super) fn text(&self, screen: Screen) -> String {
        let measured = &self.measured;
        let mut out = format!(
            "{}: measured on {} with Linux {} in {}; medians, ± half of their 95 % interval\n",
            screen.paint(1, &self.machine.name),
            self.date,
            self.kernel,
            seconds(measured.took.as_secs_f64())
        );
        let most = measured.memory.iter().max().copied().unwrap_or(0);
        let _ = writeln!(
            out,
            "up to {} a node, {} of it on huge pages",
            bytes(most),
            whole_percent(measured.huge)
        );
        for (title, matrix, unit) in [
            ("latency, ns (row reads column)", &measured.latency_ns, 1.0),
            ("reads, GB/s (row reads column)", &measured.read, 1000.0),
            ("writes, GB/s (row writes to column)", &measured.write, 1000.0),
        ] {
            out.push_str(&matrix_text(title, matrix, unit));
        }
        out.push_str(
            &measured
                .survey
                .as_ref()
                .map_or(String::new(), |s| self.flows_text(s)),
        );
        out
    }

    fn flows_text(&self, survey: &Survey) -> String {
        let (pairs, left) = survey.pairs();
        if pairs == 0 {
            return String::new();
        }
        let mut out = format!("\ntogether: {} of {pairs} pairs of flows known", pairs - left);
        if left < pairs {
            let _ = write!(
                out,
                " (losses under {} are not seen)",
                whole_percent(survey.unseen())
            );
        }
        out.push_str(&self.unknown(survey));
        out.push('\n');
        let inferred = self.measured.inferred();
        let shared = inferred.as_ref().map_or(&[][..], |i| &i.bottlenecks);
        if shared.is_empty() {
            out.push_str("  no two of these hold each other back\n");
        }
        for (bottleneck, kind) in shared.iter().take(MAX_BOTTLENECKS_SHOWN) {
            let flows: Vec<String> = bottleneck
                .flows
                .iter()
                .map(|f| arrow(survey.flows()[*f]))
                .collect();
            let line = format!("  {:>9}  {}:", gigabytes(bottleneck.capacity), kind_text(kind));
            let _ = writeln!(out, "{line} {}", flows.join(", "));
        }
        if shared.len() > MAX_BOTTLENECKS_SHOWN {
            let _ = writeln!(
                out,
                " {}",
                and_more(shared.len() - MAX_BOTTLENECKS_SHOWN, "bottleneck", "--json")
            );
        }
        out
    }

    /// Why some pairs are unknown, other than for lack of time.
    fn unknown(&self, survey: &Survey) -> String {
        let divisible = &self.measured.divisible;
        let undivided = self.machine.cpu_nodes().filter(|n| !divisible.contains(n));
        let undivided: Vec<u32> = undivided.map(|n| n.0).collect();
        let mut out = String::new();
        if survey.unclear() > 0 {
            let _ = write!(out, "; {} too unsteady to tell", survey.unclear());
        }
        if survey.pairs().1 > survey.unclear() && !undivided.is_empty() {
            let _ = write!(
                out,
                "; left out: pairs read by one of {}, half of whose CPUs read less than all",
                format_list(&undivided)
            );
        }
        out
    }
}

/// A flow as an arrow from memory to reader.
fn arrow(flow: Flow) -> String {
    format!("{}→{}", flow.memory, flow.reader)
}

fn kind_text(kind: &BottleneckKind) -> String {
    let list = |nodes: &[NodeId]| format_list(&nodes.iter().map(|n| n.0).collect::<Vec<_>>());
    match kind {
        BottleneckKind::Link { from, to } => format!("link {} → {}", list(from), list(to)),
        BottleneckKind::Controller(node) => format!("controller of {node}"),
        BottleneckKind::Intake(node) => format!("CPUs of {node}"),
        BottleneckKind::Backplane => "all".to_owned(),
    }
}

fn matrix_text(title: &str, matrix: &Matrix, unit: f64) -> String {
    let header = std::iter::once(String::new())
        .chain((0..matrix.len()).map(|memory| memory.to_string()))
        .collect();
    let readers = matrix
        .iter()
        .enumerate()
        .filter(|(_, row)| row.iter().any(Option::is_some));
    let rows = readers.map(|(reader, row)| {
        let cell = |figure: &Option<Estimate>| match figure {
            Some(f) => format!("{:.1} ±{:.1}", f.median / unit, f.half_width() / unit),
            None => "-".to_owned(),
        };
        std::iter::once(reader.to_string())
            .chain(row.iter().map(cell))
            .collect::<Vec<_>>()
    });
    let columns = "r".repeat(matrix.len() + 1);
    format!(
        "\n{title}\n{}",
        table(&columns, std::iter::once(header).chain(rows))
    )
}
