//! `nodewise tune`: decides from a profile, runs the most promising placements against the plain command, and keeps one
//! only if it is measured to be faster.

pub(super) mod progress;
mod text;

use crate::arguments::duration;
use crate::exit::Outcome;
use crate::output;
use anyhow::bail;
use nodewise_input::shell_line;
use nodewise_simulation::Simulation;
use nodewise_tune::{Candidate, Map, Options, Tuning};
use progress::Progress;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

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
    /// Where the winner's map goes [default: a new file PROGRAM.POLICY.map]
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
    command: Vec<OsString>,
}

impl Arguments {
    fn options(&self) -> Options {
        Options {
            command: self.command.clone(),
            profile: self.profile.clone(),
            instrumented: self.instrumented.clone(),
            machine: self.machine.clone(),
            affinity: self.affinity.clone(),
            runs: self.runs,
            time_limit: self.time_limit,
            candidates: self.candidates,
            any_output: self.any_output,
            seed: self.seed,
            // The maps of a dry run have names of their own, so that each can be made.
            map: self.output.clone().filter(|_| !self.dry_run),
        }
    }
}

pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let map = arguments.output.as_ref();
    output::check_named("--output", map, "the winner's command names its map")?;
    output::check_new(map.filter(|_| !arguments.dry_run), arguments.force)?;
    let progress = Progress::new("measuring");
    let mut listener = |event| progress.show(event);
    let tuning = Tuning::open(arguments.options(), &mut listener)?;
    if arguments.dry_run {
        if arguments.json {
            bail!("--json writes what was measured; leave out --dry-run");
        }
        let (simulation, candidates) = tuning.predicted(&mut listener)?;
        let mut text = planned(&arguments.command, &simulation, &candidates);
        if let Some(map) = map {
            text += &format!("The winner's map goes to {}.\n", map.display());
        }
        output::print(&text)?;
        return Ok(Outcome::Done);
    }
    let findings = tuning.measure(&mut listener)?;
    if arguments.json {
        output::print(&(serde_json::to_string_pretty(&findings)? + "\n"))?;
    } else {
        output::print(&text::text(&findings))?;
    }
    Ok(Outcome::Done)
}

/// The commands that would be run, each with the command that makes its map.
fn planned(command: &[OsString], simulation: &Simulation, candidates: &[Candidate]) -> String {
    let mut text = format!(
        "{}: first-touch as the baseline:\n  {}\n",
        simulation.machine,
        shell_line(command)
    );
    for candidate in candidates {
        let predicted = candidate.predicted.map_or(String::new(), |r| {
            format!(
                ", predicted {:.2} ({:.2}–{:.2}) times as fast",
                r.typical, r.min, r.max
            )
        });
        text += &format!("{}{predicted}:\n", candidate.policy);
        let map = candidate.map.as_ref().map(Map::line);
        for line in map.iter().chain([&candidate.line]) {
            text += &format!("  {line}\n");
        }
    }
    text
}
