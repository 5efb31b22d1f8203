//! How much may be observed: an account that the program's CPU time fills and every sample draws on.

use super::pace::Pace;
use std::time::Duration;

/// What observing costs, nanoseconds; see [`Budget::new`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// A fault that is reported, in the kernel.
    pub sample_ns: f64,
    /// A fault that only counts towards the next report.
    pub passed_ns: f64,
}

/// What happened since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spell {
    /// CPU time of the observed program.
    pub program_ns: f64,
    /// Our own, of what was reported.
    pub own_ns: f64,
    /// Our own and the program's, of what does not depend on that.
    pub upkeep_ns: f64,
    /// Faults reported to us, whoever's.
    pub samples: u64,
    /// Hint faults among them.
    pub hints: u64,
    /// Faults were reported during this share of the time.
    pub open: f64,
    /// By the clock.
    pub wall: Duration,
}

/// How faults are to be reported until the next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// One of so many.
    pub period: u64,
    /// Whether at all.
    pub running: bool,
    /// When to look next, unless much has happened earlier.
    pub look: Duration,
    /// Milliseconds between the kernel's scans, where they are ours: see [`Budget::own_scans`].
    pub scan_ms: Option<u32>,
}

/// Keeps the cost at a share of the program's CPU time.
///
/// The account may hold what `SAVED_NS` of CPU time fill, and begins so: programs touch much at their start,
/// and hint faults come in bursts. It may fall as far behind before nothing is reported for a while. The period
/// is what makes faults fit as they come in: a little more while there are savings, less while there are debts.
/// What does not depend on reported faults, looks and scans, becomes rarer while there are debts.
#[derive(Clone, Debug)]
pub struct Budget {
    share: f64,
    costs: Costs,
    adapts: bool,
    balance_ns: f64,
    rate: Rate,
    pace: Pace,
    /// A hint fault on our account beyond its report, nanoseconds.
    asked_ns: f64,
    program_ns: f64,
    spent_ns: f64,
    /// CPU time in which faults were reported.
    seen_ns: f64,
    /// Smoothed: faults a nanosecond of CPU time, hints among them, our own cost of a sample.
    density: f64,
    hints: f64,
    handling_ns: f64,
}

/// CPU time whose share may be saved up, and owed.
const SAVED_NS: f64 = 1e9;
/// Weight of a spell whose CPU time is this.
const MEMORY_NS: f64 = 5e8;
/// Periods are primes, so that they fall into step with nothing.
const PERIODS: [u64; 24] = [
    1, 2, 3, 5, 7, 11, 17, 23, 29, 37, 47, 61, 79, 101, 127, 167, 211, 263, 337, 431, 547, 1009, 2053, 4099,
];

impl Budget {
    /// `share` of the program's CPU time; `adapts` where the period can be set.
    #[must_use]
    pub fn new(share: f64, costs: Costs, adapts: bool) -> Self {
        Self {
            share,
            costs,
            adapts,
            balance_ns: share * SAVED_NS,
            rate: Rate {
                period: 1,
                running: true,
                look: Pace::default().look(),
                scan_ms: None,
            },
            pace: Pace::default(),
            asked_ns: 0.0,
            program_ns: 0.0,
            spent_ns: 0.0,
            seen_ns: 0.0,
            density: 0.0,
            hints: 0.0,
            handling_ns: costs.sample_ns,
        }
    }

    /// The kernel scans at our word, every so many milliseconds: each hint fault is on our account, reported or
    /// not, at this cost.
    pub fn own_scans(&mut self, ms: u32, hint_ns: f64) {
        self.asked_ns = hint_ns;
        self.pace.own_scans(ms);
        self.rate.scan_ms = self.pace.scan_ms();
    }

