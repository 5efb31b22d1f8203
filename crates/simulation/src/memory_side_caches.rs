//! Memory-side caches (HBM in cache mode): what controllers deliver, and latencies are, at the share of hits that a placement's
//! use of each node's memory leaves.

use nodewise_machine::{Machine, MemoryCache, NodeId};
use nodewise_placement::Context;

/// Steps of the integral over [`Footprint::in_random_order`].
const STEPS: usize = 64;

/// The pages of one node's memory that a placement uses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Footprint {
    /// Number of pages and mean accesses to one of them, by powers of two of the accesses.
    classes: Vec<(f64, f64)>,
    /// Bytes of a page.
    page: f64,
}

impl Footprint {
    /// Of pages with these numbers of accesses.
    pub fn of(accesses: impl Iterator<Item = u64>, page: u64) -> Self {
        let mut classes = vec![(0.0, 0.0); 65];
        for accesses in accesses {
            let class = &mut classes[(64 - accesses.leading_zeros()) as usize];
            *class = (class.0 + 1.0, class.1 + accesses as f64);
        }
        let mean = |(pages, accesses): (f64, f64)| (pages, accesses / pages);
        Self {
            classes: classes.into_iter().filter(|c| c.1 > 0.0).map(mean).collect(),
            page: page as f64,
        }
    }

    /// The share of accesses that hit a cache, 0 to 1. `conflicts`: 0, if the pages that are accessed most have it and none is
    /// in another's way; 1/2, if pages are in places of the cache by chance and accessed in random order
    /// ([`Self::in_random_order`]); 1, if they are accessed in turn, in places by chance or one after the other, whichever is
    /// worse ([`Self::in_turn`]). Values between are interpolated.
    pub fn hits(&self, cache: &MemoryCache, conflicts: f64) -> f64 {
        let all: f64 = self.classes.iter().map(|(pages, each)| pages * each).sum();
        if all <= 0.0 {
            return 1.0;
        }
        let places = cache.memory as f64 / self.page;
        let mean = |hits: &dyn Fn(f64) -> f64| {
            let of = |(pages, each): &(f64, f64)| pages * each * hits(*each);
            self.classes.iter().map(of).sum::<f64>() / all
        };
        let between = |a: f64, b: f64, at: f64| a + (b - a) * at;
        match conflicts {
            c if c <= 0.5 => {
                let best = self.hottest(places) / all;
                between(best, mean(&|each| self.in_random_order(each, places)), 2.0 * c)
            }
            c => between(
                mean(&|each| self.in_random_order(each, places)),
                mean(&|each| self.in_turn(each, places)),
                2.0 * c - 1.0,
            ),
        }
    }

    /// Accesses to as many of the pages that are accessed most as there are places.
    fn hottest(&self, mut places: f64) -> f64 {
        let mut sum = 0.0;
        for (pages, each) in self.classes.iter().rev() {
            let held = pages.min(places);
            sum += held * each;
            places -= held;
        }
        sum
    }

