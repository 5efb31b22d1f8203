//! `simulate --affinity asym`: each policy on the nodes on which it is fastest, and the spread over all choices of
//! nodes.

use super::movers::Movers;
use super::table::{Row, significant};
use crate::Asym;
use nodewise_machine::NodeId;
use nodewise_placement::Mapping;
use nodewise_report::{plural, table};
use nodewise_simulation::{Choice, Simulation, Spread, simulate_on};
use serde::Serialize;

/// AsymSched's dynamic memory migration: that of Carrefour (its reference 12).
pub const DYNAMIC: &str = "balance:carrefour";
/// Number of random starts of [`DYNAMIC`].
pub const STARTS: u64 = 8;

/// The effect of the choice of nodes on each policy.
pub struct NodeChoices {
    /// Number of threads on each virtual node.
    sizes: Vec<u32>,
    of: usize,
    possible: f64,
    predicted: usize,
    complete: bool,
    slices_together: usize,
    resident_bytes: u64,
    choices: Vec<(Choice, Places)>,
    /// For each placement, the real node of each virtual node.
    all: Vec<Vec<NodeId>>,
    dynamic: Option<Dynamic>,
}

/// The nodes of the fastest placement, of the slowest one, and of the one that bandwidth alone selects.
struct Places {
    best: Vec<NodeId>,
    worst: Vec<NodeId>,
    by_bandwidth: (Vec<NodeId>, usize),
}

/// Results if only pages move, from their first-touch nodes, with threads on random nodes.
struct Dynamic {
    start: String,
    seconds: Vec<f64>,
    latency_ns: Vec<f64>,
    /// Time (s) and latency (ns) on the best nodes.
    on_best: (f64, f64),
    /// Time and latency on the nodes that bandwidth alone selects, as AsymSched does.
    by_bandwidth: (f64, f64),
}

/// Ranks all placements for each policy, then predicts each policy on its best placement.
pub fn together(
    asym: &Asym,
    movers: &Movers<'_>,
    mappings: &[Mapping],
) -> anyhow::Result<(Simulation, NodeChoices)> {
    let (selected, parameters) = (movers.selected, movers.parameters);
    let choices = asym.survey(selected, mappings, movers.all()?, parameters)?;
    let on: Vec<Vec<NodeId>> = choices.iter().map(|c| asym.best(c).to_vec()).collect();
    let machine = (&asym.machine, on.as_slice());
    let context = selected.context();
    let simulation = simulate_on(
        &context,
        machine,
        mappings,
        movers.all()?,
        &selected.reader,
        parameters,
    )?;
    let dynamic = dynamic(asym, movers, &mappings[0], &on[0])?;
    let resident_bytes = selected.histogram.len() as u64 * selected.histogram.page_size();
    Ok((
        simulation,
        NodeChoices::new(asym, choices, dynamic, resident_bytes),
    ))
}

/// Simulates [`DYNAMIC`] in one pass: on the best nodes, on those that bandwidth alone selects, and from random starts.
fn dynamic(
    asym: &Asym,
    movers: &Movers<'_>,
    start: &Mapping,
    best: &[NodeId],
) -> anyhow::Result<Option<Dynamic>> {
    let nodes: Vec<NodeId> = asym.machine.cpu_nodes().collect();
    let drawn = (0..STARTS).filter_map(|seed| asym.threads.drawn(&asym.machine, &nodes, seed));
    let by_bandwidth = asym.placements.all[asym.placements.by_bandwidth].clone();
    let mut on = vec![best.to_vec(), best.to_vec(), by_bandwidth];
    on.extend(drawn);
    if on.len() == 3 || asym.placements.all.len() < 2 {
        return Ok(None);
    }
    let moving = on[1..]
        .iter()
        .map(|_| movers.one(DYNAMIC))
        .collect::<anyhow::Result<_>>()?;
    let (selected, start) = (movers.selected, std::slice::from_ref(start));
    let context = selected.context();
    let machine = (&asym.machine, on.as_slice());
    let runs = simulate_on(
        &context,
        machine,
        start,
        moving,
        &selected.reader,
        movers.parameters,
    )?
    .predictions;
    let of = |p: &nodewise_simulation::Prediction| (p.seconds.typical, p.latency_ns);
    let (seconds, latency_ns) = runs[3..].iter().map(of).unzip();
    Ok(Some(Dynamic {
        start: start[0].policy.clone(),
        seconds,
        latency_ns,
        on_best: of(&runs[1]),
        by_bandwidth: of(&runs[2]),
    }))
}

