//! JSON output of `simulate`; its keys are documented in `docs/model.md` and stable.

use super::nodes::{self, NodeChoices};
use nodewise_control::HeldBack;
use nodewise_machine::{Machine, Source};
use nodewise_simulation::{Basis, Prediction, Range, Scenario, Simulation, Traffic};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub struct OnMachine<'a> {
    machine: &'a str,
    title: &'a str,
    estimate: bool,
    sampled: bool,
    baseline: &'a str,
    affinity: &'a str,
    threads: usize,
    cpus: usize,
    page_size: u64,
    memory_bound: bool,
    calibration: Calibration,
    parameters: Parameters,
    sources: &'a [Source],
    #[serde(skip_serializing_if = "Option::is_none")]
    choice: Option<nodes::Json>,
    policies: Vec<Policy<'a>>,
}

#[derive(Serialize)]
struct Calibration {
    basis: &'static str,
    cpu_seconds: f64,
    recording_cost: [f64; 3],
    recording_cost_measured: bool,
    accesses: u64,
    lines: u64,
}

/// Each parameter as `[min, typical, max]`.
#[derive(Serialize)]
struct Parameters {
    parallelism: [f64; 3],
    miss: [f64; 3],
    queue_ns: [f64; 3],
    assumed_ns: [f64; 3],
    assumed_bandwidth: [f64; 3],
    assumed_latency: [f64; 3],
    cache_conflicts: [f64; 3],
    headroom: f64,
    gain_error: f64,
    host_latency_ns: f64,
    core_factor: f64,
    core_factor_range: [f64; 3],
    migration_seconds_per_gb: f64,
    traffic: &'static str,
    counted: &'static str,
}

#[derive(Serialize)]
struct Policy<'a> {
    policy: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<u32>,
    seconds: f64,
    seconds_range: [f64; 2],
    speedup: f64,
    speedup_range: [f64; 2],
    scenarios: Vec<ScenarioCost>,
    local_fraction: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    other_runs: Option<nodewise_report::OtherRuns>,
    access_balance: f64,
    page_balance: f64,
    mapped: Mapped<'a>,
    latency_ns: f64,
    memory_share: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_hits: Option<f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    served_by_kind: BTreeMap<String, f64>,
    controllers: Vec<Controller>,
    links: Vec<Link>,
    regions: Vec<Region<'a>>,
    migrations: u64,
    ping_pongs: u64,
    multiple: u64,
    incorrect: Option<u64>,
    migration_seconds: f64,
    messages: u64,
    held_back: HeldBack,
    slices: Vec<Slice>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    moves: Vec<Move>,
    #[serde(skip_serializing_if = "Option::is_none")]
    copies: Option<nodewise_report::Copied>,
}

/// Cost with one uncertain quantity at an end of its range, and the others at their typical values.
#[derive(Serialize)]
struct ScenarioCost {
    varied: &'static str,
    value: Option<f64>,
    seconds: f64,
    speedup: f64,
}

/// A move of one page, at the end of a slice.
#[derive(Serialize)]
struct Move {
    slice: u32,
    page: u64,
    from: u16,
    to: u16,
    incorrect: Option<bool>,
}

#[derive(Serialize)]
struct Slice {
    slice: u32,
    local_fraction: f64,
    migrations: u64,
}

/// Figures over the objects that maps can place, as the lab counts them.
#[derive(Serialize)]
struct Mapped<'a> {
    accesses: &'a [Vec<u64>],
    local_fraction: f64,
    access_balance: f64,
}

#[derive(Serialize)]
struct Controller {
    node: u32,
    bytes: f64,
    utilization: f64,
}

#[derive(Serialize)]
struct Link {
    from: u32,
    to: u32,
    bytes: f64,
    utilization: f64,
}

#[derive(Serialize)]
struct Region<'a> {
    function: &'a str,
    file: &'a str,
    line: u32,
    seconds: f64,
    seconds_range: [f64; 2],
    lines: f64,
    local_fraction: f64,
}

fn name(traffic: Traffic) -> &'static str {
    match traffic {
        Traffic::Lines => "lines",
        Traffic::Accesses => "accesses",
    }
}

pub(super) fn three(range: Range) -> [f64; 3] {
    [range.min, range.typical, range.max]
}

fn ends(range: Range) -> [f64; 2] {
    [range.min, range.max]
}

