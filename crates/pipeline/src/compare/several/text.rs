//! Terminal output for several programs at once.

use super::{Dynamic, Policy, Together};
use crate::compare::nodes::{DYNAMIC, difference, faster, header, list};
use crate::compare::table::{Row, significant};
use nodewise_report::table;
use nodewise_simulation::{AfterEnd, Places, Spread};
use std::fmt::Write;

pub fn write(done: &Together) -> String {
    let mut out = format!(
        "{}: {}\n{}\n\n",
        done.machine.name,
        done.machine.title,
        heading(done)
    );
    for policy in &done.policies {
        let rows = (0..done.programs.len()).map(|p| row(done, policy, p));
        out += &table(
            "lrrrrrrrrl",
            std::iter::once(header(
                [&policy.name, "threads"],
                &["together", "by bandwidth alone"],
            ))
            .chain(rows),
        );
        let _ = writeln!(
            out,
            "Together best on {}, worst on {}; by bandwidth alone {}.\n",
            together(done, policy, policy.best),
            together(done, policy, policy.worst),
            together(done, policy, policy.by_bandwidth),
        );
    }
    if let Some(dynamic) = &done.dynamic {
        out += &only_pages_move(done, dynamic);
    }
    out + &notes(done)
}

/// `3 programs on 3 + 3 + 2 of 8 nodes at once; all 560 placements predicted.`
fn heading(done: &Together) -> String {
    let needed: Vec<_> = done
        .programs
        .iter()
        .map(|p| p.threads.count().to_string())
        .collect();
    let predicted = match done.placements.complete() {
        true => format!("all {} placements of them predicted", done.placements.all.len()),
        false => format!(
            "{} of {:.0} placements of them predicted",
            done.placements.all.len(),
            done.placements.possible
        ),
    };
    format!(
        "{} programs at once, on {} of {} nodes; {predicted}.",
        done.programs.len(),
        needed.join(" + "),
        done.machine.cpu_nodes().count(),
    )
}

fn row(done: &Together, policy: &Policy, program: usize) -> Row {
    let description = &done.programs[program];
    let (seconds, latency) = (policy.seconds(program), policy.latency_ns(program));
    let (times, latencies) = (Spread::of(&seconds), Spread::of(&latency));
    vec![
        description.program.clone(),
        description.threads.of.len().to_string(),
        significant(times.mean),
        faster(times.mean, times.least.1),
        faster(times.mean, times.most.1),
        format!("{:.0} ns", latencies.mean),
        difference(latencies.mean, latency[times.least.0]),
        difference(latencies.mean, latency[times.most.0]),
        faster(times.mean, seconds[policy.best]),
        faster(times.mean, seconds[policy.by_bandwidth]),
    ]
}

/// `5 4 1 | 6 2 3: +12 %`
fn together(done: &Together, policy: &Policy, at: usize) -> String {
    format!(
        "{} ({})",
        nodes(&done.placements.all[at]),
        faster(policy.speed[at], 1.0)
    )
}

fn nodes(places: &Places) -> String {
    places.iter().map(|n| list(n)).collect::<Vec<_>>().join(" | ")
}

fn only_pages_move(done: &Together, dynamic: &Dynamic) -> String {
    let start = format!("{DYNAMIC} from {}", dynamic.start);
    let header = [
        start.as_str(),
        "mean",
        "least",
        "most",
        "deviation",
        "on the nodes of the highest bandwidth",
    ];
    let row = |(at, description): (usize, &super::ProgramDescription)| {
        let spread = Spread::of(&dynamic.seconds(at));
        let shown = [
            spread.mean,
            spread.least.1,
            spread.most.1,
            spread.deviation,
            dynamic.by_bandwidth[at].seconds,
        ];
        std::iter::once(description.program.clone())
            .chain(shown.map(significant))
            .collect::<Row>()
    };
    let rows = done.programs.iter().enumerate().map(row);
    format!(
        "Seconds where only pages move, on {} draws of nodes:\n{}\n",
        dynamic.draws.len(),
        table(
            "lrrrrl",
            std::iter::once(header.map(str::to_owned).into()).chain(rows)
        )
    )
}

fn notes(done: &Together) -> String {
    let after_end = match done.after_end {
        AfterEnd::Leave => {
            "a program that has ended leaves the links to the others (--restart: it begins again)"
        }
        AfterEnd::Repeat => {
            "a program that has ended begins again until all have ended once; seconds are of the first run"
        }
    };
    let coarse = match done.slices_together {
        1 => String::new(),
        n => format!("Slices are taken {n} at a time.\n"),
    };
    format!(
        "Estimates. Seconds and latency (of a line from memory) are means over placements; best and worst are each \
         program's own,\nagainst the mean; together: where the geometric mean of all is best.\n\
         All begin at the same time; {after_end}.\n{coarse}"
    )
}
