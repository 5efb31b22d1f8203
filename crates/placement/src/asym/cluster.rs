//! Step 1: threads that share data.

use super::{AsymError, Cluster, Place};
use nodewise_analysis::SharingMatrix;
use nodewise_machine::NodeId;
use nodewise_profile::ThreadId;
use std::collections::BTreeMap;
use std::ops::Range;

/// Two threads share data when what they share is at least this part of what either shares with its closest
/// partner: a page that everybody reads does not make one cluster of all.
const CLOSE: f64 = 0.1;

/// Much goes from a node's threads to another node when it is at least this part of all they access.
const MUCH: f64 = 0.1;

/// A thread, as far as clusters go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Crew {
    /// Whose it is.
    pub application: u32,
    /// Its number in the application.
    pub thread: u32,
    /// Accesses to other nodes than its own, a second.
    pub remote: f64,
}

/// A cluster's weight by its remote accesses a second: log(1 + C_rbw), which keeps large differences and plays
/// down small ones (AsymSched 4.2, step 1; the paper's log C_rbw has no value at none).
#[must_use]
pub fn weight(remote: f64) -> f64 {
    remote.max(0.0).ln_1p()
}

/// Clusters of a page profile: threads of one application that share pages, directly or through others.
/// `crew[i]` is thread i of the matrix. Where they are now and their memory is left to be filled in.
///
/// Clusters that fill less than a node share one with others of their application, so that as few nodes as
/// can be are begun. When threads do not fit, nodes take more of them than they have CPUs, all alike.
///
/// # Errors
/// One line: no node for threads, or more applications than nodes.
pub fn clusters_from_sharing(
    sharing: &SharingMatrix,
    crew: &[Crew],
    places: &[Place],
) -> Result<Vec<Cluster>, AsymError> {
    let count = crew.len().min(sharing.threads());
    let between = |a: usize, b: usize| {
        let same = a != b && crew[a].application == crew[b].application;
        same.then(|| sharing.between(ThreadId::from_index(a), ThreadId::from_index(b)) as f64)
            .unwrap_or(0.0)
    };
    let closest: Vec<f64> = (0..count)
        .map(|a| (0..count).map(|b| between(a, b)).fold(0.0, f64::max))
        .collect();
    let mut groups = Groups::new(count);
    for a in 0..count {
        for b in a + 1..count {
            let shared = between(a, b);
            if shared > 0.0 && shared >= CLOSE * closest[a].max(closest[b]) {
                groups.join(a, b);
            }
        }
    }
    formed(groups, &crew[..count], places)
}

/// Clusters of counters, which tell how often each thread's CPU accesses each node (`accesses[thread][node]`, a
/// second), with the paper's simplifying assumptions: (a) a thread may share data with any other of its
/// application on its node; (b) where much goes from a CPU to a node, its thread may share data with any thread
/// of its application there; and so may threads of two nodes that both access a third (Algorithm 1, line 1).
/// `nodes[thread]` is where it runs; remote accesses are taken from the counters.
///
/// # Errors
/// As for [`clusters_from_sharing`].
pub fn clusters_from_counters(
    crew: &[Crew],
    nodes: &[NodeId],
    accesses: &[Vec<f64>],
    places: &[Place],
) -> Result<Vec<Cluster>, AsymError> {
    let mut crew = crew.to_vec();
    // By application and node: a thread there, if any, and what its threads access.
    let mut of: BTreeMap<(u32, usize), Vec<f64>> = BTreeMap::new();
    for ((thread, node), row) in crew.iter_mut().zip(nodes).zip(accesses) {
        let away = row.iter().enumerate().filter(|(m, _)| *m != node.index());
        thread.remote = away.map(|(_, n)| n).sum();
        let sums = of.entry((thread.application, node.index())).or_default();
        sums.resize(sums.len().max(row.len()), 0.0);
        sums.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
    }
    let mut key: BTreeMap<(u32, usize), usize> = BTreeMap::new();
    let mut groups = Groups::new(crew.len());
    for (index, (thread, node)) in crew.iter().zip(nodes).enumerate() {
        let first = *key.entry((thread.application, node.index())).or_insert(index);
        groups.join(first, index);
    }
    for ((application, from), sums) in &of {
        let all: f64 = sums.iter().sum();
        let here = key[&(*application, *from)];
        for (to, sum) in sums.iter().enumerate() {
            if to != *from && *sum > 0.0 && *sum >= MUCH * all {
                let there = *key.entry((*application, to)).or_insert(here);
                groups.join(here, there);
            }
        }
    }
    formed(groups, &crew, places)
}

