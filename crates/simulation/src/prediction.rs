//! Predictions: phases summed up, policy by policy, scenario by scenario.

use crate::calibration::Calibration;
use crate::concurrency;
use crate::phase::Load;
use crate::regions::{self, RegionCost, RegionSums};
use crate::resources::Resources;
use crate::tally::{SliceTally, slots};
use crate::{MEMORY_BOUND, Parameters, Range, Scenario};
use nodewise_analysis::{Metrics, access_matrix, balance, measure};
use nodewise_machine::NodeId;
use nodewise_placement::{Context, Mapping};
use rayon::prelude::*;

/// Load on a memory controller.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerUse {
    /// Its node.
    pub node: NodeId,
    /// Bytes moved, typical.
    pub bytes: f64,
    /// Share of its bandwidth over the whole run, 0–1.
    pub utilization: f64,
}

/// Load on a directed link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkUse {
    /// Where data comes from.
    pub from: NodeId,
    /// Where data goes.
    pub to: NodeId,
    /// Bytes moved, typical.
    pub bytes: f64,
    /// Share of its bandwidth over the whole run, 0–1.
    pub utilization: f64,
}

/// Accesses to what maps reach (large heap objects and static variables): what the lab measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// `accesses[cpu_node][memory_node]`.
    pub accesses: Vec<Vec<u64>>,
}

impl Mapped {
    /// The share of accesses that the home node makes; 1 where nothing was accessed.
    #[must_use]
    pub fn local_fraction(&self) -> f64 {
        let local: u64 = self.accesses.iter().enumerate().map(|(n, row)| row[n]).sum();
        match self.accesses.iter().flatten().sum::<u64>() {
            0 => 1.0,
            all => local as f64 / all as f64,
        }
    }

    /// Diener eq. 5, by home node.
    #[must_use]
    pub fn access_balance(&self) -> f64 {
        let home = |memory| self.accesses.iter().map(|row| row[memory]).sum();
        balance(&(0..self.accesses.len()).map(home).collect::<Vec<u64>>())
    }
}

/// What one mapping is predicted to cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// As written on the command line.
    pub policy: String,
    /// Predicted wall time of the plain program.
    pub seconds: Range,
    /// Baseline's time over this one's, scenario by scenario, give or take the model's own error.
    pub speedup: Range,
    /// Share of accesses to pages on the accessing thread's node.
    pub local_fraction: f64,
    /// Diener eq. 5, by home node.
    pub access_balance: f64,
    /// Diener eq. 3.
    pub page_balance: f64,
    /// The accesses that placement can do something about.
    pub mapped: Mapped,
    /// Mean loaded latency of a line, typical, nanoseconds.
    pub latency_ns: f64,
    /// Share of the time that memory causes.
    pub memory_share: Range,
    /// Mean loaded latency `[reader][memory]`, typical, weighted by lines; idle where none went.
    pub loaded_ns: Vec<Vec<f64>>,
    /// By node.
    pub controllers: Vec<ControllerUse>,
    /// By link; empty where the machine's links are unknown.
    pub links: Vec<LinkUse>,
    /// By code region, longest first.
    pub regions: Vec<RegionCost>,
}

/// All mappings on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// The machine's name.
    pub machine: String,
    /// The affinity's name.
    pub affinity: String,
    /// Threads of the profile, and CPUs they share.
    pub threads: usize,
    /// CPUs the threads run on.
    pub cpus: usize,
    /// In the order of the mappings; the first is the baseline.
    pub predictions: Vec<Prediction>,
    /// How time was split into compute and memory.
    pub calibration: Calibration,
    /// What was varied.
    pub parameters: Parameters,
}

impl Simulation {
    /// The baseline.
    #[must_use]
    pub fn baseline(&self) -> &Prediction {
        &self.predictions[0]
    }

    /// Whether memory matters at all: the baseline's typical memory share is [`MEMORY_BOUND`] or more.
    #[must_use]
    pub fn is_memory_bound(&self) -> bool {
        self.baseline().memory_share.typical >= MEMORY_BOUND
    }

