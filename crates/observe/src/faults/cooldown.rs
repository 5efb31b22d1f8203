//! Exponential back-off of what is sampled.

use std::time::Duration;

/// A cooldown that doubles each time it begins, between two limits. Times are those of [`nodewise_linux::clock::monotonic`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Cooldown {
    length: Duration,
    began: Duration,
}

impl Cooldown {
    /// Begins another cooldown at `now`: of length `shortest` at first, up to `longest`.
    pub fn begin(&mut self, now: Duration, shortest: Duration, longest: Duration) {
        *self = Self {
            length: (self.length * 2).clamp(shortest, longest),
            began: now,
        };
    }

    /// Forgets earlier cooldowns if the last one began more than `age` ago, so that the next one is short again.
    pub fn forget_after(&mut self, age: Duration, now: Duration) {
        if now.saturating_sub(self.began) > age {
            self.length = Duration::ZERO;
        }
    }

    /// When the present cooldown ends, or the last one ended.
    pub fn ends(&self) -> Duration {
        self.began + self.length
    }

    pub fn length(&self) -> Duration {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_longest_and_is_short_again_when_forgotten() {
        let seconds = Duration::from_secs;
        let mut cooldown = Cooldown::default();
        let begin = |c: &mut Cooldown, now| c.begin(seconds(now), seconds(10), seconds(35));
        begin(&mut cooldown, 100);
        assert_eq!(cooldown.ends(), seconds(110));
        begin(&mut cooldown, 200);
        assert_eq!(cooldown.length(), seconds(20));
        begin(&mut cooldown, 300);
        assert_eq!(cooldown.length(), seconds(35));
        cooldown.forget_after(seconds(50), seconds(340));
        assert_eq!(cooldown.length(), seconds(35));
        cooldown.forget_after(seconds(50), seconds(351));
        begin(&mut cooldown, 351);
        assert_eq!(cooldown.ends(), seconds(361));
    }
}
