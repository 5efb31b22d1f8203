//! Lists processes with their active threads, allowed CPUs and nodes, and resident memory.

use super::view::{Seen, Thread};
use crate::topology::Topology;
use nodewise_enforce::Affinities;
use nodewise_linux::process::Task;
use nodewise_linux::{Host, affinity, clock};
use nodewise_machine::NodeId;
use nodewise_observe::faults::is_companion;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Share of a CPU from which on a thread is active; waiting threads need no node.
const AT_WORK: f64 = 0.1;
/// Decay of a thread's CPU share per interval: a fully active thread counts as active for ten idle intervals.
const LASTS: f64 = 0.8;
/// Querying resident memory, for which the kernel walks all of it, takes at most 1/500 of the time.
const RESIDENT_SHARE: u32 = 500;

/// State of all processes between observations.
pub struct Census {
    host: Host,
    /// The CPUs that our command was started with.
    inherited: Option<Vec<u32>>,
    /// Whether we bound the threads that are bound.
    bound_by_us: bool,
    known: HashMap<u32, Known>,
    looked: Instant,
}

struct Known {
    name: String,
    since: Instant,
    threads: HashMap<u32, Work>,
    resident: Vec<u64>,
    /// When resident memory is queried next.
    look_at: Instant,
}

/// Recent CPU use of a thread.
#[derive(Clone, Copy)]
struct Work {
    cpu_ns: u64,
    waited_ns: u64,
    /// Unknown at the first observation.
    share: Option<Share>,
}

/// Shares of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    used: f64,
    /// The share that it would have used if it had never waited for a CPU.
    wanted: f64,
}

impl Share {
    /// Rises at once, and decays by [`LASTS`] per interval.
    fn after(self, before: Self) -> Self {
        Self {
            used: self.used.max(LASTS * before.used),
            wanted: self.wanted.max(LASTS * before.wanted),
        }
    }
}

impl Census {
    /// A census of running processes, or of a command that this thread starts next.
    pub fn new(host: Host, of_command: bool, bound_by_us: bool) -> Self {
        let inherited = of_command.then(|| affinity::allowed_cpus().ok()).flatten();
        Self {
            host,
            inherited,
            bound_by_us,
            known: HashMap::new(),
            looked: Instant::now(),
        }
    }

    /// The state of those of these processes that are running. Resident memory is queried only `with_memory`, because
    /// that takes long. The caller fills in the accesses.
    pub fn look(
        &mut self,
        pids: &[u32],
        topology: &Topology,
        affinities: &Affinities,
        with_memory: bool,
    ) -> Vec<Seen> {
        let passed = self.looked.elapsed();
        self.looked = Instant::now();
        self.known.retain(|pid, _| pids.contains(pid));
        let each = |pid: &u32| {
            let mut seen = self.process(*pid, passed, topology, affinities)?;
            if with_memory && let Some(known) = self.known.get_mut(pid) {
                known.look_at_memory(&self.host, *pid, topology);
                seen.resident.clone_from(&known.resident);
            }
            Some(seen)
        };
        pids.iter().filter_map(each).collect()
    }

    fn process(
        &mut self,
        pid: u32,
        passed: Duration,
        topology: &Topology,
        affinities: &Affinities,
    ) -> Option<Seen> {
        let tasks = self.host.tasks(pid).ok()?;
        let status = self.host.status(pid).ok()?;
        let allowed = self.allowed(pid);
        let masks = Masks::of(&tasks, &allowed, topology, affinities);
        let pinned = !self.bound_by_us && masks.by_others;
        let known = self.known.entry(pid).or_insert_with(|| Known::new(&status.name));
        let at_work = known.at_work(&tasks, passed);
        let thread = |task: &Task| {
            Some(Thread {
                tid: task.tid,
                node: topology.node_of_cpu(task.cpu)?,
                load: at_work[&task.tid].used,
                demand: at_work[&task.tid].wanted,
                bound: masks.ours.get(&task.tid).copied(),
                accesses: Vec::new(),
            })
        };
        let threads = tasks
            .iter()
            .filter(|t| at_work.contains_key(&t.tid) && !is_companion(pid, t.tid, &t.name));
        Some(Seen {
            pid,
            name: known.name.clone(),
            run_ns: clock::nanoseconds(known.since.elapsed()),
            threads: threads.filter_map(thread).collect(),
            all: tasks.iter().map(|t| t.tid).collect(),
            resident: Vec::new(),
            cpus: allowed,
            nodes: match topology.pretended {
                true => topology.machine.node_ids().collect(),
                false => status
                    .mems_allowed
                    .iter()
                    .filter_map(|n| topology.node(*n))
                    .collect(),
            },
            pinned,
        })
    }

