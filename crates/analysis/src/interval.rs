//! Confidence intervals of shares.

/// The 97.5 % quantile of the normal distribution: two-sided 95 %.
pub(crate) const Z_975: f64 = 1.959_964;

/// Bounds within this many per cent of the smallest or largest possible value are not worth stating.
const NEGLIGIBLE_PERCENT: f64 = 5.0;

/// A share with its two-sided 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound of the 95 % interval, 0 to 1.
    pub low: f64,
    /// The point estimate: the share observed.
    pub value: f64,
    /// Upper bound of the 95 % interval, 0 to 1.
    pub high: f64,
}

impl Interval {
    /// The Wilson score interval (Wilson 1927) of a share seen in this many samples, which need not be a
    /// whole number: see `effective_samples`.
    #[must_use]
    pub fn wilson(share: f64, samples: f64) -> Self {
        let (share, per_sample) = (
            share.clamp(0.0, 1.0),
            Z_975 * Z_975 / samples.max(f64::MIN_POSITIVE),
        );
        let middle = share + per_sample / 2.0;
        let spread = (share * (1.0 - share) * per_sample + per_sample * per_sample / 4.0).sqrt();
        let bound = |x: f64| (x / (1.0 + per_sample)).clamp(0.0, 1.0);
        // Rounding must not push what was seen out of its own interval.
        Self {
            low: bound(middle - spread).min(share),
            value: share,
            high: bound(middle + spread).max(share),
        }
    }

    /// The interval in words, in whole per cents rounded outwards, for a share that cannot be below `least`. Says so if
    /// the bounds exclude nothing.
    #[must_use]
    pub fn words(self, least: f64) -> String {
        let known = self.bounds_in_words(least);
        known.unwrap_or_else(|| "samples cannot say".to_owned())
    }

    /// The bounds as [`Interval::words`] writes them; `None` if they exclude nothing.
    #[must_use]
    pub fn bounds_in_words(self, least: f64) -> Option<String> {
        let (low, high) = ((self.low * 100.0).floor(), (self.high * 100.0).ceil());
        match (
            low <= 100.0 * least + NEGLIGIBLE_PERCENT,
            high >= 100.0 - NEGLIGIBLE_PERCENT,
        ) {
            _ if low >= 100.0 => Some("100 %".to_owned()),
            (true, true) => None,
            (true, false) => Some(format!("at most {high:.0} %")),
            (false, true) => Some(format!("at least {low:.0} %")),
            (false, false) => Some(format!("{low:.0} – {high:.0} %")),
        }
    }

    /// The interval if each unit outside the share may weigh up to `factor` times as much or as little as one inside
    /// it: divides the odds of the lower bound by `factor` and multiplies those of the upper bound.
    ///
    /// For a mean of shares these bounds are conservative (Jensen's inequality): the share is a convex function of
    /// itself with divided odds, and a concave one with multiplied odds.
    #[must_use]
    pub fn with_scaled_odds(self, factor: f64) -> Self {
        let scaled = |share: f64, odds: f64| share * odds / (share * odds + (1.0 - share));
        Self {
            low: scaled(self.low, 1.0 / factor).min(self.low),
            value: self.value,
            high: scaled(self.high, factor).max(self.high),
        }
    }

    /// The interval of a mean in which an unknown fraction `of` of the terms may contribute anything from 0 to 1.
    #[must_use]
    pub fn widened_by_unknown(self, of: f64) -> Self {
        Self {
            low: (self.low - of).max(0.0),
            value: self.value,
            high: (self.high + of).min(1.0),
        }
    }

    /// The interval with its lower bound raised to a value that no share can be below.
    #[must_use]
    pub fn at_least(self, least: f64) -> Self {
        Self {
            low: self.low.max(least).min(self.value),
            value: self.value,
            high: self.high.max(least),
        }
    }
}

/// The number of independent samples that would tell as much about a mean share as dependent samples whose mean has
/// this variance (Kish's design effect). With [`Interval::wilson`] it gives Korn and Graubard's 1998 interval for
/// clustered shares. `most` is an upper limit: the result if nothing varies, which is no proof of certainty.
pub(crate) fn effective_samples(mean: f64, variance: f64, most: f64) -> f64 {
    match variance > 0.0 {
        true => (mean * (1.0 - mean) / variance).min(most),
        false => most,
    }
}

/// The variance of the mean of clusters of equal size, increased by Student's t for few clusters. 0 for a single
/// cluster, which shows no variance.
pub(crate) fn variance_between_clusters(means: &[f64]) -> f64 {
    let clusters = means.len() as f64;
    if means.len() < 2 {
        return 0.0;
    }
    let mean = means.iter().sum::<f64>() / clusters;
    let squares: f64 = means.iter().map(|m| (m - mean).powi(2)).sum();
    let student_t_quantile = student_t_quantile(clusters - 1.0) / Z_975;
    squares / (clusters * (clusters - 1.0)) * student_t_quantile * student_t_quantile
}

