//! What limits a controller.

/// What limits a controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Nanoseconds from one decision to the next: AsymSched's 1 s.
    pub interval_ns: u64,
    /// Largest share of the run time that migrating may take: 0.05, AsymSched 4.2; infinite is none.
    pub budget: f64,
    /// What moving a GB (10⁹ bytes) is taken to cost until it is measured: 0.3 s, AsymSched 4.2.
    pub seconds_per_gb: f64,
    /// What a batch of moves costs besides, however few they are: 1 ms until it is measured, for a
    /// system call that waits for every CPU; 0 where batches cost nothing, and it stays so.
    pub seconds_per_batch: f64,
    /// Pages a second at most.
    pub pages_per_second: Option<f64>,
    /// A page is judged from so many accesses or samples on: k. Two, as AutoNUMA does: they decide only if
    /// they agree.
    pub minimum_samples: u32,
    /// Intervals after which all counts are halved; 0 never.
    ///
    /// Four suit exact counts, which come in every interval. Hint faults do not: the kernel takes a
    /// sample of a page from once a second to once a minute, and a count of one that is halved before
    /// the second comes is gone. Halve those by samples (after so many a page on average) and give 0
    /// here, or take 30 s at least.
    pub half_life: u32,
    /// Intervals that a page which has moved, or could not, is left alone; twice as many after each further
    /// move or failure.
    pub rest: u32,
    /// Bytes of a page that decisions are made for.
    pub page_bytes: u64,
    /// Pages whose past moves are remembered; the longest unmoved are forgotten first.
    pub remembered_pages: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            interval_ns: 1_000_000_000,
            budget: 0.05,
            seconds_per_gb: 0.3,
            seconds_per_batch: 0.001,
            pages_per_second: None,
            minimum_samples: 2,
            half_life: 4,
            rest: 4,
            page_bytes: 4096,
            remembered_pages: 1 << 17,
        }
    }
}
