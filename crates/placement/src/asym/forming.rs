//! From groups of threads to clusters: as few nodes as they fill, and which threads go on one together.

use super::cluster::{Crew, weight};
use super::{AsymError, Cluster, Place};
use nodewise_machine::NodeId;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// Sets that grow together.
pub(super) struct Groups(Vec<usize>);

impl Groups {
    pub fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn of(&mut self, mut one: usize) -> usize {
        while self.0[one] != one {
            self.0[one] = self.0[self.0[one]];
            one = self.0[one];
        }
        one
    }

    pub fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// Clusters of groups of threads, as many threads a node as are needed for all to fit. `on`: where they run.
pub(super) fn formed(
    mut groups: Groups,
    crew: &[Crew],
    on: Option<&[NodeId]>,
    places: &[Place],
) -> Result<Vec<Cluster>, AsymError> {
    let mut by_group: BTreeMap<(u32, usize), Vec<usize>> = BTreeMap::new();
    for (index, thread) in crew.iter().enumerate() {
        by_group
            .entry((thread.application, groups.of(index)))
            .or_default()
            .push(index);
    }
    let mut groups: Vec<(u32, Vec<usize>)> = by_group.into_iter().map(|((a, _), g)| (a, g)).collect();
    groups.sort_by_key(|(application, group)| (*application, Reverse(group.len())));
    let nodes = places.iter().filter(|p| p.threads > 0).count();
    let applications = groups.chunk_by(|a, b| a.0 == b.0).count();
    if applications > nodes {
        return Err(too_few(applications, nodes));
    }
    // Fewer nodes are needed the more threads each takes.
    let takes: Vec<usize> = (usual(places)..=crew.len().max(usual(places))).collect();
    let needed = |takes: usize| -> usize { packed(&groups, takes).iter().map(|c| c.nodes).sum() };
    let per_node = takes[takes.partition_point(|t| needed(*t) > nodes).min(takes.len() - 1)];
    let clusters = packed(&groups, per_node).into_iter();
    Ok(clusters.map(|c| c.boarded(crew, on, per_node)).collect())
}

fn too_few(applications: usize, nodes: usize) -> AsymError {
    AsymError(match nodes {
        0 => "no node is left for threads: all are forbidden or without CPUs; allow some (cpuset, --nodes)"
            .to_owned(),
        _ => format!(
            "{applications} programs need a node each, but only {nodes} may be used; allow more nodes or run \
             fewer"
        ),
    })
}

/// The number of threads that most nodes take; of equally frequent ones the largest.
fn usual(places: &[Place]) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    let takers = places.iter().filter(|p| p.threads > 0);
    takers.for_each(|p| *counts.entry(p.threads).or_default() += 1);
    counts
        .into_iter()
        .max_by_key(|(threads, count)| (*count, *threads))
        .map_or(1, |(threads, _)| threads)
}

/// Threads of one application on so many nodes, by their positions in the crew.
struct Pack {
    application: u32,
    nodes: usize,
    threads: Vec<usize>,
}

/// Groups of one application on as few nodes as first fit finds, the largest first.
fn packed(groups: &[(u32, Vec<usize>)], per_node: usize) -> Vec<Pack> {
    let mut packs: Vec<Pack> = Vec::new();
    for (application, group) in groups {
        let room = |p: &&mut Pack| {
            p.application == *application && p.threads.len() + group.len() <= p.nodes * per_node
        };
        match packs.iter_mut().find(room) {
            Some(pack) => pack.threads.extend(group),
            None => packs.push(Pack {
                application: *application,
                nodes: group.len().div_ceil(per_node),
                threads: group.clone(),
            }),
        }
    }
    packs
}

impl Pack {
    /// As a cluster, its threads on virtual nodes.
    fn boarded(self, crew: &[Crew], on: Option<&[NodeId]>, per_node: usize) -> Cluster {
        let remote: f64 = self.threads.iter().map(|t| crew[*t].remote).sum();
        let mut cluster = Cluster {
            application: self.application,
            nodes: self.nodes,
            weight: weight(remote),
            ..Cluster::default()
        };
        let mut aboard = self.threads;
        if let Some(on) = on {
            let virtual_nodes = gathered(&aboard, on, self.nodes, per_node);
            cluster.ends = ends(&virtual_nodes);
            cluster.at = virtual_nodes.iter().map(|threads| most(threads, on)).collect();
            aboard = virtual_nodes.concat();
            cluster.on = aboard.iter().map(|t| on[*t]).collect();
        }
        cluster.threads = aboard.iter().map(|t| crew[*t].thread).collect();
        cluster
    }
}

/// Threads by virtual node: those of a node stay together, on the nodes that have most of them; as many as a node
/// takes, and the others where most room is.
fn gathered(threads: &[usize], on: &[NodeId], count: usize, per_node: usize) -> Vec<Vec<usize>> {
    let mut by_node: BTreeMap<NodeId, Vec<usize>> = BTreeMap::new();
    threads
        .iter()
        .for_each(|t| by_node.entry(on[*t]).or_default().push(*t));
    let mut homes: Vec<Vec<usize>> = by_node.into_values().collect();
    homes.sort_by_key(|threads| Reverse(threads.len()));
    homes.resize(homes.len().max(count), Vec::new());
    let mut stragglers = homes.split_off(count).concat();
    for threads in &mut homes {
        stragglers.extend(threads.drain(threads.len().min(per_node)..));
    }
    for thread in stragglers {
        let roomiest = homes.iter_mut().min_by_key(|h| h.len());
        roomiest.expect("a cluster has a node").push(thread);
    }
    homes
}

fn ends(virtual_nodes: &[Vec<usize>]) -> Vec<usize> {
    let sum = |sum: &mut usize, threads: &Vec<usize>| {
        *sum += threads.len();
        Some(*sum)
    };
    virtual_nodes.iter().scan(0, sum).collect()
}

/// The node that most of them run on.
fn most(threads: &[usize], on: &[NodeId]) -> NodeId {
    let mut counts: BTreeMap<NodeId, usize> = BTreeMap::new();
    threads
        .iter()
        .for_each(|t| *counts.entry(on[*t]).or_default() += 1);
    let most = counts
        .into_iter()
        .max_by_key(|(node, count)| (*count, Reverse(*node)));
    most.expect("a virtual node has threads").0
}

impl Cluster {
    /// The threads of virtual node i, as positions in [`Cluster::threads`].
    #[must_use]
    pub fn aboard(&self, virtual_node: usize) -> Range<usize> {
        let (all, nodes) = (self.threads.len(), self.nodes.max(1));
        let end = |v: usize| self.ends.get(v).copied().unwrap_or((v + 1) * all / nodes);
        virtual_node.checked_sub(1).map_or(0, end)..end(virtual_node)
    }
}
