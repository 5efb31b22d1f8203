//! Maps the emulator's frame numbers to nodes.

use crate::LabError;
use std::collections::BTreeMap;
use std::ops::Range;

/// A contiguous range of a node's memory, in the kernel's frame numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub node: u32,
    pub first: u64,
    pub pages: u64,
}

/// A page whose frame number both the guest and the emulator reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// The node that the page was bound to.
    pub node: u32,
    /// The kernel's number of the page's frame.
    pub kernel: u64,
    /// The emulator's number of the page's frame.
    pub emulator: u64,
}

/// Ranges of frames in the emulator's numbering, with their nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calibration {
    /// Disjoint ranges, by first frame.
    ranges: BTreeMap<u64, FrameRange>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FrameRange {
    end: u64,
    node: u32,
    /// The kernel's number of the range's first frame.
    kernel: u64,
}

impl Calibration {
    /// Pairs the guest's reports of its marked pages with the emulator's reports, which are in the same order.
    pub fn pair(reported: &[(u32, u64)], seen: &[(u32, u64)]) -> Result<Vec<Sample>, LabError> {
        let same = reported.len() == seen.len() && reported.iter().zip(seen).all(|(a, b)| a.0 == b.0);
        if !same {
            return Err(calibration_error(
                "the guest and the counters speak of different pages",
            ));
        }
        let pair = |(reported, seen): (&(u32, u64), &(u32, u64))| Sample {
            node: reported.0,
            kernel: reported.1,
            emulator: seen.1,
        };
        Ok(reported.iter().zip(seen).map(pair).collect())
    }

    /// Determines the emulator's frame numbers of all segments. Within a segment kernel and emulator number frames in
    /// the same order, so one difference is valid for the whole segment. A segment without a sample is known only if
    /// all other segments have the same difference.
    ///
    /// # Errors
    /// If samples contradict each other or the kernel, or two nodes would have the same frames. Counts would then be
    /// attributed to wrong nodes.
    pub fn learn(segments: &[Segment], samples: &[Sample]) -> Result<Self, LabError> {
        let mut known = Self::default();
        let differences = segments.iter().map(|s| difference(s, samples));
        let differences = differences.collect::<Result<Vec<_>, _>>()?;
        if let Some(stray) = samples.iter().find(|s| !segments.iter().any(|g| g.holds(s))) {
            return Err(calibration_error(&format!(
                "a page of node {} is on none of its segments",
                stray.node
            )));
        }
        let mut found = differences.iter().flatten();
        let first = found.next().copied();
        let common = first.filter(|f| found.all(|d| d == f));
        for (segment, difference) in segments.iter().zip(&differences) {
            if let Some(difference) = difference.or(common) {
                known.add(segment, difference)?;
            }
        }
        Ok(known)
    }

    fn add(&mut self, segment: &Segment, difference: i64) -> Result<(), LabError> {
        let overlap = || calibration_error("two nodes' memory overlaps");
        let first = segment.first.checked_add_signed(difference).ok_or_else(overlap)?;
        let end = first.checked_add(segment.pages).ok_or_else(overlap)?;
        let before = self.ranges.range(..end).next_back();
        if before.is_some_and(|(_, other)| other.end > first) {
            return Err(overlap());
        }
        let range = FrameRange {
            end,
            node: segment.node,
            kernel: segment.first,
        };
        self.ranges.insert(first, range);
        Ok(())
    }

    /// The node of a frame in the emulator's numbering; `None` if it is not memory.
    pub fn node(&self, frame: u64) -> Option<usize> {
        self.range(frame).map(|(_, range)| range.node as usize)
    }

    /// The kernel's number of a frame in the emulator's numbering; `None` if it is not memory.
    pub fn kernel(&self, frame: u64) -> Option<u64> {
        self.range(frame)
            .map(|(first, range)| range.kernel + (frame - first))
    }

    fn range(&self, frame: u64) -> Option<(u64, &FrameRange)> {
        let (first, range) = self.ranges.range(..=frame).next_back()?;
        (frame < range.end).then_some((*first, range))
    }
}

impl Segment {
    fn frames(&self) -> Range<u64> {
        self.first..self.first.saturating_add(self.pages)
    }

    fn holds(&self, sample: &Sample) -> bool {
        self.node == sample.node && self.frames().contains(&sample.kernel)
    }
}

fn difference(segment: &Segment, samples: &[Sample]) -> Result<Option<i64>, LabError> {
    let inside = samples.iter().filter(|s| segment.holds(s));
    let mut differences = inside.map(|s| s.emulator.wrapping_sub(s.kernel) as i64);
    let first = differences.next();
    if differences.any(|d| Some(d) != first) {
        return Err(calibration_error(&format!(
            "node {}'s frames are not in one order",
            segment.node
        )));
    }
    Ok(first)
}

fn calibration_error(what: &str) -> LabError {
    LabError::own(format!(
        "the counters could not be calibrated: {what}; no figures rather than wrong ones"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segment(node: u32, first: u64, pages: u64) -> Segment {
        Segment { node, first, pages }
    }

    fn sample(node: u32, kernel: u64, emulator: u64) -> Sample {
        Sample {
            node,
            kernel,
            emulator,
        }
    }

    #[test]
    fn samples_that_interleave_are_refused() {
        let segments = [segment(0, 0, 100), segment(1, 100, 100)];
        for samples in [
            &[sample(0, 5, 5), sample(0, 6, 7)][..],
            &[sample(0, 5, 5), sample(1, 105, 6)],
            &[sample(0, 150, 150)],
        ] {
            let error = Calibration::learn(&segments, samples).unwrap_err().to_string();
            assert!(error.contains("could not be calibrated"), "{error}");
        }
    }

    #[test]
    fn what_guest_and_counters_disagree_on_is_refused() {
        assert!(Calibration::pair(&[(0, 1)], &[(1, 1)]).is_err());
        assert!(Calibration::pair(&[(0, 1)], &[]).is_err());
        assert_eq!(
            Calibration::pair(&[(0, 1)], &[(0, 9)]).unwrap(),
            [sample(0, 1, 9)]
        );
    }

    #[test]
    fn a_segment_without_samples_is_known_where_frames_are_the_kernels() {
        let segments = [segment(0, 0, 100), segment(0, 1000, 100)];
        let same = Calibration::learn(&segments, &[sample(0, 5, 5)]).unwrap();
        assert_eq!((same.node(1050), same.node(500)), (Some(0), None));
    }

    proptest! {
        /// Nodes one after the other, each shifted by what the emulator adds to its block: QEMU 7.2 adds a block's
        /// offset twice, later versions add nothing.
        #[test]
        fn every_frame_finds_its_node(sizes in proptest::collection::vec(10u64..1000, 1..16), twice: bool, picks in proptest::collection::vec(0.0f64..1.0, 16)) {
            let (mut segments, mut samples, mut at) = (Vec::new(), Vec::new(), 0);
            for (node, size) in sizes.iter().enumerate() {
                segments.push(segment(node as u32, at, *size));
                let kernel = at + (picks[node] * (*size - 1) as f64) as u64;
                samples.push(sample(node as u32, kernel, kernel + if twice { at } else { 0 }));
                at += size;
            }
            let known = Calibration::learn(&segments, &samples).unwrap();
            for s in &segments {
                let moved = s.first + if twice { s.first } else { 0 };
                prop_assert_eq!(known.node(moved), Some(s.node as usize));
                prop_assert_eq!(known.node(moved + s.pages - 1), Some(s.node as usize));
            }
        }
    }
}