impl NodeChoices {
    fn new(asym: &Asym, choices: Vec<Choice>, dynamic: Option<Dynamic>, resident_bytes: u64) -> Self {
        let placements = &asym.placements;
        let places = |choice: &Choice| {
            let spread = Spread::of(&choice.seconds);
            Places {
                best: placements.all[spread.least.0].clone(),
                worst: placements.all[spread.most.0].clone(),
                by_bandwidth: (
                    placements.all[placements.by_bandwidth].clone(),
                    placements.by_bandwidth,
                ),
            }
        };
        Self {
            sizes: asym.threads.sizes.clone(),
            of: asym.machine.node_count(),
            possible: placements.possible,
            predicted: placements.all.len(),
            complete: placements.complete(),
            slices_together: choices.first().map_or(1, |c| c.slices_together),
            resident_bytes,
            all: placements.all.clone(),
            choices: choices
                .into_iter()
                .map(|c| {
                    let placed = places(&c);
                    (c, placed)
                })
                .collect(),
            dynamic,
        }
    }

    /// Formats the results for the terminal.
    pub fn table(&self) -> String {
        let threads: u32 = self.sizes.iter().sum();
        let all = match self.complete {
            true => format!("all {} placements of them predicted", self.predicted),
            false => format!(
                "{} of {:.0} placements of them predicted",
                self.predicted, self.possible
            ),
        };
        let rows = self.choices.iter().map(|(choice, places)| row(choice, places));
        let mut out = format!(
            "{threads} threads need {} of {}; {all}.\n\n",
            plural(self.sizes.len(), "node"),
            self.of
        );
        out += &table(
            "lrrrrrrrl",
            std::iter::once(header(["policy", "nodes"], &["by bandwidth alone"])).chain(rows),
        );
        out += "Best and worst are compared with the mean over placements; latency is that of a line from memory.\n";
        if self.slices_together > 1 {
            out += &format!("Slices are taken {} at a time for that.\n", self.slices_together);
        }
        out += &self.dynamic.as_ref().map_or_else(String::new, Dynamic::text);
        out.push('\n');
        out
    }

    pub fn json(&self) -> Json {
        Json {
            nodes: self.sizes.len(),
            threads: self.sizes.clone(),
            placements: self.possible,
            predicted: self.predicted,
            complete: self.complete,
            slices_together: self.slices_together,
            resident_bytes: self.resident_bytes,
            policies: self
                .choices
                .iter()
                .map(|(c, p)| PolicyJson::new(c, p, &self.all))
                .collect(),
            dynamic_migration: self.dynamic.as_ref().map(Dynamic::json),
        }
    }
}

/// The titles of the columns: `first` and `last` enclose times and latencies over placements.
pub fn header(first: [&str; 2], last: &[&str]) -> Row {
    let spreads = ["seconds", "best", "worst", "latency", "best", "worst"];
    let all = first.iter().chain(&spreads).chain(last);
    all.map(|title| (*title).to_owned()).collect()
}

