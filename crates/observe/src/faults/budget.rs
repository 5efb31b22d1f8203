//! Limits the cost of observation: a budget that the program's CPU time adds to, and each sample takes from.

// Why: docs/decisions/live-loop.md

use super::pace::Pace;
use std::time::Duration;

/// The cost of observation, nanoseconds; see [`Budget::new`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// Cost in the kernel of a fault that is reported.
    pub sample_ns: f64,
    /// Cost of a fault that only counts towards the next report.
    pub passed_ns: f64,
}

/// Measurements since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// CPU time of the observed programs.
    pub program_ns: f64,
    /// Our CPU time for processing what was reported.
    pub own_ns: f64,
    /// Our CPU time for processing one sample, if there were enough samples to measure it.
    pub handling_ns: Option<f64>,
    /// CPU time, ours and the programs', that does not depend on the number of reported faults.
    pub upkeep_ns: f64,
    /// Faults reported to us, including those of programs that are not observed.
    pub samples: u64,
    /// Hint faults among the samples.
    pub hints: u64,
    /// The share of the time during which faults were reported, 0 to 1.
    pub open: f64,
    /// Wall-clock time since the last look.
    pub wall: Duration,
}

/// How faults are reported until the next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// One of `period` faults is reported.
    pub period: u64,
    /// Whether faults are reported at all.
    pub running: bool,
    /// Time until the next look, unless buffers fill up earlier.
    pub look: Duration,
    /// Milliseconds between the kernel's scans, if we asked for them: see [`Budget::own_scans`].
    pub scan_ms: Option<u32>,
}

/// Keeps the cost of observation at a share of the program's CPU time, by a token bucket.
///
/// The account is credited the share of the program's CPU time. It holds at most the credit of `MAX_CREDIT_NS` of CPU
/// time, and starts full, because programs touch much memory at their start and hint faults come in bursts. It may be
/// overdrawn by the same amount before reporting pauses. The sampling period is chosen so that the rate of faults fits
/// the budget, slightly shorter while the account is positive and longer while it is overdrawn. Costs that do not
/// depend on reported faults (looks and scans) become rarer while the account is overdrawn.
#[derive(Clone, Debug)]
pub struct Budget {
    share: f64,
    costs: Costs,
    balance_ns: f64,
    rate: Rate,
    pace: Pace,
    /// Cost of a hint fault that we requested, without its report, nanoseconds.
    hint_ns: f64,
    program_ns: f64,
    spent_ns: f64,
    /// CPU time during which faults were reported.
    seen_ns: f64,
    /// Smoothed figures: faults per nanosecond of CPU time, hint faults among them, our own cost of a sample.
    density: f64,
    hints: f64,
    handling_ns: f64,
    /// The longest period that may be chosen.
    longest: u64,
    /// Upkeep per nanosecond of CPU time, smoothed.
    upkeep: f64,
}

/// CPU time whose credit the account can hold, and by which it can be overdrawn.
const MAX_CREDIT_NS: f64 = 1e9;
/// CPU time over which figures are smoothed. It covers several scans, since the kernel scans once a second at most,
/// with bursts of faults afterwards, and much of the upkeep is due once an interval.
const SMOOTHING_NS: f64 = 4e9;
/// Longest period for programs that already run: a page that is reported more rarely would never have enough samples.
/// Beyond it, pauses keep the budget.
const LONGEST_OF_RUNNING: u64 = 7;
/// Assumed initial rate of faults of programs that already run, per nanosecond of CPU time.
const ASSUMED_DENSITY: f64 = 1e-5;
/// Smallest number of samples in a look for which the cost of a sample is measured.
pub(super) const MIN_COST_SAMPLES: u64 = 100;
/// Share of the budget that is reserved for samples, however much upkeep takes.
const MIN_SAMPLE_SHARE: f64 = 0.25;
/// Possible periods: primes, so that they do not coincide with regularities of a program.
const PERIODS: [u64; 24] = [
    1, 2, 3, 5, 7, 11, 17, 23, 29, 37, 47, 61, 79, 101, 127, 167, 211, 263, 337, 431, 547, 1009, 2053, 4099,
];

