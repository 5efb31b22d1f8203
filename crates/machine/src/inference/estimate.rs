//! A measured value with its confidence interval.

/// The median of repeated measurements, with a 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median of the samples.
    pub median: f64,
    /// Lower bound of the interval.
    pub low: f64,
    /// Upper bound of the interval.
    pub high: f64,
    /// Number of samples that it was made from.
    pub samples: u32,
}

impl Estimate {
    /// Median and 95 % interval by order statistics, which makes no assumption about the samples' distribution
    /// (Conover, *Practical Nonparametric Statistics*, 3.2). With fewer than six samples the interval is their whole
    /// range. `None` without samples.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let middle = *sorted.get(count / 2)?;
        let cut = outside(count);
        Some(Self {
            median: if count % 2 == 1 {
                middle
            } else {
                (sorted[count / 2 - 1] + middle) / 2.0
            },
            low: sorted[cut],
            high: sorted[count - 1 - cut],
            samples: u32::try_from(count).unwrap_or(u32::MAX),
        })
    }

    /// A value that is known exactly.
    #[must_use]
    pub fn exact(value: f64) -> Self {
        Self {
            median: value,
            low: value,
            high: value,
            samples: 1,
        }
    }

    /// Half of the interval's width, in the figure's unit.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Half of the interval's width as a share of the median.
    #[must_use]
    pub fn spread(&self) -> f64 {
        if self.median > 0.0 {
            self.half_width() / self.median
        } else {
            f64::INFINITY
        }
    }
}

/// How many samples to cut off at either end. The true median is outside the interval if at most this many samples lie
/// beyond it on one side, which happens with a probability of at most one in forty (tosses of a fair coin).
fn outside(count: usize) -> usize {
    let mut chance = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let (mut at_most, mut cut) = (chance, 0);
    while 2 * cut + 2 < count {
        chance *= (count - cut) as f64 / (cut + 1) as f64;
        at_most += chance;
        if 2.0 * at_most > 0.05 {
            break;
        }
        cut += 1;
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn intervals_are_those_of_the_tables() {
        let interval = |count: u32| {
            let samples: Vec<f64> = (1..=count).map(f64::from).collect();
            let estimate = Estimate::of(&samples).unwrap();
            (estimate.low, estimate.median, estimate.high)
        };
        // Ranks of the 95 % interval of a median: Conover, table A3.
        assert_eq!(interval(5), (1.0, 3.0, 5.0));
        assert_eq!(interval(6), (1.0, 3.5, 6.0));
        assert_eq!(interval(9), (2.0, 5.0, 8.0));
        assert_eq!(interval(20), (6.0, 10.5, 15.0));
        assert_eq!(Estimate::of(&[]), None);
    }

    proptest! {
        #[test]
        fn the_median_lies_in_its_interval_whatever_the_order(
            mut samples in proptest::collection::vec(1.0f64..100.0, 1..40)
        ) {
            let estimate = Estimate::of(&samples).unwrap();
            prop_assert!(estimate.low <= estimate.median && estimate.median <= estimate.high);
            samples.reverse();
            prop_assert_eq!(Some(estimate), Estimate::of(&samples));
        }
    }
}