    /// Predictions, fastest first; equal times keep the order of the mappings.
    #[must_use]
    pub fn ranked(&self) -> Vec<&Prediction> {
        let mut all: Vec<_> = self.predictions.iter().collect();
        all.sort_by(|a, b| a.seconds.typical.total_cmp(&b.seconds.typical));
        all
    }
}

/// Sums over phases for one policy.
#[derive(Clone)]
struct Sums {
    /// By scenario.
    ns: Vec<f64>,
    compute_ns: Vec<f64>,
    /// By resource, typical.
    bytes: Vec<f64>,
    /// `[reader * nodes + memory]`.
    lines: Vec<f64>,
    latency: Vec<f64>,
    regions: Vec<RegionSums>,
}

/// A simulation under way.
pub(crate) struct Run<'a> {
    context: Context<'a>,
    mappings: &'a [Mapping],
    parameters: Parameters,
    scenarios: Vec<Scenario>,
    calibration: Calibration,
    resources: Resources,
    slot_nodes: Vec<usize>,
    sums: Vec<Sums>,
}

impl<'a> Run<'a> {
    pub fn new(context: &Context<'a>, mappings: &'a [Mapping], parameters: &Parameters) -> Self {
        let calibration = Calibration::new(context.profile, context.histogram, parameters);
        let parameters = Parameters {
            recording_cost: calibration.recording_cost,
            ..parameters.clone()
        };
        let resources = Resources::new(context.machine);
        let scenarios = parameters.scenarios();
        let pairs = resources.nodes * resources.nodes;
        let sums = Sums {
            ns: vec![0.0; scenarios.len()],
            compute_ns: vec![0.0; scenarios.len()],
            bytes: vec![0.0; resources.capacity.len()],
            lines: vec![0.0; pairs],
            latency: vec![0.0; pairs],
            regions: Vec::new(),
        };
        Self {
            context: *context,
            mappings,
            parameters,
            scenarios,
            calibration,
            slot_nodes: slots(context).1,
            sums: vec![sums; mappings.len()],
            resources,
        }
    }

    /// Adds the phases of one slice.
    pub fn add(&mut self, slice: &SliceTally<'_>) {
        let Self {
            sums,
            slot_nodes,
            resources,
            scenarios,
            calibration,
            parameters,
            context,
            ..
        } = self;
        let limit = concurrency::limit(context.profile, calibration, &scenarios[0], slice);
        let policies = sums.len();
        sums.par_iter_mut().enumerate().for_each(|(policy, sums)| {
            for phase in slice.phases {
                let team = concurrency::is_team(context.profile, phase.region);
                let at_a_time = if team { f64::INFINITY } else { limit };
                let load = Load::new(phase, (policy, policies), slot_nodes, resources, at_a_time);
                for (s, scenario) in scenarios.iter().enumerate() {
                    let fit = calibration.fit(scenario);
                    let cost = load.solve(scenario, &fit, parameters);
                    sums.ns[s] += cost.ns;
                    sums.compute_ns[s] += cost.compute_ns;
                    let region = regions::of(&mut sums.regions, phase.region);
                    region.add_time(s, cost.ns);
                    if s == 0 {
                        region.add_lines(&load.lines, resources.nodes);
                        sums.count(&load, &cost.latency_ns, fit.miss);
                    }
                }
            }
        });
    }

    pub fn finish(self) -> Simulation {
        let predictions = (0..self.mappings.len()).map(|p| self.prediction(p)).collect();
        Simulation {
            machine: self.context.machine.name.clone(),
            affinity: self.context.affinity.name.clone(),
            threads: self.context.affinity.cpus.len(),
            cpus: self.slot_nodes.len(),
            predictions,
            calibration: self.calibration,
            parameters: self.parameters,
        }
    }