impl Budget {
    /// Allows `share` of the program's CPU time.
    #[must_use]
    pub fn new(share: f64, costs: Costs) -> Self {
        Self {
            share,
            costs,
            balance_ns: share * MAX_CREDIT_NS,
            rate: Rate {
                period: 1,
                running: true,
                look: Pace::default().look(),
                scan_ms: None,
            },
            pace: Pace::default(),
            hint_ns: 0.0,
            program_ns: 0.0,
            spent_ns: 0.0,
            seen_ns: 0.0,
            density: 0.0,
            hints: 0.0,
            handling_ns: costs.sample_ns,
            longest: PERIODS[PERIODS.len() - 1],
            upkeep: 0.0,
        }
    }

    /// Assumes, until there are measurements, that hint faults come at once and in bursts, as with programs that
    /// already run. Otherwise the first burst would cost seconds of the budget where a sample is expensive.
    pub fn expect_bursts(&mut self) {
        self.density = ASSUMED_DENSITY;
        self.longest = LONGEST_OF_RUNNING;
        self.rate.period = self.fitting();
    }

    /// States that the kernel scans every `ms` milliseconds on our request: each hint fault, reported or not, is
    /// charged `hint_ns`.
    pub fn own_scans(&mut self, ms: u32, hint_ns: f64) {
        self.hint_ns = hint_ns;
        self.pace.own_scans(ms);
        self.rate.scan_ms = self.pace.scan_ms();
    }

    /// Charges the cost of an interval; returns how to continue.
    pub fn account(&mut self, interval: &Interval) -> Rate {
        let samples = interval.samples as f64;
        let faults = samples * self.rate.period as f64;
        self.learn(interval, faults);
        let kernel = samples * self.costs.sample_ns + (faults - samples) * self.costs.passed_ns;
        let hints_ns = self.hint_faults(interval) * self.hint_ns;
        let spent = interval.own_ns + kernel + hints_ns;
        self.program_ns += interval.program_ns;
        self.spent_ns += spent + interval.upkeep_ns;
        let most = self.share * MAX_CREDIT_NS;
        let income = self.share * interval.program_ns;
        let balance = (self.balance_ns + income - spent).min(most);
        // Limits the debt while a program sleeps to the credit of two seconds, however long it sleeps.
        let asleep = income < interval.upkeep_ns;
        let least = if asleep {
            balance.min(-2.0 * most)
        } else {
            f64::NEG_INFINITY
        };
        self.balance_ns = (balance - interval.upkeep_ns).max(least);
        self.rate.running = match self.rate.running {
            true => self.balance_ns > -most,
            false => self.balance_ns > -most / 2.0,
        };
        self.rate.period = self.fitting();
        self.slow_down_or_recover(interval.wall);
        self.rate
    }

    /// Number of hint faults, reported or not.
    fn hint_faults(&self, interval: &Interval) -> f64 {
        let reported = (interval.hints * self.rate.period) as f64;
        reported + self.hints * interval.program_ns * (1.0 - interval.open)
    }

    fn slow_down_or_recover(&mut self, wall: Duration) {
        self.pace.account(wall, self.savings());
        let scan_ms = self.pace.scan_ms();
        if let (Some(before), Some(now)) = (self.rate.scan_ms, scan_ms) {
            self.hints *= f64::from(before) / f64::from(now);
        }
        (self.rate.look, self.rate.scan_ms) = (self.pace.look(), scan_ms);
    }

    /// The balance as a share of what the account can hold; negative if overdrawn.
    #[must_use]
    pub fn savings(&self) -> f64 {
        self.balance_ns / (self.share * MAX_CREDIT_NS)
    }

