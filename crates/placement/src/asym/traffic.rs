//! Remote traffic of threads, and the weight that it gives a cluster.

/// A thread and its remote traffic, as input of clustering.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadTraffic {
    /// Number of its application.
    pub application: u32,
    /// Its number in the application.
    pub thread: u32,
    /// Accesses to other nodes than its own, a second.
    pub remote: f64,
}

/// A cluster's weight by its remote accesses per second: log(1 + C_rbw), which preserves large differences and reduces
/// small ones (AsymSched 4.2, step 1; the paper's log C_rbw is undefined for 0).
#[must_use]
pub fn weight(remote: f64) -> f64 {
    remote.max(0.0).ln_1p()
}
