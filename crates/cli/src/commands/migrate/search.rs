//! `nodewise migrate --metric`: finds the share of pages on the target nodes at which a command prints the best number.

use super::metric::{Metric, Stopped, is_there};
use super::{Arguments, nodes};
use crate::exit::Outcome;
use crate::output::{self, say};
use anyhow::{Context, bail};
use nodewise_analysis::figures::{noun, plural, seconds, whole_percent};
use nodewise_enforce::mover::Mover;
use nodewise_linux::Host;
use nodewise_linux::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use nodewise_live::{Applied, ShareSearch, Sides};
use nodewise_machine::format_list;
use serde::Serialize;

/// What a metric may differ by at one share without a remark, as a factor.
const MAX_NOISE: f64 = 1.05;

#[derive(Serialize)]
struct Document<'a> {
    pid: u32,
    near: &'a [u32],
    far: &'a [u32],
    metric: &'a str,
    lowest: bool,
    counter: bool,
    period_seconds: f64,
    before: Before,
    steps: Vec<Step>,
    best: Option<Step>,
    improved: bool,
    complete: bool,
    ended: bool,
    failure: Option<String>,
}

/// How it was before anything moved.
#[derive(Clone, Copy, Serialize)]
struct Before {
    reached: f64,
    metric: f64,
    measured: [f64; 2],
}

#[derive(Clone, Copy, Serialize)]
struct Step {
    share: u32,
    reached: f64,
    metric: Option<f64>,
    pages: u64,
    stayed: u64,
    move_seconds: f64,
}

impl Step {
    fn of(applied: &Applied, metric: Option<f64>) -> Self {
        Self {
            share: applied.share,
            reached: applied.reached,
            metric,
            pages: applied.pages,
            stayed: applied.stayed,
            move_seconds: applied.seconds,
        }
    }
}

pub fn run(arguments: &Arguments, command: &str) -> anyhow::Result<Outcome> {
    let host = Host::default();
    let sides = sides(arguments, &host)?;
    let signals = Signals::block(&[SIGINT, SIGTERM, SIGHUP]).context("cannot wait for signals")?;
    let metric = Metric {
        arguments,
        command,
        signals: &signals,
    };
    if host.numa_balancing().is_some_and(|mode| mode & 1 == 1) {
        say!(
            "kernel.numa_balancing is on: it moves pages back to who uses them; sysctl kernel.numa_balancing=0"
        );
    }
    let mover = Mover::new(arguments.workers.unwrap_or(0) as usize).with_chunk(arguments.chunk as usize);
    let mut search = ShareSearch::new(arguments.pid(), sides.clone(), mover, arguments.scope());
    let twice = || Ok((metric.measured()?, metric.measured()?));
    let before = match twice() {
        Ok((value, again)) => Before {
            reached: search.reached(),
            metric: value.midpoint(again),
            measured: [value, again],
        },
        Err(Stopped::Failed(error)) => return Err(error),
        Err(Stopped::Asked | Stopped::Ended) => bail!("stopped before anything was moved"),
    };
    say!("as it is: {}", short(before.metric));
    let mut found = Document {
        pid: arguments.pid(),
        near: &sides.near,
        far: &sides.far,
        metric: command,
        lowest: arguments.lowest,
        counter: arguments.counter,
        period_seconds: arguments.period.as_secs_f64(),
        before,
        steps: Vec::new(),
        best: None,
        improved: false,
        complete: true,
        ended: false,
        failure: None,
    };
    match climb(&mut search, &metric, &mut found) {
        Ok(()) => {}
        Err(Stopped::Asked) => found.complete = false,
        Err(Stopped::Ended) => (found.complete, found.ended) = (false, true),
        Err(Stopped::Failed(error)) => (found.complete, found.failure) = (false, Some(format!("{error:#}"))),
    }
    output::print(&match arguments.json {
        true => serde_json::to_string_pretty(&found)? + "\n",
        false => text(&found),
    })?;
    match found.failure {
        Some(why) => bail!(why),
        None => Ok(Outcome::Done),
    }
}

