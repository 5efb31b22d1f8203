//! Partitions threads over nodes with minimal communication cost: multilevel graph partitioning with exact part
//! sizes.
//!
//! Heavy-edge matching coarsens the graph (Karypis and Kumar, SIAM J. Sci. Comput. 20(1), 1998), the coarsest graph is
//! partitioned greedily, and at each level on the way back pairs of parts exchange vertices (Kernighan and Lin, Bell
//! Syst. Tech. J. 49(2), 1970, with the gains of Fiduccia and Mattheyses), minimising the cost over all parts.

// Why: docs/decisions/placement.md

mod coarsen;
mod initial;
mod parts;
mod refine;

pub use parts::Parts;

use super::SharingGraph;
use coarsen::{Coarse, coarsen};
use initial::initial;
use refine::refine;

/// Graphs with fewer vertices per part are partitioned directly.
const MIN_VERTICES_PER_PART: usize = 12;
/// Limit on the work of all tries together, about 50 ms. A try costs four units per edge and one per vertex and part.
const MAX_WORK: usize = 220_000;
/// Largest number of tries.
const MAX_TRIES: usize = 10;
/// If vertices have more neighbours than this on average, a coarser graph gives no new information.
const MAX_MEAN_DEGREE: usize = 128;
/// Number of initial partitions of the coarsest graph.
const INITIAL_PARTITIONS: u64 = 6;

/// The part of each thread; each part gets exactly its size. Deterministic; never more expensive than blocks.
///
/// # Panics
/// If the parts' sizes do not sum to the threads.
#[must_use]
pub fn partition(graph: &SharingGraph, parts: &Parts) -> Vec<u32> {
    let threads: u32 = parts.sizes.iter().sum();
    assert_eq!(threads as usize, graph.len(), "as many places as threads");
    let blocks = parts.blocks();
    if graph.edge_count() == 0 || parts.count() < 2 {
        return blocks;
    }
    let mut best = Best::new(graph, parts, blocks.clone());
    best.take(refine(graph, parts, blocks));
    let tries = MAX_WORK / (4 * graph.edge_count() + graph.len() * parts.count());
    if tries == 0 && graph.edge_count() > MAX_MEAN_DEGREE * graph.len() {
        best.take(refine(graph, parts, initial(graph, parts, 0)));
        return best.places;
    }
    for seed in 0..tries.clamp(1, MAX_TRIES) as u64 {
        let mut halves = vec![0; graph.len()];
        let all: Vec<u32> = (0..graph.len() as u32).collect();
        bisect(graph, &all, &parts.sizes, 0, seed, &mut halves);
        best.take(refine(graph, parts, halves));
        let again = multilevel(graph, parts, seed, Some(&best.places));
        best.take(again);
    }
    best.places
}

/// Recursive bisection of the vertices `members` of the whole graph into the parts from `first` on; writes to `places`.
fn bisect(graph: &SharingGraph, members: &[u32], sizes: &[u32], first: u32, seed: u64, places: &mut [u32]) {
    if sizes.len() == 1 {
        members.iter().for_each(|v| places[*v as usize] = first);
        return;
    }
    let (left, right) = sizes.split_at(sizes.len() / 2);
    let two = Parts::equal(vec![left.iter().sum(), right.iter().sum()]);
    let side = multilevel(&graph.induced(members), &two, seed, None);
    let part = |of: u32| -> Vec<u32> {
        let both = members.iter().zip(&side);
        both.filter(|(_, s)| **s == of).map(|(v, _)| *v).collect()
    };
    bisect(graph, &part(0), left, first, seed, places);
    bisect(graph, &part(1), right, first + left.len() as u32, seed, places);
}

/// The cheapest partition so far.
struct Best<'a> {
    graph: &'a SharingGraph,
    parts: &'a Parts,
    places: Vec<u32>,
    cost: f64,
}

impl<'a> Best<'a> {
    fn new(graph: &'a SharingGraph, parts: &'a Parts, places: Vec<u32>) -> Self {
        let cost = parts.cost(graph, &places);
        Self {
            graph,
            parts,
            places,
            cost,
        }
    }

    fn take(&mut self, places: Vec<u32>) {
        let cost = self.parts.cost(self.graph, &places);
        if cost < self.cost * (1.0 - 1e-9) {
            (self.places, self.cost) = (places, cost);
        }
    }
}

/// One multilevel cycle: coarsens to a small graph, and refines on the way back. `start`: a partition that coarsening
/// respects, to be improved.
fn multilevel(graph: &SharingGraph, parts: &Parts, seed: u64, start: Option<&[u32]>) -> Vec<u32> {
    let mut levels: Vec<Coarse> = Vec::new();
    let mut places = start.map(<[u32]>::to_vec);
    loop {
        let here = levels.last().map_or(graph, |l| &l.graph);
        if here.len() <= MIN_VERTICES_PER_PART * parts.count() {
            break;
        }
        let next = coarsen(here, parts, seed, places.as_deref());
        if next.graph.len() * 20 > here.len() * 19 {
            break;
        }
        places = places.map(|p| next.project_to_coarser(&p));
        levels.push(next);
    }
    let smallest = levels.last().map_or(graph, |l| &l.graph);
    let mut places = match places {
        Some(places) => refine(smallest, parts, places),
        None => (0..INITIAL_PARTITIONS)
            .map(|b| {
                refine(
                    smallest,
                    parts,
                    initial(smallest, parts, seed * INITIAL_PARTITIONS + b),
                )
            })
            .min_by(|a, b| parts.cost(smallest, a).total_cmp(&parts.cost(smallest, b)))
            .unwrap_or_default(),
    };
    for level in (0..levels.len()).rev() {
        let finer = if level == 0 {
            graph
        } else {
            &levels[level - 1].graph
        };
        places = refine(finer, parts, levels[level].project_to_finer(&places));
    }
    places
}
