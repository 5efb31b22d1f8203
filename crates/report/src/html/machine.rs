//! The machine that the figures are for.

use super::markup::{END, Text, figure, head};
use crate::{Machine, Report, bytes, ratio};
use std::fmt::Write;

/// Nodes, the latency matrix, sources.
pub fn write(report: &Report) -> String {
    let machine = &report.machine;
    let mut html = format!(
        "<section aria-labelledby=\"machine\"><h2 id=\"machine\">The machine: {}</h2>\
         <p>Idle latency of a load, in nanoseconds, by the node of the thread (rows) and of the memory (columns); \
         the slowest is {} the fastest.</p>{}",
        Text(&machine.title),
        figure(
            "/machine/numa_factor",
            machine.numa_factor,
            &ratio(machine.numa_factor)
        ),
        latencies(machine)
    );
    if !machine.sources.is_empty() {
        html.push_str("<details><summary>Where these figures come from</summary><dl class=\"sources\">");
        for source in &machine.sources {
            let _ = write!(
                html,
                "<dt>{}</dt><dd>{}</dd>",
                Text(&source.field),
                Text(&source.text)
            );
        }
        html.push_str("</dl></details>");
    }
    html.push_str("</section>");
    html
}

fn latencies(machine: &Machine) -> String {
    let cells = || {
        machine
            .latency_ns
            .iter()
            .flatten()
            .copied()
            .filter(|ns| ns.is_finite())
    };
    let (low, high) = (cells().fold(f64::INFINITY, f64::min), cells().fold(0.0, f64::max));
    let class = |ns: f64| {
        if high > low {
            ((ns - low) / (high - low) * 4.0).round() as u32
        } else {
            0
        }
    };
    let mut html =
        String::from("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"machine\">");
    let columns: Vec<String> = (0..machine.nodes.len()).map(|m| format!(">{m}")).collect();
    let mut titles = vec!["Node"];
    titles.extend(columns.iter().map(String::as_str));
    titles.extend([">CPUs", ">Memory", ">Bandwidth"]);
    html.push_str(&head("matrix", &titles));
    for (r, node) in machine.nodes.iter().enumerate() {
        let _ = write!(html, "<tr><th scope=\"row\">{r}</th>");
        for (m, &ns) in machine.latency_ns.get(r).into_iter().flatten().enumerate() {
            if !ns.is_finite() {
                html.push_str("<td class=\"n\">–</td>");
                continue;
            }
            let value = figure(&format!("/machine/latency_ns/{r}/{m}"), ns, &format!("{ns:.0}"));
            let _ = write!(html, "<td class=\"n level-{}\">{value}</td>", class(ns));
        }
        let _ = write!(
            html,
            "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.1} GB/s</td></tr>",
            node.cpus,
            bytes(node.memory),
            node.bandwidth / 1000.0
        );
    }
    html + END + "</div>"
}
