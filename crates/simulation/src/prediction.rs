//! What a simulation says.

use crate::calibration::Calibration;
use crate::moving::Moved;
use crate::regions::RegionCost;
use crate::share::SliceShare;
use crate::{MEMORY_BOUND, Parameters, Range, Scenario};
use nodewise_analysis::{Expected, Measured, balance};
use nodewise_machine::NodeId;

/// Load on a memory controller.
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerUse {
    /// The memory node of this controller.
    pub node: NodeId,
    /// Bytes moved in the typical scenario.
    pub bytes: f64,
    /// Share of its bandwidth over the whole run, 0–1.
    pub utilization: f64,
}

/// Load on a directed link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkUse {
    /// Where data comes from.
    pub from: NodeId,
    /// The node that the link leads to.
    pub to: NodeId,
    /// Bytes moved in the typical scenario.
    pub bytes: f64,
    /// Share of its bandwidth over the whole run, 0–1.
    pub utilization: f64,
}

/// Accesses to what maps reach (large heap objects and static variables): what the lab measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// Accesses by node of the CPU and of the page: `accesses[cpu_node][memory_node]`.
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

/// What one mapping is predicted to cost under one choice of the uncertain parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScenarioCost {
    /// Predicted wall time of the plain program, seconds.
    pub seconds: f64,
    /// Baseline's time over this one's.
    pub speedup: f64,
    /// Share of the time that memory causes.
    pub memory_share: f64,
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
    /// The same, one by one: as [`Simulation::scenarios`].
    pub by_scenario: Vec<ScenarioCost>,
    /// Share of accesses to pages on the accessing thread's node.
    pub local_fraction: f64,
    /// The same in other runs of the command, where those were recorded and the policy moves no pages.
    pub other_runs: Option<OtherRuns>,
    /// Diener eq. 5, by home node.
    pub access_balance: f64,
    /// Page balance over nodes, 0 to 1 (Diener et al., eq. 3).
    pub page_balance: f64,
    /// The accesses that placement can do something about.
    pub mapped: Mapped,
    /// Mean latency of a line, typical, as CPUs see it: queues, and waiting for a turn on what is full; nanoseconds.
    pub latency_ns: f64,
    /// Share of the time that memory causes.
    pub memory_share: Range,
    /// Mean loaded latency `[reader][memory]`, typical, weighted by lines; idle where none went.
    pub loaded_ns: Vec<Vec<f64>>,
    /// Use of each node's memory controller, by node.
    pub controllers: Vec<ControllerUse>,
    /// By link; empty where the machine's links are unknown.
    pub links: Vec<LinkUse>,
    /// The node of each virtual node, where each policy has nodes of its own ([`crate::simulate_on`]): then
    /// `loaded_ns` is by virtual node, all else by the machine's.
    pub nodes: Vec<NodeId>,
    /// By code region, longest first.
    pub regions: Vec<RegionCost>,
    /// Slice by slice; empty unless some policy of the simulation moves pages.
    pub slices: Vec<SliceShare>,
    /// What moved, under a policy that moves pages.
    pub moved: Option<Moved>,
}

/// Local fractions that other runs are expected to have, where threads may take other parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherRuns {
    /// Shares of all accesses.
    pub all: Expected,
    /// Of those to objects that maps reach.
    pub mapped: Expected,
}

/// All mappings on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// Name of the simulated machine.
    pub machine: String,
    /// Name of the thread placement.
    pub affinity: String,
    /// Threads of the profile, and CPUs they share.
    pub threads: usize,
    /// CPUs the threads run on.
    pub cpus: usize,
    /// In the order of the mappings; the first is the baseline.
    pub predictions: Vec<Prediction>,
    /// The figures of the baseline's mapping, on the nodes that policies see.
    pub measured: Measured,
    /// How time was split into compute and memory.
    pub calibration: Calibration,
    /// The choices of the uncertain parameters that were solved; the first is the typical one.
    pub scenarios: Vec<Scenario>,
    /// The uncertain parameters and their ranges.
    pub parameters: Parameters,
}

impl Simulation {
    /// The prediction of the first mapping, which speed-ups refer to.
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
