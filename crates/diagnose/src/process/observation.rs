//! Observes a process for a while: the nodes on which its threads run, and the nodes of its pages.

use nodewise_linux::numa_maps::Range;
use nodewise_linux::process::{Status, Task};
use nodewise_linux::resctrl::Traffic;
use nodewise_linux::{Host, ReadError};
use nodewise_machine::{Machine, NodeId};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Interval at which the CPUs of threads are read.
const INTERVAL: Duration = Duration::from_millis(100);

/// The observation of a process.
pub struct Observation {
    /// Process identifier on this host.
    pub pid: u32,
    /// The process's status in `/proc`.
    pub status: Status,
    /// Memory ranges of the process; empty on a machine with one node.
    pub ranges: Vec<Range>,
    /// Threads of the process, including those that ended meanwhile.
    pub threads: Vec<Thread>,
    /// How long threads were observed; `None` if they were idle. In that case their CPU time since they started is
    /// used, and is attributed to the CPU on which they ran last.
    pub watched: Option<Duration>,
    /// Share of the process's memory traffic that stayed local; `None` if resctrl does not measure it.
    pub measured_local: Option<f64>,
}

/// The observation of a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// CPU time by node, nanoseconds.
    pub time: BTreeMap<NodeId, u64>,
    /// Number of observed changes of node.
    pub moves: u32,
}

/// Observes several processes at the same time for the duration `watch`; returns one result for each, in order.
pub fn observe(
    host: &Host,
    machine: &Machine,
    pids: &[u32],
    watch: Duration,
) -> Vec<Result<Observation, ReadError>> {
    let nodes: BTreeMap<u32, NodeId> = machine
        .cpus()
        .into_iter()
        .map(|(cpu, node)| (cpu.0, node))
        .collect();
    let groups: Vec<_> = pids.iter().map(|pid| host.monitoring_group(*pid)).collect();
    let traffic = |group: &Option<String>| host.traffic(group.as_deref()?);
    let before: Vec<Option<Traffic>> = groups.iter().map(traffic).collect();
    let start = Instant::now();
    let watches = watch_threads(host, &nodes, pids, watch);
    let elapsed = start.elapsed();
    let after = groups.iter().map(traffic);
    let traffic = before
        .into_iter()
        .zip(after)
        .map(|(before, after)| before.zip(after));
    let each = pids.iter().zip(watches).zip(traffic);
    each.map(|((pid, watch), traffic)| {
        let (threads, busy) = watch.finish(&nodes);
        let several = machine.node_count() > 1;
        Ok(Observation {
            pid: *pid,
            status: host.status(*pid)?,
            ranges: if several {
                host.numa_maps(*pid)?
            } else {
                Vec::new()
            },
            threads,
            watched: busy.then_some(elapsed),
            measured_local: traffic.and_then(|(before, after)| after.local_share_since(before)),
        })
    })
    .collect()
}

/// Reads the state of all threads at regular intervals for the duration `watch`, at least once.
fn watch_threads(host: &Host, nodes: &BTreeMap<u32, NodeId>, pids: &[u32], watch: Duration) -> Vec<Watch> {
    let start = Instant::now();
    let mut watches: Vec<Watch> = pids.iter().map(|_| Watch::default()).collect();
    loop {
        for (pid, watch) in pids.iter().zip(&mut watches) {
            watch.look(&host.tasks(*pid).unwrap_or_default(), nodes);
        }
        let left = watch.saturating_sub(start.elapsed());
        if left.is_zero() {
            return watches;
        }
        std::thread::sleep(left.min(INTERVAL));
    }
}

/// The observed threads by identifier, each with its last state and its CPU time and moves since the first reading.
#[derive(Default)]
struct Watch {
    threads: BTreeMap<u32, (Task, Thread)>,
}

impl Watch {
    fn look(&mut self, tasks: &[Task], nodes: &BTreeMap<u32, NodeId>) {
        for task in tasks {
            let Some((last, thread)) = self.threads.get_mut(&task.tid) else {
                self.threads.insert(task.tid, (task.clone(), Thread::default()));
                continue;
            };
            let spent = task.cpu_ns.saturating_sub(last.cpu_ns);
            if let Some(node) = nodes.get(&task.cpu).filter(|_| spent > 0) {
                *thread.time.entry(*node).or_default() += spent;
                thread.moves += u32::from(nodes.get(&last.cpu) != Some(node));
            }
            *last = task.clone();
        }
    }

    /// The threads, and whether any of them ran during the observation.
    fn finish(self, nodes: &BTreeMap<u32, NodeId>) -> (Vec<Thread>, bool) {
        let busy = self.threads.values().any(|(_, thread)| !thread.time.is_empty());
        let since_start = |task: &Task| {
            let node = nodes.get(&task.cpu).copied();
            Thread {
                time: node.map(|n| (n, task.cpu_ns)).into_iter().collect(),
                moves: 0,
            }
        };
        let thread = |(last, thread): (Task, Thread)| if busy { thread } else { since_start(&last) };
        (self.threads.into_values().map(thread).collect(), busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(tid: u32, cpu: u32, cpu_ns: u64) -> Task {
        Task {
            tid,
            name: String::new(),
            cpu,
            cpu_ns,
            waited_ns: 0,
        }
    }

    fn nodes() -> BTreeMap<u32, NodeId> {
        BTreeMap::from([(0, NodeId(0)), (1, NodeId(0)), (2, NodeId(1))])
    }

    #[test]
    fn time_counts_where_it_was_spent_and_moves_between_nodes_only() {
        let mut watch = Watch::default();
        for (cpu, at) in [(0, 1000), (1, 1010), (2, 1030), (2, 1030), (0, 1031)] {
            watch.look(&[task(7, cpu, at)], &nodes());
        }
        let (threads, busy) = watch.finish(&nodes());
        assert!(busy);
        assert_eq!(
            threads,
            [Thread {
                time: BTreeMap::from([(NodeId(0), 11), (NodeId(1), 20)]),
                moves: 2
            }]
        );
    }

    #[test]
    fn idle_threads_count_by_what_they_did_before() {
        let mut watch = Watch::default();
        for _ in 0..3 {
            watch.look(&[task(7, 2, 500), task(8, 0, 100)], &nodes());
        }
        let (threads, busy) = watch.finish(&nodes());
        assert!(!busy);
        assert_eq!(threads[0].time, BTreeMap::from([(NodeId(1), 500)]));
        assert_eq!(threads[1].time, BTreeMap::from([(NodeId(0), 100)]));
    }

    #[test]
    fn a_thread_that_ends_keeps_what_it_did() {
        let mut watch = Watch::default();
        watch.look(&[task(7, 0, 0), task(8, 2, 0)], &nodes());
        watch.look(&[task(7, 0, 5), task(8, 2, 9)], &nodes());
        watch.look(&[task(7, 0, 6)], &nodes());
        let (threads, _) = watch.finish(&nodes());
        assert_eq!(threads.len(), 2);
        assert_eq!(threads[1].time, BTreeMap::from([(NodeId(1), 9)]));
    }
}
