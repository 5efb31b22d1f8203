//! Metrics per time slice.

use crate::slices::{SliceVisitor, Slices};
use crate::visitor::read;
use crate::{Affinity, Dynamicity, Histogram, Metrics, measure};
use nodewise_machine::NodeId;
use nodewise_profile::{AccessSource, PageNumber, Profile, SliceId};

/// The metrics of one slice under a fixed mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceMetrics {
    /// Number of the time slice.
    pub slice: SliceId,
    /// Metrics of the accesses in the slice.
    pub metrics: Metrics,
    /// Number of pages that would have to move in the slice (Diener et al. II-C).
    pub migrations: u64,
}

/// The metrics of all slices of a run.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Slices with accesses, ascending.
    pub slices: Vec<SliceMetrics>,
    /// The number of moves, in total and for each page.
    pub dynamicity: Dynamicity,
}

impl Timeline {
    /// Makes one pass over the accesses. `homes` is the node of each page of the whole histogram under first touch.
    ///
    /// # Errors
    /// When the source cannot be read to its end.
    pub fn of<S: AccessSource>(
        source: &S,
        profile: &Profile,
        whole: &Histogram,
        affinity: &Affinity,
        homes: &[NodeId],
        nodes: usize,
    ) -> Result<Self, S::Error> {
        let mut builder = TimelineBuilder::new(profile, whole, affinity, homes, nodes);
        read(
            source,
            &mut [&mut Slices::new(whole.threads, whole.shift, vec![&mut builder])],
        )?;
        Ok(builder.finish())
    }
}

/// Builds a timeline while the slices of a run are read.
pub struct TimelineBuilder<'a> {
    profile: &'a Profile,
    whole: &'a Histogram,
    affinity: &'a Affinity,
    homes: &'a [NodeId],
    nodes: usize,
    slices: Vec<SliceMetrics>,
    dynamicity: Dynamicity,
    /// Metrics of the current slice.
    metrics: Metrics,
}

impl<'a> TimelineBuilder<'a> {
    /// A builder for [`Timeline::of`] that shares a pass with other consumers.
    #[must_use]
    pub fn new(
        profile: &'a Profile,
        whole: &'a Histogram,
        affinity: &'a Affinity,
        homes: &'a [NodeId],
        nodes: usize,
    ) -> Self {
        Self {
            profile,
            whole,
            affinity,
            homes,
            nodes,
            slices: Vec::new(),
            dynamicity: Dynamicity::new(homes.to_vec(), nodes),
            metrics: Metrics::none(nodes),
        }
    }

    /// The timeline, once all rows were seen.
    #[must_use]
    pub fn finish(self) -> Timeline {
        Timeline {
            slices: self.slices,
            dynamicity: self.dynamicity,
        }
    }
}

impl SliceVisitor for TimelineBuilder<'_> {
    fn part(&mut self, _slice: SliceId, pages: &Histogram) {
        self.dynamicity.advance(self.whole, pages, self.affinity);
        let homes = homes_of(self.whole, self.homes, pages);
        let measured = measure(self.profile, pages, self.affinity, &homes, self.nodes);
        self.metrics.absorb(&measured.program);
    }

    fn end_of_slice(&mut self, slice: SliceId) {
        self.slices.push(SliceMetrics {
            slice,
            metrics: std::mem::replace(&mut self.metrics, Metrics::none(self.nodes)),
            migrations: self.dynamicity.end_of_slice(),
        });
    }
}

/// The homes of a slice's pages, all of which must be in the whole histogram.
fn homes_of(whole: &Histogram, homes: &[NodeId], slice: &Histogram) -> Vec<NodeId> {
    let mut at = 0;
    let home = |page: &PageNumber| {
        at = whole.seek(at, *page);
        homes[at]
    };
    slice.pages.iter().map(home).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::thread_per_node;
    use nodewise_profile::{Access, InMemory, ThreadId};

    #[test]
    fn slices_are_measured_apart() {
        let row = |slice, page, thread| Access {
            slice: SliceId(slice),
            page: PageNumber(page),
            thread: ThreadId(thread),
            len: 1,
            reads: 4,
            ..Access::default()
        };
        // Page 8 is used by thread 0 in the first half and by thread 1 in the second.
        let source = InMemory::new(vec![row(0, 8, 0), row(0, 3, 1), row(2, 8, 1)]);
        let whole = Histogram::build(&source, 2, 0).unwrap();
        let homes = [1, 0].map(NodeId);
        let affinity = thread_per_node(2);
        let timeline = Timeline::of(&source, &Profile::default(), &whole, &affinity, &homes, 2).unwrap();
        let local: Vec<_> = timeline
            .slices
            .iter()
            .map(|s| s.metrics.local_fraction())
            .collect();
        assert_eq!(local, [1.0, 0.0]);
        assert_eq!(
            timeline.slices.iter().map(|s| s.migrations).collect::<Vec<_>>(),
            [0, 1]
        );
        assert_eq!(timeline.dynamicity.distribution(), [1, 1]);
    }
}
