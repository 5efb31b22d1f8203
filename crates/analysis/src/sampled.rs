//! Estimates from samples, with confidence intervals.
//!
//! NUMA hint faults sample *pages per scan*: a page used fifty times as often is not seen more often. So pages have
//! equal weight here, pages with too few samples are not judged, and shares are intervals. An interval has two
//! components:
//!
//! - **Sampling error** of the mean over pages of the largest share of their *samples*. The largest share is biased
//!   upwards, its leave-one-out estimate downwards, so they bound it. Samples are dependent in two ways: neighbouring
//!   pages are scanned together, and pages sampled at the same time are seen in the same phase of the program. So the
//!   error is estimated from the variance between blocks of pages and from leaving out one slice at a time.
//! - **Intensity**: how many *accesses* a sample stands for, which is not observed: see [`MAX_INTENSITY_RATIO`] and
//!   `UNBOUNDED_INTENSITY_SHARE`.

mod blocks;
mod estimate;

use crate::slices::{SliceVisitor, Slices};
use crate::visitor::read;
use crate::{Affinity, Histogram, NodeCounts, first_touch};
use blocks::{Blocks, Count, Scores};
pub use estimate::{MAX_INTENSITY_RATIO, Sampled, sampled_share};
use nodewise_profile::{AccessSource, ObjectId, Profile, SliceId};
use std::collections::BTreeMap;

/// Estimates from samples, for a program and for each object that has samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// Estimates over all pages of the program.
    pub program: Sampled,
    /// Estimates for each object that has samples.
    pub objects: BTreeMap<ObjectId, Sampled>,
}

impl Samples {
    /// Estimates from the rows of a profile that consists of samples, on a machine with `nodes` nodes; `None` if
    /// accesses were counted.
    ///
    /// # Errors
    /// If the source cannot be read to its end.
    pub fn of<S: AccessSource>(
        source: &S,
        profile: &Profile,
        histogram: &Histogram,
        affinity: &Affinity,
        nodes: usize,
    ) -> Result<Option<Self>, S::Error> {
        let mut estimator = SampleEstimator::new(profile, histogram, affinity, nodes);
        let visitors = estimator.iter_mut().map(|j| j as &mut dyn SliceVisitor);
        let mut slices = Slices::new(histogram.threads, histogram.shift, visitors.collect());
        read(source, &mut [&mut slices])?;
        Ok(estimator.map(SampleEstimator::finish))
    }

    /// The estimates for an object; defaults if it has no samples.
    #[must_use]
    pub fn object(&self, id: ObjectId) -> Sampled {
        self.objects.get(&id).copied().unwrap_or_default()
    }
}

/// Collects the scores of a program's judged pages, for the program and for each object, while slices are visited.
pub struct SampleEstimator<'a> {
    profile: &'a Profile,
    histogram: &'a Histogram,
    affinity: &'a Affinity,
    nodes: usize,
    minimum: u64,
    program: Blocks,
    objects: BTreeMap<ObjectId, Blocks>,
    /// For each object, the change of the sums over pages if the current slice is left out.
    changed: BTreeMap<ObjectId, Scores>,
    /// Index in the histogram that the current slice has reached.
    at: usize,
}

impl<'a> SampleEstimator<'a> {
    /// For a profile that consists of samples, on a machine with `nodes` nodes; `None` if accesses were counted.
    #[must_use]
    pub fn new(
        profile: &'a Profile,
        histogram: &'a Histogram,
        affinity: &'a Affinity,
        nodes: usize,
    ) -> Option<Self> {
        if !profile.meta.observer.is_sampled() {
            return None;
        }
        let minimum = profile.meta.sampling.as_ref().map_or(1, |s| s.minimum_samples);
        let minimum = u64::from(minimum.max(1));
        let (mut all, mut each) = (Count::default(), BTreeMap::<ObjectId, Count>::new());
        for page in histogram.iter() {
            for count in [&mut all, each.entry(page.object).or_default()] {
                count.add(page.accesses(), minimum);
            }
        }
        let mut program = Blocks::new(all);
        let mut objects: BTreeMap<_, _> = each.into_iter().map(|(id, c)| (id, Blocks::new(c))).collect();
        let mut counts = NodeCounts::new(nodes);
        for page in histogram.iter().filter(|p| p.accesses() >= minimum) {
            let scores = Scores::of(counts.load(page.entries, affinity).all());
            program.add(scores);
            if let Some(object) = objects.get_mut(&page.object) {
                object.add(scores);
            }
        }
        Some(Self {
            profile,
            histogram,
            affinity,
            nodes,
            minimum,
            program,
            objects,
            changed: BTreeMap::new(),
            at: 0,
        })
    }

    /// The estimates, once each slice was left out in turn.
    #[must_use]
    pub fn finish(self) -> Samples {
        let unseen = first_touch::unseen(self.profile, self.histogram);
        let nodes = self.nodes;
        let share = |pages: u64, unseen: u64| unseen as f64 / (pages + unseen).max(1) as f64;
        let objects = self.objects.into_iter().map(|(id, blocks)| {
            let mut object = blocks.finish(nodes);
            object.unseen = share(object.pages, unseen.get(&id).copied().unwrap_or_default());
            (id, object)
        });
        let mut program = self.program.finish(nodes);
        program.unseen = share(program.pages, unseen.values().sum());
        Samples {
            program,
            objects: objects.collect(),
        }
    }
}

impl SliceVisitor for SampleEstimator<'_> {
    fn part(&mut self, _slice: SliceId, pages: &Histogram) {
        let (mut whole, mut part) = (NodeCounts::new(self.nodes), NodeCounts::new(self.nodes));
        for page in pages.iter() {
            self.at = self.histogram.seek(self.at, page.page);
            let all = self.histogram.page(self.at);
            if all.accesses() < self.minimum {
                continue;
            }
            let counts = whole.load(all.entries, self.affinity).all();
            let without = part.load(page.entries, self.affinity).all();
            let rest: Vec<u64> = counts
                .iter()
                .zip(without)
                .map(|(all, slice)| all.saturating_sub(*slice))
                .collect();
            let change = self.changed.entry(all.object).or_default();
            // A page without other samples tells nothing about the effect of these.
            if rest.iter().any(|n| *n > 0) {
                *change += Scores::of(&rest) - Scores::of(counts);
            }
        }
    }

    fn end_of_slice(&mut self, _slice: SliceId) {
        self.at = 0;
        let changed = std::mem::take(&mut self.changed);
        for (object, change) in &changed {
            if let Some(object) = self.objects.get_mut(object) {
                object.leave_out(*change);
            }
        }
        if let Some(change) = changed.into_values().reduce(|sum, change| sum + change) {
            self.program.leave_out(change);
        }
    }
}

#[cfg(test)]
#[path = "sampled_tests.rs"]
mod tests;
