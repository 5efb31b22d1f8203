//! When pages are protected from the kernel's own balancing.

use std::time::Duration;

/// Time until pages are first protected from the kernel's balancing, which begins to sample a second after a
/// program's start.
const FIRST: Duration = Duration::from_millis(100);
/// Protecting pages takes at most 1/50 of the time, or 1/4 while the program allocates memory, which is not observed
/// before it is protected.
const SHARE: u32 = 50;
const SHARE_GROWING: u32 = 4;

/// The times of the last and the next protection pass, from any origin.
#[derive(Clone, Copy, Debug)]
pub struct HoldingTimes {
    next: Duration,
    pause: Duration,
    /// End and duration of the last pass.
    last: (Duration, Duration),
}

impl HoldingTimes {
    /// The first pass is soon after `began`.
    pub fn new(began: Duration) -> Self {
        Self {
            next: began + FIRST,
            pause: FIRST,
            last: (began, Duration::ZERO),
        }
    }

    /// Whether it is time for a pass.
    pub fn due(&self, now: Duration) -> bool {
        now >= self.next
    }

    /// No pass is made any more.
    pub fn stop(&mut self) {
        self.next = Duration::MAX;
    }

    /// A pass has begun at `now` and took this long. The pause doubles up to `most`, as far as passes are short.
    pub fn record_pass(&mut self, now: Duration, took: Duration, most: Duration) {
        self.last = (now + took, took);
        self.pause = (self.pause * 2).min(most).max(took * SHARE);
        self.next = now + self.pause;
    }

    /// Memory was touched for the first time: the next pass is sooner.
    pub fn memory_grows(&mut self) {
        let (at, took) = self.last;
        if self.next != Duration::MAX {
            self.next = self.next.min(at + FIRST.max(took * SHARE_GROWING));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn pauses_double_and_are_fifty_times_as_long_as_a_pass_or_four_where_memory_grows() {
        let mut times = HoldingTimes::new(ms(1000));
        assert!(!times.due(ms(1099)) && times.due(ms(1100)));
        times.record_pass(ms(1100), ms(1), ms(500));
        assert!(!times.due(ms(1299)) && times.due(ms(1300)));
        times.record_pass(ms(1300), ms(1), ms(300));
        assert!(times.due(ms(1600)), "at most so long");
        times.record_pass(ms(1600), ms(50), ms(300));
        assert!(!times.due(ms(4099)) && times.due(ms(4100)), "as passes are long");
        times.memory_grows();
        assert!(!times.due(ms(1849)) && times.due(ms(1850)));
        times.stop();
        times.memory_grows();
        assert!(!times.due(ms(1 << 40)));
    }
}
