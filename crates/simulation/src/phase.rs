//! The time of one region of one slice: a fixed point between load and latency.

use crate::calibration::Fit;
use crate::resources::Resources;
use crate::sharing::drained_ns;
use crate::traffic::{Cell, Phase};
use crate::{Demand, Parameters, Scenario};

/// Traffic of one phase under one mapping.
pub(crate) struct Load<'a> {
    phase: &'a Phase,
    policy: usize,
    /// Node of each CPU slot.
    slot_nodes: &'a [usize],
    resources: &'a Resources,
    /// Bytes over each resource if every line reaches memory.
    pub bytes: Vec<f64>,
    /// Lines fetched `[reader * nodes + memory]`.
    pub lines: Vec<f64>,
    /// The traffic of each node if every line reaches memory.
    pub demands: Vec<Demand>,
    /// Time that the resources need if every line reaches memory.
    drain: Drain,
    /// Largest number of CPUs busy at a time.
    concurrency: f64,
    /// Bytes of a line, or of another unit of traffic.
    line_bytes: f64,
}

/// The predicted cost of a phase.
#[derive(Clone, Debug)]
pub(crate) struct Cost {
    /// Predicted wall time of the phase, nanoseconds.
    pub ns: f64,
    /// Wall time if memory accesses took no time, nanoseconds.
    pub compute_ns: f64,
    /// Loaded latency `[reader * nodes + memory]`, nanoseconds.
    pub latency_ns: Vec<f64>,
    /// By reader: the factor by which its lines take longer because of a full resource; 1 if none is full.
    pub stretch: Vec<f64>,
}

/// How long resources need to move a phase's bytes, nanoseconds.
#[derive(Clone, Debug, Default)]
struct Drain {
    ns: f64,
    /// When each node's bytes have been transferred.
    by_reader: Vec<f64>,
}

impl<'a> Load<'a> {
    pub fn new(
        phase: &'a Phase,
        policy: usize,
        slot_nodes: &'a [usize],
        resources: &'a Resources,
        concurrency: f64,
        line_bytes: f64,
    ) -> Self {
        let nodes = resources.nodes;
        let mut load = Self {
            phase,
            policy,
            slot_nodes,
            resources,
            bytes: vec![0.0; resources.capacity.len()],
            lines: vec![0.0; nodes * nodes],
            demands: Vec::new(),
            drain: Drain::default(),
            concurrency,
            line_bytes,
        };
        let mut dirty = vec![0.0; nodes * nodes];
        for (slot, _, cells) in load.ran() {
            let reader = slot_nodes[slot];
            for (memory, cell) in cells.iter().enumerate() {
                load.lines[reader * nodes + memory] += cell.lines as f64;
                dirty[reader * nodes + memory] += cell.dirty as f64;
            }
        }
        load.demands = (0..nodes).map(|reader| load.demand(reader, &dirty)).collect();
        for &(resource, bytes) in load.demands.iter().flat_map(|d| &d.over) {
            load.bytes[resource as usize] += bytes;
        }
        load.drain = load.drain(&[]);
        load
    }

    /// Time that the resources need under contention with others, if every line reaches memory.
    fn drain(&self, others: &[(&Demand, f64)]) -> Drain {
        let drained = |demands| drained_ns(demands, others, &self.resources.capacity);
        let mut by_reader = drained(&self.demands);
        let last = by_reader.iter().copied().fold(0.0, f64::max);
        let alone: f64 = self.demands.chunks(1).map(|one| drained(one)[0]).sum();
        let ns = last.max(alone / self.concurrency);
        if last > 0.0 {
            by_reader.iter_mut().for_each(|end| *end *= ns / last);
        }
        Drain { ns, by_reader }
    }