/// Sets that grow together.
struct Groups(Vec<usize>);

impl Groups {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn of(&mut self, mut one: usize) -> usize {
        while self.0[one] != one {
            self.0[one] = self.0[self.0[one]];
            one = self.0[one];
        }
        one
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.of(a), self.of(b));
        self.0[a.max(b)] = a.min(b);
    }
}

/// Clusters of groups of threads, as many threads a node as are needed for all to fit.
fn formed(mut groups: Groups, crew: &[Crew], places: &[Place]) -> Result<Vec<Cluster>, AsymError> {
    let mut by_group: BTreeMap<(u32, usize), Vec<usize>> = BTreeMap::new();
    for (index, thread) in crew.iter().enumerate() {
        by_group
            .entry((thread.application, groups.of(index)))
            .or_default()
            .push(index);
    }
    let groups: Vec<Vec<usize>> = by_group.into_values().collect();
    let nodes = places.iter().filter(|p| p.threads > 0).count();
    let fits = |per_node: &usize| {
        packed(&groups, crew, *per_node)
            .iter()
            .map(|b| b.nodes)
            .sum::<usize>()
            <= nodes
    };
    // Fewer nodes are needed the more threads each takes.
    let per_node = (usual(places)..=crew.len().max(usual(places)))
        .find(fits)
        .ok_or_else(|| none_fits(crew, nodes))?;
    Ok(packed(&groups, crew, per_node))
}

fn none_fits(crew: &[Crew], nodes: usize) -> AsymError {
    let mut applications: Vec<u32> = crew.iter().map(|t| t.application).collect();
    applications.sort_unstable();
    applications.dedup();
    let count = applications.len();
    AsymError(match nodes {
        0 => "no node is left for threads: all are forbidden or without CPUs; allow some (cpuset, --nodes)"
            .to_owned(),
        _ => format!(
            "{count} programs need a node each, but only {nodes} may be used; allow more nodes or run fewer"
        ),
    })
}

/// The number of threads that most nodes take; of equally frequent ones the largest.
fn usual(places: &[Place]) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    places
        .iter()
        .for_each(|p| *counts.entry(p.threads.max(1)).or_default() += 1);
    counts
        .into_iter()
        .max_by_key(|(threads, count)| (*count, *threads))
        .map_or(1, |(threads, _)| threads)
}

/// Groups of one application on as few nodes as first fit finds, the largest first.
fn packed(groups: &[Vec<usize>], crew: &[Crew], per_node: usize) -> Vec<Cluster> {
    let mut order: Vec<&Vec<usize>> = groups.iter().collect();
    order.sort_by_key(|g| std::cmp::Reverse(g.len()));
    let mut clusters: Vec<(Cluster, f64)> = Vec::new();
    for group in order {
        let application = crew[group[0]].application;
        let remote: f64 = group.iter().map(|t| crew[*t].remote).sum();
        let room = |(c, _): &&mut (Cluster, f64)| {
            c.application == application && c.threads.len() + group.len() <= c.nodes * per_node
        };
        let (cluster, sum) = match clusters.iter_mut().find(room) {
            Some(found) => found,
            None => {
                let nodes = group.len().div_ceil(per_node);
                clusters.push((
                    Cluster {
                        application,
                        nodes,
                        ..Cluster::default()
                    },
                    0.0,
                ));
                clusters.last_mut().expect("just pushed")
            }
        };
        cluster.threads.extend(group.iter().map(|t| crew[*t].thread));
        *sum += remote;
    }
    clusters.sort_by_key(|(c, _)| c.application);
    let done = |(mut cluster, remote): (Cluster, f64)| {
        cluster.threads.sort_unstable();
        cluster.weight = weight(remote);
        cluster
    };
    clusters.into_iter().map(done).collect()
}

impl Cluster {
    /// The threads of virtual node i, as positions in [`Cluster::threads`]: blocks that differ by one at most.
    #[must_use]
    pub fn aboard(&self, virtual_node: usize) -> Range<usize> {
        let (all, nodes) = (self.threads.len(), self.nodes.max(1));
        virtual_node * all / nodes..(virtual_node + 1) * all / nodes
    }
}
