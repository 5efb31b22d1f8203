//! Terminal output of `simulate`: one table per machine, fastest policy first.

use nodewise_machine::{Machine, MemoryKind};
use nodewise_report::{percent, plural, table, whole_percent};
use nodewise_simulation::{Basis, Prediction, Range, Simulation, Traffic, Varied};
use std::fmt::Write;

/// The table of one machine; `node_choices` is the text about the choice of nodes, `other_runs` sentences on other runs.
pub fn write(
    machine: &Machine,
    simulation: &Simulation,
    node_choices: &str,
    other_runs: &[String],
) -> String {
    let mut out = format!(
        "{}: {}\n{} on {} ({})\n\n",
        machine.name,
        machine.title,
        plural(simulation.threads, "thread"),
        plural(simulation.cpus, "CPU"),
        simulation.affinity
    );
    let kinds = simulation.baseline().served_by_kind(machine);
    let rows = simulation.ranked().into_iter().map(|p| row(p, machine));
    let caches = machine.has_memory_side_caches();
    let more = kinds.len() + usize::from(caches);
    let columns = format!("lrrrrr{:r<width$}l", "rr", width = 2 + more);
    out += &table(&columns, std::iter::once(header(&kinds, caches)).chain(rows));
    out.push('\n');
    out += &moves(simulation);
    out += &copies(simulation);
    out += node_choices;
    if !simulation.is_memory_bound() {
        let share = percent(simulation.baseline().memory_share.typical);
        let _ = writeln!(
            out,
            "Not memory bound: memory is {share} of the time; all policies are about equal."
        );
    }
    for sentence in other_runs {
        out += sentence;
        out.push('\n');
    }
    if !other_runs.is_empty() {
        out.push('\n');
    }
    out + &notes(machine, simulation)
}

/// A line a machine, in the order given: the time of its baseline, and of its best policy.
pub fn overview<'a>(all: impl Iterator<Item = (&'a str, &'a Simulation)>) -> String {
    let header = ["machine", "baseline", "seconds", "fastest", "seconds", "(range)"].map(str::to_owned);
    let row = |(machine, simulation): (&str, &Simulation)| {
        let (baseline, ranked) = (simulation.baseline(), simulation.ranked());
        let best = ranked.into_iter().find(|p| !p.policy.starts_with("random"));
        let best = best.unwrap_or(baseline);
        vec![
            machine.to_owned(),
            baseline.policy.clone(),
            significant(baseline.seconds.typical),
            best.policy.clone(),
            significant(best.seconds.typical),
            span(best.seconds),
        ]
    };
    let table = table("llrlrr", std::iter::once(header.into()).chain(all.map(row)));
    format!("{table}\nEstimates; a difference that is smaller than the ranges decides nothing: measure.\n")
}

/// The cells of a line.
pub type Row = Vec<String>;

/// `kinds`: of memory, where there are several; `caches`: whether there are memory-side caches.
fn header(kinds: &[(MemoryKind, f64)], caches: bool) -> Row {
    let before = ["policy", "seconds", "(range)", "speed-up", "(range)", "local"].map(str::to_owned);
    let after = ["balance", "latency", "busiest controller, link"].map(str::to_owned);
    let kinds = kinds.iter().map(|(kind, _)| kind.to_string());
    let hits = caches.then(|| "cache hits".to_owned());
    before.into_iter().chain(kinds).chain(hits).chain(after).collect()
}

fn row(p: &Prediction, machine: &Machine) -> Row {
    let busy = |all: Vec<(String, f64)>| {
        let most = all.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        most.filter(|(_, u)| *u > 0.0)
            .map_or("-".to_owned(), |(name, u)| format!("{name} {}", whole_percent(u)))
    };
    let controllers = p.controllers.iter().map(|c| (c.node.to_string(), c.utilization));
    let links = p
        .links
        .iter()
        .map(|l| (format!("{}→{}", l.from, l.to), l.utilization));
    let mut row = vec![
        p.policy.clone(),
        significant(p.seconds.typical),
        span(p.seconds),
        significant(p.speedup.typical),
        span(p.speedup),
        percent(p.local_fraction),
    ];
    row.extend(p.served_by_kind(machine).iter().map(|(_, share)| percent(*share)));
    row.extend(p.cache_hits.map(percent));
    row.extend([
        format!("{:.2}", p.access_balance),
        format!("{:.0} ns", p.latency_ns),
        format!("{}, {}", busy(controllers.collect()), busy(links.collect())),
    ]);
    row
}

/// The moves of each policy, in the same order; empty if no policy moves pages.
fn moves(simulation: &Simulation) -> String {
    let row = |p: &Prediction| {
        let moved = p.moved.as_ref()?;
        let (ledger, held) = (&moved.ledger, &moved.held_back);
        let incorrect = ledger.incorrect.or((ledger.migrations == 0).then_some(0));
        Some(vec![
            p.policy.clone(),
            ledger.migrations.to_string(),
            ledger.ping_pongs.to_string(),
            ledger.multiple.to_string(),
            incorrect.map_or("?".into(), |n| n.to_string()),
            significant(moved.seconds),
            (held.total() - held.budget).to_string(),
            held.budget.to_string(),
        ])
    };
    let rows: Vec<Row> = simulation.ranked().into_iter().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let header = [
        "moves pages",
        "moves",
        "ping-pongs",
        "multiple",
        "incorrect",
        "seconds",
        "held back",
        "by budget",
    ];
    let header = header.map(str::to_owned).into();
    table("lrrrrrrr", std::iter::once(header).chain(rows)) + "\n"
}

