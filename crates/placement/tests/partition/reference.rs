//! What others would do, written plainly: greedy pairing, and multilevel recursive bisection after METIS.

use nodewise_placement::SharingGraph;
use nodewise_placement::formulas::mix;
use std::collections::BTreeMap;

/// Groups that share the heaviest edge are joined while they fit one part; groups then go where room is left,
/// the largest first, split where none is large enough.
pub fn greedy_pairing(graph: &SharingGraph, sizes: &[u32]) -> Vec<u32> {
    let mut edges: Vec<(u32, u32, f64)> = Vec::new();
    for v in 0..graph.len() as u32 {
        let later = graph.neighbours(v as usize).iter().filter(|(u, _)| *u > v);
        edges.extend(later.map(|(u, w)| (v, *u, *w)));
    }
    edges.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
    let most = sizes.iter().copied().max().unwrap_or(1) as usize;
    let mut group: Vec<usize> = (0..graph.len()).collect();
    let mut members: Vec<Vec<u32>> = (0..graph.len() as u32).map(|v| vec![v]).collect();
    for (a, b, _) in edges {
        let (into, from) = (group[a as usize], group[b as usize]);
        if into != from && members[into].len() + members[from].len() <= most {
            let moved = std::mem::take(&mut members[from]);
            moved.iter().for_each(|v| group[*v as usize] = into);
            members[into].extend(moved);
        }
    }
    members.sort_by_key(|m| std::cmp::Reverse(m.len()));
    let mut room = sizes.to_vec();
    let mut places = vec![0; graph.len()];
    for group in members.iter().filter(|m| !m.is_empty()) {
        let mut group = group.as_slice();
        while !group.is_empty() {
            let fits = (0..room.len())
                .filter(|p| room[*p] as usize >= group.len())
                .min_by_key(|p| room[*p]);
            let part = fits.unwrap_or_else(|| (0..room.len()).max_by_key(|p| room[*p]).unwrap());
            let (now, later) = group.split_at(group.len().min(room[part] as usize));
            now.iter().for_each(|v| places[*v as usize] = part as u32);
            room[part] -= now.len() as u32;
            group = later;
        }
    }
    places
}

/// Halves of halves: each split multilevel, by heavy-edge matching, grown greedily, refined by Fiduccia and
/// Mattheyses with the sizes kept.
pub fn recursive_bisection(graph: &SharingGraph, sizes: &[u32]) -> Vec<u32> {
    let mut places = vec![0; graph.len()];
    let all: Vec<u32> = (0..graph.len() as u32).collect();
    split(graph, &all, sizes, 0, &mut places);
    places
}

fn split(graph: &SharingGraph, members: &[u32], sizes: &[u32], first: u32, places: &mut [u32]) {
    if sizes.len() == 1 {
        members.iter().for_each(|v| places[*v as usize] = first);
        return;
    }
    let (left, right) = sizes.split_at(sizes.len() / 2);
    let local = Local::of(graph, members);
    let side = local.bisected(left.iter().sum());
    let part = |s: bool| -> Vec<u32> {
        let of = members.iter().zip(&side).filter(|(_, x)| **x == s);
        of.map(|(v, _)| *v).collect()
    };
    split(graph, &part(false), left, first, places);
    split(graph, &part(true), right, first + left.len() as u32, places);
}

/// A graph of its own.
struct Local {
    edges: Vec<Vec<(u32, f64)>>,
    sizes: Vec<u32>,
}

impl Local {
    fn of(graph: &SharingGraph, members: &[u32]) -> Self {
        let at: BTreeMap<u32, u32> = members.iter().zip(0..).map(|(v, i)| (*v, i)).collect();
        let inside = |v: &u32| {
            let all = graph.neighbours(*v as usize).iter();
            all.filter_map(|(u, w)| Some((*at.get(u)?, *w))).collect()
        };
        Self {
            edges: members.iter().map(inside).collect(),
            sizes: vec![1; members.len()],
        }
    }

    fn bisected(&self, left: u32) -> Vec<bool> {
        if self.edges.len() <= 40 {
            let grown = (0..4).map(|seed| self.refined(self.grown(left, seed), left));
            return grown.min_by(|a, b| self.cut(a).total_cmp(&self.cut(b))).unwrap();
        }
        let (coarse, into) = self.coarser();
        if coarse.edges.len() * 10 > self.edges.len() * 9 {
            return self.refined(self.grown(left, 0), left);
        }
        let side = coarse.bisected(left);
        self.refined(into.iter().map(|c| side[*c]).collect(), left)
    }

