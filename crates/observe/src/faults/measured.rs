//! What a sample costs here.

use super::Costs;
use nodewise_linux::faults::{Source, minor_faults};

/// Measured on minor faults of our own, and what these cost themselves: the best of some tries, since
/// nothing makes them faster.
pub fn costs() -> (Costs, f64) {
    const PAGES: usize = 2048;
    let best = |tries: usize| {
        let all = (0..tries).filter_map(|_| minor_faults(PAGES).ok());
        all.min().map_or(0.0, |t| t.as_nanos() as f64 / PAGES as f64)
    };
    let bare = best(3);
    let with = |period| {
        // The calling thread's; dropped only after it was measured.
        let source = Source::of_threads(&[0], period).ok();
        source.map_or(bare, |_source| best(3))
    };
    let costs = Costs {
        sample_ns: (with(1) - bare).max(50.0),
        passed_ns: (with(1 << 20) - bare).max(1.0),
    };
    (costs, bare)
}
