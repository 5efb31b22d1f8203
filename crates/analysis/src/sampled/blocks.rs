//! Standard errors of means over pages: variance between blocks of neighbouring pages, and the effect of leaving out one
//! slice at a time.

use super::estimate::{EXCEPTED, INTENSITY, Sampled};
use crate::interval::{Interval, Z, between, effective_samples, student};
use std::ops::{Add, AddAssign, Sub};

/// With fewer blocks or slices their differences say too little: all samples of a scan count as one.
const FEWEST: u64 = 5;

/// How many pages and samples there are of something: known before its [`Blocks`] are.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    samples: u64,
    pages: u64,
    judged: u64,
}

impl Count {
    /// A page, judged from `minimum` samples on.
    pub fn add(&mut self, samples: u64, minimum: u64) {
        self.samples += samples;
        self.pages += 1;
        self.judged += u64::from(samples >= minimum);
    }
}

/// The two figures of a page that bound its exclusivity, or sums of them.
#[derive(Clone, Copy, Default)]
pub(super) struct Scores {
    /// The largest share of its samples.
    seen: f64,
    /// Leave-one-out estimate of the same share; see [`left_out`].
    left_out: f64,
    /// One over the number of its samples.
    per_sample: f64,
}

impl Scores {
    /// Of a page with samples, by node.
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

/// Pages next to each other.
#[derive(Clone, Copy, Default)]
struct Block {
    pages: u64,
    scores: Scores,
}

/// The judged pages of something in the order of memory, as √n blocks: more pages make both more blocks
/// and longer ones, so that what depends on neighbours stays within a block. And what each slice changes.
pub(super) struct Blocks {
    count: Count,
    blocks: Vec<Block>,
    next: u64,
    /// By how much the sums over pages change without each slice.
    changes: Vec<Scores>,
}

impl Blocks {
    pub fn new(count: Count) -> Self {
        let blocks = Some(count.judged.isqrt()).filter(|b| *b >= FEWEST);
        Self {
            count,
            blocks: vec![Block::default(); blocks.unwrap_or(1) as usize],
            next: 0,
            changes: Vec::new(),
        }
    }

    /// The next judged page.
    pub fn add(&mut self, scores: Scores) {
        let at = self.next * self.blocks.len() as u64 / self.count.judged;
        let block = &mut self.blocks[at as usize];
        block.pages += 1;
        block.scores += scores;
        self.next += 1;
    }

    /// What a slice changes of the sums.
    pub fn leave_out(&mut self, change: Scores) {
        self.changes.push(change);
    }

    /// The mean of what is summed, and how many independent samples it is worth: no more than if a block
    /// were one page (so that pages which agree are not proof beyond that).
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
        let (variance, blocks) = match (self.changes.len() as u64) < FEWEST {
            true => (between(&means), 1),
            false => (between(&means) + jackknife(&changes), means.len()),
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
            exclusivity: shares.map(|s| s.weighed(INTENSITY).loosened(EXCEPTED).at_least(least)),
        }
    }
}

fn sum(counts: &[u64]) -> f64 {
    counts.iter().map(|n| *n as f64).sum()
}

/// The variance of a mean by what leaving out each slice changes (Tukey's jackknife), so much larger as Student's t
/// is than the normal distribution for so few.
fn jackknife(changes: &[f64]) -> f64 {
    let slices = changes.len() as f64;
    let mean = changes.iter().sum::<f64>() / slices;
    let squares: f64 = changes.iter().map(|c| (c - mean).powi(2)).sum();
    (slices - 1.0) / slices * squares * (student(slices - 1.0) / Z).powi(2)
}

/// Leave-one-out estimate of a page's exclusivity: the share of its samples that come from the node with most of the
/// page's *other* samples; ties count in equal parts.
pub(super) fn left_out(counts: &[u64]) -> f64 {
    let most = counts.iter().max().copied().unwrap_or(0);
    let with = |samples: u64| counts.iter().filter(|c| **c == samples).count();
    match with(most) {
        // One less of the dominant node's makes it one of those that had one less.
        1 => most as f64 / sum(counts) / (1 + with(most - 1)) as f64,
        // One less of any makes another the choice.
        _ => 0.0,
    }
}
