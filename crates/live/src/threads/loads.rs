//! Access counts by thread and node from load samples of the processor, where it supports them. Unlike hint faults they
//! tell how often a thread accesses a node.

use super::view::Seen;
use crate::topology::Topology;
use nodewise_linux::loads::{Load, Loads, Sampler, Served};
use nodewise_linux::{Host, pages};
use nodewise_machine::NodeId;
use nodewise_profile::BASE_PAGE_SIZE;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Largest number of pages queried per process and interval.
const MOST: usize = 4096;
/// Largest number of threads sampled at once; each takes a descriptor and a buffer.
const THREADS: usize = 256;

/// Load samplers of active threads.
pub struct Sampled {
    sampler: Option<Sampler>,
    /// `None`: the kernel refused.
    threads: HashMap<u32, Option<Loads>>,
    delivers: bool,
}

/// Accesses of a thread to a node's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accesses {
    pub pid: u32,
    pub tid: u32,
    pub node: NodeId,
    pub count: f64,
}

impl Sampled {
    /// Uses the processor's load event, if it has one; with pretended nodes no event is used.
    pub fn new(host: &Host, topology: &Topology) -> Self {
        Self {
            sampler: host.load_sampler().filter(|_| !topology.pretended),
            threads: HashMap::new(),
            delivers: false,
        }
    }

    /// The event that samples were taken with, if there were any.
    pub fn source(&self) -> Option<&str> {
        self.sampler
            .as_ref()
            .filter(|_| self.delivers)
            .map(|s| s.name.as_str())
    }

    /// Starts to sample these active threads and stops sampling others.
    pub fn follow(&mut self, seen: &[Seen]) {
        let Some(sampler) = &self.sampler else {
            return;
        };
        let at_work: BTreeSet<u32> = seen
            .iter()
            .flat_map(|s| s.threads.iter().map(|t| t.tid))
            .collect();
        self.threads.retain(|tid, _| at_work.contains(tid));
        for tid in at_work {
            if self.threads.len() < THREADS {
                let sampled = || Loads::of_thread(sampler, tid).ok();
                self.threads.entry(tid).or_insert_with(sampled);
            }
        }
    }

    /// Accesses served by memory since the last call.
    pub fn take(&mut self, topology: &Topology) -> Vec<Accesses> {
        let mut loads = Vec::new();
        self.threads.values().flatten().for_each(|t| t.drain(&mut loads));
        let mut by_process: BTreeMap<u32, Vec<Load>> = BTreeMap::new();
        for load in loads.into_iter().filter(|l| from_memory(l.served)) {
            by_process.entry(load.pid).or_default().push(load);
        }
        self.delivers |= !by_process.is_empty();
        let mut all = Vec::new();
        for (pid, loads) in by_process {
            let (loads, scale) = thinned(&loads);
            let addresses: Vec<u64> = loads.iter().map(|l| l.address & !(BASE_PAGE_SIZE - 1)).collect();
            // The process has ended.
            let homes = pages::query(pid, &addresses).unwrap_or_default();
            for (load, home) in loads.iter().zip(homes) {
                if let Some(node) = home.node().and_then(|n| topology.node(n)) {
                    all.push(Accesses {
                        pid,
                        tid: load.tid,
                        node,
                        count: load.weight as f64 * scale,
                    });
                }
            }
        }
        all
    }
}

fn from_memory(served: Served) -> bool {
    matches!(served, Served::Local | Served::Remote)
}

/// At most [`MOST`] samples, evenly spaced in time, and the weight of each.
fn thinned(loads: &[Load]) -> (Vec<Load>, f64) {
    let step = loads.len().div_ceil(MOST).max(1);
    let kept: Vec<Load> = loads.iter().copied().step_by(step).collect();
    let scale = loads.len() as f64 / kept.len().max(1) as f64;
    (kept, scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(tid: u32) -> Load {
        Load {
            time_ns: 0,
            pid: 1,
            tid,
            cpu: 0,
            address: 0x1000,
            weight: 10,
            served: Served::Remote,
        }
    }

    #[test]
    fn few_are_all_taken_and_many_stand_for_all() {
        for (count, kept) in [
            (0, 0),
            (1, 1),
            (MOST, MOST),
            (MOST + 1, MOST / 2 + 1),
            (3 * MOST, MOST),
        ] {
            let all: Vec<Load> = (0..count as u32).map(load).collect();
            let (few, scale) = thinned(&all);
            assert_eq!(few.len(), kept);
            assert!((few.len() as f64 * scale - count as f64).abs() < 1e-6);
        }
    }

    #[test]
    fn what_caches_serve_needs_no_node() {
        let served = [Served::Cache, Served::Local, Served::Remote, Served::Unknown];
        assert_eq!(served.map(from_memory), [false, true, true, false]);
    }
}
