//! Partitions threads over nodes with minimal communication cost: multilevel graph partitioning with exact part
//! sizes.
//!
//! Heavy-edge matching shrinks the graph (Karypis and Kumar, SIAM J. Sci. Comput. 20(1), 1998), the small one is
//! dealt out greedily, and at each level on the way back pairs of parts exchange vertices (Kernighan and Lin,
//! Bell Syst. Tech. J. 49(2), 1970, with Fiduccia's and Mattheyses's gains), in the cost of all parts at once.

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

/// Fewer vertices a part are dealt out directly.
const COARSEST: usize = 12;
/// What all tries together may walk over, in edges and table cells, four times over: about 50 ms.
const WORK: usize = 220_000;
/// Largest number of tries.
const TRIES: usize = 10;
/// Where everybody shares with this many others on average, a smaller graph shows nothing new.
const DENSE: usize = 128;
/// Different beginnings of the smallest graph.
const BEGINNINGS: u64 = 6;

/// The part of each thread; each part has exactly its size. Deterministic. Never costs more than blocks.
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
    let tries = WORK / (4 * graph.edge_count() + graph.len() * parts.count());
    if tries == 0 && graph.edge_count() > DENSE * graph.len() {
        best.take(refine(graph, parts, initial(graph, parts, 0)));
        return best.places;
    }
    for seed in 0..tries.clamp(1, TRIES) as u64 {
        let mut halves = vec![0; graph.len()];
        let all: Vec<u32> = (0..graph.len() as u32).collect();
        bisect(graph, &all, &parts.sizes, 0, seed, &mut halves);
        best.take(refine(graph, parts, halves));
        let again = multilevel(graph, parts, seed, Some(&best.places));
        best.take(again);
    }
    best.places
}

/// Halves of halves, by `members` of the whole graph; `places` of these become the parts from `first` on.
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

/// The cheapest of what was tried.
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

/// One way down to a small graph and back; `start` is kept on the way down and improved on the way back.
fn multilevel(graph: &SharingGraph, parts: &Parts, seed: u64, start: Option<&[u32]>) -> Vec<u32> {
    let mut levels: Vec<Coarse> = Vec::new();
    let mut places = start.map(<[u32]>::to_vec);
    loop {
        let here = levels.last().map_or(graph, |l| &l.graph);
        if here.len() <= COARSEST * parts.count() {
            break;
        }
        let next = coarsen(here, parts, seed, places.as_deref());
        if next.graph.len() * 20 > here.len() * 19 {
            break;
        }
        places = places.map(|p| next.taken_along(&p));
        levels.push(next);
    }
    let smallest = levels.last().map_or(graph, |l| &l.graph);
    let mut places = match places {
        Some(places) => refine(smallest, parts, places),
        None => (0..BEGINNINGS)
            .map(|b| refine(smallest, parts, initial(smallest, parts, seed * BEGINNINGS + b)))
            .min_by(|a, b| parts.cost(smallest, a).total_cmp(&parts.cost(smallest, b)))
            .unwrap_or_default(),
    };
    for level in (0..levels.len()).rev() {
        let finer = if level == 0 {
            graph
        } else {
            &levels[level - 1].graph
        };
        places = refine(finer, parts, levels[level].brought_back(&places));
    }
    places
}
