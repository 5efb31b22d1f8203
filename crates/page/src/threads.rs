//! The sharing graph of threads, with the placement of the report's baseline and a sharing-aware one.

use crate::sums::{Pages, homes, narrowed};
use crate::traffic::{Matrix, local_fraction, matrices};
use nodewise_analysis::{Affinity, Entry};
use nodewise_placement::{Mapping, SharingGraph};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// Largest number of groups shown; if there are more threads, neighbours form groups.
const MAX_GROUPS: usize = 128;
/// Two groups belong together if they share at least this part of what either of them shares with its closest partner
/// (as [`nodewise_placement::asym::clusters_from_sharing`] decides for threads).
const MIN_RELATIVE_SHARING: f64 = 0.1;

#[derive(Serialize)]
struct Document {
    groups: Vec<Group>,
    sharing: Vec<Vec<f64>>,
    in_order: Option<Assignment>,
    before: Placing,
    after: Placing,
}

#[derive(Serialize)]
struct Group {
    threads: Vec<u32>,
    label: String,
}

/// Groups of threads on nodes.
#[derive(Serialize)]
struct Assignment {
    affinity: String,
    nodes: Vec<u32>,
    clusters: Vec<Vec<usize>>,
}

#[derive(Serialize)]
struct Placing {
    #[serde(flatten)]
    assignment: Assignment,
    policy: String,
    accesses: Matrix,
    local_fraction: f64,
    /// For samples: the interval of the local share of accesses.
    local_range: Option<[f64; 2]>,
}

/// A placement of threads and pages.
#[derive(Clone, Debug)]
pub struct Placement {
    /// The CPU and node of each thread.
    pub affinity: Affinity,
    /// The node of each page.
    pub mapping: Mapping,
}

/// The placements that the view of threads compares.
#[derive(Clone, Debug)]
pub struct Placements {
    /// The threads in order of their numbers, if the report itself assumes threads that are placed by sharing.
    pub in_order: Option<Affinity>,
    /// The baseline of the report, so that its figures are those of the overview.
    pub before: Placement,
    /// Threads placed by sharing, with the recommended policy.
    pub after: Placement,
}

/// Makes `threads.json`. `numbers` are the threads' numbers for people; `range` returns the interval of a share of
/// accesses for a share of samples.
#[must_use]
pub fn document(
    pages: &Pages,
    numbers: &[u32],
    compared: &Placements,
    range: impl Fn(f64) -> Option<[f64; 2]>,
) -> Vec<u8> {
    let groups = Groups::of(numbers);
    let graph = SharingGraph::of(&pages.histogram, &groups.of);
    let clusters = clusters(&graph, groups.members.len());
    let assignment = |affinity: &Affinity| Assignment {
        nodes: groups.nodes(affinity),
        affinity: affinity.name.clone(),
        clusters: clusters.clone(),
    };
    let placing = |placement: &Placement| {
        let affinity = narrowed(&placement.affinity);
        let matrix = matrices(pages, &affinity, &[&homes(&placement.mapping)]);
        let accesses = matrix.into_iter().next().unwrap_or_default();
        Placing {
            assignment: assignment(&affinity),
            policy: placement.mapping.policy.clone(),
            local_fraction: local_fraction(&accesses),
            local_range: range(local_fraction(&accesses)),
            accesses,
        }
    };
    let document = Document {
        sharing: groups.sharing(pages, &graph),
        in_order: compared.in_order.as_ref().map(narrowed).as_ref().map(assignment),
        before: placing(&compared.before),
        after: placing(&compared.after),
        groups: groups.described(numbers),
    };
    serde_json::to_vec(&document).expect("plain structs serialize")
}

/// Groups threads with consecutive numbers.
struct Groups {
    /// Group of each thread.
    of: Vec<u32>,
    members: Vec<Vec<usize>>,
}