    fn prediction(&self, policy: usize) -> Prediction {
        let (sums, baseline) = (&self.sums[policy], &self.sums[0]);
        let ratio = |a: f64, b: f64| if b > 0.0 { a / b } else { 1.0 };
        let each = |f: &dyn Fn(usize) -> f64| Range::spanning(&(0..sums.ns.len()).map(f).collect::<Vec<_>>());
        let metrics = self.measure(&self.mappings[policy]);
        let weighted: f64 = sums.latency.iter().sum();
        Prediction {
            policy: self.mappings[policy].policy.clone(),
            seconds: each(&|s| sums.ns[s] * 1e-9),
            speedup: self.widened(each(&|s| ratio(baseline.ns[s], sums.ns[s]))),
            local_fraction: metrics.local_fraction(),
            access_balance: metrics.access_balance(),
            page_balance: metrics.page_balance(),
            mapped: self.mapped(&self.mappings[policy]),
            latency_ns: ratio(weighted, sums.lines.iter().sum()),
            memory_share: each(&|s| 1.0 - ratio(sums.compute_ns[s], sums.ns[s])),
            loaded_ns: self.loaded(sums),
            controllers: self.controllers(sums),
            links: self.links(sums),
            regions: regions::costs(&sums.regions, self.context.profile),
        }
    }

    /// A gain or loss is no better known than the model: ends move away from the typical ratio by a
    /// share of it, never past 1.
    fn widened(&self, speedup: Range) -> Range {
        let off = speedup.typical.powf(self.parameters.gain_error);
        let (low, high) = (speedup.typical / off, speedup.typical * off);
        Range::new(
            speedup.min.min(low.min(high)),
            speedup.typical,
            speedup.max.max(low.max(high)),
        )
    }

    fn measure(&self, mapping: &Mapping) -> Metrics {
        let Context {
            profile,
            histogram,
            affinity,
            machine,
        } = self.context;
        measure(profile, histogram, affinity, &mapping.nodes, machine.node_count()).program
    }

    fn mapped(&self, mapping: &Mapping) -> Mapped {
        let Context {
            profile,
            histogram,
            affinity,
            machine,
        } = self.context;
        let of = |object| profile.object(object).is_some_and(|o| o.kind.is_mappable());
        Mapped {
            accesses: access_matrix(histogram, affinity, &mapping.nodes, machine.node_count(), of),
        }
    }

    fn loaded(&self, sums: &Sums) -> Vec<Vec<f64>> {
        let mean = |cell: usize| match sums.lines[cell] {
            lines if lines > 0.0 => sums.latency[cell] / lines,
            _ => self.resources.idle_ns[cell],
        };
        let nodes = self.resources.nodes;
        (0..nodes)
            .map(|r| (0..nodes).map(|m| mean(r * nodes + m)).collect())
            .collect()
    }

    fn utilization(&self, sums: &Sums, resource: usize) -> f64 {
        let possible = self.resources.capacity[resource] * sums.ns[0];
        if possible > 0.0 {
            sums.bytes[resource] / possible
        } else {
            0.0
        }
    }

    fn controllers(&self, sums: &Sums) -> Vec<ControllerUse> {
        let controller = |node: NodeId| ControllerUse {
            node,
            bytes: sums.bytes[node.index()],
            utilization: self.utilization(sums, node.index()),
        };
        self.context.machine.node_ids().map(controller).collect()
    }

    fn links(&self, sums: &Sums) -> Vec<LinkUse> {
        let links = self.context.machine.links.iter().enumerate();
        links
            .map(|(i, link)| {
                let resource = self.resources.nodes + i;
                let utilization = self.utilization(sums, resource);
                LinkUse {
                    from: link.from,
                    to: link.to,
                    bytes: sums.bytes[resource],
                    utilization,
                }
            })
            .collect()
    }
}

impl Sums {
    fn count(&mut self, load: &Load<'_>, latency_ns: &[f64], miss: f64) {
        for (sum, bytes) in self.bytes.iter_mut().zip(&load.bytes) {
            *sum += bytes * miss;
        }
        for (cell, lines) in load.lines.iter().enumerate() {
            self.lines[cell] += lines;
            self.latency[cell] += lines * latency_ns[cell];
        }
    }
}