pub fn list(nodes: &[NodeId]) -> String {
    nodes
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Rounds to a whole number; small negative values become 0, not -0.
fn rounded(x: f64) -> f64 {
    x.round() + 0.0
}

/// How much faster than the mean, in per cent.
pub fn faster(mean: f64, seconds: f64) -> String {
    let ratio = if seconds > 0.0 { mean / seconds } else { 1.0 };
    format!("{:+.1} %", rounded(1000.0 * (ratio - 1.0)) / 10.0)
}

/// How much slower than the mean, in nanoseconds.
pub fn difference(mean: f64, latency_ns: f64) -> String {
    format!("{:+.0} ns", rounded(latency_ns - mean))
}

fn row(choice: &Choice, places: &Places) -> Row {
    let (seconds, latency) = (Spread::of(&choice.seconds), Spread::of(&choice.latency_ns));
    let difference = |at: usize| difference(latency.mean, choice.latency_ns[at]);
    let (nodes, at) = &places.by_bandwidth;
    vec![
        choice.policy.clone(),
        list(&places.best),
        significant(seconds.least.1),
        faster(seconds.mean, seconds.least.1),
        faster(seconds.mean, seconds.most.1),
        format!("{:.0} ns", latency.mean),
        difference(seconds.least.0),
        difference(seconds.most.0),
        format!("{}: {}", list(nodes), faster(seconds.mean, choice.seconds[*at])),
    ]
}

impl Dynamic {
    fn text(&self) -> String {
        let spread = Spread::of(&self.seconds);
        format!(
            "{DYNAMIC} from {}, on {} draws of nodes: {} s on average ({}–{}, deviation {}); on the best nodes {} s, on those of \
             the highest bandwidth {} s.\n",
            self.start,
            self.seconds.len(),
            significant(spread.mean),
            significant(spread.least.1),
            significant(spread.most.1),
            significant(spread.deviation),
            significant(self.on_best.0),
            significant(self.by_bandwidth.0),
        )
    }

    fn json(&self) -> DynamicJson {
        DynamicJson {
            policy: DYNAMIC,
            start: self.start.clone(),
            seconds: self.seconds.clone(),
            latency_ns: self.latency_ns.clone(),
            deviation_seconds: Spread::of(&self.seconds).deviation,
            on_best_seconds: self.on_best.0,
            on_best_latency_ns: self.on_best.1,
            by_bandwidth_seconds: self.by_bandwidth.0,
            by_bandwidth_latency_ns: self.by_bandwidth.1,
        }
    }
}

/// The key `choice` of `simulate --json`; its keys are described in `docs/model.md`.
#[derive(Serialize)]
pub struct Json {
    nodes: usize,
    threads: Vec<u32>,
    placements: f64,
    predicted: usize,
    complete: bool,
    slices_together: usize,
    resident_bytes: u64,
    policies: Vec<PolicyJson>,
    dynamic_migration: Option<DynamicJson>,
}

#[derive(Serialize)]
struct PolicyJson {
    policy: String,
    best: At,
    worst: At,
    by_bandwidth: At,
    mean_seconds: f64,
    deviation_seconds: f64,
    mean_latency_ns: f64,
    every: Vec<At>,
}

#[derive(Serialize)]
struct At {
    nodes: Vec<u32>,
    seconds: f64,
    latency_ns: f64,
}

#[derive(Serialize)]
struct DynamicJson {
    policy: &'static str,
    start: String,
    seconds: Vec<f64>,
    latency_ns: Vec<f64>,
    deviation_seconds: f64,
    on_best_seconds: f64,
    on_best_latency_ns: f64,
    by_bandwidth_seconds: f64,
    by_bandwidth_latency_ns: f64,
}

impl PolicyJson {
    fn new(choice: &Choice, places: &Places, all: &[Vec<NodeId>]) -> Self {
        let seconds = Spread::of(&choice.seconds);
        let at = |nodes: &[NodeId], at: usize| At {
            nodes: nodes.iter().map(|n| n.0).collect(),
            seconds: choice.seconds[at],
            latency_ns: choice.latency_ns[at],
        };
        Self {
            policy: choice.policy.clone(),
            best: at(&places.best, seconds.least.0),
            worst: at(&places.worst, seconds.most.0),
            by_bandwidth: at(&places.by_bandwidth.0, places.by_bandwidth.1),
            mean_seconds: seconds.mean,
            deviation_seconds: seconds.deviation,
            mean_latency_ns: Spread::of(&choice.latency_ns).mean,
            every: all.iter().enumerate().map(|(i, nodes)| at(nodes, i)).collect(),
        }
    }
}
