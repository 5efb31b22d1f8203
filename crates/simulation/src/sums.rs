//! Sums over the phases of a simulation for one policy.

use crate::phase::{Cost, Load};
use crate::regions::RegionSums;
use crate::resources::Resources;
use crate::share::{Matrix, SliceShare};
use crate::tally::SliceTally;

/// Sums over phases for one policy.
#[derive(Clone)]
pub(crate) struct Sums {
    /// Wall time by scenario, nanoseconds.
    pub ns: Vec<f64>,
    pub compute_ns: Vec<f64>,
    /// Bytes over each resource in the typical scenario.
    pub bytes: Vec<f64>,
    /// `[reader * nodes + memory]`.
    pub lines: Vec<f64>,
    pub latency: Vec<f64>,
    /// Lines that memory-side caches had.
    pub hits: f64,
    /// Latency summed over lines, as CPUs see it.
    pub waited: f64,
    pub regions: Vec<RegionSums>,
    /// If mappings may change: all accesses of each slice, and those to arrays.
    pub slices: Vec<SliceShare>,
    pub all: Matrix,
    pub mapped: Matrix,
}

impl Sums {
    pub fn new(scenarios: usize, resources: &Resources) -> Self {
        let pairs = resources.nodes * resources.nodes;
        Self {
            ns: vec![0.0; scenarios],
            compute_ns: vec![0.0; scenarios],
            bytes: vec![0.0; resources.capacity.len()],
            lines: vec![0.0; pairs],
            latency: vec![0.0; pairs],
            hits: 0.0,
            waited: 0.0,
            regions: Vec::new(),
            slices: Vec::new(),
            all: Matrix::new(resources.nodes),
            mapped: Matrix::new(resources.nodes),
        }
    }

    /// Adds the locality of a slice, if mappings may change.
    pub fn follow(&mut self, slice: &SliceTally<'_>, policy: usize, mappable: &[bool]) {
        let Some(counts) = slice.counts else { return };
        let mut arrays = Matrix::new(self.all.nodes());
        let mut rest = arrays.clone();
        for page in counts.pages() {
            let part = if mappable[page] { &mut arrays } else { &mut rest };
            match slice.placed.home(policy, page) {
                Some(home) => part.add(home, counts.of(page)),
                None => part.add_copied(slice.placed.nearest(policy), counts.of(page)),
            }
        }
        self.mapped.absorb(&arrays);
        rest.absorb(&arrays);
        self.all.absorb(&rest);
        self.slices.push(SliceShare {
            slice: slice.slice,
            accesses: rest.accesses(),
            local: rest.local(),
            migrations: 0,
        });
    }

    pub fn count(&mut self, load: &Load<'_>, cost: &Cost, miss: f64) {
        self.waited += load.waited(cost);
        for (sum, bytes) in self.bytes.iter_mut().zip(&load.bytes) {
            *sum += bytes * miss;
        }
        for (cell, lines) in load.lines.iter().enumerate() {
            self.lines[cell] += lines;
            self.hits += lines * load.hits(cell);
            self.latency[cell] += lines * cost.latency_ns[cell];
        }
    }
}
