//! A memory-side cache: fast memory in front of a node's own, which the hardware fills, as HBM in cache mode.

/// A direct-mapped cache of lines of one node's memory, for all CPUs that access it. Tags lie beside the lines: memory is
/// asked after the cache has missed.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryCache {
    /// Lines of the node's memory that it holds at a time, bytes.
    pub memory: u64,
    /// What it delivers to the node's own CPUs, MB/s (10⁶ bytes).
    pub bandwidth: f64,
    /// Idle latency of a hit by a CPU of the node, nanoseconds.
    pub latency_ns: f64,
}

impl MemoryCache {
    /// The share of accesses that hit, 0 to 1, where `footprint` bytes of the node's memory are in use, all alike.
    ///
    /// With λ = footprint / size, `conflicts` chooses between 0, no two lines in one place before all places are taken:
    /// min(1, 1/λ); 1/2, pages in random places, used in random order: of a place's k lines the last one used hits,
    /// E\[1/(1+Poisson(λ))\] = (1 − e^−λ)/λ; and 1, the same swept from end to end, where only a line that is alone in its
    /// place hits: e^−λ. Values between are interpolated.
    #[must_use]
    pub fn hits(&self, footprint: f64, conflicts: f64) -> f64 {
        let load = footprint / self.memory.max(1) as f64;
        if load <= 0.0 {
            return 1.0;
        }
        let none = (1.0 / load).min(1.0);
        let random = -(-load).exp_m1() / load;
        let swept = (-load).exp();
        let between = |a: f64, b: f64, at: f64| a + (b - a) * at;
        match conflicts {
            c if c <= 0.5 => between(none, random, 2.0 * c.max(0.0)),
            c => between(random, swept, 2.0 * c.min(1.0) - 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(load: f64, conflicts: f64) -> f64 {
        let cache = MemoryCache {
            memory: 1 << 30,
            bandwidth: 1.0,
            latency_ns: 1.0,
        };
        cache.hits(load * f64::from(1 << 30), conflicts)
    }

    /// A direct-mapped cache of as many places as pages fit, of which `pages` are used in random order.
    fn counted(places: usize, pages: usize) -> f64 {
        let mut state = 7u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let place: Vec<usize> = (0..pages).map(|_| random(places)).collect();
        let mut held = vec![usize::MAX; places];
        let (mut hit, rounds) = (0, 200 * pages);
        for round in 0..rounds {
            let page = random(pages);
            let last = std::mem::replace(&mut held[place[page]], page);
            hit += usize::from(round >= rounds / 2 && last == page);
        }
        hit as f64 / (rounds / 2) as f64
    }

    #[test]
    fn hits_are_those_of_a_cache_that_is_played() {
        for load in [0.25, 1.0, 3.0] {
            let played = counted(2000, (2000.0 * load) as usize);
            assert!(
                (hits(load, 0.5) - played).abs() < 0.02,
                "{load}: {played} counted, {} by the formula",
                hits(load, 0.5)
            );
        }
        assert_eq!((hits(0.0, 1.0), hits(0.5, 0.0), hits(4.0, 0.0)), (1.0, 1.0, 0.25));
        assert!((hits(1.0, 1.0) - (-1.0f64).exp()).abs() < 1e-12);
        assert!(hits(1.0, 0.75) < hits(1.0, 0.5) && hits(1.0, 0.5) < hits(1.0, 0.25));
    }
}
