//! How much may be observed: an account that the program's CPU time fills and every sample draws on.

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
    /// Our own.
    pub own_ns: f64,
    /// Faults reported to us, whoever's.
    pub samples: u64,
    /// What the kernel did because we told it to, beyond that.
    pub asked_ns: f64,
    /// Faults were reported during this share of the time.
    pub open: f64,
}

/// How faults are to be reported until the next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// One of so many.
    pub period: u64,
    /// Whether at all.
    pub running: bool,
}

/// Keeps the cost at a share of the program's CPU time.
///
/// The account may hold what [`SAVED_NS`] of CPU time fill, and begins so: programs touch much at their start,
/// and hint faults come in bursts. It may fall as far behind before nothing is reported for a while. The period
/// is what makes faults fit as they come in: a little more while there are savings, less while there are debts.
#[derive(Clone, Debug)]
pub struct Budget {
    share: f64,
    costs: Costs,
    adapts: bool,
    balance_ns: f64,
    rate: Rate,
    program_ns: f64,
    spent_ns: f64,
    /// Smoothed: faults a nanosecond of CPU time, our own cost of a sample.
    density: f64,
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
            },
            program_ns: 0.0,
            spent_ns: 0.0,
            density: 0.0,
            handling_ns: costs.sample_ns,
        }
    }

    /// Accounts for a spell; says how to go on.
    pub fn settle(&mut self, spell: &Spell) -> Rate {
        let samples = spell.samples as f64;
        let faults = samples * self.rate.period as f64;
        let kernel = samples * self.costs.sample_ns + (faults - samples) * self.costs.passed_ns;
        let spent = spell.own_ns + kernel + spell.asked_ns;
        self.program_ns += spell.program_ns;
        self.spent_ns += spent;
        let most = self.share * SAVED_NS;
        self.balance_ns = (self.balance_ns + self.share * spell.program_ns - spent).min(most);
        self.learn(spell, faults);
        self.rate.running = match self.rate.running {
            true => self.balance_ns > -most,
            false => self.balance_ns > -most / 2.0,
        };
        if self.adapts {
            self.rate.period = self.fitting();
        }
        self.rate
    }

    fn learn(&mut self, spell: &Spell, faults: f64) {
        let seen = spell.program_ns * spell.open;
        if seen > 0.0 {
            let weight = seen / (seen + MEMORY_NS);
            self.density += weight * (faults / seen - self.density);
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
        let savings = self.balance_ns / (self.share * SAVED_NS);
        let share = self.share * (1.0 + savings).clamp(0.5, 2.0);
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
            let Rate { period, running } = budget.rate();
            let open = f64::from(u8::from(running));
            let samples = (faults(look) / 10.0 * open / period as f64) as u64;
            all += samples;
            budget.settle(&Spell {
                program_ns: 1e8,
                own_ns: 20_000.0 + samples as f64 * HANDLING,
                samples,
                asked_ns: 0.0,
                open,
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
                asked_ns: 0.0,
                open: 1.0,
            };
            assert_eq!(
                budget.settle(&spell),
                Rate {
                    period: 1,
                    running: true
                }
            );
        }
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