impl Groups {
    fn of(numbers: &[u32]) -> Self {
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_by_key(|t| (numbers[*t], *t));
        let size = order.len().div_ceil(MAX_GROUPS).max(1);
        let members: Vec<Vec<usize>> = order.chunks(size).map(<[usize]>::to_vec).collect();
        let mut of = vec![0; numbers.len()];
        for (group, members) in members.iter().enumerate() {
            members.iter().for_each(|t| of[*t] = group as u32);
        }
        Self { of, members }
    }

    /// The node of most threads of each group.
    fn nodes(&self, affinity: &Affinity) -> Vec<u32> {
        let node = |members: &Vec<usize>| {
            let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
            members
                .iter()
                .for_each(|t| *counts.entry(affinity.nodes[*t].0).or_default() += 1);
            counts
                .into_iter()
                .rev()
                .max_by_key(|(_, n)| *n)
                .map_or(0, |(node, _)| node)
        };
        self.members.iter().map(node).collect()
    }

    fn described(&self, numbers: &[u32]) -> Vec<Group> {
        let group = |members: &Vec<usize>| {
            let threads: Vec<u32> = members.iter().map(|t| numbers[*t]).collect();
            let label = match threads.as_slice() {
                [one] => format!("thread {one}"),
                [first, .., last] => format!("threads {first}–{last}"),
                [] => String::new(),
            };
            Group { threads, label }
        };
        self.members.iter().map(group).collect()
    }

    /// Accesses shared by pairs of groups; on the diagonal, accesses to pages of one group only.
    fn sharing(&self, pages: &Pages, graph: &SharingGraph) -> Vec<Vec<f64>> {
        let count = self.members.len();
        let mut matrix = vec![vec![0.0; count]; count];
        for (group, row) in matrix.iter_mut().enumerate().take(graph.len()) {
            graph
                .neighbours(group)
                .iter()
                .for_each(|(other, shared)| row[*other as usize] = *shared);
        }
        for (group, own) in self.own(pages).into_iter().enumerate() {
            matrix[group][group] = own as f64;
        }
        matrix
    }

    /// Accesses to pages that no other group uses, by group.
    fn own(&self, pages: &Pages) -> Vec<u64> {
        let zero = || vec![0u64; self.members.len()];
        let group = |e: &Entry| self.of[e.thread.index()] as usize;
        let chunk = |mut sums: Vec<u64>, chunk: Range<usize>| {
            for index in chunk {
                let entries = pages.histogram.page(index).entries;
                let Some(first) = entries.first().map(group) else {
                    continue;
                };
                if entries.iter().all(|e| group(e) == first) {
                    sums[first] += entries.iter().map(Entry::accesses).sum::<u64>();
                }
            }
            sums
        };
        pages.histogram.chunks().fold(zero, chunk).reduce(zero, added)
    }
}

/// Adds two partial sums.
fn added(mut sums: Vec<u64>, more: Vec<u64>) -> Vec<u64> {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    sums
}

/// Clusters of groups that are connected by high sharing, directly or transitively.
fn clusters(graph: &SharingGraph, count: usize) -> Vec<Vec<usize>> {
    let shared = |g: usize| if g < graph.len() { graph.neighbours(g) } else { &[] };
    let closest: Vec<f64> = (0..count)
        .map(|g| shared(g).iter().map(|(_, w)| *w).fold(0.0, f64::max))
        .collect();
    let close = |a: usize, (b, weight): &(u32, f64)| {
        *weight >= MIN_RELATIVE_SHARING * closest[a].max(closest[*b as usize])
    };
    let (mut clusters, mut seen) = (Vec::new(), vec![false; count]);
    for start in 0..count {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        let (mut cluster, mut next) = (vec![start], 0);
        while next < cluster.len() {
            let group = cluster[next];
            for (near, _) in shared(group).iter().filter(|edge| close(group, edge)) {
                if !std::mem::replace(&mut seen[*near as usize], true) {
                    cluster.push(*near as usize);
                }
            }
            next += 1;
        }
        cluster.sort_unstable();
        clusters.push(cluster);
    }
    clusters
}
