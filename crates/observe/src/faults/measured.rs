//! Measures the cost of a sample on this host.

use super::Costs;
use nodewise_linux::faults::{Source, minor_faults};

/// Measures the cost of a sample and of a minor fault without sampling, on our own minor faults. Takes the best of
/// several attempts, as disturbances only make faults slower.
pub fn costs() -> (Costs, f64) {
    // Few pages, so that all nine attempts take about a millisecond: attached programs share their CPUs with us
    // meanwhile.
    const PAGES: usize = 128;
    let best = |tries: usize| {
        let all = (0..tries).filter_map(|_| minor_faults(PAGES).ok());
        all.min().map_or(0.0, |t| t.as_nanos() as f64 / PAGES as f64)
    };
    let bare = best(3);
    let with = |period| {
        // Events of the calling thread; dropped only after the measurement.
        let source = Source::of_threads(&[0], period).ok();
        source.map_or(bare, |_source| best(3))
    };
    let costs = Costs {
        sample_ns: (with(1) - bare).max(50.0),
        passed_ns: (with(1 << 20) - bare).max(1.0),
    };
    (costs, bare)
}
