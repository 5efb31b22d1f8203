//! Memory-side caches (HBM in cache mode): what controllers deliver, and latencies are, at the share of hits that a placement's
//! footprint on each node leaves.

use nodewise_machine::Machine;
use nodewise_placement::{Context, Mapping};

/// The machine without its caches, its controllers and latencies as they are with them, where `footprint` bytes of each node's
/// memory are in use. `conflicts`: see [`nodewise_machine::MemoryCache::hits`].
///
/// Of a line, the cache moves one, and at a miss a second one, as it is filled or gives up a changed line; memory moves the
/// misses. The controller is as wide as the narrower of both: min(B_cache / (2 − h), B_memory / (1 − h)). A hit takes the
/// cache's latency; a miss that of memory as well, since the tags are read first.
#[must_use]
pub fn with_memory_side_caches(machine: &Machine, footprint: &[f64], conflicts: f64) -> Machine {
    let mut seen = machine.clone();
    for (memory, used) in footprint.iter().enumerate() {
        let Some(cache) = seen.nodes[memory].cache.take() else {
            continue;
        };
        let missed = 1.0 - cache.hits(*used, conflicts);
        let own = machine.latency_ns[memory][memory];
        let node = &mut seen.nodes[memory];
        node.bandwidth = (cache.bandwidth / (1.0 + missed)).min(node.bandwidth / missed);
        let bandwidth = node.bandwidth;
        for (latency, routes) in seen.latency_ns.iter_mut().zip(&mut seen.routes) {
            latency[memory] += cache.latency_ns - own + missed * own;
            routes[memory].bandwidth = match routes[memory].links.is_empty() {
                true => bandwidth,
                false => routes[memory].bandwidth.min(bandwidth),
            };
        }
    }
    seen
}

/// Bytes of each node's memory that are in use under a mapping.
pub(crate) fn footprint(context: &Context<'_>, mapping: &Mapping) -> Vec<f64> {
    let mut used = vec![0.0; context.machine.node_count()];
    for node in &mapping.nodes {
        used[node.index()] += context.histogram.page_size() as f64;
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: f64 = (1u64 << 30) as f64;

    #[test]
    fn a_footprint_that_fits_has_the_caches_figures_and_a_large_one_memorys() {
        let machine = Machine::load("xeonmax-2s-snc4-flat:hbm=cache").unwrap();
        let with = |gib: f64| with_memory_side_caches(&machine, &[gib * GIB; 8], 0.0);
        let (small, large) = (with(8.0), with(32.0));
        assert_eq!(
            (small.nodes[0].bandwidth, small.latency_ns[0][0]),
            (151_500.0, 129.0)
        );
        // The way to the other socket is added to a hit's latency as to memory's.
        assert!((small.latency_ns[0][4] - (129.0 + 193.5 - 101.9)).abs() < 1e-9);
        // Half of the accesses miss: memory gives twice what it has, the cache moves three lines for two.
        assert_eq!(large.nodes[0].bandwidth, 101_000.0);
        assert!((large.latency_ns[0][0] - (129.0 + 0.5 * 101.9)).abs() < 1e-9);
        assert!(large.nodes.iter().all(|n| n.cache.is_none()));
        large.validate().unwrap();
    }

    #[test]
    fn conflicts_cost_bandwidth_and_time() {
        let machine = Machine::load("xeonmax-2s-snc4-flat:hbm=cache").unwrap();
        let with = |conflicts| with_memory_side_caches(&machine, &[12.0 * GIB; 8], conflicts);
        let [best, typical, worst] = [0.0, 0.5, 1.0].map(with);
        for (better, worse) in [(&best, &typical), (&typical, &worst)] {
            assert!(better.nodes[3].bandwidth > worse.nodes[3].bandwidth);
            assert!(better.latency_ns[3][3] < worse.latency_ns[3][3]);
        }
    }
}
