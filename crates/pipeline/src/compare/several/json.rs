//! JSON output of `simulate DIR DIR …`; its keys are documented in `docs/model.md` and stable.

use super::{Dynamic, Policy, ProgramDescription, Together};
use crate::compare::nodes::DYNAMIC;
use nodewise_simulation::{AfterEnd, Places, ProgramPrediction, Spread};
use serde::Serialize;

#[derive(Serialize)]
pub struct OnMachine<'a> {
    machine: &'a str,
    title: &'a str,
    estimate: bool,
    page_size: u64,
    repeat: bool,
    programs: Vec<ProgramJson<'a>>,
    placements: f64,
    predicted: usize,
    complete: bool,
    slices_together: usize,
    policies: Vec<PolicyJson<'a>>,
    dynamic_migration: Option<DynamicJson<'a>>,
}

#[derive(Serialize)]
struct ProgramJson<'a> {
    profile: &'a str,
    program: &'a str,
    threads: &'a [u32],
    nodes: usize,
    resident_bytes: u64,
    remote_per_second: f64,
}

#[derive(Serialize)]
struct PolicyJson<'a> {
    policy: &'a str,
    best: At,
    worst: At,
    by_bandwidth: At,
    programs: Vec<Own>,
}

/// Times of all programs under one placement.
#[derive(Serialize)]
struct At {
    nodes: Vec<Vec<u32>>,
    speed: f64,
    seconds: Vec<f64>,
    latency_ns: Vec<f64>,
}

/// One program over all placements.
#[derive(Serialize)]
struct Own {
    best: OwnAt,
    worst: OwnAt,
    mean_seconds: f64,
    deviation_seconds: f64,
    mean_latency_ns: f64,
}

#[derive(Serialize)]
struct OwnAt {
    nodes: Vec<Vec<u32>>,
    seconds: f64,
    latency_ns: f64,
}

#[derive(Serialize)]
struct DynamicJson<'a> {
    policy: &'static str,
    start: &'a str,
    programs: Vec<OwnDynamic>,
}

#[derive(Serialize)]
struct OwnDynamic {
    seconds: Vec<f64>,
    latency_ns: Vec<f64>,
    deviation_seconds: f64,
    by_bandwidth_seconds: f64,
    by_bandwidth_latency_ns: f64,
}

impl<'a> OnMachine<'a> {
    pub fn new(done: &'a Together) -> Self {
        Self {
            machine: &done.machine.name,
            title: &done.machine.title,
            estimate: true,
            page_size: done.page_size,
            repeat: done.after_end == AfterEnd::Repeat,
            programs: done.programs.iter().map(program).collect(),
            placements: done.placements.possible,
            predicted: done.placements.all.len(),
            complete: done.placements.complete(),
            slices_together: done.slices_together,
            policies: done.policies.iter().map(|p| policy(done, p)).collect(),
            dynamic_migration: done.dynamic.as_ref().map(|d| dynamic(done.programs.len(), d)),
        }
    }
}

fn program(description: &ProgramDescription) -> ProgramJson<'_> {
    ProgramJson {
        profile: &description.profile,
        program: &description.program,
        threads: &description.threads.sizes,
        nodes: description.threads.count(),
        resident_bytes: description.resident_bytes,
        remote_per_second: description.remote_per_second,
    }
}

fn numbers(places: &Places) -> Vec<Vec<u32>> {
    places
        .iter()
        .map(|nodes| nodes.iter().map(|n| n.0).collect())
        .collect()
}

fn policy<'a>(done: &Together, policy: &'a Policy) -> PolicyJson<'a> {
    let at = |at: usize| {
        let each = |f: fn(&ProgramPrediction) -> f64| policy.outcomes[at].iter().map(f).collect();
        At {
            nodes: numbers(&done.placements.all[at]),
            speed: policy.speed[at],
            seconds: each(|o| o.seconds),
            latency_ns: each(|o| o.latency_ns),
        }
    };
    PolicyJson {
        policy: &policy.name,
        best: at(policy.best),
        worst: at(policy.worst),
        by_bandwidth: at(policy.by_bandwidth),
        programs: (0..done.programs.len()).map(|p| own(done, policy, p)).collect(),
    }
}

fn own(done: &Together, policy: &Policy, program: usize) -> Own {
    let (seconds, latency) = (policy.seconds(program), policy.latency_ns(program));
    let spread = Spread::of(&seconds);
    let at = |at: usize| OwnAt {
        nodes: numbers(&done.placements.all[at]),
        seconds: seconds[at],
        latency_ns: latency[at],
    };
    Own {
        best: at(spread.least.0),
        worst: at(spread.most.0),
        mean_seconds: spread.mean,
        deviation_seconds: spread.deviation,
        mean_latency_ns: Spread::of(&latency).mean,
    }
}

fn dynamic(programs: usize, dynamic: &Dynamic) -> DynamicJson<'_> {
    let own = |program: usize| OwnDynamic {
        seconds: dynamic.seconds(program),
        latency_ns: dynamic.latency_ns(program),
        deviation_seconds: Spread::of(&dynamic.seconds(program)).deviation,
        by_bandwidth_seconds: dynamic.by_bandwidth[program].seconds,
        by_bandwidth_latency_ns: dynamic.by_bandwidth[program].latency_ns,
    };
    DynamicJson {
        policy: DYNAMIC,
        start: &dynamic.start,
        programs: (0..programs).map(own).collect(),
    }
}
