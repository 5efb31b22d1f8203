//! Decides how often to look, and how often the kernel scans if we asked for that: less often while the budget is
//! overdrawn, and as before once it has recovered.

use std::time::Duration;

/// Time between two looks, unless buffers fill up earlier.
const MIN_LOOK_INTERVAL: Duration = Duration::from_millis(50);
const MAX_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time between scans, milliseconds: the largest value that the kernel itself uses.
const MAX_SCAN_PERIOD_MS: u32 = 60_000;
/// Time until a change of the scan period takes effect, at least.
const EFFECT_DELAY: Duration = Duration::from_millis(250);
/// Share of the account at which it counts as recovered.
pub(super) const RECOVERED_SHARE: f64 = 0.5;

#[derive(Clone, Debug)]
pub struct Pace {
    look: Duration,
    scans: Option<Scans>,
}

/// The kernel's scans, if we requested their period.
#[derive(Clone, Copy, Debug)]
struct Scans {
    asked_ms: u32,
    ms: u32,
    /// Time since the last change of the period.
    age: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            look: MIN_LOOK_INTERVAL,
            scans: None,
        }
    }
}

impl Pace {
    /// States that the kernel scans every `ms` milliseconds on our request.
    pub fn own_scans(&mut self, ms: u32) {
        self.scans = Some(Scans {
            asked_ms: ms,
            ms,
            age: Duration::ZERO,
        });
    }

    /// Adapts after `wall` has elapsed. Savings are a share of what the account can hold; negative if overdrawn.
    pub fn account(&mut self, wall: Duration, savings: f64) {
        if savings < 0.0 {
            self.look = (self.look * 2).min(MAX_LOOK_INTERVAL);
        } else if savings > RECOVERED_SHARE {
            self.look = (self.look / 2).max(MIN_LOOK_INTERVAL);
        }
        if let Some(scans) = &mut self.scans {
            scans.account(wall, savings);
        }
    }

    pub fn look(&self) -> Duration {
        self.look
    }

    /// Milliseconds between scans, if we asked for them.
    pub fn scan_ms(&self) -> Option<u32> {
        self.scans.map(|s| s.ms)
    }
}

impl Scans {
    fn account(&mut self, wall: Duration, savings: f64) {
        self.age += wall;
        if self.age < EFFECT_DELAY.max(Duration::from_millis(self.ms.into())) {
            return;
        }
        let wanted = if savings < 0.0 {
            self.ms.saturating_mul(2).min(MAX_SCAN_PERIOD_MS)
        } else if savings > RECOVERED_SHARE {
            self.ms / 2
        } else {
            self.ms
        };
        let wanted = wanted.max(self.asked_ms);
        if wanted != self.ms {
            (self.ms, self.age) = (wanted, Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debts_slow_it_down_step_by_step_and_savings_bring_it_back() {
        let mut pace = Pace::default();
        pace.own_scans(250);
        let second = Duration::from_secs(1);
        pace.account(second, 1.0);
        assert_eq!((pace.look(), pace.scan_ms()), (MIN_LOOK_INTERVAL, Some(250)));
        pace.account(Duration::from_millis(100), -0.1);
        assert_eq!((pace.look(), pace.scan_ms()), (2 * MIN_LOOK_INTERVAL, Some(500)));
        pace.account(Duration::from_millis(100), -0.1); // too early to see the effect of the last change
        assert_eq!(pace.scan_ms(), Some(500));
        (0..1000).for_each(|_| pace.account(second, -2.0));
        assert_eq!(
            (pace.look(), pace.scan_ms()),
            (MAX_LOOK_INTERVAL, Some(MAX_SCAN_PERIOD_MS))
        );
        (0..1000).for_each(|_| pace.account(second, 0.2)); // neither overdrawn nor recovered
        assert_eq!(
            (pace.look(), pace.scan_ms()),
            (MAX_LOOK_INTERVAL, Some(MAX_SCAN_PERIOD_MS))
        );
        (0..1000).for_each(|_| pace.account(second, 0.9));
        assert_eq!((pace.look(), pace.scan_ms()), (MIN_LOOK_INTERVAL, Some(250)));
    }

    #[test]
    fn nobody_asked_for_scans_and_nobody_changes_them() {
        let mut pace = Pace::default();
        pace.account(Duration::from_secs(9), -5.0);
        assert_eq!(pace.scan_ms(), None);
    }
}