    /// The share of hits of a page that is accessed `each` times, if accesses are independent of each other: of its place the
    /// last access must have been to it. With w_j, the accesses to page j over its own, of n pages in S places
    /// E\[1 / (1 + Σ w_j)\] = ∫ exp(−(1/S) Σ n_j (1 − u^w_j)) du over u from 0 to 1, and (1 − e^−λ)/λ with λ = n/S where all
    /// are accessed equally often.
    fn in_random_order(&self, each: f64, places: f64) -> f64 {
        let at = |u: f64| {
            let others = self.classes.iter().map(|(n, w)| n * (1.0 - u.powf(w / each)));
            (-others.sum::<f64>() / places).exp()
        };
        // Simpson's rule.
        let weight = |step: usize| match step {
            0 | STEPS => 1.0,
            odd if odd % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let sum: f64 = (0..=STEPS).map(|s| weight(s) * at(s as f64 / STEPS as f64)).sum();
        sum / (3 * STEPS) as f64
    }

    /// The same if pages are accessed in turn: another page of the place is accessed in between, one that is accessed less
    /// often at so many of the times. In places by chance e^−λ is left, λ being these pages a place; in consecutive places,
    /// which λ − 1 of the pages a place share, (2 − λ)/λ.
    fn in_turn(&self, each: f64, places: f64) -> f64 {
        let between = self.classes.iter().map(|(n, w)| n * (w / each).min(1.0));
        let load = between.sum::<f64>() / places;
        let consecutive = ((2.0 - load) / load).clamp(0.0, 1.0);
        (-load).exp().min(consecutive)
    }
}

/// What of each node's memory is used if each page is on these nodes, several of which have a part of its accesses each.
pub(crate) fn footprints<N: AsRef<[NodeId]>>(
    context: &Context<'_>,
    nodes: impl Fn(usize) -> N,
) -> Vec<Footprint> {
    let page = context.histogram.page_size();
    let mut accesses: Vec<Vec<u64>> = vec![Vec::new(); context.machine.node_count()];
    for view in context.histogram.iter() {
        let nodes = nodes(view.index);
        let nodes = nodes.as_ref();
        for node in nodes {
            accesses[node.index()].push(view.accesses() / nodes.len() as u64);
        }
    }
    let of_node = |accesses: Vec<u64>| Footprint::of(accesses.into_iter(), page);
    accesses.into_iter().map(of_node).collect()
}

/// The machine without its caches, its controllers and latencies as they are with them, if these pages of each node's memory
/// are used; and the share of hits of each node, 1 where it has no cache. `conflicts`: see [`Footprint::hits`].
///
/// Of a line, the cache moves one, and at a miss a second one, as it is filled or gives up a changed line; memory moves the
/// misses. The controller is as wide as the narrower of both: min(B_cache / (2 − h), B_memory / (1 − h)). A hit takes the
/// cache's latency; a miss that of memory as well, since the tags are read first.
pub(crate) fn with_memory_side_caches(
    machine: &Machine,
    used: &[Footprint],
    conflicts: f64,
) -> (Machine, Vec<f64>) {
    let mut seen = machine.clone();
    let mut hits = vec![1.0; machine.node_count()];
    for (memory, used) in used.iter().enumerate() {
        let Some(cache) = seen.nodes[memory].cache.take() else {
            continue;
        };
        hits[memory] = used.hits(&cache, conflicts);
        let missed = 1.0 - hits[memory];
        let own = machine.latency_ns[memory][memory];
        let node = &mut seen.nodes[memory];
        node.bandwidth = (cache.bandwidth / (1.0 + missed)).min(node.bandwidth / missed);
        for (row, hit) in seen.latency_ns.iter_mut().zip(&cache.latency_ns) {
            row[memory] = hit + missed * own;
        }
    }
    (seen, hits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 4096;

    fn cache(places: u64) -> MemoryCache {
        MemoryCache {
            memory: places * PAGE,
            bandwidth: 1.0,
            latency_ns: vec![1.0],
        }
    }

    /// Of pages that are accessed equally often.
    fn even(pages: u64, page: u64) -> Footprint {
        Footprint::of(std::iter::repeat_n(1, pages as usize), page)
    }

    /// Hits of a direct-mapped cache, of pages in places by chance that are accessed in random order, each by its weight.
    fn counted(places: usize, weights: &[u64]) -> f64 {
        let mut state = 7u64;
        let mut random = move |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let place: Vec<usize> = weights.iter().map(|_| random(places)).collect();
        let accesses: Vec<usize> = weights
            .iter()
            .enumerate()
            .flat_map(|(page, times)| std::iter::repeat_n(page, *times as usize))
            .collect();
        let mut held = vec![usize::MAX; places];
        let (mut hit, rounds) = (0, 2_000_000);
        for round in 0..rounds {
            let page = accesses[random(accesses.len())];
            let last = std::mem::replace(&mut held[place[page]], page);
            hit += i32::from(round >= rounds / 2 && last == page);
        }
        f64::from(hit) / f64::from(rounds / 2)
    }

    #[test]
    fn hits_are_those_of_a_cache_that_is_played() {
        let alike = |pages: usize| vec![1; pages];
        // A tenth of the pages has nine tenths of the accesses.
        let skewed: Vec<u64> = (0..8000).map(|i| if i % 10 == 0 { 81 } else { 1 }).collect();
        for weights in [alike(500), alike(2000), alike(6000), skewed] {
            let played = counted(2000, &weights);
            let found = Footprint::of(weights.iter().copied(), PAGE).hits(&cache(2000), 0.5);
            assert!(
                (found - played).abs() < 0.02,
                "{played} counted, {found} by the formula"
            );
        }
    }

    #[test]
    fn even_use_has_closed_forms() {
        for load in [0.25f64, 1.0, 1.5, 3.0] {
            let used = even((load * 1000.0) as u64, PAGE);
            let hits = |conflicts| used.hits(&cache(1000), conflicts);
            assert!((hits(0.0) - (1.0 / load).min(1.0)).abs() < 1e-9);
            assert!((hits(0.5) - (1.0 - (-load).exp()) / load).abs() < 1e-6);
            let consecutive = ((2.0 - load) / load).clamp(0.0, 1.0);
            assert!((hits(1.0) - (-load).exp().min(consecutive)).abs() < 1e-9);
            assert!(hits(0.0) >= hits(0.25) && hits(0.25) >= hits(0.5) && hits(0.5) >= hits(0.75));
        }
        assert_eq!(even(0, PAGE).hits(&cache(1), 1.0), 1.0);
    }

    /// Pages that are touched once do not take the cache from those that are swept a hundred times.
    #[test]
    fn pages_that_are_hardly_accessed_hardly_matter() {
        let hot = (0..500).map(|_| 100);
        let alone = Footprint::of(hot.clone(), PAGE);
        let beside = Footprint::of(hot.chain((0..4000).map(|_| 1)), PAGE);
        for conflicts in [0.0, 0.5, 1.0] {
            let [alone, beside] = [&alone, &beside].map(|f| f.hits(&cache(1000), conflicts));
            assert!(beside < alone && beside > alone - 0.12, "{beside} of {alone}");
        }
    }

    fn with(gib: u64, conflicts: f64) -> (Machine, Vec<f64>) {
        let machine = Machine::load("xeonmax-2s-snc4-flat:hbm=cache").unwrap();
        let used = vec![even(gib << 9, 2 << 20); 8];
        with_memory_side_caches(&machine, &used, conflicts)
    }

    #[test]
    fn what_fits_has_the_caches_figures_and_more_has_memorys() {
        let (small, large) = (with(8, 0.0).0, with(32, 0.0).0);
        assert_eq!(
            (small.nodes[0].bandwidth, small.latency_ns[0][0]),
            (151_500.0, 129.0)
        );
        assert_eq!(
            small.latency_ns[0][4], 228.2,
            "as far as the HBM of that node was"
        );
        // Half of the accesses miss: memory gives twice what it has, the cache moves three lines for two.
        assert_eq!(large.nodes[0].bandwidth, 101_000.0);
        assert!((large.latency_ns[0][0] - (129.0 + 0.5 * 101.9)).abs() < 1e-9);
        assert!(large.nodes.iter().all(|n| n.cache.is_none()));
        // Three of four: memory is the narrower one.
        let (narrow, hits) = with(64, 0.0);
        assert!((narrow.nodes[0].bandwidth - 60_300.0 / 0.75).abs() < 1e-6);
        assert_eq!(hits, vec![0.25; 8]);
        // Routes keep their width: what is shared is the controller.
        assert_eq!(narrow.routes, small.routes);
    }

    #[test]
    fn conflicts_cost_bandwidth_and_time() {
        let [best, typical, worst] = [0.0, 0.5, 1.0].map(|conflicts| with(12, conflicts).0);
        for (better, worse) in [(&best, &typical), (&typical, &worst)] {
            assert!(better.nodes[3].bandwidth > worse.nodes[3].bandwidth);
            assert!(better.latency_ns[3][3] < worse.latency_ns[3][3]);
        }
    }
}
