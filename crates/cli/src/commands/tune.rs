//! `nodewise tune`: the closed loop. Decide from a profile, run what looks best against the plain
//! command, keep what is measured to be faster.

mod candidates;
mod findings;
mod profile;
mod statistics;
mod trial;

use crate::arguments::duration;
use crate::exit::Outcome;
use crate::output::{self, say};
use anyhow::{Context as _, bail};
use candidates::{Candidate, Setting};
use findings::{Baseline, Conclusion, Findings, Tried};
use indicatif::{ProgressBar, ProgressStyle};
use nodewise_advise::omp_places;
use nodewise_input::shell_line;
use nodewise_pipeline::{Selected, Selection};
use nodewise_placement::{Context, Mapping};
use nodewise_simulation::{Parameters, Simulation, simulate};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use trial::{Trial, Way};

#[derive(clap::Args)]
pub struct Arguments {
    /// The machine to decide for: this one, or a file that describes it better
    #[arg(long, value_name = "M", default_value = "this")]
    machine: String,
    /// Decide from this profile [default: the latest one here of the same program]
    #[arg(long, value_name = "DIR", conflicts_with = "instrumented")]
    profile: Option<PathBuf>,
    /// Record this build of the program (made with nodewise-cc) first, with the same arguments
    #[arg(long, value_name = "PATH")]
    instrumented: Option<PathBuf>,
    /// Where threads run: sharing-aware, compact, identity, scatter, file:FILE
    #[arg(long, value_name = "A", default_value = "sharing-aware")]
    affinity: String,
    /// Runs of each candidate and of the plain command
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Start no further round after this time: 90s, 10m, 1h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    time_limit: Option<Duration>,
    /// How many of the best predictions to run
    #[arg(long, value_name = "N", default_value_t = 3)]
    candidates: usize,
    /// Do not compare outputs: for programs that print times
    #[arg(long)]
    any_output: bool,
    /// Seed of the statistics
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Where the winner's map goes [default: PROGRAM.map]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing map
    #[arg(long)]
    force: bool,
    /// Stop after deciding: show what would be run
    #[arg(long)]
    dry_run: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
    /// The plain program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<String>,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let map = map_file(arguments);
    if map.exists() && !arguments.force && !arguments.dry_run {
        bail!(
            "{}: exists already; choose another name with -o or add --force",
            map.display()
        );
    }
    let scratch = Scratch::new()?;
    let folder = profile::obtain(arguments)?;
    let selection = Selection {
        profile: Some(folder.clone()),
        machine: arguments.machine.clone(),
        affinity: arguments.affinity.clone(),
        page_size: 0,
        plain: None,
    };
    let selected = selection.open()?;
    let setting = Setting {
        command: &arguments.command,
        profile: &folder,
        machine: &arguments.machine,
        affinity: &arguments.affinity,
        places: omp_places(&selected.affinity, selected.profile()),
        scratch: &scratch.0,
        map: &map,
    };
    if arguments.dry_run {
        let predicted = predict(&selected, None)?;
        return show(&setting, &predicted.0, &chosen(&setting, &predicted, arguments));
    }
    let findings = measure(arguments, &selected, &setting)?;
    if arguments.json {
        output::print(&(serde_json::to_string_pretty(&findings)? + "\n"))?;
    } else {
        output::print(&findings.text())?;
    }
    Ok(Outcome::Done)
}

fn map_file(arguments: &Arguments) -> PathBuf {
    let name = Path::new(&arguments.command[0]).file_name().unwrap_or_default();
    arguments
        .output
        .clone()
        .unwrap_or_else(|| Path::new(name).with_extension("map"))
}

/// The simulation, and the mappings it is of.
type Predicted = (Simulation, Vec<Mapping>);

/// All policies, calibrated with the plain wall time once that is known.
fn predict(selected: &Selected, plain_seconds: Option<f64>) -> anyhow::Result<Predicted> {
    let (mappings, notes) = selected.mappings("first-touch,all")?;
    let mut profile = selected.profile().clone();
    if let Some(seconds) = plain_seconds {
        profile.meta.plain_wall_ns = Some((seconds * 1e9) as u64);
    }
    let context = Context {
        profile: &profile,
        ..selected.context()
    };
    crate::selection::tell(&notes);
    let simulation = simulate(&context, &mappings, &selected.reader, &Parameters::default())?;
    Ok((simulation, mappings))
}

/// The best predictions, and stock commands; one candidate where there is one node.
fn chosen(setting: &Setting<'_>, predicted: &Predicted, arguments: &Arguments) -> Vec<Candidate> {
    let (simulation, mappings) = predicted;
    let several = simulation.baseline().controllers.len() > 1;
    let count = if several { arguments.candidates } else { 1 };
    let best = candidates::choose(simulation, mappings, count)
        .into_iter()
        .enumerate();
    let mut all: Vec<_> = best.map(|(i, p)| Candidate::placed(setting, p, i)).collect();
    if several {
        all.extend(candidates::stock(setting, simulation));
    }
    all
}

fn show(setting: &Setting<'_>, simulation: &Simulation, candidates: &[Candidate]) -> anyhow::Result<Outcome> {
    let mut text = format!(
        "{}: first-touch as the baseline:\n  {}\n",
        simulation.machine,
        shell_line(setting.command)
    );
    for candidate in candidates {
        let predicted = candidate.predicted.map_or(String::new(), |r| {
            format!(
                ", predicted {:.2} ({:.2}–{:.2}) times as fast",
                r.typical, r.min, r.max
            )
        });
        text += &format!("{}{predicted}:\n  {}\n", candidate.policy, candidate.line);
    }
    output::print(&text)?;
    Ok(Outcome::Done)
}

