//! The nodes where the threads of running processes belong, as far as a few hundred pages and the kernel tell.
//!
//! The start of a balancer takes a burst of CPU time, for which the kernel may have pushed threads away from their
//! memory before any sample has arrived.

use super::view::Seen;
use crate::topology::Topology;
use nodewise_linux::process::{BalancedThread, Task};
use nodewise_linux::{Host, pages};
use nodewise_machine::NodeId;
use nodewise_profile::BASE_PAGE_SIZE;
use std::collections::{BTreeMap, BTreeSet};

/// How many pages of a process are looked up, evenly spaced over its writable memory.
const LOOKED_UP: u64 = 512;
/// How many of these must be in memory for a judgement.
const ENOUGH: usize = 64;
/// The share of these that must be on one node. The kernel may be moving memory to or from a node; threads that share it are
/// better off together on either than apart, and threads of which it is not known are assumed to share it, as in
/// [`nodewise_control::groups`].
const MOST: f64 = 2.0 / 3.0;
/// The same where the kernel has seen that they share memory.
const MOST_OF_A_GROUP: f64 = 0.6;
/// The same where the kernel has seen them share memory with others than each other.
const NEARLY_ALL: f64 = 0.95;
/// Threads with less CPU time than this share of the process's busiest thread's do not count.
const WORKED: f64 = 0.25;
/// Largest number of threads of a process whose preferred nodes are queried.
const MOST_ASKED: usize = 256;

/// The node of each thread of these processes that may be bound, by process. It is the node of most of
/// the process's memory, if there is one; else the node that the kernel's balancing prefers for the thread; else the
/// thread's current one. The threads of a process stay where they are if its active threads would not have a core each.
pub fn belonging<'a>(
    host: &Host,
    topology: &Topology,
    running: &'a [Seen],
) -> Vec<(&'a Seen, Vec<(u32, NodeId)>)> {
    let mut taken: BTreeMap<NodeId, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for one in running.iter().filter(|s| !s.pinned) {
        let tasks = host.tasks(one.pid).unwrap_or_default();
        let working = at_work(&tasks);
        // Memory may be on nodes without CPUs.
        let usable = |n: &NodeId| one.nodes.contains(n) && !topology.cpus_among(*n, &one.cpus).is_empty();
        let most = home(host, topology, one.pid).filter(|(node, _)| usable(node));
        // The kernel is asked once for each thread, and not where memory alone decides.
        let asks = tasks.len() <= MOST_ASKED && most.is_none_or(|(_, share)| share < NEARLY_ALL);
        let asked = tasks.iter().filter(|_| asks);
        let known: BTreeMap<u32, BalancedThread> = asked
            .map(|t| (t.tid, host.balanced_thread(one.pid, t.tid)))
            .collect();
        let groups = working.iter().map(|tid| known.get(tid)?.group);
        let least = least(groups);
        let home = most.filter(|(_, share)| *share >= least).map(|(node, _)| node);
        let node = |task: &Task| {
            let preferred = || topology.node(known.get(&task.tid)?.preferred?).filter(usable);
            let to = home.or_else(preferred);
            Some((task.tid, to.or_else(|| topology.node_of_cpu(task.cpu))?))
        };
        let with = |nodes: &[(u32, NodeId)]| {
            let mut with = taken.clone();
            for (_, node) in nodes.iter().filter(|(tid, _)| working.contains(tid)) {
                *with.entry(*node).or_default() += 1;
            }
            with
        };
        let fits =
            |(node, threads): (&NodeId, &usize)| *threads <= topology.cores_among(*node, &one.cpus).max(1);
        let mut nodes: Vec<(u32, NodeId)> = tasks.iter().filter_map(node).collect();
        if !with(&nodes).iter().all(fits) {
            let here = |task: &Task| Some((task.tid, topology.node_of_cpu(task.cpu)?));
            nodes = tasks.iter().filter_map(here).collect();
        }
        taken = with(&nodes);
        found.push((one, nodes));
    }
    found
}

