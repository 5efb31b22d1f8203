//! `nodewise migrate --metric`: finds the share of pages on the target nodes at which a command prints the best number.

use super::{Arguments, nodes};
use crate::exit::Outcome;
use crate::output::{self, say};
use anyhow::{Context, bail};
use nodewise_analysis::figures::seconds;
use nodewise_enforce::mover::Mover;
use nodewise_linux::Host;
use nodewise_linux::signals::{SIGHUP, SIGINT, SIGTERM, Signals};
use nodewise_live::{ShareSearch, Sides, Tried};
use nodewise_machine::format_list;
use serde::Serialize;
use std::process::{Command, Stdio};
use std::time::Instant;

#[derive(Serialize)]
struct Document<'a> {
    pid: u32,
    near: &'a [u32],
    far: &'a [u32],
    metric: &'a str,
    lowest: bool,
    counter: bool,
    period_seconds: f64,
    before: f64,
    steps: Vec<Step>,
    best: Option<Step>,
    complete: bool,
    ended: bool,
}

#[derive(Clone, Copy, Serialize)]
struct Step {
    share: u32,
    metric: f64,
    pages: u64,
    move_seconds: f64,
}

/// Why a measurement came to nothing.
enum Stopped {
    /// A signal asked for it.
    Asked,
    /// The process has ended.
    Ended,
    /// The command printed no number.
    Failed(anyhow::Error),
}

pub fn run(arguments: &Arguments, command: &str) -> anyhow::Result<Outcome> {
    let sides = sides(arguments)?;
    let signals = Signals::block(&[SIGINT, SIGTERM, SIGHUP]).context("cannot wait for signals")?;
    let metric = Metric {
        arguments,
        command,
        signals: &signals,
    };
    let before = match metric.measured() {
        Ok(value) => value,
        Err(Stopped::Failed(error)) => return Err(error),
        Err(Stopped::Asked | Stopped::Ended) => bail!("stopped before anything was moved"),
    };
    say!("as it is: {before}");
    let mover = Mover::new(arguments.workers.unwrap_or(0) as usize).with_chunk(arguments.chunk as usize);
    let mut search = ShareSearch::new(arguments.pid(), sides.clone(), mover, arguments.scope());
    let (mut steps, mut stopped): (Vec<Step>, Option<Stopped>) = (Vec::new(), None);
    let mut value = 0.0;
    while let Some(tried) = search.step(|_| match metric.measured() {
        Ok(found) => {
            value = found;
            Some(metric.cost(found))
        }
        Err(why) => {
            stopped = Some(why);
            None
        }
    })? {
        say!("{}: {value}", on(tried.share, &sides.far));
        steps.push(step(&tried, value));
    }
    if let Some(Stopped::Failed(error)) = stopped {
        bail!(
            "{error:#}; {}",
            search
                .applied()
                .map_or(String::new(), |share| on(share, &sides.far))
        );
    }
    let ended = matches!(stopped, Some(Stopped::Ended));
    let best = match search.best().filter(|_| !ended) {
        Some(share) => {
            let (pages, move_seconds) = search.apply(share)?;
            let near = steps.iter().min_by_key(|s| s.share.abs_diff(share));
            near.map(|near| Step {
                share,
                metric: near.metric,
                pages,
                move_seconds,
            })
        }
        None => None,
    };
    let document = Document {
        pid: arguments.pid(),
        near: &sides.near,
        far: &sides.far,
        metric: command,
        lowest: arguments.lowest,
        counter: arguments.counter,
        period_seconds: arguments.period.as_secs_f64(),
        before,
        complete: stopped.is_none(),
        ended,
        steps,
        best,
    };
    output::print(&match arguments.json {
        true => serde_json::to_string_pretty(&document)? + "\n",
        false => text(&document),
    })?;
    Ok(Outcome::Done)
}