    fn learn(&mut self, interval: &Interval, faults: f64) {
        let seen = interval.program_ns * interval.open;
        if seen > 0.0 {
            let weight = seen / (seen + SMOOTHING_NS);
            let hints = (interval.hints * self.rate.period) as f64;
            self.density += weight * (faults / seen - self.density);
            self.seen_ns += seen;
            self.hints += seen / self.seen_ns.min(SMOOTHING_NS + seen) * (hints / seen - self.hints);
        }
        if let Some(each) = interval.handling_ns {
            self.handling_ns += 0.3 * (each - self.handling_ns);
        }
        if interval.program_ns > 0.0 {
            let weight = interval.program_ns / (interval.program_ns + SMOOTHING_NS);
            self.upkeep += weight * (interval.upkeep_ns / interval.program_ns - self.upkeep);
        }
    }

    /// The shortest period whose cost fits the part of the budget that upkeep leaves. If the ideal lies between two
    /// periods, the result alternates between them.
    fn fitting(&self) -> u64 {
        let sample = self.sample_ns();
        let cost = |period: u64| self.density * (sample / period as f64 + self.costs.passed_ns);
        let left = (self.share - self.upkeep).max(MIN_SAMPLE_SHARE * self.share);
        let share = left * (1.0 + self.savings()).clamp(0.5, 2.0);
        let fits = |period: &u64| cost(*period) <= share;
        PERIODS
            .into_iter()
            .find(|period| fits(period) || *period >= self.longest)
            .unwrap_or(self.longest)
    }

