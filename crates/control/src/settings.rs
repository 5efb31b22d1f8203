//! Limits of a controller.

/// The limits that a [`Controller`](crate::Controller) enforces, and its cost assumptions.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Interval between decisions, nanoseconds; 1 s as in AsymSched.
    pub interval_ns: u64,
    /// Largest share of run time that migration may take; 0.05 as in AsymSched 4.2; infinity is no limit.
    pub budget: f64,
    /// Assumed cost of moving a GB (10⁹ bytes) until it is measured, seconds; 0.3 as in AsymSched 4.2.
    pub seconds_per_gb: f64,
    /// Assumed fixed cost of a batch until it is measured, seconds; 0.001 for a system call that waits for every CPU. With
    /// 0 batches have no fixed cost, and none is measured.
    pub seconds_per_batch: f64,
    /// Rate limit, pages per second.
    pub pages_per_second: Option<f64>,
    /// A page is judged only if it has at least this many accesses or samples (k). Two as in AutoNUMA: two samples
    /// decide only if they agree.
    pub minimum_samples: u32,
    /// Intervals after which all counts are halved; 0 never.
    ///
    /// Four suits exact counts, which arrive in every interval. NUMA hint faults sample a page once a second to once a
    /// minute; a count of one that is halved before the second sample arrives is lost. For those halve by number of
    /// samples and set 0 here, or use 30 s at least.
    pub half_life: u32,
    /// Cooldown of a page after a move or a failed one, in intervals; each further move or failure doubles it (exponential
    /// back-off).
    pub cooldown: u32,
    /// Page size of decisions, bytes.
    pub page_bytes: u64,
    /// Largest number of pages whose past moves are remembered; the least recently moved are dropped first.
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
            cooldown: 4,
            page_bytes: 4096,
            remembered_pages: 1 << 17,
        }
    }
}