    /// The CPU slots that ran, with their accesses, and their lines by memory node.
    fn ran(&self) -> impl Iterator<Item = (usize, u64, &'a [Cell])> + use<'a> {
        let (policy, nodes) = (self.policy, self.resources.nodes);
        let cpus = self.phase.cpus();
        cpus.map(move |(slot, accesses, cells)| (slot, accesses, &cells[policy * nodes..][..nodes]))
    }

    /// The traffic of all CPUs of a node, by resource.
    fn demand(&self, reader: usize, dirty: &[f64]) -> Demand {
        let nodes = self.resources.nodes;
        let mut over = std::collections::BTreeMap::new();
        let mut total = 0.0;
        let mut put = |path: &[u32], lines: f64| {
            if lines > 0.0 {
                total += lines * self.line_bytes;
                path.iter()
                    .for_each(|&r| *over.entry(r).or_insert(0.0) += lines * self.line_bytes);
            }
        };
        for memory in 0..nodes {
            put(
                self.resources.fetch(reader, memory),
                self.lines[reader * nodes + memory],
            );
            put(
                self.resources.write_back(reader, memory),
                dirty[reader * nodes + memory],
            );
        }
        Demand {
            bytes: total,
            over: over.into_iter().collect(),
        }
    }

    /// Solves `T = max(CPUs at the latency that T's load gives, time of the resources)`.
    ///
    /// The CPUs' time falls as T grows (as the load falls), so the solution is unique; it is found by bisection.
    pub fn solve(&self, scenario: &Scenario, fit: &Fit, parameters: &Parameters) -> Cost {
        self.solve_beside(&[], scenario, fit, parameters)
    }

    /// As [`Self::solve`], while others move data too. `others`: their traffic, each with its rate limit in bytes per
    /// nanosecond.
    pub fn solve_beside(
        &self,
        others: &[(&Demand, f64)],
        scenario: &Scenario,
        fit: &Fit,
        parameters: &Parameters,
    ) -> Cost {
        let beside = self.rates(others);
        let drain = match others {
            [] => self.drain.clone(),
            _ => self.drain(others),
        };
        let mut latency_ns = self.resources.idle_ns.clone();
        let compute_ns = fit.ns_per_access * self.side_by_side(self.ran().map(|(_, n, _)| n as f64));
        let mut low = self.cpu_ns(scenario, fit, &latency_ns).max(drain.ns * fit.miss);
        let at = |t: f64, latency: &mut Vec<f64>| {
            self.loaded_latency(t, &beside, scenario, fit, parameters, latency);
            self.cpu_ns(scenario, fit, latency)
        };
        let mut high = at(low, &mut latency_ns).max(low);
        while high - low > 1e-5 * high {
            let middle = 0.5 * (low + high);
            if at(middle, &mut latency_ns) > middle {
                low = middle;
            } else {
                high = middle;
            }
        }
        at(high, &mut latency_ns);
        Cost {
            ns: high,
            compute_ns,
            stretch: self.stretch(high, &drain, scenario, fit, &latency_ns),
            latency_ns,
        }
    }

    /// By reader: the factor on latencies with which its CPUs take as long as the transfer of its bytes. A line's
    /// latency includes the wait for a full resource (Little's law; AsymSched's Table 1).
    fn stretch(
        &self,
        ns: f64,
        drain: &Drain,
        scenario: &Scenario,
        fit: &Fit,
        latency_ns: &[f64],
    ) -> Vec<f64> {
        let factor = |ns: f64, (compute, waiting): (f64, f64)| match waiting {
            w if w > 0.0 => (ns - compute) / w,
            _ => f64::INFINITY,
        };
        let cpus: Vec<(f64, f64)> = self.cpus(scenario, fit, latency_ns).collect();
        let sum = cpus
            .iter()
            .fold((0.0, 0.0), |sum, cpu| (sum.0 + cpu.0, sum.1 + cpu.1));
        let mut least = vec![factor(ns * self.concurrency, sum); self.resources.nodes];
        for ((slot, ..), cpu) in self.ran().zip(&cpus) {
            let reader = self.slot_nodes[slot];
            least[reader] = factor(drain.by_reader[reader] * fit.miss, *cpu).min(least[reader]);
        }
        let known = |f: &f64| if f.is_finite() { f.max(1.0) } else { 1.0 };
        least.iter().map(known).collect()
    }

    /// The share of the lines of a cell that a memory-side cache has.
    pub fn hits(&self, cell: usize) -> f64 {
        self.resources.hits[cell % self.resources.nodes]
    }

    /// Latency summed over lines, as CPUs see it, nanoseconds.
    pub fn waited(&self, cost: &Cost) -> f64 {
        let lines = self.lines.iter().zip(&cost.latency_ns).enumerate();
        let of = |(cell, (lines, latency)): (usize, (&f64, &f64))| {
            lines * latency * cost.stretch[cell / self.resources.nodes]
        };
        lines.map(of).sum()
    }

    /// Bytes per nanosecond that others move over each resource.
    fn rates(&self, others: &[(&Demand, f64)]) -> Vec<f64> {
        let mut rates = vec![0.0; self.bytes.len()];
        for (demand, rate) in others {
            for &(resource, bytes) in &demand.over {
                rates[resource as usize] += rate * bytes / demand.bytes;
            }
        }
        rates
    }

    /// Time of CPUs that run concurrently: that of the slowest, or the sum over all divided by the number that run at a
    /// time (Brent's bound).
    fn side_by_side(&self, cpus: impl Iterator<Item = f64>) -> f64 {
        let (last, sum) = cpus.fold((0.0f64, 0.0), |(last, sum), ns| (last.max(ns), sum + ns));
        last.max(sum / self.concurrency)
    }

    /// Time of all CPUs, at given latencies.
    fn cpu_ns(&self, scenario: &Scenario, fit: &Fit, latency_ns: &[f64]) -> f64 {
        self.side_by_side(
            self.cpus(scenario, fit, latency_ns)
                .map(|(compute, waiting)| compute + waiting),
        )
    }

    /// The compute time of each CPU, and its wait at given latencies, nanoseconds.
    fn cpus(&self, scenario: &Scenario, fit: &Fit, latency_ns: &[f64]) -> impl Iterator<Item = (f64, f64)> {
        let nodes = self.resources.nodes;
        let wait = fit.miss / scenario.parallelism;
        self.ran().map(move |(slot, accesses, cells)| {
            let latency = &latency_ns[self.slot_nodes[slot] * nodes..][..nodes];
            let waiting: f64 = cells.iter().zip(latency).map(|(c, l)| c.lines as f64 * l).sum();
            (accesses as f64 * fit.ns_per_access, waiting * wait)
        })
    }

    /// `L = L0 + Σ s·ρ / (2(1−ρ))` over the resources on the route, `ρ = b / (c·peak)`; the traffic of others counts in
    /// `b`.
    fn loaded_latency(
        &self,
        t: f64,
        beside: &[f64],
        scenario: &Scenario,
        fit: &Fit,
        parameters: &Parameters,
        out: &mut [f64],
    ) {
        let queue: Vec<f64> = self
            .bytes
            .iter()
            .zip(beside)
            .zip(&self.resources.capacity)
            .map(|((bytes, beside), capacity)| {
                let full = t * capacity * parameters.headroom;
                let load = if full > 0.0 {
                    ((bytes * fit.miss + beside * t) / full).min(1.0 / parameters.headroom)
                } else {
                    0.0
                };
                scenario.queue_ns * load / (2.0 * (1.0 - load))
            })
            .collect();
        let nodes = self.resources.nodes;
        for reader in 0..nodes {
            for memory in 0..nodes {
                let cell = reader * nodes + memory;
                let queued: f64 = self
                    .resources
                    .fetch(reader, memory)
                    .iter()
                    .map(|&r| queue[r as usize])
                    .sum();
                out[cell] = self.resources.idle_ns[cell] + queued;
            }
        }
    }
}
