//! The search for an assignment of threads to nodes: few accesses stay remote, little memory has to follow, and no node
//! is overfull.

use super::sharing::Sharing;
use nodewise_machine::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// Cost of an access that is remote until memory has followed, relative to one that stays remote.
const TRANSIENT_WEIGHT: f64 = 0.25;
/// Cost of a thread's change of nodes; it keeps threads in place where alternatives are equal.
const INERTIA: f64 = 0.01;
/// Largest number of exchanges of two threads that a search tries; with very many threads that is only some of the
/// pairs.
const TRIES: usize = 400_000;
/// Largest number of passes of a search; it usually ends after a few.
const PASSES: usize = 32;
/// Share of two threads' accesses below which they count as sharing nothing.
const NOTHING: f64 = 0.002;
/// Smallest improvement that counts.
const LEAST: f64 = 1e-9;

/// A node and its capacity for threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// Number of the node in its machine.
    pub node: NodeId,
    /// Number of CPUs that are free for the threads to be placed.
    pub cpus: f64,
}

/// An active thread that may be bound to a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// Identifier of its process.
    pub process: u32,
    /// Its number, unique among the threads of all processes.
    pub number: u32,
    /// The node that it runs on.
    pub node: NodeId,
    /// The node that we have bound it to.
    pub bound: Option<NodeId>,
    /// Share of a CPU that it would use if it never had to wait for one, 0 to 1.
    pub load: f64,
    /// Its recent samples, by node of the page.
    pub accesses: Vec<f64>,
}

/// Remote shares of an assignment, over some of the threads, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Remote {
    /// With memory where it is now.
    pub remote_now: f64,
    /// Once memory has followed its users.
    pub remote_later: f64,
}

/// The cost function of assignments.
pub(super) struct Cost<'a> {
    pub threads: &'a [Thread],
    /// Each thread's share of the work; they sum to 1.
    weights: Vec<f64>,
    /// For each thread, those that it shares memory with, and the accesses that stay remote if the two are on different
    /// nodes.
    shared: Vec<Vec<(usize, f64)>>,
}

impl<'a> Cost<'a> {
    pub fn new(threads: &'a [Thread], sharing: &Sharing) -> Self {
        let work: f64 = threads.iter().map(|t| t.load).sum();
        let weights: Vec<f64> = threads
            .iter()
            .map(|t| t.load / work.max(f64::MIN_POSITIVE))
            .collect();
        let mut processes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, thread) in threads.iter().enumerate() {
            processes.entry(thread.process).or_default().push(index);
        }
        let mut shared = vec![Vec::new(); threads.len()];
        for own in processes.values() {
            let share = |a: usize, b: usize| {
                weights[a] * sharing.share(threads[a].number, threads[b].number, own.len())
            };
            for (i, a) in own.iter().enumerate() {
                for b in &own[i + 1..] {
                    let both = share(*a, *b) + share(*b, *a);
                    if both > NOTHING * (weights[*a] + weights[*b]) {
                        shared[*a].push((*b, both));
                        shared[*b].push((*a, both));
                    }
                }
            }
        }
        Self {
            threads,
            weights,
            shared,
        }
    }

    /// The current node of each thread.
    pub fn current(&self) -> Vec<NodeId> {
        self.threads.iter().map(|t| t.node).collect()
    }

    pub fn remote_now(&self, nodes: &[NodeId]) -> f64 {
        self.of(nodes, |_| true).remote_now
    }

    pub fn remote_later(&self, nodes: &[NodeId]) -> f64 {
        self.of(nodes, |_| true).remote_later
    }

    /// The remote shares over the accesses of the threads for which `which` holds.
    pub fn of(&self, nodes: &[NodeId], which: impl Fn(&Thread) -> bool) -> Remote {
        let own = || (0..nodes.len()).filter(|t| which(&self.threads[*t]));
        let work: f64 = own().map(|t| self.weights[t]).sum();
        let part = |sum: f64| if work > 0.0 { sum / work } else { 0.0 };
        Remote {
            remote_now: part(own().map(|t| self.away(t, nodes[t])).sum()),
            remote_later: part(own().map(|t| self.split(t, nodes[t], nodes)).sum::<f64>() / 2.0),
        }
    }

    /// The share of all accesses that this thread makes to memory which is now on other nodes than `node`.
    fn away(&self, thread: usize, node: NodeId) -> f64 {
        let accesses = &self.threads[thread].accesses;
        let all: f64 = accesses.iter().sum();
        let here = accesses.get(node.index()).copied().unwrap_or(0.0);
        if all > 0.0 {
            self.weights[thread] * (1.0 - here / all)
        } else {
            0.0
        }
    }

    /// The share of all accesses that stay remote because threads that share memory with this one are on other nodes.
    fn split(&self, thread: usize, node: NodeId, nodes: &[NodeId]) -> f64 {
        let apart = self.shared[thread]
            .iter()
            .filter(|(other, _)| nodes[*other] != node);
        apart.map(|(_, share)| share).sum()
    }

    /// The cost of a thread on a node, with the other threads where they are.
    fn at(&self, thread: usize, node: NodeId, nodes: &[NodeId]) -> f64 {
        let moved = if self.threads[thread].node == node {
            0.0
        } else {
            INERTIA * self.weights[thread]
        };
        self.split(thread, node, nodes) + TRANSIENT_WEIGHT * self.away(thread, node) + moved
    }

    fn all(&self, nodes: &[NodeId]) -> f64 {
        let each = |t: usize| self.at(t, nodes[t], nodes) - self.split(t, nodes[t], nodes) / 2.0;
        (0..nodes.len()).map(each).sum()
    }

    fn between(&self, a: usize, b: usize) -> f64 {
        let found = self.shared[a].iter().find(|(other, _)| *other == b);
        found.map_or(0.0, |(_, share)| *share)
    }
}

