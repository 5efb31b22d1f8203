//! What samples say about exclusivity, and how surely.
//!
//! Hinting faults sample *pages per scan*: a page used fifty times as often is not seen more often.
//! So pages weigh alike here, a page with too few samples is not judged, and a share is an interval, not
//! a figure. It has two parts:
//!
//! - **Chance.** The mean over pages of the largest share of their *samples*. The largest of shares is
//!   too large on average; the share of the node that the other samples would choose, sample by sample
//!   left out, is too small on average. One bounds it above, the other below. Neighbouring pages are seen
//!   in the same pass of a scan, by the same thread: so what counts is how blocks of pages differ.
//! - **What samples do not see.** How many *accesses* one stands for: see [`INTENSITY`] and [`EXCEPTED`].

use crate::interval::{Interval, effective_samples};
use crate::{Affinity, Histogram, NodeCounts};
use nodewise_profile::ObjectId;
use std::collections::BTreeMap;

/// What is assumed of intensity, of which samples say nothing: a sample of one node's stands for at most so
/// many times as many accesses to the page as one of another's.
///
/// A stencil's owner makes six to eight accesses to each element where a neighbour reads it once. One who
/// transforms rows in place reads and writes each element log₂ of a row's length times, where others fetch it
/// once: 32 for rows of 65,536.
pub const INTENSITY: f64 = 32.0;

/// The share of an object's pages of which not even that is assumed: a flag, an end or a key that others look
/// at alone makes one access of theirs stand beside a thousand of the owner's.
pub const EXCEPTED: f64 = 0.02;

/// With fewer blocks their differences say too little: all samples of a scan count as one.
const FEWEST_BLOCKS: u64 = 5;

/// Exclusivity of some pages by samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Pages with samples.
    pub pages: u64,
    /// Those with enough to be judged.
    pub judged: u64,
    /// The share of *samples* from the node with most, mean over the judged pages; `None` if no page is judged.
    pub shares: Option<Interval>,
    /// E_Page (Diener et al., equation 1), the share of *accesses*, mean over the judged pages: the same
    /// share, its bounds widened by [`INTENSITY`] and [`EXCEPTED`].
    pub exclusivity: Option<Interval>,
}

/// How many pages there are of something: known before its [`Blocks`] are.
#[derive(Clone, Copy, Default)]
struct Count {
    pages: u64,
    judged: u64,
}

/// Pages next to each other.
#[derive(Clone, Copy, Default)]
struct Block {
    pages: u64,
    /// Sum of the largest shares.
    seen: f64,
    /// Sum of [`left_out`].
    left_out: f64,
    /// Sum of one over the number of samples.
    per_sample: f64,
}

/// The judged pages of something in the order of memory, as √n blocks: more pages make both more blocks
/// and longer ones, so that what depends on neighbours stays within a block.
struct Blocks {
    count: Count,
    blocks: Vec<Block>,
    next: u64,
}

impl Blocks {
    fn new(count: Count) -> Self {
        let blocks = Some(count.judged.isqrt()).filter(|b| *b >= FEWEST_BLOCKS);
        Self {
            count,
            blocks: vec![Block::default(); blocks.unwrap_or(1) as usize],
            next: 0,
        }
    }

    fn add(&mut self, counts: &NodeCounts) {
        let at = self.next * self.blocks.len() as u64 / self.count.judged;
        let block = &mut self.blocks[at as usize];
        block.pages += 1;
        block.seen += counts.exclusivity();
        block.left_out += left_out(counts);
        block.per_sample += 1.0 / counts.total() as f64;
        self.next += 1;
    }

    /// The mean of what is summed, and how many independent samples it is worth: no more than if a block
    /// were one page (so that pages which agree are not proof beyond that).
    fn wilson(&self, sum: impl Fn(&Block) -> f64) -> Interval {
        let judged = self.count.judged as f64;
        let per_sample = self.blocks.iter().map(|b| b.per_sample).sum::<f64>() / judged;
        let means: Vec<f64> = self.blocks.iter().map(|b| sum(b) / b.pages as f64).collect();
        let samples = effective_samples(&means, self.blocks.len() as f64 / per_sample);
        Interval::wilson(self.blocks.iter().map(sum).sum::<f64>() / judged, samples)
    }

    fn finish(&self, nodes: usize) -> Sampled {
        let shares = (self.count.judged > 0).then(|| {
            let seen = self.wilson(|b| b.seen);
            let low = self.wilson(|b| b.left_out).low;
            Interval { low, ..seen }
        });
        let least = 1.0 / nodes as f64;
        Sampled {
            pages: self.count.pages,
            judged: self.count.judged,
            shares: shares.map(|s| s.at_least(least)),
            exclusivity: shares.map(|s| s.weighed(INTENSITY).loosened(EXCEPTED).at_least(least)),
        }
    }
}

/// The share of a page's samples that come from the node which the page's *other* samples would choose;
/// where these choose several alike, each gets its part of the sample.
fn left_out(counts: &NodeCounts) -> f64 {
    let most = counts.dominant().1;
    let with = |samples: u64| counts.all().iter().filter(|c| **c == samples).count();
    match with(most) {
        // One less of the dominant node's makes it one of those that had one less.
        1 => counts.exclusivity() / (1 + with(most - 1)) as f64,
        // One less of any makes another the choice.
        _ => 0.0,
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
    let minimum = u64::from(minimum.max(1));
    let (mut all, mut each) = (Count::default(), BTreeMap::<ObjectId, Count>::new());
    for page in histogram.iter() {
        let judged = u64::from(page.accesses() >= minimum);
        for count in [&mut all, each.entry(page.object).or_default()] {
            count.pages += 1;
            count.judged += judged;
        }
    }
    let mut program = Blocks::new(all);
    let mut objects: BTreeMap<_, _> = each.into_iter().map(|(id, c)| (id, Blocks::new(c))).collect();
    let mut counts = NodeCounts::new(nodes);
    for page in histogram.iter().filter(|p| p.accesses() >= minimum) {
        let counts = counts.load(page.entries, affinity);
        program.add(counts);
        if let Some(object) = objects.get_mut(&page.object) {
            object.add(counts);
        }
    }
    let objects = objects.into_iter().map(|(id, blocks)| (id, blocks.finish(nodes)));
    (program.finish(nodes), objects.collect())
}

#[cfg(test)]
#[path = "sampled_tests.rs"]
mod tests;
