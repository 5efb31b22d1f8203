//! Packs groups of threads into clusters of as few nodes as possible, and threads onto virtual nodes.

use super::traffic::{ThreadTraffic, weight};
use super::{AsymError, Cluster, Place};
use nodewise_machine::NodeId;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

/// A union-find structure over threads.
pub(super) struct DisjointSets(Vec<usize>);

impl DisjointSets {
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

/// Packs groups into clusters with the least number of threads per node for which all clusters fit. `on`: the node of
/// each thread now, if known.
pub(super) fn pack_clusters(
    mut groups: DisjointSets,
    traffic: &[ThreadTraffic],
    on: Option<&[NodeId]>,
    places: &[Place],
) -> Result<Vec<Cluster>, AsymError> {
    let mut by_group: BTreeMap<(u32, usize), Vec<usize>> = BTreeMap::new();
    for (index, thread) in traffic.iter().enumerate() {
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
    // The more threads a node takes, the fewer nodes are needed.
    let takes: Vec<usize> =
        (typical_capacity(places)..=traffic.len().max(typical_capacity(places))).collect();
    let needed = |takes: usize| -> usize { first_fit(&groups, takes).iter().map(|c| c.nodes).sum() };
    let per_node = takes[takes.partition_point(|t| needed(*t) > nodes).min(takes.len() - 1)];
    let clusters = first_fit(&groups, per_node).into_iter();
    Ok(clusters.map(|c| c.into_cluster(traffic, on, per_node)).collect())
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

/// The most frequent capacity of nodes in threads; of equally frequent ones the largest.
fn typical_capacity(places: &[Place]) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    let takers = places.iter().filter(|p| p.threads > 0);
    takers.for_each(|p| *counts.entry(p.threads).or_default() += 1);
    counts
        .into_iter()
        .max_by_key(|(threads, count)| (*count, *threads))
        .map_or(1, |(threads, _)| threads)
}

/// A cluster under construction: threads of one application, as indices into the thread list, and its node count.
struct ClusterDraft {
    application: u32,
    nodes: usize,
    threads: Vec<usize>,
}

/// First-fit packing of each application's groups, which are ordered by descending size.
fn first_fit(groups: &[(u32, Vec<usize>)], per_node: usize) -> Vec<ClusterDraft> {
    let mut packs: Vec<ClusterDraft> = Vec::new();
    for (application, group) in groups {
        let room = |p: &&mut ClusterDraft| {
            p.application == *application && p.threads.len() + group.len() <= p.nodes * per_node
        };
        match packs.iter_mut().find(room) {
            Some(pack) => pack.threads.extend(group),
            None => packs.push(ClusterDraft {
                application: *application,
                nodes: group.len().div_ceil(per_node),
                threads: group.clone(),
            }),
        }
    }
    packs
}

impl ClusterDraft {
    /// The finished cluster, its threads distributed over virtual nodes.
    fn into_cluster(self, traffic: &[ThreadTraffic], on: Option<&[NodeId]>, per_node: usize) -> Cluster {
        let remote: f64 = self.threads.iter().map(|t| traffic[*t].remote).sum();
        let mut cluster = Cluster {
            application: self.application,
            nodes: self.nodes,
            weight: weight(remote),
            ..Cluster::default()
        };
        let mut ordered = self.threads;
        if let Some(on) = on {
            let virtual_nodes = by_virtual_node(&ordered, on, self.nodes, per_node);
            cluster.ends = ends(&virtual_nodes);
            cluster.at = virtual_nodes
                .iter()
                .map(|threads| majority_node(threads, on))
                .collect();
            ordered = virtual_nodes.concat();
            cluster.on = ordered.iter().map(|t| on[*t]).collect();
        }
        cluster.threads = ordered.iter().map(|t| traffic[*t].thread).collect();
        cluster
    }
}

/// Distributes threads over `count` virtual nodes: threads of one node stay together, on the nodes with most of them,
/// up to `per_node`; the others go to the least filled virtual nodes.
fn by_virtual_node(threads: &[usize], on: &[NodeId], count: usize, per_node: usize) -> Vec<Vec<usize>> {
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

/// The node on which most of these threads run.
fn majority_node(threads: &[usize], on: &[NodeId]) -> NodeId {
    let mut counts: BTreeMap<NodeId, usize> = BTreeMap::new();
    threads
        .iter()
        .for_each(|t| *counts.entry(on[*t]).or_default() += 1);
    let majority_node = counts
        .into_iter()
        .max_by_key(|(node, count)| (*count, Reverse(*node)));
    majority_node.expect("a virtual node has threads").0
}

impl Cluster {
    /// The threads of virtual node i, as positions in [`Cluster::threads`].
    #[must_use]
    pub fn threads_of(&self, virtual_node: usize) -> Range<usize> {
        let (all, nodes) = (self.threads.len(), self.nodes.max(1));
        let end = |v: usize| self.ends.get(v).copied().unwrap_or((v + 1) * all / nodes);
        virtual_node.checked_sub(1).map_or(0, end)..end(virtual_node)
    }
}
