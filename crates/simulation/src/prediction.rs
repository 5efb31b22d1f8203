//! The results of a simulation.

use crate::calibration::Calibration;
use crate::copying::Copied;
use crate::moving::Moved;
use crate::regions::RegionCost;
use crate::share::SliceShare;
use crate::{Parameters, Range, Scenario};
use nodewise_analysis::{Measured, OtherRuns, balance};
use nodewise_machine::{Machine, MemoryKind, NodeId};

/// A program whose share of memory time is below this is reported as not memory bound.
pub const MEMORY_BOUND: f64 = 0.10;

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
    /// The node that the link comes from.
    pub from: NodeId,
    /// The node that the link leads to.
    pub to: NodeId,
    /// Bytes moved in the typical scenario.
    pub bytes: f64,
    /// Share of its bandwidth over the whole run, 0–1.
    pub utilization: f64,
}

/// Accesses to objects that maps can place (large heap objects and static variables), which the lab measures as well.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// Accesses by node of the CPU and of the page: `accesses[cpu_node][memory_node]`.
    pub accesses: Vec<Vec<u64>>,
}

impl Mapped {
    /// The share of accesses by the home node; 1 if there were none.
    #[must_use]
    pub fn local_fraction(&self) -> f64 {
        let local: u64 = self.accesses.iter().enumerate().map(|(n, row)| row[n]).sum();
        match self.accesses.iter().flatten().sum::<u64>() {
            0 => 1.0,
            all => local as f64 / all as f64,
        }
    }

    /// Access balance over home nodes, 0 to 1 (Diener et al., eq. 5).
    #[must_use]
    pub fn access_balance(&self) -> f64 {
        let home = |memory| self.accesses.iter().map(|row| row[memory]).sum();
        balance(&(0..self.accesses.len()).map(home).collect::<Vec<u64>>())
    }
}

/// The predicted cost of one mapping under one choice of the uncertain parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScenarioCost {
    /// Predicted wall time of the plain program, seconds.
    pub seconds: f64,
    /// The baseline's time divided by this one.
    pub speedup: f64,
    /// Share of the time that memory causes.
    pub memory_share: f64,
}

/// The predicted cost of one mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The policy, as written on the command line.
    pub policy: String,
    /// Predicted wall time of the plain program.
    pub seconds: Range,
    /// The baseline's time divided by this one, over all scenarios, widened by the model's own error.
    pub speedup: Range,
    /// The same over the slices after the last copy that any policy makes; all slices if none makes copies.
    pub speedup_later: Range,
    /// The costs under each scenario, in the order of [`Simulation::scenarios`].
    pub by_scenario: Vec<ScenarioCost>,
    /// The costs with all uncertain quantities at ends of their ranges; not part of [`Prediction::seconds`] and
    /// [`Prediction::speedup`], which vary them one at a time.
    pub jointly: Vec<ScenarioCost>,
    /// Share of accesses to pages on the accessing thread's node.
    pub local_fraction: f64,
    /// The local fraction in other runs of the command, if those were recorded and the policy moves no pages.
    pub other_runs: Option<OtherRuns>,
    /// Access balance over home nodes, 0 to 1 (Diener et al., eq. 5).
    pub access_balance: f64,
    /// Page balance over nodes, 0 to 1 (Diener et al., eq. 3).
    pub page_balance: f64,
    /// Accesses to objects that maps can place.
    pub mapped: Mapped,
    /// Mean latency of a line in the typical scenario, as CPUs see it, with queueing and waiting for full resources;
    /// nanoseconds.
    pub latency_ns: f64,
    /// Share of the time that memory causes.
    pub memory_share: Range,
    /// Share of the lines that memory-side caches have in the typical scenario; `None` on a machine without any.
    pub cache_hits: Option<f64>,
    /// Mean loaded latency `[reader][memory]` in the typical scenario, weighted by lines; the idle latency if there
    /// were none.
    pub loaded_ns: Vec<Vec<f64>>,
    /// Use of each node's memory controller, by node.
    pub controllers: Vec<ControllerUse>,
    /// Use of each link; empty if the machine's links are unknown.
    pub links: Vec<LinkUse>,
    /// The node of each virtual node, if each policy has nodes of its own ([`crate::simulate_on`]). Then `loaded_ns` is
    /// by virtual node, and everything else by the machine's nodes.
    pub nodes: Vec<NodeId>,
    /// The cost of each code region, longest first.
    pub regions: Vec<RegionCost>,
    /// Locality in each slice; empty unless some policy of the simulation moves pages.
    pub slices: Vec<SliceShare>,
    /// The moves of a policy that moves pages.
    pub moved: Option<Moved>,
    /// The copies of a policy that makes copies.
    pub copied: Option<Copied>,
}

impl Prediction {
    /// Share of the bytes that each kind of memory moves in the typical scenario, 0 to 1, in the order of
    /// [`MemoryKind::all`]. Empty where all memory is of one kind, or some node's kind is unknown.
    #[must_use]
    pub fn served_by_kind(&self, machine: &Machine) -> Vec<(MemoryKind, f64)> {
        let with_memory = machine.nodes.iter().filter(|n| n.memory > 0);
        let Some(kinds) = with_memory.map(|n| n.kind).collect::<Option<Vec<_>>>() else {
            return Vec::new();
        };
        let mut there: Vec<MemoryKind> = MemoryKind::all().into();
        there.retain(|kind| kinds.contains(kind));
        if there.len() < 2 {
            return Vec::new();
        }
        let all: f64 = self.controllers.iter().map(|c| c.bytes).sum();
        let bytes = |kind: MemoryKind| -> f64 {
            let of_kind = |c: &&ControllerUse| machine.nodes[c.node.index()].kind == Some(kind);
            self.controllers.iter().filter(of_kind).map(|c| c.bytes).sum()
        };
        let share = |kind| if all > 0.0 { bytes(kind) / all } else { 0.0 };
        there.into_iter().map(|kind| (kind, share(kind))).collect()
    }
}

/// The predictions for all mappings on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    /// Name of the simulated machine.
    pub machine: String,
    /// Name of the thread placement.
    pub affinity: String,
    /// Number of threads of the profile.
    pub threads: usize,
    /// CPUs the threads run on.
    pub cpus: usize,
    /// In the order of the mappings; the first is the baseline.
    pub predictions: Vec<Prediction>,
    /// Metrics of the baseline's mapping, on the nodes that policies see.
    pub measured: Measured,
    /// How time was split into compute and memory.
    pub calibration: Calibration,
    /// The largest number of CPUs that threads outside OpenMP's teams kept busy at a time while recorded, in slices in which
    /// they seemed limited to so few; predictions keep to it. `None` if they never did.
    pub side_by_side: Option<f64>,
    /// The scenarios that were solved; the first is the typical one.
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

    /// The predictions of policies that neither move nor copy pages.
    pub fn placements(&self) -> impl Iterator<Item = &Prediction> {
        let fixed = |p: &&Prediction| p.moved.is_none() && p.copied.is_none();
        self.predictions.iter().filter(fixed)
    }

    /// Whether the baseline's typical memory share is at least [`MEMORY_BOUND`], so that placement can matter.
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
