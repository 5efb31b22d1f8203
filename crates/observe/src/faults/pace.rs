//! How often to look, and to have the kernel scan where it does so at our word: more seldom while the account
//! is overdrawn, as before once it has recovered.

use std::time::Duration;

/// Between two looks, when much has not happened earlier.
const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(1);
/// Milliseconds between scans at most: what the kernel itself goes up to.
const RAREST_MS: u32 = 60_000;
/// What another scan period does shows after one, and not at once.
const PATIENCE: Duration = Duration::from_millis(250);
/// The part of the account from which on it has recovered.
const RECOVERED: f64 = 0.5;

#[derive(Clone, Debug)]
pub struct Pace {
    look: Duration,
    scans: Option<Scans>,
}

/// The kernel's scans that we asked for.
#[derive(Clone, Copy, Debug)]
struct Scans {
    asked_ms: u32,
    ms: u32,
    /// Time since the last change.
    age: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            look: OFTEN,
            scans: None,
        }
    }
}

impl Pace {
    /// The kernel scans at our word so often, milliseconds.
    pub fn own_scans(&mut self, ms: u32) {
        self.scans = Some(Scans {
            asked_ms: ms,
            ms,
            age: Duration::ZERO,
        });
    }

    /// Goes on after `wall`. Savings are a share of what the account can hold; below 0 they are debts.
    pub fn settle(&mut self, wall: Duration, savings: f64) {
        if savings < 0.0 {
            self.look = (self.look * 2).min(SELDOM);
        } else if savings > RECOVERED {
            self.look = (self.look / 2).max(OFTEN);
        }
        if let Some(scans) = &mut self.scans {
            scans.settle(wall, savings);
        }
    }

    pub fn look(&self) -> Duration {
        self.look
    }

    /// Milliseconds between scans, if they are ours.
    pub fn scan_ms(&self) -> Option<u32> {
        self.scans.map(|s| s.ms)
    }
}

impl Scans {
    fn settle(&mut self, wall: Duration, savings: f64) {
        self.age += wall;
        if self.age < PATIENCE.max(Duration::from_millis(self.ms.into())) {
            return;
        }
        let wanted = if savings < 0.0 {
            self.ms.saturating_mul(2).min(RAREST_MS)
        } else if savings > RECOVERED {
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
        pace.settle(second, 1.0);
        assert_eq!((pace.look(), pace.scan_ms()), (OFTEN, Some(250)));
        pace.settle(Duration::from_millis(100), -0.1);
        assert_eq!((pace.look(), pace.scan_ms()), (2 * OFTEN, Some(500)));
        pace.settle(Duration::from_millis(100), -0.1); // too soon to say what that did
        assert_eq!(pace.scan_ms(), Some(500));
        (0..1000).for_each(|_| pace.settle(second, -2.0));
        assert_eq!((pace.look(), pace.scan_ms()), (SELDOM, Some(RAREST_MS)));
        (0..1000).for_each(|_| pace.settle(second, 0.2)); // neither owed nor recovered
        assert_eq!((pace.look(), pace.scan_ms()), (SELDOM, Some(RAREST_MS)));
        (0..1000).for_each(|_| pace.settle(second, 0.9));
        assert_eq!((pace.look(), pace.scan_ms()), (OFTEN, Some(250)));
    }

    #[test]
    fn nobody_asked_for_scans_and_nobody_changes_them() {
        let mut pace = Pace::default();
        pace.settle(Duration::from_secs(9), -5.0);
        assert_eq!(pace.scan_ms(), None);
    }
}
