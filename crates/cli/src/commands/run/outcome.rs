//! The text of `run`: the plan of a dry run, and what was achieved.

use super::document::{self, Document};
use super::{listing, warnings};
use crate::output;
use nodewise_analysis::figures::exact;
use nodewise_enforce::{Achieved, Plan, RuleAchieved};
use nodewise_report::{percent, plural, seconds};
use std::io::Write;

/// Prints the plan of a dry run on standard output.
pub fn print_plan(plan: &Plan, as_json: bool) -> anyhow::Result<()> {
    let text = match as_json {
        true => serde_json::to_string_pretty(&document::Planned::of(plan))?,
        false => listing::lines(plan).join("\n"),
    };
    output::print(&(text + "\n"))
}

/// Prints what was achieved on standard error. Errors are ignored, so that the exit status is that of the program.
pub fn print(ran: super::Ran<'_>, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let document = serde_json::to_string(&Document::of(ran))? + "\n";
        let _ = std::io::stderr().write_all(document.as_bytes());
        return Ok(());
    }
    lines(ran.plan, ran.achieved)
        .into_iter()
        .chain(ran.followed.and_then(followed_line))
        .chain(loops_line(ran))
        .collect::<Vec<_>>()
        .iter()
        .for_each(|line| output::message(line));
    Ok(())
}

/// How many loops were dealt otherwise than the program asks.
fn loops_line(ran: super::Ran<'_>) -> Option<String> {
    let (schedule, loops) = (ran.plan.schedule?, ran.dealt_loops?);
    Some(match loops {
        0 => "no loop asked for a dynamic or guided schedule, or no process with such loops ended by itself"
            .to_owned(),
        loops => format!(
            "{} that asked for a dynamic or guided schedule dealt by schedule({schedule})",
            exact(loops, "loop")
        ),
    })
}

fn lines(plan: &Plan, achieved: Option<&Achieved>) -> Vec<String> {
    let mut lines: Vec<String> = warnings::instrumented(plan).into_iter().collect();
    lines.extend(plan.notes.iter().cloned());
    match achieved {
        // Files alone are placed without the preload.
        Some(achieved) if achieved.processes == 0 && plan.files.iter().any(|f| !f.found.is_empty()) => {}
        Some(achieved) if achieved.processes + achieved.unreported == 0 => {
            lines.push(
                "no process was placed: the program never started, or its loader ignored the preload".into(),
            );
        }
        Some(achieved) => lines.extend(achieved_lines(plan, achieved)),
        None => lines.extend(warnings::matched_rules_summary(plan)),
    }
    lines.extend(warnings::unplaced(plan, achieved));
    lines
}

fn achieved_lines(plan: &Plan, achieved: &Achieved) -> Vec<String> {
    let mut lines = Vec::new();
    let total = achieved.total();
    if !plan.rules.is_empty() {
        let used = achieved.rules.iter().filter(|r| r.objects > 0).count();
        lines.push(format!(
            "{used} of {} rules placed {}, {}{}",
            plan.rules.len(),
            objects(total.objects),
            pages(total.pages),
            share(&total)
        ));
        lines.extend(per_node(plan, &total));
    }
    if achieved.rest.wanted.iter().any(|w| *w > 0) {
        lines.push(format!(
            "by default {}, {}{}",
            objects(achieved.rest.objects),
            pages(achieved.rest.pages),
            share(&achieved.rest)
        ));
        lines.extend(per_node(plan, &achieved.rest));
    }
    if achieved.threads_bound > 0 {
        lines.push(format!(
            "{} bound ({})",
            plural(achieved.threads_bound as usize, "thread"),
            plan.threads.name
        ));
    } else if plan.environment.iter().any(|(k, _)| k == "OMP_PLACES") {
        lines.push(format!(
            "OpenMP is told to bind {} ({}), if the program uses it",
            plural(plan.threads.cpus.len(), "thread"),
            plan.threads.name
        ));
    }
    lines.extend(miscounted(plan, achieved));
    lines.extend(trouble(achieved));
    if achieved.killed > 0 && plan.objects.is_none() {
        lines.push(format!(
            "processes that ended without a last look (killed, or by a system call of their own): {}; figures are those of \
             the look before",
            achieved.killed
        ));
    }
    lines
}

