//! Text output of a machine.

use super::graph;
use crate::output::Screen;
use nodewise_machine::{Machine, MemoryKind, NodeId, Source, format_list};
use nodewise_report::{and_more, bytes, gigabytes, matrix_line, plural, table};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Largest number of nodes whose matrix fits a screen.
const MAX_COLUMNS: usize = 24;

pub fn write(machine: &Machine, screen: Screen) -> String {
    let mut out = headline(machine, screen);
    out.push_str(&nodes(machine));
    out.push_str(&latencies(machine, screen));
    out.push_str(&graph::write(machine, screen));
    out.push('\n');
    for (assumed, label) in [(false, "source"), (true, "assumed")] {
        for source in machine.sources.iter().filter(|s| s.assumed == assumed) {
            out.push_str(&provenance(source, label, screen));
        }
    }
    out
}

fn headline(machine: &Machine, screen: Screen) -> String {
    let memory: u64 = machine.nodes.iter().map(|n| n.memory).sum();
    format!(
        "{}: {}\n{}, {}, {} of memory, pages of {}, NUMA factor {:.1}\n\n",
        screen.paint(1, &machine.name),
        machine.title,
        plural(machine.node_count(), "node"),
        plural(machine.cpus().len(), "CPU"),
        bytes(memory),
        bytes(machine.page_size),
        machine.numa_factor()
    )
}

fn nodes(machine: &Machine) -> String {
    let header = ["node", "memory", "bandwidth", "CPUs"].map(str::to_owned);
    let mixed = machine
        .nodes
        .iter()
        .any(|n| n.kind.is_some_and(|k| k != MemoryKind::Dram));
    let rows = machine.nodes.iter().enumerate().map(|(id, node)| {
        let cpus: Vec<u32> = node.cpus.iter().map(|c| c.0).collect();
        let cpus = if cpus.is_empty() {
            "none".to_owned()
        } else {
            format_list(&cpus)
        };
        let kernel = if node.os_index as usize == id {
            String::new()
        } else {
            format!("  (the kernel's node {})", node.os_index)
        };
        let memory = if node.memory == 0 {
            "?".to_owned()
        } else {
            bytes(node.memory)
        };
        let memory = match node.kind.filter(|_| mixed) {
            Some(kind) => format!("{memory} {kind}"),
            None => memory,
        };
        let cache = node.cache.as_ref().map_or_else(String::new, |c| {
            let (size, bandwidth) = (bytes(c.memory), gigabytes(c.bandwidth));
            format!(
                "  (behind a cache of {size}, {bandwidth}, {:.0} ns)",
                c.latency_ns[id]
            )
        });
        [
            id.to_string(),
            memory,
            gigabytes(node.bandwidth),
            cpus + &kernel + &cache,
        ]
    });
    table("rrrl", std::iter::once(header).chain(rows))
}

/// The matrix of latencies, and beside it, if there is room, the bandwidth of one reader alone.
fn latencies(machine: &Machine, screen: Screen) -> String {
    let count = machine.node_count();
    if count == 1 {
        return format!(
            "\nlatency {:.0} ns, all of it local\n",
            machine.latency(NodeId(0), NodeId(0))
        );
    }
    if count > MAX_COLUMNS {
        return latency_classes(machine);
    }
    let width = 6;
    let both = 2 * (5 + count * width) + 3 <= screen.width;
    let pad = 5 + count * width;
    let titles = ("latency, ns (row reads column)", "alone, GB/s");
    let second = |text: &str| if both { format!("   {text}") } else { String::new() };
    let mut out = format!(
        "\n{}\n",
        format!("{:<pad$}{}", titles.0, second(titles.1)).trim_end()
    );
    let line = |head: String, cells: &mut dyn Iterator<Item = String>| {
        matrix_line([(5, head)].into_iter().chain(cells.map(|cell| (width, cell))))
    };
    let header = line(String::new(), &mut machine.node_ids().map(|m| m.to_string()));
    let _ = writeln!(out, "{header}{}", second(&header));
    for reader in machine.cpu_nodes() {
        let latencies = &mut machine
            .node_ids()
            .map(|m| latency_cell(machine, reader, m, screen));
        let alone = |m| gigabytes(machine.route(reader, m).bandwidth).replace(" GB/s", "");
        let alone = &mut machine.node_ids().map(alone);
        let row = line(reader.to_string(), latencies);
        let _ = writeln!(out, "{row}{}", second(&line(reader.to_string(), alone)));
    }
    out
}

fn latency_cell(machine: &Machine, reader: NodeId, memory: NodeId, screen: Screen) -> String {
    let latency = machine.latency(reader, memory);
    let nearest = machine
        .node_ids()
        .map(|m| machine.latency(reader, m))
        .fold(f64::INFINITY, f64::min);
    let colour = match latency / nearest {
        r if r < 1.05 => 32,
        r if r < 1.6 => 33,
        _ => 31,
    };
    let digits = usize::from(latency < 99.95 && latency.fract() != 0.0);
    screen.paint(colour, &format!("{latency:.digits$}"))
}

/// Number of pairs of nodes by latency.
fn latency_classes(machine: &Machine) -> String {
    let mut classes: BTreeMap<u64, usize> = BTreeMap::new();
    for reader in machine.cpu_nodes() {
        for memory in machine.node_ids() {
            *classes
                .entry(machine.latency(reader, memory).round() as u64)
                .or_default() += 1;
        }
    }
    let mut out = "\nlatency, ns\n".to_owned();
    for (latency, pairs) in classes.iter().take(MAX_COLUMNS) {
        let _ = writeln!(out, "{latency:>7}  {}", plural(*pairs, "pair"));
    }
    let left = classes.len().saturating_sub(MAX_COLUMNS);
    if left > 0 {
        let _ = writeln!(out, "{:>7} {}", "", and_more(left, "latency", "--json"));
    }
    out
}

fn provenance(source: &Source, label: &str, screen: Screen) -> String {
    let colour = if source.assumed { 33 } else { 2 };
    let field = format!("{}:", source.field);
    let words = [field.as_str()].into_iter().chain(source.text.split(' '));
    let text = screen.wrap(&format!("{label:>8}  "), words);
    text.replacen(label, &screen.paint(colour, label), 1)
}
