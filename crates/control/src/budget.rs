//! What migrating may cost: AsymSched 4.2, step 4.

use crate::Settings;

/// The measured cost counts for more than the assumed one from this much on, GB: 64 MB.
const PRIOR_GB: f64 = 0.064;
/// The same for the cost of a batch, batches.
const PRIOR_BATCHES: f64 = 1.0;
/// What was measured is worth half after so many more batches: machines get busier.
const MEASURES: f64 = 16.0;

/// Time spent and time there was.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    share: f64,
    /// Time of the run, paused stretches left out.
    run_ns: u64,
    /// Time spent moving.
    pub spent_ns: u64,
    /// Predicted for moves whose outcome is not known yet.
    pending_ns: f64,
    batch: Price,
    gigabyte: Price,
}

/// Seconds per unit, as assumed and then as measured.
#[derive(Clone, Debug)]
struct Price {
    assumed: f64,
    /// What the assumption is worth, units.
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

    /// So many units took so long, by a batch of which `share` tells about this price.
    fn learn(&mut self, seconds: f64, units: f64, share: f64) {
        let fade = 0.5f64.powf(share / MEASURES);
        self.seconds = self.seconds * fade + seconds;
        self.units = self.units * fade + units;
    }
}

impl Budget {
    /// This share of the run time, at what a GB and a batch are assumed to cost.
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

    /// The program ran so much longer.
    pub fn ran(&mut self, ns: u64) {
        self.run_ns = self.run_ns.saturating_add(ns);
    }

    pub fn run_ns(&self) -> u64 {
        self.run_ns
    }

    /// The assumption, corrected by what moving really took.
    pub fn seconds_per_gb(&self) -> f64 {
        self.gigabyte.per_unit()
    }

    /// Nanoseconds that a batch of so many bytes is predicted to take.
    pub fn predicted_ns(&self, bytes: u64) -> f64 {
        if bytes == 0 {
            return 0.0;
        }
        // A second a GB is a nanosecond a byte.
        self.batch.per_unit() * 1e9 + self.gigabyte.per_unit() * bytes as f64
    }

    /// Time that may be spent in all of the run so far; `None`: any.
    pub fn allowed_ns(&self) -> Option<f64> {
        self.share.is_finite().then_some(self.share * self.run_ns as f64)
    }

    /// Time that may be spent now; `None`: any.
    pub fn left_ns(&self) -> Option<u64> {
        let left = self.allowed_ns()? - self.spent_ns as f64;
        Some(left.max(0.0) as u64)
    }

    /// Pages that may be moved now, as one batch, so that what was spent and what they are predicted to
    /// cost stays within the share of the run time.
    pub fn affordable(&self, page_bytes: u64) -> u64 {
        if self.share.is_infinite() {
            return u64::MAX;
        }
        let budget = self.share * self.run_ns as f64;
        let left = budget - self.spent_ns as f64 - self.pending_ns - self.batch.per_unit() * 1e9;
        let page = self.gigabyte.per_unit() * page_bytes as f64;
        if left <= 0.0 {
            0
        } else if page > 0.0 {
            (left / page) as u64
        } else {
            u64::MAX
        }
    }

    /// Sets aside what these pages are predicted to cost.
    pub fn reserve(&mut self, pages: u64, page_bytes: u64) {
        self.pending_ns += self.predicted_ns(pages * page_bytes);
    }

    /// What was set aside has been spent, on this much memory.
    ///
    /// It is shared between the batch as such and its bytes as it was predicted to be, so that batches
    /// of a few pages teach what a batch costs and large ones what a byte does.
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

/// So many pages a second, an interval's worth at once.
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

    pub fn ran(&mut self, ns: u64) {
        let more = self.per_second.unwrap_or(0.0) * ns as f64 / 1e9;
        self.pages = (self.pages + more).min(self.most);
    }

    pub fn allows(&self) -> u64 {
        self.per_second.map_or(u64::MAX, |_| self.pages as u64)
    }

    pub fn take(&mut self, pages: u64) {
        self.pages = (self.pages - pages as f64).max(0.0);
    }

    /// Of what was taken, so many have not moved.
    pub fn give_back(&mut self, pages: u64) {
        self.pages = (self.pages + pages as f64).min(self.most);
    }
}
