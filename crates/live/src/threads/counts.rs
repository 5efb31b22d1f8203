//! Sampled accesses of each thread to each node, with exponential decay.

use nodewise_machine::NodeId;
use std::collections::HashMap;

/// Sample counts by process, thread and node of the page.
#[derive(Debug)]
pub struct Counts {
    nodes: usize,
    /// Half-life of samples, seconds.
    half_life: f64,
    processes: HashMap<u32, Process>,
}

#[derive(Debug, Default)]
struct Process {
    /// The decayed time over which they were counted, seconds.
    seconds: f64,
    threads: HashMap<u32, Vec<f64>>,
}

impl Counts {
    /// Empty counts for this many nodes; `half_life` in seconds. The kernel samples a page every 1 to 60 s.
    pub fn new(nodes: usize, half_life: f64) -> Self {
        Self {
            nodes,
            half_life,
            processes: HashMap::new(),
        }
    }

    /// Drops the counts of all processes when another source of samples takes over.
    pub fn clear(&mut self) {
        self.processes.clear();
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty()
    }

    /// Adds accesses of a thread to a node.
    pub fn add(&mut self, pid: u32, tid: u32, node: NodeId, times: f64) {
        let threads = &mut self.processes.entry(pid).or_default().threads;
        let row = threads.entry(tid).or_insert_with(|| vec![0.0; self.nodes]);
        if let Some(count) = row.get_mut(node.index()) {
            *count += times;
        }
    }

    /// Applies the decay of an interval, before its samples are added.
    pub fn pass(&mut self, seconds: f64) {
        let kept = 0.5f64.powf(seconds / self.half_life);
        for process in self.processes.values_mut() {
            process.seconds += seconds;
            let counts = process.threads.values_mut().flatten();
            counts.for_each(|c| *c *= kept);
            process.seconds *= kept;
        }
    }

    /// Accesses of a thread to each node per second.
    pub fn rates(&self, pid: u32, tid: u32) -> Vec<f64> {
        let Some(process) = self.processes.get(&pid).filter(|p| p.seconds > 0.0) else {
            return vec![0.0; self.nodes];
        };
        let rate = |count: &f64| count / process.seconds;
        let row = process.threads.get(&tid);
        row.map_or_else(|| vec![0.0; self.nodes], |row| row.iter().map(rate).collect())
    }

    /// Recent samples of a thread by node of the page.
    pub fn recent(&self, pid: u32, tid: u32) -> Vec<f64> {
        let row = self.processes.get(&pid).and_then(|p| p.threads.get(&tid));
        row.map_or_else(|| vec![0.0; self.nodes], Clone::clone)
    }

    /// Resets a process, which has ended or moved.
    pub fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// Drops threads of a process that no longer exist.
    pub fn keep(&mut self, pid: u32, is_there: impl Fn(u32) -> bool) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.threads.retain(|tid, _| is_there(*tid));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_is_itself_however_long_it_lasts() {
        let mut counts = Counts::new(2, 10.0);
        for _ in 0..40 {
            (0..30).for_each(|_| counts.add(7, 8, NodeId(1), 1.0));
            counts.pass(1.0);
            let rates = counts.rates(7, 8);
            assert!(rates[0] == 0.0 && (rates[1] - 30.0).abs() < 1e-9, "{rates:?}");
        }
    }

    #[test]
    fn what_is_new_outweighs_what_was_and_what_is_forgotten_is_gone() {
        let mut counts = Counts::new(2, 10.0);
        (0..100).for_each(|_| counts.add(7, 8, NodeId(0), 1.0));
        counts.pass(1.0);
        for _ in 0..20 {
            (0..100).for_each(|_| counts.add(7, 8, NodeId(1), 1.0));
            counts.pass(1.0);
        }
        let rates = counts.rates(7, 8);
        assert!(rates[1] > 10.0 * rates[0], "{rates:?}");
        counts.keep(7, |tid| tid != 8);
        assert_eq!(counts.rates(7, 8), [0.0, 0.0]);
        assert!(!counts.is_empty());
        counts.forget(7);
        assert_eq!(counts.rates(7, 9), [0.0, 0.0]);
        assert!(counts.is_empty());
    }
}