    /// Accounts for a spell; says how to go on.
    pub fn settle(&mut self, spell: &Spell) -> Rate {
        let samples = spell.samples as f64;
        let faults = samples * self.rate.period as f64;
        self.learn(spell, faults);
        let kernel = samples * self.costs.sample_ns + (faults - samples) * self.costs.passed_ns;
        let asked = self.hints_of(spell) * self.asked_ns;
        let spent = spell.own_ns + kernel + asked;
        self.program_ns += spell.program_ns;
        self.spent_ns += spent + spell.upkeep_ns;
        let most = self.share * SAVED_NS;
        let income = self.share * spell.program_ns;
        let balance = (self.balance_ns + income - spent).min(most);
        // A program that slept for a day owes no more for that than two seconds.
        let asleep = income < spell.upkeep_ns;
        let least = if asleep {
            balance.min(-2.0 * most)
        } else {
            f64::NEG_INFINITY
        };
        self.balance_ns = (balance - spell.upkeep_ns).max(least);
        self.rate.running = match self.rate.running {
            true => self.balance_ns > -most,
            false => self.balance_ns > -most / 2.0,
        };
        if self.adapts {
            self.rate.period = self.fitting();
        }
        self.slow_down_or_recover(spell.wall);
        self.rate
    }

    /// Hint faults, reported or not.
    fn hints_of(&self, spell: &Spell) -> f64 {
        let reported = (spell.hints * self.rate.period) as f64;
        reported + self.hints * spell.program_ns * (1.0 - spell.open)
    }

    fn slow_down_or_recover(&mut self, wall: Duration) {
        self.pace.settle(wall, self.savings());
        let scan_ms = self.pace.scan_ms();
        if let (Some(before), Some(now)) = (self.rate.scan_ms, scan_ms) {
            self.hints *= f64::from(before) / f64::from(now);
        }
        (self.rate.look, self.rate.scan_ms) = (self.pace.look(), scan_ms);
    }

    /// What is left, as a share of what the account can hold; below 0 it is owed.
    #[must_use]
    pub fn savings(&self) -> f64 {
        self.balance_ns / (self.share * SAVED_NS)
    }

    fn learn(&mut self, spell: &Spell, faults: f64) {
        let seen = spell.program_ns * spell.open;
        if seen > 0.0 {
            let weight = seen / (seen + MEMORY_NS);
            let hints = (spell.hints * self.rate.period) as f64;
            self.density += weight * (faults / seen - self.density);
            self.seen_ns += seen;
            self.hints += seen / self.seen_ns.min(MEMORY_NS + seen) * (hints / seen - self.hints);
        }
        if spell.samples >= 100 {
            self.handling_ns += 0.3 * (spell.own_ns / spell.samples as f64 - self.handling_ns);
        }
    }

    /// The shortest period whose cost fits what comes in. Between two periods that do not fit exactly it goes
    /// to and fro.
    fn fitting(&self) -> u64 {
        let sample = self.costs.sample_ns + self.handling_ns;
        let cost = |period: u64| self.density * (sample / period as f64 + self.costs.passed_ns);
        let share = self.share * (1.0 + self.savings()).clamp(0.5, 2.0);
        let fits = |period: &u64| cost(*period) <= share;
        PERIODS
            .into_iter()
            .find(fits)
            .unwrap_or(PERIODS[PERIODS.len() - 1])
    }

