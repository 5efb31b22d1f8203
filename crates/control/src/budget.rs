//! What migrating may cost: AsymSched 4.2, step 4.

use crate::Settings;

/// The measured cost counts for more than the assumed one from this much on, GB: 64 MB.
const PRIOR_GB: f64 = 0.064;
/// What was measured is worth half after so many more batches: machines get busier.
const MEASURES: i32 = 16;

/// Time spent and time there was.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    share: f64,
    assumed: f64,
    /// Time of the run, paused stretches left out.
    run_ns: u64,
    /// Time spent moving.
    pub spent_ns: u64,
    /// Predicted for moves whose outcome is not known yet.
    pending_ns: f64,
    measured_s: f64,
    measured_gb: f64,
}

impl Budget {
    pub fn new(settings: &Settings) -> Self {
        Self {
            share: settings.budget,
            assumed: settings.seconds_per_gb,
            run_ns: 0,
            spent_ns: 0,
            pending_ns: 0.0,
            measured_s: 0.0,
            measured_gb: 0.0,
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
        (self.assumed * PRIOR_GB + self.measured_s) / (PRIOR_GB + self.measured_gb)
    }

    /// Nanoseconds that moving a page is predicted to take.
    pub fn page_ns(&self, page_bytes: u64) -> f64 {
        self.seconds_per_gb() * page_bytes as f64
    }

    /// Pages that may be moved now so that what was spent and what they are predicted to cost stays
    /// within the share of the run time.
    pub fn affordable(&self, page_bytes: u64) -> u64 {
        if self.share.is_infinite() {
            return u64::MAX;
        }
        let left = self.share * self.run_ns as f64 - self.spent_ns as f64 - self.pending_ns;
        let page = self.page_ns(page_bytes);
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
        self.pending_ns += pages as f64 * self.page_ns(page_bytes);
    }

    /// What was set aside has been spent, on this much memory.
    pub fn spend(&mut self, took_ns: u64, bytes: u64) {
        self.pending_ns = 0.0;
        self.spent_ns = self.spent_ns.saturating_add(took_ns);
        if bytes > 0 {
            let fade = 0.5f64.powf(1.0 / f64::from(MEASURES));
            self.measured_s = self.measured_s * fade + took_ns as f64 / 1e9;
            self.measured_gb = self.measured_gb * fade + bytes as f64 / 1e9;
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
}
