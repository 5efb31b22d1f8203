//! `simulate --move-threads`: programs whose threads and pages are moved while they run, by the decision code of
//! `balance --move-threads`, starting from random nodes (AsymSched, Figures 4 to 7).

mod json;
mod text;

use super::moving::split;
use super::nodes::DYNAMIC;
use super::several::{self, Program, ProgramDescription};
use super::{Question, moving};
use crate::asym::without_caches;
use anyhow::bail;
use nodewise_control::asym;
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::migration_policy;
use nodewise_simulation::online::{self, Limits, Moves, RunOutcome, Timeline};
use nodewise_simulation::{DisjointPlacements, Parameters, Places, random_placement, simulate};

/// The starts and the duration of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Starts {
    /// Number of runs from random nodes.
    pub count: u64,
    /// Smallest duration of a run on the mean static placement, seconds.
    pub least_s: f64,
    /// Rate, in cache lines from memory per microsecond, from which pages are moved dynamically.
    pub least_rate: f64,
    /// Time between decisions, seconds.
    pub period_s: f64,
}

/// Results of static placements of all programs, and of runs that start from random ones.
pub struct Online {
    machine: Machine,
    starts: Starts,
    policy: String,
    seconds_per_gb: f64,
    programs: Vec<ProgramDescription>,
    /// Number of times that each program's body is repeated.
    repeated: Vec<f64>,
    possible: f64,
    placements: Vec<Places>,
    fixed: Vec<RunOutcome>,
    from: Vec<Places>,
    pages: Vec<RunOutcome>,
    threads: Vec<RunOutcome>,
    /// Remarks of policies on their mappings.
    pub notes: Vec<String>,
}

pub(super) fn predict(question: &Question, machine: &str, starts: &Starts) -> anyhow::Result<Online> {
    let policy = page_policy(&question.policy)?;
    let mut opened = several::open(question, machine)?;
    let parameters = question.parameters(machine, &opened[0].0.selected);
    let machine = opened[0].0.selected.machine.clone();
    without_caches(&machine, "--move-threads")?;
    let disjoint = placements(&machine, &opened)?;
    for (at, (program, groups)) in opened.iter_mut().enumerate() {
        program.enter(groups, &disjoint.all[0][at], &question.limits.start)?;
    }
    let programs: Vec<Program> = opened.into_iter().map(|o| o.0).collect();
    let timelines = programs
        .iter()
        .map(|p| timeline(p, starts.period_s, &parameters))
        .collect::<anyhow::Result<Vec<_>>>()?;
    if migration_policy(&policy, &machine)?.tier().is_some() {
        bail!("{policy}: fast memory is not predicted where threads move as well");
    }
    let make = || migration_policy(&policy, &machine).expect("made before");
    let limits = Limits {
        period_s: starts.period_s,
        least_s: starts.least_s,
        seconds_per_gb: parameters.seconds_per_gb,
        least_rate: starts.least_rate,
        threads: asym::Settings::default(),
        pages: nodewise_control::Settings {
            seconds_per_gb: parameters.seconds_per_gb,
            ..question.limits.settings(&programs[0].selected, &parameters)
        },
        policy: &make,
    };
    let runs = online::Online::new(&machine, &timelines, &disjoint.all, &limits);
    let from = from(&machine, &programs, starts.count);
    Ok(Online {
        starts: *starts,
        seconds_per_gb: parameters.seconds_per_gb,
        repeated: runs.repeated(),
        possible: disjoint.possible,
        fixed: runs.runs(&disjoint.all, Moves::Nothing, &limits),
        pages: runs.runs(&from, Moves::Pages, &limits),
        threads: runs.runs(&from, Moves::ThreadsAndPages, &limits),
        placements: disjoint.all,
        notes: programs.iter().flat_map(|p| p.notes.clone()).collect(),
        programs: programs.into_iter().map(|p| p.description).collect(),
        from,
        policy,
        machine,
    })
}

/// The policy that moves pages: the only one in the list, or Carrefour's for `all`.
fn page_policy(list: &str) -> anyhow::Result<String> {
    if list == "all" {
        return Ok(DYNAMIC.to_owned());
    }
    match split(list) {
        moving::Split { pages, moving, .. }
            if pages.is_empty() && moving.len() == 1 && moving[0] != "replay" =>
        {
            Ok(moving[0].clone())
        }
        _ => bail!("--move-threads takes one policy that moves pages: --policy {DYNAMIC}"),
    }
}

/// The static placements: for a single program every assignment of its nodes, for several every set of nodes for each.
fn placements(machine: &Machine, opened: &[(Program, Vec<u32>)]) -> anyhow::Result<DisjointPlacements> {
    let [(program, _)] = opened else {
        return several::places(machine, opened);
    };
    let found = program
        .description
        .threads
        .placements(machine, crate::asym::MOST, crate::asym::DRAWN)?;
    Ok(DisjointPlacements {
        possible: found.possible,
        all: found.all.into_iter().map(|nodes| vec![nodes]).collect(),
    })
}

/// Random placements to start from.
fn from(machine: &Machine, programs: &[Program], count: u64) -> Vec<Places> {
    let nodes: Vec<NodeId> = machine.cpu_nodes().collect();
    let sizes: Vec<Vec<u32>> = programs
        .iter()
        .map(|p| p.description.threads.sizes.clone())
        .collect();
    let draw = |seed| match programs {
        [one] => one
            .description
            .threads
            .drawn(machine, &nodes, seed)
            .map(|on| vec![on]),
        _ => random_placement(machine, &sizes, seed),
    };
    (0..count).filter_map(draw).collect()
}

fn timeline(program: &Program, period_s: f64, parameters: &Parameters) -> anyhow::Result<Timeline> {
    let selected = &program.selected;
    let (context, start) = (selected.context(), &program.mappings[..1]);
    let once = simulate(&context, start, &selected.reader, parameters)?;
    let seconds = once.baseline().seconds.typical;
    let (reader, start) = (&selected.reader, &start[0]);
    Ok(Timeline::read(
        &context,
        start,
        (seconds, period_s),
        reader,
        parameters,
    )?)
}

impl Online {
    /// Formats the runs for the terminal.
    #[must_use]
    pub fn text(&self) -> String {
        text::write(self)
    }

    /// The document of `simulate --move-threads --json` (its keys: `docs/model.md`).
    #[must_use]
    pub fn json(&self) -> impl serde::Serialize + '_ {
        json::OnMachine::new(self)
    }

    /// Times of one program, run by run, seconds.
    fn seconds(outcomes: &[RunOutcome], program: usize) -> Vec<f64> {
        outcomes.iter().map(|o| o.programs[program].seconds).collect()
    }

    /// Latencies of one program, run by run, nanoseconds.
    fn latency_ns(outcomes: &[RunOutcome], program: usize) -> Vec<f64> {
        outcomes.iter().map(|o| o.programs[program].latency_ns).collect()
    }
}
