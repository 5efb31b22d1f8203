//! Text output of `check`.

use crate::output::{Screen, command_line};
use nodewise_diagnose::process::{Assessment, Check, Placed};
use nodewise_report::{and_more, bytes, plural, seconds, spread, table, whole_percent};
use std::fmt::Write;
use std::path::Path;

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
        if let Some(remedy) = reason.remedy {
            out.push_str(&screen.wrap("    remedy: ", remedy.split(' ')));
        }
    }
    if process.score < check.threshold && !process.ranges.is_empty() {
        out.push_str("\n  what fills the overfull nodes\n");
        out.push_str(&indented(&table("rrll", process.ranges.iter().map(range))));
        let whole = format!("/proc/{}/numa_maps", process.pid);
        let more = and_more(process.ranges_left_out, "range", &whole);
        out.push_str(&indented(more.trim_start()));
    }
    if process.score < check.threshold {
        let next = match process.ranges.first().filter(|range| range.shared) {
            // Pages that other processes map too are the object's, and `balance` leaves them.
            Some(range) if range.what.starts_with('/') => {
                let files = command_line("nodewise files", Path::new(&range.what));
                format!("{files}  (who maps it, and which nodes it lies on; --policy spreads it)")
            }
            Some(_) => format!(
                "nodewise files {}  (its shared memory; --policy spreads it)",
                process.pid
            ),
            None => format!(
                "nodewise balance --dry-run --pid {}  (which pages it would move where, and why)",
                process.pid
            ),
        };
        let _ = writeln!(out, "\n  next: {next}");
    }
    out.push('\n');
    out.push_str(&screen.wrap("  how: ", how(process, check).split(' ')));
    out
}

fn range(range: &Placed) -> [String; 4] {
    [
        format!("{:x}", range.start),
        bytes(range.bytes.iter().sum()),
        spread((0..).zip(range.bytes.iter().copied())),
        format!("{}, {}", range.what, range.policy),
    ]
}

/// A table of several processes, one line each.
pub fn several(check: &Check, screen: Screen) -> String {
    let several = check.machine.node_count() > 1;
    let mut out = String::new();
    if !several {
        out.push_str("one memory node: nothing can be placed wrongly; every process is 100 % well placed\n");
    }
    if check.processes.is_empty() {
        out.push_str("no process of yours holds 16 MiB or more\n");
    } else {
        let why = if several { "why" } else { "" };
        let header = ["pid", "placed", "memory", "threads", "name", why].map(str::to_owned);
        let rows = check.processes.iter().map(|process| row(process, check, screen));
        out.push_str(&table("rrrrll", std::iter::once(header).chain(rows)));
    }
    if check.left_out > 0 {
        let more = and_more(check.left_out, "process", "--pid N");
        let _ = writeln!(out, "{}", more.trim_start());
    }
    if check.unreadable > 0 {
        let _ = writeln!(
            out,
            "{} may not be looked into; run as root to see them",
            plural(check.unreadable, "more process")
        );
    }
    if several && !check.processes.is_empty() {
        out.push_str("\n`nodewise check --pid N` explains one of them\n");
    }
    out
}

/// A line of the table. The reason in it is the first one that has a remedy.
fn row(process: &Assessment, check: &Check, screen: Screen) -> [String; 6] {
    let why = process.reasons.iter().find(|r| r.remedy.is_some());
    [
        process.pid.to_string(),
        graded(process.score, check.threshold, screen),
        bytes(process.memory.iter().sum()),
        process.threads.to_string(),
        process.name.clone(),
        why.map_or_else(String::new, |r| r.text.clone()),
    ]
}

fn graded(score: f64, threshold: f64, screen: Screen) -> String {
    let colour = if score < threshold { 31 } else { 32 };
    screen.paint(colour, &whole_percent(score))
}

fn nodes(process: &Assessment, check: &Check) -> String {
    let header = ["node", "CPU time", "memory", "", ""].map(str::to_owned);
    let memory = process.memory_share();
    let rows = check.machine.node_ids().map(|id| {
        let n = id.index();
        let has_cpus = !check.machine.nodes[n].cpus.is_empty();
        [
            id.to_string(),
            whole_percent(process.cpu_share[n]),
            whole_percent(memory[n]),
            bytes(process.memory[n]),
            if has_cpus { "" } else { "no CPUs" }.to_owned(),
        ]
    });
    indented(&table("rrrrl", std::iter::once(header).chain(rows)))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn how(process: &Assessment, check: &Check) -> String {
    let time = match process.watched {
        Some(watched) => format!("the threads' CPU time in {}", seconds(watched.as_secs_f64())),
        None => "the threads' CPU time since they started, counted where they ran last (idle while watched)"
            .to_owned(),
    };
    format!(
        "the number is the share of the memory that lies where the threads ran, node by node, from numa_maps and {time}. \
         It is no share of accesses: which bytes are used, and by which thread, is not known without a recording. \
         Were every byte used alike, no more than that could be local; did every thread use every page alike too, {} \
         would be, at {:.0} ns on average ({} latencies). Page balance {}.",
        whole_percent(process.expected_locality),
        process.mean_latency_ns,
        if check.machine.name == "this" {
            "estimated".to_owned()
        } else {
            format!("{}'s", check.machine.name)
        },
        whole_percent(process.page_balance)
    )
}
