//! JSON output of `simulate --move-threads`; its keys are documented in `docs/model.md` and stable.

use super::{Online, ProgramDescription};
use nodewise_simulation::online::{ProgramOutcome, RunOutcome};
use nodewise_simulation::{Places, Spread};
use serde::Serialize;

#[derive(Serialize)]
pub struct OnMachine<'a> {
    machine: &'a str,
    title: &'a str,
    estimate: bool,
    policy: &'a str,
    period_seconds: f64,
    least_seconds: f64,
    least_rate: f64,
    migration_seconds_per_gb: f64,
    placements: f64,
    predicted: usize,
    programs: Vec<ProgramJson<'a>>,
    pages: Vec<RunJson>,
    threads: Vec<RunJson>,
}

#[derive(Serialize)]
struct ProgramJson<'a> {
    profile: &'a str,
    program: &'a str,
    threads: &'a [u32],
    nodes: usize,
    resident_bytes: u64,
    repeated: f64,
    #[serde(rename = "static")]
    fixed: ExtremesJson,
    pages: ExtremesJson,
    #[serde(rename = "move_threads")]
    moved: ExtremesJson,
}

/// One program, over placements or runs.
#[derive(Serialize)]
struct ExtremesJson {
    best: PlacementJson,
    worst: PlacementJson,
    mean_seconds: f64,
    deviation_seconds: f64,
    mean_latency_ns: f64,
}

#[derive(Serialize)]
struct PlacementJson {
    /// The node of each virtual node, by program.
    nodes: Vec<Vec<u32>>,
    seconds: f64,
    latency_ns: f64,
}

#[derive(Serialize)]
struct RunJson {
    start: Vec<Vec<u32>>,
    programs: Vec<ProgramRunJson>,
    decisions: u64,
    refused: u64,
    placements: f64,
    evaluated: f64,
}

#[derive(Serialize)]
struct ProgramRunJson {
    seconds: f64,
    latency_ns: f64,
    threads_moved: u64,
    dynamic_bytes: f64,
    full_bytes: f64,
    moving_seconds: f64,
    nodes: Vec<u32>,
}

fn numbers(places: &Places) -> Vec<Vec<u32>> {
    places.iter().map(|on| on.iter().map(|n| n.0).collect()).collect()
}

impl<'a> OnMachine<'a> {
    pub fn new(done: &'a Online) -> Self {
        let program = |(at, description): (usize, &'a ProgramDescription)| ProgramJson {
            profile: &description.profile,
            program: &description.program,
            threads: &description.threads.sizes,
            nodes: description.threads.count(),
            resident_bytes: description.resident_bytes,
            repeated: done.repeated[at],
            fixed: ExtremesJson::new(&done.fixed, &done.placements, at),
            pages: ExtremesJson::new(&done.pages, &done.from, at),
            moved: ExtremesJson::new(&done.threads, &done.from, at),
        };
        let runs = |outcomes: &[RunOutcome]| outcomes.iter().zip(&done.from).map(RunJson::new).collect();
        Self {
            machine: &done.machine.name,
            title: &done.machine.title,
            estimate: true,
            policy: &done.policy,
            period_seconds: done.starts.period_s,
            least_seconds: done.starts.least_s,
            least_rate: done.starts.least_rate,
            migration_seconds_per_gb: done.seconds_per_gb,
            placements: done.possible,
            predicted: done.placements.len(),
            programs: done.programs.iter().enumerate().map(program).collect(),
            pages: runs(&done.pages),
            threads: runs(&done.threads),
        }
    }
}

impl ExtremesJson {
    fn new(outcomes: &[RunOutcome], places: &[Places], program: usize) -> Self {
        let (seconds, latency_ns) = (
            Online::seconds(outcomes, program),
            Online::latency_ns(outcomes, program),
        );
        let spread = Spread::of(&seconds);
        let at = |i: usize| PlacementJson {
            nodes: numbers(&places[i]),
            seconds: seconds[i],
            latency_ns: latency_ns[i],
        };
        Self {
            best: at(spread.least.0),
            worst: at(spread.most.0),
            mean_seconds: spread.mean,
            deviation_seconds: spread.deviation,
            mean_latency_ns: Spread::of(&latency_ns).mean,
        }
    }
}

impl RunJson {
    fn new((outcome, start): (&RunOutcome, &Places)) -> Self {
        let of = |p: &ProgramOutcome| ProgramRunJson {
            seconds: p.seconds,
            latency_ns: p.latency_ns,
            threads_moved: p.threads_moved,
            dynamic_bytes: p.dynamic_bytes,
            full_bytes: p.full_bytes,
            moving_seconds: p.moving_s,
            nodes: p.nodes.clone(),
        };
        Self {
            start: numbers(start),
            programs: outcome.programs.iter().map(of).collect(),
            decisions: outcome.decisions,
            refused: outcome.refused,
            placements: outcome.placements,
            evaluated: outcome.evaluated,
        }
    }
}