/// The load and the capacity of each node.
struct Load {
    demand: Vec<f64>,
    most: Vec<f64>,
    taken: Vec<f64>,
    open: Vec<NodeId>,
}

impl Load {
    /// As long as there are enough CPUs, a thread takes one; with more threads than CPUs, it takes its demand, and each
    /// node's capacity is scaled to its part of the work.
    fn new(threads: &[Thread], rooms: &[Room]) -> Self {
        let cpus: f64 = rooms.iter().map(|r| r.cpus).sum();
        let enough = threads.len() as f64 <= cpus;
        let demand: Vec<f64> = threads
            .iter()
            .map(|t| if enough { 1.0 } else { t.load.max(0.1) })
            .collect();
        let largest = demand.iter().copied().fold(0.0, f64::max);
        let scale = if enough {
            1.0
        } else {
            (demand.iter().sum::<f64>() / cpus).max(1.0)
        };
        let used = rooms.iter().map(|r| r.node).chain(threads.iter().map(|t| t.node));
        let nodes = used.map(|node| node.index() + 1).max().unwrap_or(0);
        let mut most = vec![0.0; nodes];
        for room in rooms {
            // Work is not divisible at will: with more threads than CPUs, an excess of half a thread is no imbalance.
            most[room.node.index()] = room.cpus * scale + if enough { 0.0 } else { largest / 2.0 };
        }
        Self {
            demand,
            most,
            taken: vec![0.0; nodes],
            open: rooms.iter().map(|r| r.node).collect(),
        }
    }

    /// The load with each thread on its node.
    fn of(threads: &[Thread], rooms: &[Room], nodes: &[NodeId]) -> Self {
        let mut load = Self::new(threads, rooms);
        nodes
            .iter()
            .enumerate()
            .for_each(|(thread, node)| load.put(thread, *node));
        load
    }

    /// Whether no node is overfull.
    fn is_possible(&self) -> bool {
        self.taken
            .iter()
            .zip(&self.most)
            .all(|(taken, most)| *taken <= most + LEAST)
    }

    fn fits(&self, thread: usize, node: NodeId, without: f64) -> bool {
        self.taken[node.index()] - without + self.demand[thread] <= self.most[node.index()] + LEAST
    }

    fn put(&mut self, thread: usize, node: NodeId) {
        self.taken[node.index()] += self.demand[thread];
    }

    fn take(&mut self, thread: usize, node: NodeId) {
        self.taken[node.index()] -= self.demand[thread];
    }

    fn roomiest(&self) -> Option<NodeId> {
        let left = |n: &NodeId| self.most[n.index()] - self.taken[n.index()];
        self.open
            .iter()
            .copied()
            .max_by(|a, b| left(a).total_cmp(&left(b)))
    }
}