fn measure(arguments: &Arguments, selected: &Selected, setting: &Setting<'_>) -> anyhow::Result<Findings> {
    let started = Instant::now();
    let plain = Way::plain(setting.command);
    let warm = plain.run().context("the plain command must work first")?;
    let again = plain.run()?;
    if warm.output != again.output && !arguments.any_output {
        bail!(
            "`{}` prints something else each time; add --any-output if that is right",
            shell_line(setting.command)
        );
    }
    let same = profile::comparable(arguments, &selected.profile().meta.command);
    let predicted = predict(selected, same.then_some(again.seconds))?;
    let candidates = chosen(setting, &predicted, arguments);
    candidates.iter().try_for_each(|c| c.prepare(setting))?;
    let ways: Vec<&Way> = std::iter::once(&plain)
        .chain(candidates.iter().map(|c| &c.way))
        .collect();
    let output = (!arguments.any_output).then_some(warm.output);
    let times = rounds(arguments, &Trial { ways, output }, started)?;
    let column = |i: usize| times.iter().map(|round| round[i]).collect::<Vec<f64>>();
    let baseline = column(0);
    let tried = candidates.iter().enumerate();
    let tried: Vec<Tried> = tried
        .map(|(i, c)| Tried::new(c, &baseline, column(i + 1), arguments.seed))
        .collect();
    let mut findings = report(setting, &predicted.0, &candidates, baseline, tried)?;
    findings.comparable = same;
    Ok(findings)
}

fn rounds(arguments: &Arguments, trial: &Trial<'_>, started: Instant) -> anyhow::Result<Vec<Vec<f64>>> {
    let bar = ProgressBar::new(u64::from(arguments.runs) * trial.ways.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {pos}/{len} runs, {eta} left") {
        bar.set_style(style);
    }
    bar.set_message("measuring");
    let mut times = Vec::new();
    for round in 0..arguments.runs {
        if arguments
            .time_limit
            .is_some_and(|budget| started.elapsed() >= budget)
            && round > 0
        {
            say!("the budget is spent after {round} of {} rounds", arguments.runs);
            break;
        }
        times.push(trial.round(round % 2 == 1, &mut || bar.inc(1))?);
    }
    bar.finish_and_clear();
    Ok(times)
}

fn report(
    setting: &Setting<'_>,
    simulation: &Simulation,
    candidates: &[Candidate],
    baseline: Vec<f64>,
    tried: Vec<Tried>,
) -> anyhow::Result<Findings> {
    let nodes = simulation.baseline().controllers.len();
    let (conclusion, winner) = findings::conclude(&tried, baseline.len(), nodes);
    let plain = shell_line(setting.command);
    let command = match (conclusion, winner) {
        (Conclusion::Stock, Some(w)) => tried[w].command.clone(),
        (Conclusion::Place, Some(w)) => {
            if let Some(map) = &candidates[w].map {
                std::fs::copy(map, setting.map)
                    .with_context(|| format!("cannot write {}", setting.map.display()))?;
            }
            tried[w].command.clone()
        }
        _ => plain.clone(),
    };
    let seconds = simulation.baseline().seconds;
    Ok(Findings {
        schema: 1,
        machine: simulation.machine.clone(),
        nodes,
        memory_bound: simulation.is_memory_bound(),
        profile: setting.profile.display().to_string(),
        comparable: true,
        rounds: baseline.len(),
        sentence: sentence(conclusion, winner.map(|w| &tried[w]), simulation, nodes),
        baseline: Baseline {
            command: plain,
            median_seconds: statistics::median(&baseline),
            seconds: baseline,
            predicted_seconds: seconds.typical,
            predicted_range: [seconds.min, seconds.max],
        },
        candidates: tried,
        conclusion,
        command,
    })
}

fn sentence(conclusion: Conclusion, winner: Option<&Tried>, simulation: &Simulation, nodes: usize) -> String {
    let gain = |t: &Tried| {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let m = t.measured;
        let (low, high) = (percent(m.interval[0]), percent(m.interval[1]));
        format!(
            "{:.0} % faster (95 % interval {low:.0} to {high:.0} %)",
            percent(m.ratio)
        )
    };
    match (conclusion, winner) {
        (Conclusion::Stock, Some(t)) => {
            format!("Use the stock command: {}, as good as any placement.", gain(t))
        }
        (Conclusion::Place, Some(t)) => format!("Use `{}`: {}.", t.policy, gain(t)),
        (Conclusion::TooFewRuns, _) => {
            format!(
                "Too few runs to tell: at least {} are needed.",
                findings::FEWEST_RUNS
            )
        }
        _ if nodes < 2 => "Leave it alone: this machine has one memory node, so no placement can gain \
                           anything here; the differences above are overhead and noise."
            .to_owned(),
        _ if !simulation.is_memory_bound() => {
            "Leave it alone: not memory bound, and nothing was measured to be faster.".to_owned()
        }
        _ => "Leave it alone: nothing was measured to be reliably faster.".to_owned(),
    }
}

/// A folder for maps that goes away again.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("nodewise-tune-{}", std::process::id()));
        std::fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}
