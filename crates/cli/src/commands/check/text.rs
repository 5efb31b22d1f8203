//! Text output of `check`.

use crate::output::Screen;
use nodewise_diagnose::process::{Assessment, Check, Placed};
use nodewise_report::bytes;
use std::fmt::Write;

/// Everything on one process.
pub fn one(check: &Check, screen: Screen) -> String {
    let process = &check.processes[0];
    let grade = graded(process.score, check.threshold, screen);
    let mut out = format!("{} {}: {grade} well placed\n", process.pid, process.name);
    if check.machine.node_count() == 1 {
        let _ = writeln!(out, "  {}", process.reasons[0].text);
        return out;
    }
    out.push_str(&nodes(process, check));
    out.push('\n');
    for reason in &process.reasons {
        out.push_str(&screen.wrap("  - ", reason.text.split(' ')));
        if let Some(mend) = reason.mend {
            out.push_str(&screen.wrap("    mend: ", mend.split(' ')));
        }
    }
    if process.score < check.threshold && !process.ranges.is_empty() {
        out.push_str("\n  what fills the overfull nodes\n");
        process.ranges.iter().for_each(|r| out.push_str(&range(r)));
    }
    if process.score < check.threshold {
        let _ = writeln!(
            out,
            "\n  next: nodewise balance --dry-run --pid {}  (which pages it would move where, and why)",
            process.pid
        );
    }
    out.push('\n');
    out.push_str(&screen.wrap("  how: ", how(process, check).split(' ')));
    out
}

fn range(range: &Placed) -> String {
    let (total, place) = (bytes(range.bytes.iter().sum()), spread(&range.bytes));
    format!(
        "  {:>12x}  {total:>10}  {place}  {}, {}\n",
        range.start, range.what, range.policy
    )
}

/// A table of several processes, one line each.
pub fn table(check: &Check, screen: Screen) -> String {
    let several = check.machine.node_count() > 1;
    let mut out = String::new();
    if !several {
        out.push_str("one memory node: nothing can be placed wrongly; every process is 100 % well placed\n");
    }
    if check.processes.is_empty() {
        out.push_str("no process of yours holds 16 MiB or more\n");
    } else {
        let columns = ("pid", "placed", "memory", "threads", "name");
        let (pid, placed, memory, threads, name) = columns;
        let why = if several { "why" } else { "" };
        let line = format!("{pid:>8}  {placed:>6}  {memory:>10}  {threads:>7}  {name:16}  {why}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    for process in &check.processes {
        out.push_str(&row(process, check, screen));
    }
    if check.unreadable > 0 {
        let _ = writeln!(
            out,
            "{} more may not be looked into; run as root to see them",
            check.unreadable
        );
    }
    if several && !check.processes.is_empty() {
        out.push_str("\n`nodewise check --pid N` explains one of them\n");
    }
    out
}

/// A line of the table. The reason in it is the first one that can be mended.
fn row(process: &Assessment, check: &Check, screen: Screen) -> String {
    let grade = graded(process.score, check.threshold, screen);
    let pad = " ".repeat(6_usize.saturating_sub(percent(process.score).chars().count()));
    let memory = bytes(process.memory.iter().sum());
    let why = process
        .reasons
        .iter()
        .find(|r| r.mend.is_some())
        .map_or("", |r| r.text.as_str());
    let line = format!(
        "{:>8}  {pad}{grade}  {memory:>10}  {:>7}  {:16}  {why}",
        process.pid, process.threads, process.name
    );
    line.trim_end().to_owned() + "\n"
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn graded(score: f64, threshold: f64, screen: Screen) -> String {
    let colour = if score < threshold { 31 } else { 32 };
    screen.paint(colour, &percent(score))
}

fn nodes(process: &Assessment, check: &Check) -> String {
    let mut out = format!("{:>6}  {:>8}  {:>8}\n", "node", "CPU time", "memory");
    let memory = process.memory_share();
    for id in check.machine.node_ids() {
        let n = id.index();
        let note = if check.machine.nodes[n].cpus.is_empty() {
            "  no CPUs"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "{id:>6}  {:>8}  {:>8}  {:>10}{note}",
            percent(process.cpu_share[n]),
            percent(memory[n]),
            bytes(process.memory[n])
        );
    }
    out
}

/// The distribution of memory: `node 0` or `nodes 0 (60 %), 1 (40 %)`.
fn spread(held: &[u64]) -> String {
    let total: u64 = held.iter().sum::<u64>().max(1);
    let on: Vec<(usize, u64)> = held.iter().copied().enumerate().filter(|(_, b)| *b > 0).collect();
    match on[..] {
        [(node, _)] => format!("node {node}"),
        _ => {
            let parts = on
                .iter()
                .map(|(n, b)| format!("{n} ({})", percent(*b as f64 / total as f64)));
            format!("nodes {}", parts.collect::<Vec<_>>().join(", "))
        }
    }
}

fn how(process: &Assessment, check: &Check) -> String {
    let time = match process.watched {
        Some(watched) => format!("the threads' CPU time in {:.1} s", watched.as_secs_f64()),
        None => "the threads' CPU time since they started, counted where they ran last (idle while watched)"
            .to_owned(),
    };
    format!(
        "the number is the share of the memory that lies where the threads ran, node by node, from numa_maps and {time}. \
         It is no share of accesses: which bytes are used, and by which thread, is not known without a recording. \
         Were every byte used alike, no more than that could be local; did every thread use every page alike too, {} \
         would be, at {:.0} ns on average ({} latencies). Page balance {}.",
        percent(process.expected_locality),
        process.mean_latency_ns,
        if check.machine.name == "this" {
            "estimated".to_owned()
        } else {
            format!("{}'s", check.machine.name)
        },
        percent(process.page_balance)
    )
}