impl<'a> OnMachine<'a> {
    pub fn new(
        machine: &'a Machine,
        page_size: u64,
        simulation: &'a Simulation,
        node_choices: Option<&NodeChoices>,
    ) -> Self {
        let (calibration, parameters) = (&simulation.calibration, &simulation.parameters);
        Self {
            machine: &machine.name,
            title: &machine.title,
            estimate: true,
            sampled: calibration.basis == Basis::Samples,
            baseline: &simulation.baseline().policy,
            affinity: &simulation.affinity,
            threads: simulation.threads,
            cpus: simulation.cpus,
            page_size,
            memory_bound: simulation.is_memory_bound(),
            calibration: Calibration {
                basis: calibration.basis.text(),
                cpu_seconds: calibration.busy_ns * 1e-9,
                recording_cost: three(calibration.recording_cost),
                recording_cost_measured: calibration.measured_cost,
                accesses: calibration.accesses,
                lines: calibration.lines,
            },
            parameters: Parameters {
                parallelism: three(parameters.parallelism),
                miss: three(parameters.miss),
                queue_ns: three(parameters.queue_ns),
                assumed_ns: three(parameters.assumed_ns),
                assumed_bandwidth: three(parameters.assumed_bandwidth),
                assumed_latency: three(parameters.assumed_latency),
                cache_conflicts: three(parameters.cache_conflicts),
                headroom: parameters.headroom,
                gain_error: parameters.gain_error,
                host_latency_ns: parameters.host_latency_ns,
                core_factor: parameters.core_factor.typical,
                core_factor_range: three(parameters.core_factor),
                migration_seconds_per_gb: parameters.seconds_per_gb,
                traffic: name(parameters.traffic),
                counted: name(parameters.counted),
            },
            sources: &machine.sources,
            choice: node_choices.map(NodeChoices::json),
            policies: simulation
                .ranked()
                .into_iter()
                .map(|p| policy(p, simulation, machine))
                .collect(),
        }
    }
}

fn scenarios(p: &Prediction, scenarios: &[Scenario]) -> Vec<ScenarioCost> {
    let cost = |(scenario, cost): (&Scenario, &nodewise_simulation::ScenarioCost)| ScenarioCost {
        varied: scenario.varied.name(),
        value: scenario.value(),
        seconds: cost.seconds,
        speedup: cost.speedup,
    };
    scenarios.iter().zip(&p.by_scenario).map(cost).collect()
}

fn policy<'a>(p: &'a Prediction, simulation: &Simulation, machine: &Machine) -> Policy<'a> {
    let controllers = p.controllers.iter().map(|c| Controller {
        node: c.node.0,
        bytes: c.bytes,
        utilization: c.utilization,
    });
    let links = p.links.iter().map(|l| Link {
        from: l.from.0,
        to: l.to.0,
        bytes: l.bytes,
        utilization: l.utilization,
    });
    let kinds = p.served_by_kind(machine).into_iter();
    let regions = p.regions.iter().map(|r| Region {
        function: &r.frame.function,
        file: r.frame.file_name(),
        line: r.frame.line,
        seconds: r.seconds.typical,
        seconds_range: ends(r.seconds),
        lines: r.lines,
        local_fraction: r.local_fraction,
    });
    let slices = p.slices.iter().map(|s| Slice {
        slice: s.slice.0,
        local_fraction: s.local_fraction(),
        migrations: s.migrations,
    });
    let moved = p.moved.clone().unwrap_or_default();
    let moves = moved.migrations.iter().zip(&moved.incorrect);
    let moves = moves.map(|(m, incorrect)| Move {
        slice: m.slice.0,
        page: m.page.0,
        from: m.from,
        to: m.to,
        incorrect: *incorrect,
    });
    let ledger = &moved.ledger;
    Policy {
        policy: &p.policy,
        nodes: p.nodes.iter().map(|n| n.0).collect(),
        seconds: p.seconds.typical,
        seconds_range: ends(p.seconds),
        speedup: p.speedup.typical,
        speedup_range: ends(p.speedup),
        scenarios: scenarios(p, &simulation.scenarios),
        local_fraction: p.local_fraction,
        other_runs: p.other_runs.map(Into::into),
        access_balance: p.access_balance,
        page_balance: p.page_balance,
        mapped: Mapped {
            accesses: &p.mapped.accesses,
            local_fraction: p.mapped.local_fraction(),
            access_balance: p.mapped.access_balance(),
        },
        latency_ns: p.latency_ns,
        memory_share: p.memory_share.typical,
        cache_hits: p.cache_hits,
        served_by_kind: kinds.map(|(kind, share)| (kind.to_string(), share)).collect(),
        controllers: controllers.collect(),
        links: links.collect(),
        regions: regions.collect(),
        migrations: ledger.migrations,
        ping_pongs: ledger.ping_pongs,
        multiple: ledger.multiple,
        // Without moves there are no incorrect ones; otherwise only exact counts show how many there are.
        incorrect: ledger.incorrect.or((ledger.migrations == 0).then_some(0)),
        migration_seconds: moved.seconds,
        messages: ledger.messages,
        held_back: moved.held_back,
        slices: slices.collect(),
        moves: moves.collect(),
        copies: nodewise_report::Copied::of(p, simulation.placements()),
    }
}