    /// The cost so far as a share of the program's CPU time; `None` before it used any.
    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        (self.program_ns > 0.0).then(|| self.spent_ns / self.program_ns)
    }

    /// The whole cost of a reported fault, nanoseconds.
    #[must_use]
    pub fn sample_ns(&self) -> f64 {
        self.costs.sample_ns + self.handling_ns
    }

    /// How faults are currently reported.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COSTS: Costs = Costs {
        sample_ns: 300.0,
        passed_ns: 20.0,
    };
    const HANDLING: f64 = 150.0;

    /// `seconds` of a program with one CPU's worth of `threads`, which makes this many faults a second of CPU
    /// time, looked at ten times a second.
    fn run(share: f64, seconds: u32, faults: impl Fn(u32) -> f64) -> (f64, u64) {
        let mut budget = Budget::new(share, COSTS);
        let mut all = 0;
        for look in 0..seconds * 10 {
            let Rate { period, running, .. } = budget.rate();
            let open = f64::from(u8::from(running));
            let samples = (faults(look) / 10.0 * open / period as f64) as u64;
            all += samples;
            budget.account(&Interval {
                program_ns: 1e8,
                own_ns: 20_000.0 + samples as f64 * HANDLING,
                handling_ns: (samples >= 100).then_some(HANDLING),
                samples,
                open,
                ..Interval::default()
            });
        }
        (budget.cost().unwrap(), all)
    }

    proptest! {
        #[test]
        fn the_budget_is_kept_and_used(share in 0.01f64..0.1, rate in 1e5f64..2e6) {
            let (cost, samples) = run(share, 60, |_| rate);
            prop_assert!(cost < share * 1.2, "{} of {}", cost, share);
            prop_assert!(samples > 0);
            let all = rate * (COSTS.sample_ns + HANDLING) / 1e9;
            prop_assert!(cost > (share * 0.8).min(all * 0.8), "{} of {}", cost, share);
        }

        #[test]
        fn bursts_are_kept_within_it_too(share in 0.01f64..0.1, every in 5u32..80, burst in 1e5f64..3e6) {
            let (cost, samples) = run(share, 120, |look| if look % every == 0 { burst } else { 0.0 });
            prop_assert!(cost < share * 1.2, "{} of {}", cost, share);
            prop_assert!(samples > 0);
        }
    }

    #[test]
    fn what_fits_is_seen_whole() {
        let mut budget = Budget::new(0.02, COSTS);
        for _ in 0..100 {
            let interval = Interval {
                program_ns: 1e8,
                own_ns: 50_000.0,
                samples: 300,
                open: 1.0,
                ..Interval::default()
            };
            let rate = budget.account(&interval);
            assert_eq!((rate.period, rate.running), (1, true));
        }
    }

    /// `seconds` of a program of one thread with this many pages, which the kernel scans on our request, with the given
    /// costs of a look and a sample. Returns the share spent, and the rate at its slowest and at the end.
    fn attend(
        budget: &mut Budget,
        seconds: f64,
        pages: f64,
        look_ns: f64,
        handling_ns: f64,
    ) -> (f64, Rate, Rate) {
        let (mut wall, mut spent, mut slowest) = (0.0, 0.0, budget.rate());
        while wall < seconds {
            let Rate {
                period,
                running,
                look,
                scan_ms,
            } = budget.rate();
            let passes = look.as_secs_f64() / (f64::from(scan_ms.unwrap()) / 1e3);
            let hints = pages * passes;
            let open = f64::from(u8::from(running));
            let samples = (hints * open / period as f64) as u64;
            let rate = budget.account(&Interval {
                program_ns: look.as_nanos() as f64,
                own_ns: samples as f64 * handling_ns,
                handling_ns: (samples >= 100).then_some(handling_ns),
                upkeep_ns: look_ns,
                samples,
                hints: samples,
                open,
                wall: look,
            });
            slowest.look = slowest.look.max(rate.look);
            slowest.scan_ms = slowest.scan_ms.max(rate.scan_ms);
            // The actual cost, whatever the account assumed.
            spent += hints * MINOR_NS + samples as f64 * (handling_ns + COSTS.sample_ns) + look_ns;
            wall += look.as_secs_f64();
        }
        (spent / (wall * 1e9), slowest, budget.rate())
    }

    const MINOR_NS: f64 = 700.0;

    proptest! {
        #[test]
        fn whose_handling_is_expensive_looks_and_has_scanned_less_often_and_comes_back(
            share in 0.01f64..0.05, pages in 1e3f64..3e4, look_ns in 1e5f64..9e6, handling_ns in 1e3f64..2e4,
            running: bool,
        ) {
            let mut budget = Budget::new(share, COSTS);
            if running {
                budget.expect_bursts();
            }
            budget.own_scans(100, MINOR_NS);
            let (cost, slowest, _) = attend(&mut budget, 240.0, pages, look_ns, handling_ns);
            prop_assert!(cost < share * 1.25, "{} of {}", cost, share);
            // The least possible cost, as no longer period is allowed.
            let reported = (handling_ns + COSTS.sample_ns) / LONGEST_OF_RUNNING as f64;
            let at_least = pages * 10.0 * (MINOR_NS + reported) + look_ns * 20.0;
            if at_least > 2e9 * share && running {
                prop_assert!(slowest.look > Pace::default().look() && slowest.scan_ms > Some(100), "{:?}", slowest);
            }
            let (_, _, rate) = attend(&mut budget, 600.0, 10.0, 0.0, 0.0);
            prop_assert_eq!((rate.look, rate.scan_ms, rate.running), (Pace::default().look(), Some(100), true));
        }
    }

    #[test]
    fn who_has_slept_is_observed_soon_after() {
        let mut budget = Budget::new(0.02, COSTS);
        let asleep = Interval {
            upkeep_ns: 1e5,
            open: 1.0,
            ..Interval::default()
        };
        for _ in 0..100_000 {
            budget.account(&asleep);
        }
        assert!(!budget.rate().running);
        let awake = Interval {
            program_ns: 1e8,
            ..Interval::default()
        };
        assert!((0..20).any(|_| budget.account(&awake).running));
    }

    #[test]
    fn an_idle_program_is_not_observed_at_its_cost() {
        let mut budget = Budget::new(0.02, COSTS);
        let idle = Interval {
            own_ns: 1e6,
            samples: 0,
            open: 1.0,
            ..Interval::default()
        };
        for _ in 0..200 {
            budget.account(&idle);
        }
        assert!(!budget.rate().running);
        assert_eq!(budget.cost(), None);
    }
}