/// What policies copy, in the same order; empty if none does.
fn copies(simulation: &Simulation) -> String {
    let line =
        |p: &Prediction| Some(nodewise_report::Copied::of(p, simulation.placements())?.sentence + "\n");
    let lines: Vec<String> = simulation.ranked().into_iter().filter_map(line).collect();
    match lines.is_empty() {
        true => String::new(),
        false => lines.concat() + "\n",
    }
}

/// Formats a number to three significant digits.
pub fn significant(value: f64) -> String {
    let digits = if value > 0.0 {
        (2 - value.log10().floor() as i32).clamp(0, 9)
    } else {
        0
    };
    format!("{value:.*}", digits as usize)
}

fn span(range: Range) -> String {
    format!("({}–{})", significant(range.min), significant(range.max))
}

fn notes(machine: &Machine, simulation: &Simulation) -> String {
    let c = &simulation.calibration;
    let cost = c.recording_cost;
    let cost = match c.basis {
        _ if c.measured_cost => format!("recording cost {:.2}×, measured", cost.typical),
        Basis::CpuTime | Basis::WallTime => format!(
            "recording cost {:.1}× ({:.1}–{:.1}), as {}",
            cost.typical,
            cost.min,
            cost.max,
            c.why_unmeasured()
        ),
        Basis::Assumed | Basis::Samples => "recording cost unknown".to_owned(),
    };
    let p = &simulation.parameters;
    let varied = |r: Range| format!("{} ({}–{})", r.typical, r.min, r.max);
    let samples = match c.basis {
        Basis::Samples => {
            "Counts are samples of pages in use, not accesses: compare local shares; no time follows from them.\n"
        }
        _ => "",
    };
    let mut out = format!(
        "{samples}Estimates. Baseline of speed-ups: {}. Balance is of accesses by home node (1 is even).\n\
         Calibrated by the {}; {cost}.\n\
         Varied one at a time: misses in flight {}, share of lines that reach memory {}, queueing {} ns.\n",
        simulation.baseline().policy,
        c.basis.text(),
        varied(p.parallelism),
        varied(p.miss),
        varied(p.queue_ns),
    );
    let bandwidth = simulation.scenarios.iter().any(|s| s.varied == Varied::Bandwidth);
    if bandwidth {
        let range = p.assumed_bandwidth;
        let _ = writeln!(
            out,
            "Varied likewise: the machine's assumed bandwidths, between {:.2} and {:.2} times what its file has.",
            range.min, range.max
        );
    }
    let latency = simulation.scenarios.iter().any(|s| s.varied == Varied::Latency);
    if latency {
        let range = p.assumed_latency;
        let _ = writeln!(
            out,
            "Varied likewise: what remote memory takes longer than local, of which the machine's file has no source, between {} and \
             {} times that.",
            range.min, range.max
        );
    }
    if simulation
        .scenarios
        .iter()
        .any(|s| s.varied == Varied::CacheConflicts)
    {
        out.push_str(
            "Varied likewise: hits of memory-side caches, from those of the most used pages that fit to those of pages that displace \
             each other in turn.\n",
        );
    }
    if simulation
        .scenarios
        .iter()
        .any(|s| s.varied == Varied::Concurrency)
        && let Some(most) = simulation.side_by_side
    {
        let _ = writeln!(
            out,
            "Varied likewise: threads outside OpenMP, of which {most:.1} at most ran at a time while other processes may have \
             kept the others waiting, or all at a time."
        );
    }
    if simulation.scenarios.iter().any(|s| s.varied == Varied::Cores) {
        let _ = writeln!(
            out,
            "Varied likewise: computing takes between {} and {} times as long as on the recording host's cores \
             (--core-factor F, if you know).",
            p.core_factor.min, p.core_factor.max
        );
    } else if p.core_factor.typical != 1.0 {
        let _ = writeln!(
            out,
            "The machine's cores compute {} times as long as the recording host's.",
            p.core_factor.typical
        );
    }
    if !simulation.baseline().served_by_kind(machine).is_empty() {
        out += "By kind of memory: share of the bytes that it moves.\n";
    }
    if p.traffic == Traffic::Accesses {
        out += "Every access goes to memory: nothing is cached.\n";
    }
    let assumed: Vec<_> = machine
        .sources
        .iter()
        .filter(|s| s.assumed)
        .map(|s| s.field.as_str())
        .collect();
    if !assumed.is_empty() {
        let _ = writeln!(
            out,
            "Assumed about this machine: {} (`nodewise topo --machine {}` has the sources).",
            assumed.join(", "),
            machine.name
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_are_kept_at_any_size() {
        assert_eq!(
            [0.0012345, 1.0, 12.345, 1234.5].map(significant),
            ["0.00123", "1.00", "12.3", "1234"]
        );
    }
}