    /// CPUs that the process may use.
    fn allowed(&self, pid: u32) -> Vec<u32> {
        let mut cpus = self.host.cpuset(pid);
        if let Some(inherited) = &self.inherited {
            cpus.retain(|c| inherited.contains(c));
        }
        cpus
    }
}

/// The affinity masks of a process's threads.
#[derive(Default)]
struct Masks {
    /// Whether a thread was bound, not by us, to fewer CPUs than the process may use.
    by_others: bool,
    /// The nodes of the threads that we bound.
    ours: HashMap<u32, NodeId>,
}

impl Masks {
    fn of(tasks: &[Task], allowed: &[u32], topology: &Topology, affinities: &Affinities) -> Self {
        let mut masks = Self::default();
        for task in tasks {
            let Ok(now) = affinity::cpus_of(task.tid) else {
                continue; // the thread has ended
            };
            if allowed.iter().all(|c| now.contains(c)) {
                continue;
            }
            if !affinities.are_ours(&now, allowed) {
                masks.by_others = true;
            } else if let Some(node) = now.first().and_then(|cpu| topology.node_of_cpu(*cpu)) {
                masks.ours.insert(task.tid, node);
            }
        }
        masks
    }
}

impl Known {
    fn new(name: &str) -> Self {
        let now = Instant::now();
        Self {
            name: name.to_owned(),
            since: now,
            threads: HashMap::new(),
            resident: Vec::new(),
            look_at: now,
        }
    }

    /// Updates the resident bytes by node, no more often than [`RESIDENT_SHARE`] permits.
    fn look_at_memory(&mut self, host: &Host, pid: u32, topology: &Topology) {
        let began = Instant::now();
        if began < self.look_at {
            return;
        }
        let mut resident = vec![0; topology.machine.node_count()];
        for range in host.numa_maps(pid).unwrap_or_default() {
            for (node, bytes) in range.bytes() {
                if let Some(NodeId(node)) = topology.node(node) {
                    resident[node as usize] += bytes;
                }
            }
        }
        self.resident = resident;
        self.look_at = Instant::now() + began.elapsed() * RESIDENT_SHARE;
    }

    /// The active threads, which used a tenth of a CPU or more recently, with their shares.
    fn at_work(&mut self, tasks: &[Task], passed: Duration) -> BTreeMap<u32, Share> {
        let passed = passed.as_nanos().max(1) as f64;
        let before = std::mem::take(&mut self.threads);
        for task in tasks {
            let last = before.get(&task.tid);
            let used = task.cpu_ns.saturating_sub(last.map_or(0, |w| w.cpu_ns)) as f64;
            let waited = task.waited_ns.saturating_sub(last.map_or(0, |w| w.waited_ns)) as f64;
            let now = Share {
                used: (used / passed).min(1.0),
                wanted: ((used + waited) / passed).min(1.0),
            };
            let share = match last {
                None => (!before.is_empty()).then_some(now),
                Some(work) => Some(work.share.map_or(now, |share| now.after(share))),
            };
            let work = Work {
                cpu_ns: task.cpu_ns,
                waited_ns: task.waited_ns,
                share,
            };
            self.threads.insert(task.tid, work);
        }
        let shares = self
            .threads
            .iter()
            .filter_map(|(tid, work)| Some((*tid, work.share?)));
        shares.filter(|(_, share)| share.used >= AT_WORK).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(tid: u32, cpu_ms: u64) -> Task {
        Task {
            tid,
            name: String::new(),
            cpu: 0,
            cpu_ns: cpu_ms * 1_000_000,
            waited_ns: 0,
        }
    }

    #[test]
    fn who_waits_is_not_at_work_however_long_it_worked_before() {
        let mut known = Known::new("solve");
        let second = Duration::from_secs(1);
        let mut at_work = |tasks: &[Task]| known.at_work(tasks, second).into_keys().collect::<Vec<_>>();
        assert!(at_work(&[task(1, 90_000), task(2, 5)]).is_empty());
        assert_eq!(at_work(&[task(1, 90_000), task(2, 905)]), [2]);
        // A new thread counts as active at once, and an idle one does so for a while.
        assert_eq!(at_work(&[task(1, 90_050), task(2, 905), task(3, 500)]), [2, 3]);
        assert_eq!(at_work(&[task(1, 90_050), task(2, 905), task(3, 500)]), [2, 3]);
        let later = [task(1, 90_050), task(2, 905), task(3, 500)];
        (0..20).for_each(|_| drop(at_work(&later)));
        assert!(at_work(&later).is_empty());
    }
}
