//! What samples say about exclusivity, and how surely.
//!
//! Hinting faults sample *pages per scan*: a page used fifty times as often is not seen more often.
//! So pages weigh alike here, a page with too few samples is not judged, and a share of samples is
//! an interval, not a figure.

use crate::{Affinity, Histogram, NodeCounts};
use nodewise_profile::ObjectId;
use std::collections::BTreeMap;

/// The 97.5 % quantile of the normal distribution: two-sided 95 %.
const Z: f64 = 1.959_964;

/// A share between its bounds, at 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// What was seen.
    pub value: f64,
    /// Upper bound.
    pub high: f64,
}

impl Interval {
    /// The Wilson score interval (Wilson 1927) of a share seen in so many samples. Decayed samples
    /// count by Kish's effective number, (Σw)² / Σw².
    #[must_use]
    pub fn wilson(share: f64, samples: f64) -> Self {
        let (share, per_sample) = (share.clamp(0.0, 1.0), Z * Z / samples.max(f64::MIN_POSITIVE));
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
}

/// Exclusivity of some pages by samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Pages with samples.
    pub pages: u64,
    /// Those with enough to be judged.
    pub judged: u64,
    /// Mean over the judged pages of E_Page (Diener et al., equation 1), and of its bounds; `None` if no page is judged.
    pub exclusivity: Option<Interval>,
}

/// Sums over pages, from which [`Sampled`] follows.
#[derive(Clone, Copy, Default)]
struct Sums {
    pages: u64,
    judged: u64,
    bounds: [f64; 3],
}

impl Sums {
    fn add(&mut self, counts: &NodeCounts, minimum: u64) {
        self.pages += 1;
        if counts.total() >= minimum.max(1) {
            let page = Interval::wilson(counts.exclusivity(), counts.total() as f64);
            self.judged += 1;
            self.bounds
                .iter_mut()
                .zip([page.low, page.value, page.high])
                .for_each(|(sum, x)| *sum += x);
        }
    }

    fn absorb(&mut self, other: &Self) {
        self.pages += other.pages;
        self.judged += other.judged;
        self.bounds
            .iter_mut()
            .zip(other.bounds)
            .for_each(|(sum, x)| *sum += x);
    }

    /// No exclusivity is below 1 / nodes. (A page's own bound may be: cut there, a few unlucky pages
    /// would lift the mean above the truth.)
    fn finish(&self, nodes: usize) -> Sampled {
        let [low, value, high] = self.bounds.map(|sum| sum / self.judged.max(1) as f64);
        let low = low.max(1.0 / nodes as f64);
        Sampled {
            pages: self.pages,
            judged: self.judged,
            exclusivity: (self.judged > 0).then_some(Interval { low, value, high }),
        }
    }
}

/// Sampled exclusivity of the program and of each object with samples, on a machine with `nodes`
/// nodes. A page is judged from `minimum` samples on.
#[must_use]
pub fn sampled_exclusivity(
    histogram: &Histogram,
    affinity: &Affinity,
    nodes: usize,
    minimum: u32,
) -> (Sampled, BTreeMap<ObjectId, Sampled>) {
    let mut objects: BTreeMap<ObjectId, Sums> = BTreeMap::new();
    let mut counts = NodeCounts::new(nodes);
    for page in histogram.iter() {
        let counts = counts.load(page.entries, affinity);
        objects
            .entry(page.object)
            .or_default()
            .add(counts, minimum.into());
    }
    let mut program = Sums::default();
    objects.values().for_each(|sums| program.absorb(sums));
    let objects = objects.into_iter().map(|(id, sums)| (id, sums.finish(nodes)));
    (program.finish(nodes), objects.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{histogram, thread_per_node};
    use proptest::prelude::*;

    fn program(pages: &[Vec<u64>], minimum: u32) -> Sampled {
        let nodes = pages[0].len();
        sampled_exclusivity(&histogram(pages), &thread_per_node(nodes as u32), nodes, minimum).0
    }

    #[test]
    fn the_interval_is_wilsons() {
        // 8 of 10: (0.8 + 0.1921 ± √(0.8·0.2·0.3841 + 0.0369)) / 1.3841, as tables give it.
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
    fn pages_weigh_alike_and_few_samples_are_not_judged() {
        // An intense page does not outweigh a quiet one; the third has too few samples.
        let seen = program(&[vec![900, 100], vec![5, 5], vec![1, 0]], 4);
        assert_eq!((seen.pages, seen.judged), (3, 2));
        assert!((seen.exclusivity.unwrap().value - 0.7).abs() < 1e-12);
        assert_eq!(program(&[vec![2, 1]], 4).exclusivity, None);
    }

    proptest! {
        #[test]
        fn what_was_seen_lies_within_and_more_samples_narrow_it(hits in 0u32..200, misses in 0u32..200, more in 2u32..9) {
            prop_assume!(hits + misses > 0);
            let samples = f64::from(hits + misses);
            let share = f64::from(hits) / samples;
            let (few, many) = (Interval::wilson(share, samples), Interval::wilson(share, samples * f64::from(more)));
            for i in [few, many] {
                prop_assert!(0.0 <= i.low && i.low <= i.value && i.value <= i.high && i.high <= 1.0, "{:?}", i);
            }
            prop_assert!(many.high - many.low < few.high - few.low);
        }

        /// A binomial draw's interval holds the true share: at 95 % a single one may not, the mean over
        /// a hundred pages' bounds must.
        #[test]
        fn the_mean_interval_holds_the_truth(share in 0.5f64..1.0, samples in 4u32..40, seed in any::<u64>()) {
            // SplitMix64.
            let mut state = seed;
            let mut draw = || {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let x = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
            };
            let pages: Vec<Vec<u64>> = (0..100)
                .map(|_| (0..samples).fold(vec![0, 0], |mut page, _| {
                    page[usize::from(draw() >= share)] += 1;
                    page
                }))
                .collect();
            let interval = program(&pages, 1).exclusivity.unwrap();
            prop_assert!(interval.low <= share && share <= interval.high, "{} outside {:?}", share, interval);
        }
    }
}