/// The two sides, checked like those of other moves.
fn sides(arguments: &Arguments) -> anyhow::Result<Sides> {
    let named = |option, text: &Option<String>| match text {
        Some(text) => nodes::list(option, text),
        None => bail!("--metric needs --from and --to: the nodes that the pages are divided between"),
    };
    let sides = Sides {
        near: named("--from", &arguments.from)?,
        far: named("--to", &arguments.to)?,
    };
    if let Some(both) = sides.near.iter().find(|n| sides.far.contains(n)) {
        bail!("node {both} is named by --from and by --to; pages are divided between the two");
    }
    let pairs = sides
        .near
        .iter()
        .flat_map(|f| sides.far.iter().map(move |t| (*f, *t)));
    nodes::check(&Host::default(), arguments.pid(), &pairs.collect::<Vec<_>>())?;
    Ok(sides)
}

fn step(tried: &Tried, metric: f64) -> Step {
    Step {
        share: tried.share,
        metric,
        pages: tried.pages,
        move_seconds: tried.seconds,
    }
}

fn on(share: u32, far: &[u32]) -> String {
    let noun = if far.len() == 1 { "node" } else { "nodes" };
    format!("{share} % of the pages are on {noun} {}", format_list(far))
}

fn text(document: &Document<'_>) -> String {
    let Some(best) = document.best else {
        return "the process ended; nothing was found\n".to_owned();
    };
    let moved: u64 = document.steps.iter().map(|s| s.pages).sum::<u64>() + best.pages;
    let took: f64 = document.steps.iter().map(|s| s.move_seconds).sum::<f64>() + best.move_seconds;
    let part = if document.complete {
        ""
    } else {
        ", as far as it came"
    };
    let is_worse = match document.lowest {
        true => best.metric > document.before,
        false => best.metric < document.before,
    };
    let warning = match is_worse {
        true => {
            "As the pages were before it was better, or the metric varies by that much: repeat it with a longer --period.\n"
        }
        false => "",
    };
    format!(
        "process {}: {} now, the best share by {} measurements{part}: {} close to it, {} before.\n\
         {} were moved for it, in {}. Pages that it touches for the first time from now on are placed by its own policy.\n{warning}",
        document.pid,
        on(best.share, document.far),
        document.steps.len(),
        best.metric,
        document.before,
        nodewise_report::bytes(moved << 12),
        seconds(took),
    )
}

/// The command that prints a number.
struct Metric<'a> {
    arguments: &'a Arguments,
    command: &'a str,
    signals: &'a Signals,
}

impl Metric<'_> {
    /// The number after a period; of a counter, by how much it grew per second.
    fn measured(&self) -> Result<f64, Stopped> {
        let first = self.arguments.counter.then(|| self.printed()).transpose()?;
        let begun = Instant::now();
        if self.signals.wait(self.arguments.period).is_some() {
            return Err(Stopped::Asked);
        }
        let value = self.printed()?;
        if Host::default().status(self.arguments.pid()).is_err() {
            return Err(Stopped::Ended);
        }
        let value = first.map_or(value, |first| (value - first) / begun.elapsed().as_secs_f64());
        match self.arguments.lowest || value > 0.0 {
            true => Ok(value),
            false => Err(Stopped::Failed(anyhow::anyhow!(
                "--metric: {value}: where the largest is best, numbers are above 0 (--lowest: the smallest is best)"
            ))),
        }
    }

    /// A cost of a value: what is to be large counts by its inverse, as a rate does.
    fn cost(&self, value: f64) -> f64 {
        if self.arguments.lowest { value } else { 1.0 / value }
    }

    fn printed(&self) -> Result<f64, Stopped> {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", self.command])
            .stdin(Stdio::null())
            .stderr(Stdio::inherit());
        self.signals.before_exec(&mut shell);
        let failed = |why: String| Stopped::Failed(anyhow::anyhow!("--metric: {why}"));
        let output = shell.output().map_err(|e| failed(e.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let last = text.lines().last().unwrap_or_default().trim();
        if !output.status.success() {
            return Err(failed(format!("the command ended with {}", output.status)));
        }
        let number = last.parse::<f64>().ok().filter(|n| n.is_finite());
        number.ok_or_else(|| failed(format!("the last line that it printed is no number: `{last}`")))
    }
}
