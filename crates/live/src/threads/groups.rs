//! Binds groups of threads that share memory to nodes: the live side of [`nodewise_control::groups`].

use super::view::Seen;
use crate::topology::Topology;
use nodewise_control::groups::{Groups, Room, Sharing, Thread, ThreadDecision};
use nodewise_linux::Host;
use nodewise_placement::asym::Place;
use nodewise_profile::PageNumber;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Half-life of samples, seconds. A program's phases last seconds, and two passes of the kernel over its memory, one a
/// second while much is remote, suffice to show which thread uses what.
pub const HALF_LIFE: f64 = 3.0;

/// Weight of the last interval in the smoothed CPU use of other programs.
const RECENT: f64 = 0.3;

/// Decides for all processes; one decider for each group of processes that may use the same CPUs.
#[derive(Default)]
pub struct GroupRule {
    deciders: BTreeMap<Vec<u32>, Decider>,
    sharing: Sharing,
    busy: BusyCpus,
}

/// The state for one set of processes that may use the same CPUs.
#[derive(Default)]
struct Decider {
    groups: Groups,
    /// Number of CPUs of each node that other programs use, smoothed.
    others: Vec<f64>,
    /// Whether threads share cores, as there were not enough for all.
    shares_cores: bool,
}

impl GroupRule {
    /// A sample of a page from a thread.
    pub fn sampled(&mut self, page: PageNumber, tid: u32) {
        self.sharing.add(page, tid);
    }

    /// Forgets a process that has ended.
    pub fn forget(&mut self, pid: u32) {
        self.deciders
            .values_mut()
            .for_each(|decider| decider.groups.forget(pid));
    }

    /// Begins an interval, `seconds` after the last one, for processes that may use these sets of CPUs.
    pub fn pass(&mut self, host: &Host, seconds: f64, sets: &BTreeSet<Vec<u32>>) {
        self.sharing.decay(0.5f64.powf(seconds / HALF_LIFE));
        self.busy.look(host);
        self.deciders.retain(|cpus, _| sets.contains(cpus));
    }

    /// Decides about the threads of the processes that may use these CPUs, on these nodes.
    pub fn decide(
        &mut self,
        now_ns: u64,
        topology: &Topology,
        cpus: &[u32],
        places: &[Place],
        seen: &[Seen],
    ) -> ThreadDecision {
        let threads: Vec<Thread> = seen
            .iter()
            .filter(|s| s.cpus == cpus && !s.pinned)
            .flat_map(threads)
            .collect();
        let rooms = self.rooms(topology, cpus, places, seen);
        let decider = self.deciders.entry(cpus.to_vec()).or_default();
        decider.groups.step(now_ns, &threads, &self.sharing, &rooms)
    }

    /// The cores of each node that other programs leave, or its CPUs (hardware threads) if there are more active threads
    /// than cores: two threads of a core slow each other down. Rounded to whole ones, as the little that the kernel and we
    /// ourselves use is no reason to move anything.
    fn rooms(&mut self, topology: &Topology, cpus: &[u32], places: &[Place], seen: &[Seen]) -> Vec<Room> {
        let busy = |place: &Place| {
            let here = topology.cpus(place.node).iter().map(|c| c.0);
            self.busy.of(here.filter(|c| cpus.contains(c)))
        };
        let placed = || seen.iter().filter(|s| s.cpus == cpus && !s.pinned);
        let own = |node| -> f64 {
            let here = placed().flat_map(|s| &s.threads).filter(|t| t.node == node);
            here.map(|t| t.load).sum()
        };
        let others: Vec<f64> = places.iter().map(|p| (busy(p) - own(p.node)).max(0.0)).collect();
        // A thread that has just changed nodes makes one node look busy with other programs, but does not change the
        // sum.
        let all = places.iter().map(|p| busy(p) - own(p.node)).sum::<f64>().max(0.0);
        let each: f64 = others.iter().sum();
        let now = others
            .iter()
            .map(|o| o * all.min(each) / each.max(f64::MIN_POSITIVE));
        let decider = self.deciders.entry(cpus.to_vec()).or_default();
        let smoothed = &mut decider.others;
        smoothed.resize(places.len(), 0.0);
        smoothed
            .iter_mut()
            .zip(now)
            .for_each(|(old, now)| *old += RECENT * (now - *old));
        let rooms = |of: &dyn Fn(&Place) -> usize| -> Vec<Room> {
            let room = |(place, others): (&Place, &f64)| Room {
                node: place.node,
                cpus: (of(place) as f64 - others.round()).max(0.0),
            };
            places.iter().zip(smoothed.iter()).map(room).collect()
        };
        let cores = rooms(&|place| topology.cores_among(place.node, cpus));
        let active: usize = placed().map(|s| s.threads.len()).sum();
        let cpus = rooms(&|place| place.threads);
        decider.shares_cores = share_cores(active, &cores, decider.shares_cores);
        if decider.shares_cores { cpus } else { cores }
    }
}

/// Whether threads have to share cores: there are more than cores. Once they do, until a core of each node is left, so that
/// a thread more or less does not turn all assignments.
fn share_cores(active: usize, cores: &[Room], before: bool) -> bool {
    let spare = if before { cores.len() as f64 } else { 0.0 };
    active as f64 + spare > cores.iter().map(|r| r.cpus).sum()
}

fn threads(seen: &Seen) -> impl Iterator<Item = Thread> + '_ {
    seen.threads.iter().map(|t| Thread {
        process: seen.pid,
        number: t.tid,
        node: t.bound.unwrap_or(t.node),
        bound: t.bound,
        load: t.demand,
        accesses: t.accesses.clone(),
    })
}

/// The share of time for which each CPU was busy in the last interval.
#[derive(Default)]
struct BusyCpus {
    /// Busy and total ticks at the last look.
    last: HashMap<u32, (u64, u64)>,
    shares: HashMap<u32, f64>,
}

impl BusyCpus {
    fn look(&mut self, host: &Host) {
        let now = host.cpu_ticks();
        self.shares = now
            .iter()
            .filter_map(|(cpu, (busy, all))| {
                let (busy_before, all_before) = self.last.get(cpu)?;
                let passed = all.saturating_sub(*all_before);
                (passed > 0).then(|| (*cpu, busy.saturating_sub(*busy_before) as f64 / passed as f64))
            })
            .collect();
        self.last = now;
    }

    /// How many of these CPUs were busy.
    fn of(&self, cpus: impl Iterator<Item = u32>) -> f64 {
        cpus.filter_map(|cpu| self.shares.get(&cpu)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_machine::NodeId;

    #[test]
    fn threads_get_cores_of_their_own_as_long_as_there_are_any() {
        let room = |node| Room {
            node: NodeId(node),
            cpus: 4.0,
        };
        let cores = [room(0), room(1)];
        assert_eq!(
            [1, 8, 9, 16].map(|n| share_cores(n, &cores, false)),
            [false, false, true, true]
        );
        assert_eq!(
            [6, 7, 8].map(|n| share_cores(n, &cores, true)),
            [false, true, true]
        );
    }
}
