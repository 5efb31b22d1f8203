//! Standard errors of means over pages: the variance between blocks of neighbouring pages, and the effect of leaving
//! out one slice at a time.

use super::estimate::{MAX_INTENSITY_RATIO, Sampled, UNBOUNDED_INTENSITY_SHARE};
use crate::interval::{Interval, Z_975, effective_samples, student_t_quantile, variance_between_clusters};
use std::ops::{Add, AddAssign, Sub};

/// Smallest number of blocks or slices whose differences give a variance. With fewer, all samples of a scan count as
/// one.
const MIN_VARIANCE_GROUPS: u64 = 5;

/// Numbers of pages and samples, which must be known before [`Blocks`] are made.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    samples: u64,
    pages: u64,
    judged: u64,
}

impl Count {
    /// Counts a page; it is judged if it has at least `minimum` samples.
    pub fn add(&mut self, samples: u64, minimum: u64) {
        self.samples += samples;
        self.pages += 1;
        self.judged += u64::from(samples >= minimum);
    }
}

/// The two values that bound a page's exclusivity, or sums of these values over pages.
#[derive(Clone, Copy, Default)]
pub(super) struct Scores {
    /// The largest share of the page's samples that come from one node.
    seen: f64,
    /// Leave-one-out estimate of that share; see [`left_out`].
    left_out: f64,
    /// One over the number of the page's samples.
    per_sample: f64,
}

impl Scores {
    /// The scores of a page; `counts` are its samples by node.
    pub fn of(counts: &[u64]) -> Self {
        let total = sum(counts);
        let seen = counts.iter().max().map_or(0, |most| *most) as f64 / total;
        Self {
            seen,
            left_out: left_out(counts),
            per_sample: 1.0 / total,
        }
    }
}

impl Add for Scores {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            seen: self.seen + other.seen,
            left_out: self.left_out + other.left_out,
            per_sample: self.per_sample + other.per_sample,
        }
    }
}

impl Sub for Scores {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            seen: self.seen - other.seen,
            left_out: self.left_out - other.left_out,
            per_sample: self.per_sample - other.per_sample,
        }
    }
}

impl AddAssign for Scores {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// A block of neighbouring pages.
#[derive(Clone, Copy, Default)]
struct Block {
    pages: u64,
    scores: Scores,
}

/// The judged pages of an object or a program in address order, divided into √n blocks, and what changes without each
/// slice. With more pages there are both more and longer blocks, so that dependent neighbours are in the same block.
pub(super) struct Blocks {
    count: Count,
    blocks: Vec<Block>,
    next: u64,
    /// For each slice, the change of the sums over pages if the slice is left out.
    changes: Vec<Scores>,
}

impl Blocks {
    pub fn new(count: Count) -> Self {
        let blocks = Some(count.judged.isqrt()).filter(|b| *b >= MIN_VARIANCE_GROUPS);
        Self {
            count,
            blocks: vec![Block::default(); blocks.unwrap_or(1) as usize],
            next: 0,
            changes: Vec::new(),
        }
    }

    /// Adds the next judged page.
    pub fn add(&mut self, scores: Scores) {
        let at = self.next * self.blocks.len() as u64 / self.count.judged;
        let block = &mut self.blocks[at as usize];
        block.pages += 1;
        block.scores += scores;
        self.next += 1;
    }

    /// Adds the change of the sums if one slice is left out.
    pub fn leave_out(&mut self, change: Scores) {
        self.changes.push(change);
    }

    /// Interval of the mean of a summed value. The effective number of samples is at most the number that the same
    /// blocks would have with one page each, so that pages that agree are no further evidence.
    fn wilson(&self, sum: impl Fn(&Scores) -> f64) -> Interval {
        let judged = self.count.judged as f64;
        let all =
            |of: &dyn Fn(&Scores) -> f64| self.blocks.iter().map(|b| of(&b.scores)).sum::<f64>() / judged;
        let means: Vec<f64> = self
            .blocks
            .iter()
            .map(|b| sum(&b.scores) / b.pages as f64)
            .collect();
        let changes: Vec<f64> = self.changes.iter().map(|c| sum(c) / judged).collect();
        let (variance, blocks) = match (self.changes.len() as u64) < MIN_VARIANCE_GROUPS {
            true => (variance_between_clusters(&means), 1),
            false => (
                variance_between_clusters(&means) + jackknife(&changes),
                means.len(),
            ),
        };
        let most = blocks as f64 / all(&|s| s.per_sample);
        let mean = all(&sum);
        Interval::wilson(mean, effective_samples(mean, variance, most))
    }

    pub fn finish(&self, nodes: usize) -> Sampled {
        let shares = (self.count.judged > 0).then(|| {
            let seen = self.wilson(|s| s.seen);
            let low = self.wilson(|s| s.left_out).low;
            Interval { low, ..seen }
        });
        let least = 1.0 / nodes as f64;
        Sampled {
            samples: self.count.samples,
            pages: self.count.pages,
            judged: self.count.judged,
            unseen: 0.0,
            shares: shares.map(|s| s.at_least(least)),
            exclusivity: shares.map(|s| {
                s.with_scaled_odds(MAX_INTENSITY_RATIO)
                    .widened_by_unknown(UNBOUNDED_INTENSITY_SHARE)
                    .at_least(least)
            }),
        }
    }
}

fn sum(counts: &[u64]) -> f64 {
    counts.iter().map(|n| *n as f64).sum()
}

/// The variance of a mean by leaving out one slice at a time (Tukey's jackknife), increased by the squared ratio of
/// Student's t to the normal quantile.
fn jackknife(changes: &[f64]) -> f64 {
    let slices = changes.len() as f64;
    let mean = changes.iter().sum::<f64>() / slices;
    let squares: f64 = changes.iter().map(|c| (c - mean).powi(2)).sum();
    (slices - 1.0) / slices * squares * (student_t_quantile(slices - 1.0) / Z_975).powi(2)
}

/// Leave-one-out estimate of a page's exclusivity: the share of its samples that come from the node with most of the
/// page's *other* samples. If several nodes are tied, each counts in equal parts.
pub(super) fn left_out(counts: &[u64]) -> f64 {
    let most = counts.iter().max().copied().unwrap_or(0);
    let with = |samples: u64| counts.iter().filter(|c| **c == samples).count();
    match with(most) {
        // Without one sample of the dominant node, that node is tied with those that have one sample fewer.
        1 => most as f64 / sum(counts) / (1 + with(most - 1)) as f64,
        // Without one sample of any tied node, another node has most.
        _ => 0.0,
    }
}
