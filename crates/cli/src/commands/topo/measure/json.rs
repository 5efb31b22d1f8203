//! JSON form of measurements: the keys of the machine, and `measured` with the confidence interval of every figure.
//! Documented in `docs/measure.md`.

use super::super::json::Topology;
use super::MeasuredMachine;
use nodewise_machine::Flow;
use nodewise_machine::inference::{BottleneckKind, Estimate, Survey, Verdict};
use nodewise_observe::hardware::Matrix;
use serde::Serialize;

#[derive(Serialize)]
struct Document {
    #[serde(flatten)]
    machine: Topology,
    measured: Figures,
}

#[derive(Serialize)]
struct Figures {
    date: String,
    kernel: String,
    virtual_machine: Option<String>,
    seconds: f64,
    cut_short: bool,
    notes: Vec<String>,
    memory_bytes: Vec<u64>,
    huge_share: f64,
    latency_ns: Vec<Vec<Option<Figure>>>,
    #[serde(rename = "read_MBps")]
    read: Vec<Vec<Option<Figure>>>,
    #[serde(rename = "write_MBps")]
    write: Vec<Vec<Option<Figure>>>,
    together: Option<Together>,
}

#[derive(Serialize)]
struct Figure {
    median: f64,
    low: f64,
    high: f64,
    samples: u32,
}

#[derive(Serialize)]
struct Together {
    pairs: usize,
    left_out: usize,
    /// Pairs among those left out that were measured, but too unsteadily for a conclusion.
    unclear: usize,
    /// Largest share that a flow may lose to another without being noticed, 0 to 1.
    unseen_loss: f64,
    /// Nodes whose own flows could be compared with each other.
    divisible: Vec<u32>,
    sharing: Vec<Sharing>,
    bottlenecks: Vec<Bottleneck>,
}

#[derive(Serialize)]
struct Sharing {
    flows: [FlowEnds; 2],
    #[serde(rename = "together_MBps")]
    together: f64,
}

#[derive(Serialize)]
struct FlowEnds {
    memory: u32,
    reader: u32,
}

#[derive(Serialize)]
struct Bottleneck {
    #[serde(rename = "capacity_MBps")]
    capacity: f64,
    kind: &'static str,
    from: Vec<u32>,
    to: Vec<u32>,
    flows: Vec<FlowEnds>,
}

impl MeasuredMachine {
    /// The document as formatted JSON.
    pub(super) fn json(&self) -> anyhow::Result<String> {
        let measured = &self.measured;
        let figures = Figures {
            date: self.date.clone(),
            kernel: self.kernel.clone(),
            virtual_machine: self.virtual_machine.clone(),
            seconds: measured.took.as_secs_f64(),
            cut_short: measured.cut_short,
            notes: measured.notes.clone(),
            memory_bytes: measured.memory.clone(),
            huge_share: measured.huge,
            latency_ns: matrix(&measured.latency_ns),
            read: matrix(&measured.read),
            write: matrix(&measured.write),
            together: measured.survey.as_ref().map(|s| self.flows_json(s)),
        };
        let machine = Topology::of(&self.machine);
        Ok(serde_json::to_string_pretty(&Document {
            machine,
            measured: figures,
        })? + "\n")
    }

    fn flows_json(&self, survey: &Survey) -> Together {
        let (pairs, left_out) = survey.pairs();
        let bottlenecks = self.measured.inferred().into_iter().flat_map(|i| i.bottlenecks);
        let bottleneck = |(found, kind): (nodewise_machine::inference::Bottleneck, BottleneckKind)| {
            let (kind, from, to) = ends(&kind);
            let flows = found.flows.iter().map(|f| way(survey.flows()[*f])).collect();
            Bottleneck {
                capacity: found.capacity,
                kind,
                from,
                to,
                flows,
            }
        };
        Together {
            pairs,
            left_out,
            unclear: survey.unclear(),
            unseen_loss: survey.unseen(),
            divisible: self.measured.divisible.iter().map(|n| n.0).collect(),
            sharing: sharing(survey),
            bottlenecks: bottlenecks.map(bottleneck).collect(),
        }
    }
}

fn ends(kind: &BottleneckKind) -> (&'static str, Vec<u32>, Vec<u32>) {
    let numbers = |nodes: &[nodewise_machine::NodeId]| nodes.iter().map(|n| n.0).collect();
    match kind {
        BottleneckKind::Link { from, to } => ("link", numbers(from), numbers(to)),
        BottleneckKind::Controller(node) => ("controller", vec![node.0], Vec::new()),
        BottleneckKind::Intake(node) => ("intake", Vec::new(), vec![node.0]),
        BottleneckKind::Backplane => ("backplane", Vec::new(), Vec::new()),
    }
}

fn sharing(survey: &Survey) -> Vec<Sharing> {
    let flows = survey.flows();
    let pairs = (0..flows.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
    let shared = |(i, j)| match survey.verdict(i, j) {
        Verdict::Sharing(together) => Some(Sharing {
            flows: [way(flows[i]), way(flows[j])],
            together,
        }),
        Verdict::Independent | Verdict::Unknown => None,
    };
    pairs.filter_map(shared).collect()
}

fn way(flow: Flow) -> FlowEnds {
    FlowEnds {
        memory: flow.memory.0,
        reader: flow.reader.0,
    }
}

fn matrix(figures: &Matrix) -> Vec<Vec<Option<Figure>>> {
    let figure = |e: &Option<Estimate>| {
        e.map(|e| Figure {
            median: e.median,
            low: e.low,
            high: e.high,
            samples: e.samples,
        })
    };
    figures
        .iter()
        .map(|row| row.iter().map(figure).collect())
        .collect()
}