/// The 97.5 % quantile of Student's t, by the first terms of its expansion about the normal quantile (Fisher and
/// Cornish 1960). Less than 2 % too small from 4 degrees of freedom on.
pub(crate) fn student_t_quantile(freedom: f64) -> f64 {
    Z_975
        + (Z_975.powi(3) + Z_975) / (4.0 * freedom)
        + (5.0 * Z_975.powi(5) + 16.0 * Z_975.powi(3) + 3.0 * Z_975) / (96.0 * freedom * freedom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_interval_is_wilsons() {
        // 8 of 10: (0.8 + 0.1921 ± √(0.8·0.2·0.3841 + 0.0369)) / 1.3841, as published tables have it.
        let interval = Interval::wilson(0.8, 10.0);
        assert!(
            (interval.low - 0.490).abs() < 1e-3 && (interval.high - 0.943).abs() < 1e-3,
            "{interval:?}"
        );
        let certain = Interval::wilson(1.0, 4.0);
        assert!(
            (certain.low - 0.510).abs() < 1e-3 && certain.high == 1.0,
            "{certain:?}"
        );
    }

    #[test]
    fn students_t_is_as_in_tables() {
        for (freedom, t) in [(4.0, 2.776), (9.0, 2.262), (30.0, 2.042)] {
            assert!(
                (student_t_quantile(freedom) / t - 1.0).abs() < 0.02,
                "{freedom}: {}",
                student_t_quantile(freedom)
            );
        }
    }

    #[test]
    fn clusters_count_by_their_spread() {
        // The variance of the mean is 0.1 / (5 · 4) = 0.005, so 0.25 / 0.005 samples before the correction by Student's
        // t.
        let means = [0.3, 0.4, 0.5, 0.6, 0.7];
        let five = effective_samples(0.5, variance_between_clusters(&means), 1e9);
        assert!(
            (five - 0.25 / 0.005 * (Z_975 / student_t_quantile(4.0)).powi(2)).abs() < 1e-9,
            "{five}"
        );
        assert_eq!(
            effective_samples(1.0, variance_between_clusters(&[1.0; 5]), 20.0),
            20.0
        );
        assert_eq!(
            effective_samples(0.5, variance_between_clusters(&means), 9.0),
            9.0
        );
    }

    #[test]
    fn words_claim_no_more_than_the_bounds() {
        let words = |low, high, least| {
            Interval {
                low,
                value: low,
                high,
            }
            .words(least)
        };
        assert_eq!(words(0.04, 0.96, 0.0), "samples cannot say");
        assert_eq!(words(0.29, 1.0, 0.25), "samples cannot say");
        assert_eq!(words(1.0, 1.0, 1.0), "100 %");
        assert_eq!(words(0.319, 0.999, 0.25), "at least 31 %");
        assert_eq!(words(0.0, 0.612, 0.0), "at most 62 %");
        assert_eq!(words(0.101, 0.202, 0.0), "10 – 21 %");
    }

    proptest! {
        #[test]
        fn what_was_seen_lies_within_and_more_samples_narrow_it(hits in 0u32..200, misses in 0u32..200, more in 2u32..9) {
            prop_assume!(hits + misses > 0);
            let samples = f64::from(hits + misses);
            let share = f64::from(hits) / samples;
            let (few, many) = (Interval::wilson(share, samples), Interval::wilson(share, samples * f64::from(more)));
            for i in [few, many, few.with_scaled_odds(3.0), many.with_scaled_odds(3.0)] {
                prop_assert!(0.0 <= i.low && i.low <= i.value && i.value <= i.high && i.high <= 1.0, "{:?}", i);
            }
            prop_assert!(many.high - many.low < few.high - few.low);
        }

        /// For any shares and weights of the pages, the interval of the mean contains the mean of the weighted shares.
        #[test]
        fn a_mean_of_weighed_shares_is_within_the_weighed_mean(
            pages in proptest::collection::vec((0.0f64..=1.0, -1.0f64..=1.0), 1..40), factor in 1.0f64..20.0,
        ) {
            let count = pages.len() as f64;
            let mean = pages.iter().map(|p| p.0).sum::<f64>() / count;
            let weighted = pages.iter().map(|(p, w)| p / (p + (1.0 - p) * factor.powf(*w))).sum::<f64>() / count;
            let bounds = Interval { low: mean, value: mean, high: mean }.with_scaled_odds(factor);
            prop_assert!(bounds.low - 1e-12 <= weighted && weighted <= bounds.high + 1e-12, "{} outside {:?}", weighted, bounds);
        }
    }
}