/// Nodes that exceed their capacity by at least one thread while another node has room for one, with each thread on its
/// node.
pub(super) fn overfull(threads: &[Thread], rooms: &[Room], nodes: &[NodeId]) -> BTreeSet<NodeId> {
    let load = Load::of(threads, rooms, nodes);
    let excess = |n: &NodeId| load.taken[n.index()] - load.most[n.index()];
    let room = load.open.iter().any(|n| excess(n) <= LEAST - 1.0);
    let full = load.open.iter().filter(|n| excess(n) >= 1.0 - LEAST);
    if room {
        full.copied().collect()
    } else {
        BTreeSet::new()
    }
}

/// The best assignment found; nodes in the order of the threads. Two searches, from the threads' current nodes and from
/// an empty machine, are improved by moves and exchanges. None if there are no nodes or no threads.
#[must_use]
pub(super) fn assign(cost: &Cost<'_>, rooms: &[Room]) -> Option<Vec<NodeId>> {
    let threads = cost.threads;
    if threads.is_empty() || rooms.is_empty() {
        return None;
    }
    let mut stay: Vec<usize> = (0..threads.len()).collect();
    // Threads that would lose most by staying are placed last, so that they yield where a node is overfull.
    stay.sort_by(|a, b| {
        cost.away(*a, threads[*a].node)
            .total_cmp(&cost.away(*b, threads[*b].node))
    });
    let starts = [
        start(cost, rooms, &stay, |t| Some(threads[t].node)),
        start(cost, rooms, &by_closeness(cost), |_| None),
    ];
    let ends = starts
        .into_iter()
        .map(|(nodes, load)| improve_sets(cost, improve(cost, nodes, load), rooms));
    ends.min_by(|a, b| cost.all(a).total_cmp(&cost.all(b)))
}

/// Places threads one after the other on the wanted node, or on the cheapest one with room.
fn start(
    cost: &Cost<'_>,
    rooms: &[Room],
    order: &[usize],
    wanted: impl Fn(usize) -> Option<NodeId>,
) -> (Vec<NodeId>, Load) {
    let mut load = Load::new(cost.threads, rooms);
    let mut nodes = vec![None; cost.threads.len()];
    for &thread in order {
        let open = |n: &NodeId| load.open.contains(n) && load.fits(thread, *n, 0.0);
        let to = wanted(thread)
            .filter(open)
            .or_else(|| cheapest(cost, thread, &nodes, &load))
            .or_else(|| load.roomiest())
            .unwrap_or_default();
        load.put(thread, to);
        nodes[thread] = Some(to);
    }
    (nodes.into_iter().map(Option::unwrap_or_default).collect(), load)
}

/// The cheapest node with room, given the threads that are already placed.
fn cheapest(cost: &Cost<'_>, thread: usize, nodes: &[Option<NodeId>], load: &Load) -> Option<NodeId> {
    let at = |node: NodeId| {
        let apart = cost.shared[thread]
            .iter()
            .filter(|(o, _)| nodes[*o].is_some_and(|n| n != node));
        apart.map(|(_, s)| s).sum::<f64>() + TRANSIENT_WEIGHT * cost.away(thread, node)
    };
    let open = load.open.iter().copied().filter(|n| load.fits(thread, *n, 0.0));
    open.min_by(|a, b| at(*a).total_cmp(&at(*b)))
}

/// Orders threads so that each one shares as much as possible with the one before it.
fn by_closeness(cost: &Cost<'_>) -> Vec<usize> {
    let count = cost.threads.len();
    let (mut order, mut near) = (Vec::with_capacity(count), vec![0.0_f64; count]);
    let mut left = vec![true; count];
    for _ in 0..count {
        let next = (0..count).filter(|t| left[*t]).max_by(|a, b| {
            let work = |t: usize| cost.weights[t];
            near[*a].total_cmp(&near[*b]).then(work(*a).total_cmp(&work(*b)))
        });
        let Some(next) = next else { break };
        left[next] = false;
        order.push(next);
        cost.shared[next]
            .iter()
            .for_each(|(other, share)| near[*other] += share);
    }
    order
}

