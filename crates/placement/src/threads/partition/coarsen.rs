//! Coarsening by heavy-edge matching: pairs of vertices that share most are merged.

use super::parts::Parts;
use crate::formulas::mix;
use crate::threads::SharingGraph;

const UNASSIGNED: u32 = u32::MAX;

/// A coarser graph, with the vertex that each vertex of the finer one became part of.
pub(super) struct Coarse {
    pub graph: SharingGraph,
    coarse_vertex: Vec<u32>,
}

impl Coarse {
    /// Projects a partition of this graph to the finer one.
    pub fn project_to_finer(&self, places: &[u32]) -> Vec<u32> {
        self.coarse_vertex.iter().map(|c| places[*c as usize]).collect()
    }

    /// Projects a partition of the finer graph to this one; merged vertices must be in the same part.
    pub fn project_to_coarser(&self, places: &[u32]) -> Vec<u32> {
        let mut out = vec![0; self.graph.len()];
        for (coarse, place) in self.coarse_vertex.iter().zip(places) {
            out[*coarse as usize] = *place;
        }
        out
    }
}

/// Matches each vertex with the free neighbour with which it shares most relative to their sizes; with `within`, only
/// with one of the same part. Vertices are visited in order for the first seed, in random order for others. No merged
/// vertex exceeds a quarter of the smallest part.
pub(super) fn coarsen(graph: &SharingGraph, parts: &Parts, seed: u64, within: Option<&[u32]>) -> Coarse {
    let smallest = parts.sizes.iter().copied().filter(|s| *s > 0).min().unwrap_or(1);
    let most = (smallest / 4).max(1);
    let mut order: Vec<usize> = (0..graph.len()).collect();
    if seed > 0 {
        order.sort_by_key(|v| mix(*v as u64 ^ (seed << 32)));
    }
    let mut partner = vec![UNASSIGNED; graph.len()];
    for &v in &order {
        if partner[v] != UNASSIGNED {
            continue;
        }
        let fits = |u: usize| {
            partner[u] == UNASSIGNED
                && graph.size(v) + graph.size(u) <= most
                && within.is_none_or(|p| p[v] == p[u])
        };
        let free = graph.neighbours(v).iter().filter(|(u, _)| fits(*u as usize));
        let heaviest = free
            .map(|(u, w)| (*u, w / f64::from(graph.size(*u as usize))))
            .reduce(|best, next| if next.1 > best.1 { next } else { best });
        let other = heaviest.map_or(v as u32, |h| h.0);
        partner[v] = other;
        partner[other as usize] = v as u32;
    }
    contract(graph, &partner)
}

fn contract(graph: &SharingGraph, partner: &[u32]) -> Coarse {
    let mut coarse_vertex = vec![UNASSIGNED; graph.len()];
    let mut members: Vec<[usize; 2]> = Vec::new();
    for v in 0..graph.len() {
        if coarse_vertex[v] == UNASSIGNED {
            let other = partner[v] as usize;
            (coarse_vertex[v], coarse_vertex[other]) = (members.len() as u32, members.len() as u32);
            members.push([v, other]);
        }
    }
    let distinct = |[a, b]: [usize; 2]| [Some(a), (a != b).then_some(b)].into_iter().flatten();
    let sizes = members
        .iter()
        .map(|m| distinct(*m).map(|v| graph.size(v)).sum())
        .collect();
    let mut sums = vec![0.0; members.len()];
    let (mut touched, mut pairs) = (Vec::new(), Vec::new());
    for (coarse, both) in members.iter().enumerate() {
        for (u, weight) in distinct(*both).flat_map(|v| graph.neighbours(v)) {
            let other = coarse_vertex[*u as usize];
            if other as usize > coarse {
                if sums[other as usize] == 0.0 {
                    touched.push(other);
                }
                sums[other as usize] += weight;
            }
        }
        touched.sort_unstable();
        pairs.extend(touched.iter().map(|o| (coarse as u32, *o, sums[*o as usize])));
        touched.drain(..).for_each(|o| sums[o as usize] = 0.0);
    }
    Coarse {
        graph: SharingGraph::assembled(sizes, &pairs),
        coarse_vertex,
    }
}
