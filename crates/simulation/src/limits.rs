//! What limits a program in a scenario, and the resources that each policy has under it.

use crate::Scenario;
use crate::assumed_bandwidth::with_assumed_bandwidth;
use crate::assumed_latency::with_assumed_latency;
use crate::memory_side_caches::{Footprint, with_memory_side_caches};
use crate::resources::Resources;
use nodewise_machine::{Machine, NodeId};
use std::sync::Arc;

/// What limits the program, of a scenario: factors on assumed bandwidths and latencies, conflicts in memory-side caches, and
/// a factor on the threads that run at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    pub bandwidth: f64,
    pub latency: f64,
    pub cache_conflicts: f64,
    pub concurrency: f64,
}

impl Limits {
    pub fn of(scenario: &Scenario) -> Self {
        Self {
            bandwidth: scenario.bandwidth,
            latency: scenario.latency,
            cache_conflicts: scenario.cache_conflicts,
            concurrency: scenario.concurrency,
        }
    }

    fn scaled(&self, machine: &Machine) -> Machine {
        with_assumed_latency(&with_assumed_bandwidth(machine, self.bandwidth), self.latency)
    }

    /// Of a policy that uses these pages of each node's memory, on a machine with memory-side caches.
    pub fn cached(&self, machine: &Machine, used: &[Footprint]) -> Arc<Resources> {
        let (seen, hits) = with_memory_side_caches(&self.scaled(machine), used, self.cache_conflicts);
        Arc::new(Resources::new(&seen).with_hits(hits))
    }

    /// Of `policies` policies on a machine: on all of its nodes, or each on those that `on` has for it.
    pub fn resources(
        &self,
        machine: &Machine,
        on: Option<&[Vec<NodeId>]>,
        policies: usize,
    ) -> Vec<Arc<Resources>> {
        let machine = self.scaled(machine);
        match on {
            None => std::iter::repeat_n(Arc::new(Resources::new(&machine)), policies).collect(),
            Some(on) => {
                assert_eq!(on.len(), policies, "each policy is somewhere");
                on.iter()
                    .map(|at| Arc::new(Resources::on(&machine, at)))
                    .collect()
            }
        }
    }
}
