//! A memory-side cache: fast memory in front of a node's own, which the hardware fills, as HBM in cache mode.

/// A direct-mapped cache of lines of one node's memory, for all CPUs that access it.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryCache {
    /// Lines of the node's memory that it holds at a time, bytes.
    pub memory: u64,
    /// What it delivers to the node's own CPUs, MB/s (10⁶ bytes).
    pub bandwidth: f64,
    /// Idle latency of a hit, by the reading CPU's node, nanoseconds.
    pub latency_ns: Vec<f64>,
}