/// The share of a process's memory that has to be on one node, by the kernel's groups of its threads.
fn least(groups: impl Iterator<Item = Option<u32>>) -> f64 {
    let groups: BTreeSet<Option<u32>> = groups.collect();
    match (groups.len(), groups.contains(&None)) {
        (1, false) => MOST_OF_A_GROUP,
        (0..=2, true) => MOST,
        _ => NEARLY_ALL,
    }
}

/// The node that holds most of the sampled pages of a process, and its share of them, if there are enough.
fn home(host: &Host, topology: &Topology, pid: u32) -> Option<(NodeId, f64)> {
    let areas = host.maps(pid).ok()?;
    let own: Vec<(u64, u64)> = areas
        .iter()
        .filter(|a| a.permissions.contains('w') && !a.name.starts_with("[v"))
        .map(|a| (a.start, a.end))
        .collect();
    let statuses = pages::query(pid, &evenly(&own)).ok()?;
    let nodes: Vec<NodeId> = statuses.iter().filter_map(|s| topology.node(s.node()?)).collect();
    let on = |node: NodeId| nodes.iter().filter(|n| **n == node).count();
    let most = nodes.iter().copied().max_by_key(|node| on(*node))?;
    (nodes.len() >= ENOUGH).then(|| (most, on(most) as f64 / nodes.len() as f64))
}

/// Addresses of pages at equal distances over these areas; fewer than twice [`LOOKED_UP`].
fn evenly(areas: &[(u64, u64)]) -> Vec<u64> {
    let pages: u64 = areas
        .iter()
        .map(|(start, end)| (end - start) / BASE_PAGE_SIZE)
        .sum();
    let step = (pages / LOOKED_UP).max(1) * BASE_PAGE_SIZE;
    let mut found = Vec::new();
    let mut next = 0; // bytes of the next area before its first address
    for (start, end) in areas {
        let mut at = start + next;
        while at < *end {
            found.push(at);
            at += step;
        }
        next = at - end;
    }
    found
}

/// The threads that have used a notable share of CPU time; see [`WORKED`].
fn at_work(tasks: &[Task]) -> BTreeSet<u32> {
    let had = |task: &Task| (task.cpu_ns + task.waited_ns) as f64;
    let most = tasks.iter().map(had).fold(0.0, f64::max);
    let worked = tasks.iter().filter(|t| had(t) >= WORKED * most);
    worked.map(|t| t.tid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_taken_evenly_across_the_borders_of_areas() {
        let page = BASE_PAGE_SIZE;
        let areas = [(10 * page, 11 * page), (20 * page, 2067 * page)];
        let found = evenly(&areas);
        assert_eq!(found.len(), 512);
        assert_eq!((found[0], found[1], found[2]), (10 * page, 23 * page, 27 * page));
        assert!(
            found
                .iter()
                .all(|at| areas.iter().any(|a| (a.0..a.1).contains(at)))
        );
        assert_eq!(evenly(&[(page, 4 * page)]), [page, 2 * page, 3 * page]);
        assert!(evenly(&[]).is_empty());
    }

    #[test]
    fn how_much_memory_has_to_be_on_a_node_depends_on_what_is_known_of_sharing() {
        let least = |groups: &[Option<u32>]| least(groups.iter().copied());
        assert_eq!(least(&[Some(7), Some(7)]), MOST_OF_A_GROUP);
        assert_eq!([least(&[Some(7), None]), least(&[None, None])], [MOST; 2]);
        assert_eq!(
            [least(&[Some(7), Some(8)]), least(&[Some(7), Some(8), None])],
            [NEARLY_ALL; 2]
        );
    }

    #[test]
    fn idle_threads_need_no_core() {
        let task = |tid, cpu_ns| Task {
            tid,
            name: String::new(),
            cpu: 0,
            cpu_ns,
            waited_ns: 0,
        };
        let tasks = [task(1, 1000), task(2, 300), task(3, 20), task(4, 0)];
        assert_eq!(at_work(&tasks), BTreeSet::from([1, 2]));
        assert_eq!(at_work(&[]), BTreeSet::new());
    }
}