    fn coarser(&self) -> (Self, Vec<usize>) {
        let count = self.edges.len();
        let most = (self.sizes.iter().sum::<u32>() / 20).max(2);
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|v| mix(*v as u64));
        let (mut into, mut groups) = (vec![usize::MAX; count], 0);
        for v in order {
            if into[v] != usize::MAX {
                continue;
            }
            let free = |u: usize| into[u] == usize::MAX && u != v && self.sizes[u] + self.sizes[v] <= most;
            let candidates = self.edges[v].iter().filter(|(u, _)| free(*u as usize));
            let heaviest = candidates
                .max_by(|a, b| a.1.total_cmp(&b.1))
                .map(|e| e.0 as usize);
            into[v] = groups;
            if let Some(u) = heaviest {
                into[u] = groups;
            }
            groups += 1;
        }
        let mut sums = vec![BTreeMap::new(); groups];
        let mut sizes = vec![0; groups];
        for v in 0..count {
            sizes[into[v]] += self.sizes[v];
            for (u, w) in self.edges[v].iter().filter(|(u, _)| into[*u as usize] != into[v]) {
                *sums[into[v]].entry(into[*u as usize] as u32).or_insert(0.0) += w;
            }
        }
        let edges = sums.into_iter().map(|s| s.into_iter().collect()).collect();
        (Self { edges, sizes }, into)
    }

    /// Grown from a drawn vertex by what shares most with it until the left side is full.
    fn grown(&self, left: u32, seed: u64) -> Vec<bool> {
        let count = self.edges.len();
        let (mut side, mut with, mut filled) = (vec![true; count], vec![0.0; count], 0);
        let mut next = (mix(seed) % count as u64) as usize;
        while filled < left {
            side[next] = false;
            filled += self.sizes[next];
            for (u, w) in &self.edges[next] {
                with[*u as usize] += w;
            }
            let rest = (0..count).filter(|v| side[*v]);
            match rest.max_by(|a, b| with[*a].total_cmp(&with[*b])) {
                Some(v) => next = v,
                None => break,
            }
        }
        side
    }

    fn cut(&self, side: &[bool]) -> f64 {
        let of = |v: usize| {
            self.edges[v]
                .iter()
                .filter(move |(u, _)| side[*u as usize] != side[v])
        };
        (0..side.len()).flat_map(of).map(|e| e.1).sum()
    }

    fn refined(&self, mut side: Vec<bool>, left: u32) -> Vec<bool> {
        let slack = i64::from(self.sizes.iter().copied().max().unwrap_or(1));
        for _ in 0..10 {
            let improved = self.pass(&mut side, i64::from(left), slack);
            if !improved {
                break;
            }
        }
        side
    }

    fn pass(&self, side: &mut [bool], left: i64, slack: i64) -> bool {
        let count = side.len();
        let gain = |v: usize, side: &[bool]| -> f64 {
            let sign = |u: u32| if side[u as usize] == side[v] { -1.0 } else { 1.0 };
            self.edges[v].iter().map(|(u, w)| w * sign(*u)).sum()
        };
        let mut gains: Vec<f64> = (0..count).map(|v| gain(v, side)).collect();
        let filled = |side: &[bool]| {
            (0..count)
                .filter(|v| !side[*v])
                .map(|v| i64::from(self.sizes[v]))
                .sum::<i64>()
        };
        let mut excess = filled(side) - left;
        let off = |e: i64| (e.abs() - (slack - 1)).max(0);
        let (mut locked, mut order, mut kept) = (vec![false; count], Vec::new(), 0);
        let (mut saved, mut best) = (0.0, (off(excess), 0.0));
        for _ in 0..count {
            let may = |v: &usize| !locked[*v] && (excess == 0 || (excess > 0) != side[*v]);
            let Some(v) = (0..count)
                .filter(may)
                .max_by(|a, b| gains[*a].total_cmp(&gains[*b]))
            else {
                break;
            };
            locked[v] = true;
            saved += gains[v];
            excess += if side[v] { 1 } else { -1 } * i64::from(self.sizes[v]);
            side[v] = !side[v];
            order.push(v);
            for (u, w) in &self.edges[v] {
                gains[*u as usize] += if side[*u as usize] == side[v] { -2.0 } else { 2.0 } * w;
            }
            let now = (off(excess), saved);
            if now.0 < best.0 || (now.0 == best.0 && now.1 > best.1 + 1e-9) {
                (best, kept) = (now, order.len());
            }
            if order.len() > kept + 100 {
                break;
            }
        }
        order[kept..].iter().for_each(|v| side[*v] = !side[*v]);
        kept > 0
    }
}
