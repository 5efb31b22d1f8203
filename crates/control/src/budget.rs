//! The cost budget of migration: a share of run time, with a measured cost model (AsymSched 4.2, step 4).

use crate::Settings;

/// Weight of the assumed cost per GB, in GB measured: 64 MB of moved memory outweigh it.
const PRIOR_GB: f64 = 0.064;
/// Weight of the assumed cost per batch, in batches measured.
const PRIOR_BATCHES: f64 = 1.0;
/// Half-life of measurements, in batches: costs change with the load of the machine.
const MEASURES: f64 = 16.0;

/// The part of the budget that batches are planned for; the rest absorbs batches that take longer than predicted.
const PLANNED: f64 = 0.9;

/// Run time, time spent on moving, and the cost model.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    share: f64,
    /// Run time without pauses, nanoseconds.
    run_ns: u64,
    /// Time spent on moving, nanoseconds.
    pub spent_ns: u64,
    /// Predicted cost of moves whose results are not known yet, nanoseconds.
    pending_ns: f64,
    batch: Price,
    gigabyte: Price,
}

/// A cost per unit in seconds: an assumed value blended with measurements.
#[derive(Clone, Debug)]
struct Price {
    assumed: f64,
    /// Weight of the assumed value, in units.
    prior: f64,
    seconds: f64,
    units: f64,
}

impl Price {
    fn new(assumed: f64, prior: f64) -> Self {
        Self {
            assumed,
            prior,
            seconds: 0.0,
            units: 0.0,
        }
    }

    fn per_unit(&self) -> f64 {
        (self.assumed * self.prior + self.seconds) / (self.prior + self.units)
    }

    /// Adds a measurement; `share`: the part of the batch's time that is attributed to this cost.
    fn learn(&mut self, seconds: f64, units: f64, share: f64) {
        let fade = 0.5f64.powf(share / MEASURES);
        self.seconds = self.seconds * fade + seconds;
        self.units = self.units * fade + units;
    }
}

impl Budget {
    /// A budget of this share of run time, with assumed costs per GB and per batch in seconds.
    pub fn new(share: f64, seconds_per_gb: f64, seconds_per_batch: f64) -> Self {
        Self {
            share,
            run_ns: 0,
            spent_ns: 0,
            pending_ns: 0.0,
            batch: Price::new(seconds_per_batch, PRIOR_BATCHES),
            gigabyte: Price::new(seconds_per_gb, PRIOR_GB),
        }
    }

    /// Adds run time, nanoseconds.
    pub fn add_run_time(&mut self, ns: u64) {
        self.run_ns = self.run_ns.saturating_add(ns);
    }

    pub fn run_ns(&self) -> u64 {
        self.run_ns
    }

    /// Cost of moving a GB (10⁹ bytes), seconds: the assumption blended with measurements.
    pub fn seconds_per_gb(&self) -> f64 {
        self.gigabyte.per_unit()
    }

    /// Predicted time of moving this many bytes in one batch, nanoseconds.
    pub fn predicted_ns(&self, bytes: u64) -> f64 {
        if bytes == 0 {
            return 0.0;
        }
        // 1 s per GB is 1 ns per byte.
        self.batch.per_unit() * 1e9 + self.gigabyte.per_unit() * bytes as f64
    }

    /// Time that may be spent on moving in the whole run so far, nanoseconds; `None`: unlimited.
    pub fn allowed_ns(&self) -> Option<f64> {
        self.share.is_finite().then_some(self.share * self.run_ns as f64)
    }

    /// Time that may be spent now, nanoseconds; `None`: unlimited.
    pub fn left_ns(&self) -> Option<u64> {
        let left = PLANNED * self.allowed_ns()? - self.spent_ns as f64;
        Some(left.max(0.0) as u64)
    }

    /// Most pages whose predicted cost in this many batches, with the time spent so far, stays within the budget.
    pub fn affordable(&self, page_bytes: u64, batches: u32) -> u64 {
        if self.share.is_infinite() {
            return u64::MAX;
        }
        let budget = PLANNED * self.share * self.run_ns as f64;
        let left = budget
            - self.spent_ns as f64
            - self.pending_ns
            - f64::from(batches) * self.batch.per_unit() * 1e9;
        let page = self.gigabyte.per_unit() * page_bytes as f64;
        if left <= 0.0 {
            0
        } else if page > 0.0 {
            (left / page) as u64
        } else {
            u64::MAX
        }
    }

    /// Reserves the predicted cost of a batch.
    pub fn reserve(&mut self, pages: u64, page_bytes: u64) {
        self.pending_ns += self.predicted_ns(pages * page_bytes);
    }

    /// Replaces the reservation by the measured time of a batch, and updates the cost model.
    ///
    /// The time is attributed to the per-batch and the per-byte cost in the predicted proportion, so that small batches
    /// mainly update the former and large ones the latter.
    pub fn spend(&mut self, took_ns: u64, bytes: u64) {
        self.pending_ns = 0.0;
        self.spent_ns = self.spent_ns.saturating_add(took_ns);
        let predicted = self.predicted_ns(bytes);
        if predicted > 0.0 {
            let fixed = self.batch.per_unit() * 1e9 / predicted;
            let took = took_ns as f64 / 1e9;
            self.batch.learn(took * fixed, 1.0, fixed);
            self.gigabyte
                .learn(took * (1.0 - fixed), bytes as f64 / 1e9, 1.0 - fixed);
        }
    }
}

/// Token bucket: pages per second, with a burst of one interval's.
#[derive(Clone, Debug)]
pub(crate) struct Rate {
    per_second: Option<f64>,
    most: f64,
    pages: f64,
}

impl Rate {
    pub fn new(settings: &Settings) -> Self {
        let per_second = settings.pages_per_second;
        let most = per_second.map_or(0.0, |r| (r * settings.interval_ns as f64 / 1e9).max(1.0));
        Self {
            per_second,
            most,
            pages: 0.0,
        }
    }

    pub fn add_run_time(&mut self, ns: u64) {
        let more = self.per_second.unwrap_or(0.0) * ns as f64 / 1e9;
        self.pages = (self.pages + more).min(self.most);
    }

    pub fn allows(&self) -> u64 {
        self.per_second.map_or(u64::MAX, |_| self.pages as u64)
    }

    pub fn take(&mut self, pages: u64) {
        self.pages -= pages as f64; // a pair may take one more than there are
    }

    /// Returns tokens of pages that were not moved.
    pub fn give_back(&mut self, pages: u64) {
        self.pages = (self.pages + pages as f64).min(self.most);
    }
}