/// Moves and exchanges threads as long as the cost falls.
fn improve(cost: &Cost<'_>, mut nodes: Vec<NodeId>, mut load: Load) -> Vec<NodeId> {
    let mut tries = 0;
    for _ in 0..PASSES {
        let mut better = false;
        for thread in 0..nodes.len() {
            better |= moved(cost, thread, &mut nodes, &mut load);
            for other in 0..nodes.len() {
                tries += 1;
                if tries > TRIES {
                    return nodes;
                }
                better |= other != thread && exchanged(cost, (thread, other), &mut nodes, &mut load);
            }
        }
        if !better {
            break;
        }
    }
    nodes
}

/// Moves whole sets of threads that share memory and are on one node: to a node with room, or in exchange for a set of
/// another node, as long as the cost falls. Moving them one by one would first separate them, at a higher cost.
fn improve_sets(cost: &Cost<'_>, mut nodes: Vec<NodeId>, rooms: &[Room]) -> Vec<NodeId> {
    let sets = together(cost, &nodes);
    let mut tries = TRIES / (nodes.len() + 1);
    let mut now = cost.all(&nodes);
    for (i, set) in sets.iter().enumerate() {
        let targets = rooms.iter().map(|r| (r.node, None));
        let others = sets[i + 1..].iter().map(|other| (nodes[other[0]], Some(other)));
        for (to, other) in targets.chain(others).collect::<Vec<_>>() {
            let from = nodes[set[0]];
            if from == to || tries == 0 {
                continue;
            }
            tries -= 1;
            let mut then = nodes.clone();
            set.iter().for_each(|t| then[*t] = to);
            other.into_iter().flatten().for_each(|t| then[*t] = from);
            let cheaper = cost.all(&then);
            if cheaper < now - LEAST && Load::of(cost.threads, rooms, &then).is_possible() {
                (nodes, now) = (then, cheaper);
            }
        }
    }
    nodes
}

/// The sets of threads on each node that share memory, directly or through other threads.
fn together(cost: &Cost<'_>, nodes: &[NodeId]) -> Vec<Vec<usize>> {
    let mut sets = Vec::new();
    let mut left = vec![true; nodes.len()];
    for first in 0..nodes.len() {
        let mut set = Vec::new();
        let mut next = vec![first];
        while let Some(thread) = next.pop() {
            if std::mem::replace(&mut left[thread], false) {
                set.push(thread);
                let here = cost.shared[thread].iter().map(|(other, _)| *other);
                next.extend(here.filter(|other| nodes[*other] == nodes[first]));
            }
        }
        if !set.is_empty() {
            sets.push(set);
        }
    }
    sets
}

/// Moves a thread to the cheapest node with room. Returns whether that lowers the cost; otherwise nothing changes.
fn moved(cost: &Cost<'_>, thread: usize, nodes: &mut [NodeId], load: &mut Load) -> bool {
    let from = nodes[thread];
    let now = cost.at(thread, from, nodes);
    let open = load
        .open
        .iter()
        .copied()
        .filter(|n| *n != from && load.fits(thread, *n, 0.0));
    let ranked = open.map(|n| (cost.at(thread, n, nodes), n));
    let best = ranked
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(then, _)| *then < now - LEAST);
    let Some((_, to)) = best else { return false };
    load.take(thread, from);
    load.put(thread, to);
    nodes[thread] = to;
    true
}

/// Exchanges two threads' nodes. Returns whether that lowers the cost; otherwise nothing changes.
fn exchanged(cost: &Cost<'_>, (a, b): (usize, usize), nodes: &mut [NodeId], load: &mut Load) -> bool {
    let (from, to) = (nodes[a], nodes[b]);
    if from == to || !load.fits(a, to, load.demand[b]) || !load.fits(b, from, load.demand[a]) {
        return false;
    }
    let now = cost.at(a, from, nodes) + cost.at(b, to, nodes);
    // Each cost assumes that the other thread stays, which would count their shared accesses as local afterwards.
    let then = cost.at(a, to, nodes) + cost.at(b, from, nodes) + 2.0 * cost.between(a, b);
    if then >= now - LEAST {
        return false;
    }
    load.take(a, from);
    load.take(b, to);
    load.put(a, to);
    load.put(b, from);
    nodes.swap(a, b);
    true
}