/// Measures share after share, and leaves the pages with the best one, whatever ends it; as they were dealt before if
/// that was better.
fn climb(search: &mut ShareSearch, metric: &Metric<'_>, found: &mut Document<'_>) -> Result<(), Stopped> {
    let end = loop {
        let Some(share) = search.next_share() else {
            break Ok(());
        };
        match tried(search, metric, share) {
            Ok(step) => {
                search.measured(metric.cost(step.metric.unwrap_or(0.0), found.before.metric));
                say!("{}: {}", on(&step, found.far), short(step.metric.unwrap_or(0.0)));
                found.steps.push(step);
            }
            Err(why) => break Err(why),
        }
    };
    if matches!(end, Err(Stopped::Ended)) || !is_there(metric.arguments.pid()) {
        return Err(Stopped::Ended);
    }
    let Some(best) = search.best() else {
        return end;
    };
    if let Err(why) = end {
        let applied = search.apply(best).map_err(|e| Stopped::Failed(e.into()))?;
        found.best = Some(Step::of(&applied, None));
        return Err(why);
    }
    // What was fitted, or else the best single measurement, or else as it was.
    let cost = |value: f64| metric.cost(value, found.before.metric);
    let cheapest = found
        .steps
        .iter()
        .filter_map(|s| s.metric.map(|m| (s.share, cost(m))));
    let cheapest = cheapest.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(best, |c| c.0);
    for share in [best, cheapest] {
        let step = tried(search, metric, share)?;
        found.best = Some(step);
        found.improved = step
            .metric
            .is_some_and(|value| cost(value) < cost(found.before.metric));
        if found.improved {
            return Ok(());
        }
    }
    // The share of before, of the pages that can move: the others are where they were.
    let fixed = found
        .best
        .map_or(0.0, |step| step.reached - f64::from(step.share) / 100.0);
    let was = (100.0 * (found.before.reached - fixed)).round().clamp(0.0, 100.0);
    found.best = Some(tried(search, metric, was as u32)?);
    Ok(())
}

fn tried(search: &mut ShareSearch, metric: &Metric<'_>, share: u32) -> Result<Step, Stopped> {
    let applied = search.apply(share).map_err(|e| Stopped::Failed(e.into()))?;
    Ok(Step::of(&applied, Some(metric.measured()?)))
}

/// The two sides, checked like those of other moves.
fn sides(arguments: &Arguments, host: &Host) -> anyhow::Result<Sides> {
    let named = |option, text: &Option<String>| nodes::distinct(option, text.as_deref().unwrap_or_default());
    let sides = Sides {
        near: named("--from", &arguments.from)?,
        far: named("--to", &arguments.to)?,
    };
    if let Some(both) = sides.near.iter().find(|n| sides.far.contains(n)) {
        bail!("node {both} is named by --from and by --to; pages are divided between the two");
    }
    let both = [sides.near.clone(), sides.far.clone()].concat();
    nodes::check(host, arguments.pid(), &both, &both)?;
    Ok(sides)
}

/// The share asked for, and that of all pages where that differs: some cannot move.
fn on(step: &Step, far: &[u32]) -> String {
    let noun = noun(far.len(), "node");
    let all = match (step.reached - f64::from(step.share) / 100.0).abs() < 0.015 {
        true => String::new(),
        false => format!(" ({} of all that it has)", whole_percent(step.reached)),
    };
    format!(
        "{} % of the pages on {noun} {}{all}",
        step.share,
        format_list(far)
    )
}

/// A value with four digits, as its noise is larger than the others.
fn short(value: f64) -> String {
    let digits = (3.0 - value.abs().max(1e-3).log10().floor()).clamp(0.0, 6.0);
    format!("{value:.*}", digits as usize)
}

/// By how much the metric differed at one share, as a factor above 1: a difference that no share explains.
fn noise(found: &Document<'_>) -> f64 {
    let all = found.steps.iter().chain(&found.best);
    let measured: Vec<(u32, f64)> = all.filter_map(|s| s.metric.map(|m| (s.share, m))).collect();
    let again = found.before.measured.map(|value| (u32::MAX, value));
    let pairs = measured
        .iter()
        .chain(&again)
        .flat_map(|a| measured.iter().chain(&again).map(move |b| (a, b)));
    let same = pairs.filter(|(a, b)| a.0 == b.0 && b.1 > 0.0);
    same.map(|(a, b)| a.1 / b.1).fold(1.0, f64::max)
}

fn text(found: &Document<'_>) -> String {
    let process = format!("process {}", found.pid);
    if found.ended {
        return format!("{process} has ended\n");
    }
    let Some(best) = found.best else {
        return format!("{process}: stopped before a share was measured; pages are left as they are now\n");
    };
    let moved: u64 = found.steps.iter().map(|s| s.pages).sum::<u64>() + best.pages;
    let took: f64 = found.steps.iter().map(|s| s.move_seconds).sum::<f64>() + best.move_seconds;
    let measurements = plural(found.steps.len(), "measurement");
    let before = short(found.before.metric);
    let mut text = match best.metric.map(short) {
        Some(now) if found.improved => {
            format!(
                "{process}: {}, the best share by {measurements}: {now} now, {before} before\n",
                on(&best, found.far)
            )
        }
        Some(now) => format!(
            "{process}: {}, as before: none of {measurements} was better when measured again: {now} now, {before} before\n",
            on(&best, found.far)
        ),
        None => format!(
            "{process}: {}, the best share by {measurements} so far; {before} before\n",
            on(&best, found.far)
        ),
    };
    text += &format!(
        "{} were moved for it, in {}; pages that it touches for the first time from now on are placed by its own policy\n",
        nodewise_report::bytes(moved << 12),
        seconds(took),
    );
    let noise = noise(found);
    if noise > MAX_NOISE {
        text += &format!(
            "at one share the metric differed {noise:.2} times: smaller differences say nothing; repeat it with a longer --period\n"
        );
    }
    text
}