/// Prints the results of role detection.
fn followed_line(followed: &super::Followed) -> Option<String> {
    let found = match followed {
        Ok(found) => found,
        Err(why) => {
            return Some(format!(
                "threads are where their numbers put them, not by data: {why}"
            ));
        }
    };
    if found.looks == 0 {
        let why = found.refused.as_ref()?;
        return Some(format!("threads were not sent to their data: {why}"));
    }
    let cost = found.cost.as_secs_f64() / found.cpu.as_secs_f64().max(0.01);
    let found_after = found
        .found_after
        .map(|t| format!(", after {}", seconds(t.as_secs_f64())));
    Some(format!(
        "the memory that threads write: each mostly that of one node for {}{}; sent there {} ({}, {} of the CPU time)",
        plural(found.known, "thread"),
        found_after.unwrap_or_default(),
        plural(found.moves as usize, "time"),
        plural(found.looks as usize, "look"),
        percent(cost)
    ))
}

/// Warns if the number of threads differs from the planned one, because blocks by thread are distributed over the
/// planned threads. Threads that OpenMP binds itself are not seen; several processes are counted together.
fn miscounted(plan: &Plan, achieved: &Achieved) -> Option<String> {
    let (planned, came) = (plan.threads.cpus.len(), achieved.threads_bound.max(1) as usize);
    let set_by_plan = plan.environment.iter().any(|(k, _)| k == "OMP_NUM_THREADS");
    let by_thread = plan
        .rules
        .iter()
        .any(|r| r.distribution.starts_with("block by thread"));
    let counted = plan.binds_threads() && achieved.processes == 1 && (set_by_plan || by_thread);
    (counted && planned != came).then(|| {
        format!(
            "planned for {planned} threads, {came} came: --threads {came} deals the blocks and CPUs to those"
        )
    })
}

fn pages(count: u64) -> String {
    plural(count as usize, "page")
}

fn objects(count: u64) -> String {
    plural(count as usize, "object")
}

fn share(rule: &RuleAchieved) -> String {
    if rule.touched == 0 {
        return String::new();
    }
    let right = percent(rule.right as f64 / rule.touched as f64);
    format!(
        "; {right} of {} touched pages are where they were wanted",
        rule.touched
    )
}

fn per_node(plan: &Plan, rule: &RuleAchieved) -> Option<String> {
    let row = |pages: &[u64]| {
        let cells: Vec<_> = plan
            .nodes
            .iter()
            .zip(pages)
            .map(|(n, p)| format!("{n}:{p}"))
            .collect();
        cells.join(" ")
    };
    let got = if rule.touched > 0 {
        row(&rule.got)
    } else {
        "not read back".into()
    };
    rule.wanted
        .iter()
        .any(|w| *w > 0)
        .then(|| format!("pages per node: wanted {}, got {got}", row(&rule.wanted)))
}

fn trouble(achieved: &Achieved) -> Vec<String> {
    let mut lines = Vec::new();
    if achieved.refused > 0 {
        let why = achieved.refusal.as_deref().unwrap_or("no reason");
        lines.push(format!(
            "the kernel refused {}: {why}",
            plural(achieved.refused as usize, "placement call")
        ));
    }
    if achieved.coarsened > 0 {
        lines.push(format!(
            "placed in larger pieces: {}, for want of mappings or free memory",
            objects(achieved.coarsened.into())
        ));
    }
    if achieved.by_name > 0 {
        lines.push(format!(
            "recognised by function names and the order of calls only: {}; build with -g for lines",
            objects(achieved.by_name)
        ));
    }
    if achieved.untracked > 0 {
        lines.push(format!(
            "placed but not read back, more than there was room to follow: {}",
            objects(achieved.untracked.into())
        ));
    }
    if achieved.unreported > 0 {
        lines.push(format!(
            "processes that could not report, for want of room in the folder for temporary files: {}; set TMPDIR",
            achieved.unreported
        ));
    }
    if achieved.unreached > 0 {
        lines.push(format!(
            "programs that ran unplaced, started with an environment or under a root without nodewise's library: {}",
            achieved.unreached
        ));
    }
    lines.extend(
        achieved
            .switched_off
            .iter()
            .map(|why| format!("placement was switched off: {why}")),
    );
    lines
}