    /// What was spent, as a share of the program's CPU time; `None` before it had any.
    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        (self.program_ns > 0.0).then(|| self.spent_ns / self.program_ns)
    }

    /// What a reported fault costs altogether, nanoseconds.
    #[must_use]
    pub fn sample_ns(&self) -> f64 {
        self.costs.sample_ns + self.handling_ns
    }

    /// How faults are reported at the moment.
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

    /// `seconds` of a program with one CPU's worth of `threads`, which makes so many faults a second of CPU
    /// time, looked at ten times a second.
    fn run(share: f64, adapts: bool, seconds: u32, faults: impl Fn(u32) -> f64) -> (f64, u64) {
        let mut budget = Budget::new(share, COSTS, adapts);
        let mut all = 0;
        for look in 0..seconds * 10 {
            let Rate { period, running, .. } = budget.rate();
            let open = f64::from(u8::from(running));
            let samples = (faults(look) / 10.0 * open / period as f64) as u64;
            all += samples;
            budget.settle(&Spell {
                program_ns: 1e8,
                own_ns: 20_000.0 + samples as f64 * HANDLING,
                samples,
                open,
                ..Spell::default()
            });
        }
        (budget.cost().unwrap(), all)
    }

    proptest! {
        #[test]
        fn the_budget_is_kept_and_used(share in 0.01f64..0.1, rate in 1e5f64..2e6, adapts: bool) {
            let (cost, samples) = run(share, adapts, 60, |_| rate);
            prop_assert!(cost < share * 1.2, "{} of {}", cost, share);
            prop_assert!(samples > 0);
            let all = rate * (COSTS.sample_ns + HANDLING) / 1e9;
            prop_assert!(cost > (share * 0.8).min(all * 0.8), "{} of {}", cost, share);
        }

        #[test]
        fn bursts_are_kept_within_it_too(share in 0.01f64..0.1, every in 5u32..80, burst in 1e5f64..3e6) {
            let (cost, samples) = run(share, true, 120, |look| if look % every == 0 { burst } else { 0.0 });
            prop_assert!(cost < share * 1.2, "{} of {}", cost, share);
            prop_assert!(samples > 0);
        }
    }

    #[test]
    fn what_fits_is_seen_whole() {
        let mut budget = Budget::new(0.02, COSTS, true);
        for _ in 0..100 {
            let spell = Spell {
                program_ns: 1e8,
                own_ns: 50_000.0,
                samples: 300,
                open: 1.0,
                ..Spell::default()
            };
            let rate = budget.settle(&spell);
            assert_eq!((rate.period, rate.running), (1, true));
        }
    }

    /// `seconds` of a program of one thread with so many pages, which the kernel scans at our word; a look and
    /// a sample of it cost us so much. The share spent, and how it went on at its slowest and at the end.
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
            let rate = budget.settle(&Spell {
                program_ns: look.as_nanos() as f64,
                own_ns: samples as f64 * handling_ns,
                upkeep_ns: look_ns,
                samples,
                hints: samples,
                open,
                wall: look,
            });
            slowest.look = slowest.look.max(rate.look);
            slowest.scan_ms = slowest.scan_ms.max(rate.scan_ms);
            // What really was, whatever the account took it for.
            spent += hints * MINOR_NS + samples as f64 * (handling_ns + COSTS.sample_ns) + look_ns;
            wall += look.as_secs_f64();
        }
        (spent / (wall * 1e9), slowest, budget.rate())
    }

    const MINOR_NS: f64 = 700.0;

    proptest! {
        #[test]
        fn whose_handling_is_expensive_looks_and_has_scanned_less_often_and_comes_back(
            share in 0.01f64..0.05, pages in 1e3f64..3e4, look_ns in 1e5f64..9e6, handling_ns in 1e3f64..2e4, adapts: bool,
        ) {
            let mut budget = Budget::new(share, COSTS, adapts);
            budget.own_scans(100, MINOR_NS);
            let (cost, slowest, _) = attend(&mut budget, 240.0, pages, look_ns, handling_ns);
            prop_assert!(cost < share * 1.25, "{} of {}", cost, share);
            let at_first = pages * 10.0 * (MINOR_NS + handling_ns + COSTS.sample_ns) + look_ns * 20.0;
            if at_first > 2e9 * share && !adapts {
                prop_assert!(slowest.look > Pace::default().look() && slowest.scan_ms > Some(100), "{:?}", slowest);
            }
            let (_, _, rate) = attend(&mut budget, 600.0, 10.0, 0.0, 0.0);
            prop_assert_eq!((rate.look, rate.scan_ms, rate.running), (Pace::default().look(), Some(100), true));
        }
    }

    #[test]
    fn who_has_slept_is_observed_soon_after() {
        let mut budget = Budget::new(0.02, COSTS, true);
        let asleep = Spell {
            upkeep_ns: 1e5,
            open: 1.0,
            ..Spell::default()
        };
        for _ in 0..100_000 {
            budget.settle(&asleep);
        }
        assert!(!budget.rate().running);
        let awake = Spell {
            program_ns: 1e8,
            ..Spell::default()
        };
        assert!((0..20).any(|_| budget.settle(&awake).running));
    }

    #[test]
    fn an_idle_program_is_not_observed_at_its_cost() {
        let mut budget = Budget::new(0.02, COSTS, true);
        let idle = Spell {
            own_ns: 1e6,
            samples: 0,
            open: 1.0,
            ..Spell::default()
        };
        for _ in 0..200 {
            budget.settle(&idle);
        }
        assert!(!budget.rate().running);
        assert_eq!(budget.cost(), None);
    }
}
