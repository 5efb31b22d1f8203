//! The strip: the touched pages of the address space, object by object.

use nodewise_analysis::Histogram;
use nodewise_profile::{ObjectId, PageNumber};
use std::collections::BTreeMap;
use std::ops::Range;

/// Number of objects shown separately; runs of smaller objects between them are merged.
const MAX_SEPARATE_OBJECTS: usize = 1000;

/// A run of pages of one object, or of several small ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripRun {
    /// The object; if there are several, the first one.
    pub object: ObjectId,
    /// Number of objects in the run.
    pub objects: usize,
    /// Position of its first page in the strip.
    pub first: usize,
    /// Number of touched pages.
    pub pages: usize,
    /// Number of the first page.
    pub page: PageNumber,
}

/// Consecutive positions whose pages are also consecutive in the histogram.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    position: u32,
    page: u32,
}

/// The pages of a histogram in display order: objects by their first page, and pages of an object by address.
///
/// Objects seldom interleave, so the order is stored as stretches: if no objects interleave, a single one.
#[derive(Debug, Default)]
pub struct Strip {
    pages: usize,
    stretches: Vec<Stretch>,
    /// The runs, in order of position.
    pub runs: Vec<StripRun>,
}

impl Strip {
    /// The strip of a histogram.
    ///
    /// # Panics
    /// If there are more than 2³² pages.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Self {
        assert!(
            u32::try_from(histogram.len()).is_ok(),
            "a strip holds fewer than 2^32 pages"
        );
        let mut strip = Self {
            pages: histogram.len(),
            ..Self::default()
        };
        let mut position = 0;
        for (object, pages) in ordered(histogram) {
            strip.push(position, &pages);
            match strip.runs.last_mut() {
                Some(run) if run.object == object => run.pages += pages.len(),
                _ => strip.runs.push(StripRun {
                    object,
                    objects: 1,
                    first: position,
                    pages: pages.len(),
                    page: histogram.pages[pages.start],
                }),
            }
            position += pages.len();
        }
        strip.stretches.shrink_to_fit();
        strip.runs = merge_small_runs(strip.runs);
        strip
    }

    fn push(&mut self, position: usize, pages: &Range<usize>) {
        let goes_on = |s: &Stretch| s.page as usize + position - s.position as usize == pages.start;
        if !self.stretches.last().is_some_and(goes_on) {
            self.stretches.push(Stretch {
                position: position as u32,
                page: pages.start as u32,
            });
        }
    }

    /// Number of positions, which equals the number of pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pages
    }

    /// The pages at a range of positions, as ranges of indices into the histogram.
    pub fn pages(&self, positions: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let (from, to) = (positions.start.min(self.pages), positions.end.min(self.pages));
        let first = self.stretches.partition_point(|s| s.position as usize <= from);
        let reached = self.stretches[first.saturating_sub(1)..].iter().enumerate();
        let of = move |(i, s): (usize, &Stretch)| {
            let next = self.stretches.get(first.saturating_sub(1) + i + 1);
            let end = next.map_or(self.pages, |n| n.position as usize).min(to);
            let start = from.max(s.position as usize);
            let page = |position: usize| s.page as usize + position - s.position as usize;
            (start < end).then(|| page(start)..page(end))
        };
        reached.map_while(of)
    }

    /// The run that a position is in.
    #[must_use]
    pub fn run_at(&self, position: usize) -> Option<&StripRun> {
        let after = self.runs.partition_point(|r| r.first <= position);
        self.runs[..after].last().filter(|r| position < r.first + r.pages)
    }

    /// The inverse mapping, from pages to positions.
    #[must_use]
    pub fn positions(&self) -> Positions {
        let mut stretches = self.stretches.clone();
        stretches.sort_unstable_by_key(|s| s.page);
        Positions(stretches)
    }
}

/// Maps pages to positions.
#[derive(Debug)]
pub struct Positions(Vec<Stretch>);

impl Positions {
    /// The position of a page, by its index in the histogram.
    ///
    /// # Panics
    /// If there is no page with this index.
    #[must_use]
    pub fn of(&self, page: usize) -> usize {
        let stretch = match self.0.as_slice() {
            [only] => only,
            all => &all[all.partition_point(|s| s.page as usize <= page) - 1],
        };
        stretch.position as usize + page - stretch.page as usize
    }
}

/// Merges runs of small objects, so that there are at most 2 × [`MAX_SEPARATE_OBJECTS`] + 1 runs.
fn merge_small_runs(runs: Vec<StripRun>) -> Vec<StripRun> {
    let mut sizes: Vec<usize> = runs.iter().map(|r| r.pages).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let Some(small) = sizes.get(MAX_SEPARATE_OBJECTS).copied() else {
        return runs;
    };
    let mut few: Vec<StripRun> = Vec::new();
    let mut joins = false;
    for run in runs {
        match few.last_mut() {
            Some(last) if joins && run.pages <= small => {
                last.objects += run.objects;
                last.pages += run.pages;
            }
            _ => few.push(run),
        }
        joins = run.pages <= small;
    }
    few
}

/// Ranges of consecutive pages of one object, in the order of the strip.
fn ordered(histogram: &Histogram) -> Vec<(ObjectId, Range<usize>)> {
    let mut first: BTreeMap<ObjectId, usize> = BTreeMap::new();
    let mut chunks = Vec::new();
    let mut start = 0;
    for chunk in histogram.objects.chunk_by(|a, b| a == b) {
        let first = *first.entry(chunk[0]).or_insert(start);
        chunks.push((first, chunk[0], start..start + chunk.len()));
        start += chunk.len();
    }
    chunks.sort_by_key(|(first, _, pages)| (*first, pages.start));
    chunks
        .into_iter()
        .map(|(_, object, pages)| (object, pages))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram(objects: &[u32]) -> Histogram {
        Histogram {
            pages: (0..objects.len() as u64).map(|p| PageNumber(3 * p)).collect(),
            objects: objects.iter().copied().map(ObjectId).collect(),
            offsets: vec![0; objects.len() + 1],
            ..Histogram::default()
        }
    }

    proptest! {
        #[test]
        fn each_page_has_one_position_and_each_object_one_run(
            objects in proptest::collection::vec(0u32..6, 0..60),
            cut in any::<(u8, u8)>(),
        ) {
            let strip = Strip::of(&histogram(&objects));
            let all: Vec<usize> = strip.pages(0..objects.len()).flatten().collect();
            let mut sorted = all.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..objects.len()).collect::<Vec<_>>());
            let positions = strip.positions();
            for (position, page) in all.iter().enumerate() {
                prop_assert_eq!(positions.of(*page), position);
                prop_assert_eq!(strip.run_at(position).unwrap().object, ObjectId(objects[*page]));
            }
            prop_assert!(strip.run_at(objects.len()).is_none());
            let mut seen: Vec<ObjectId> = strip.runs.iter().map(|r| r.object).collect();
            prop_assert_eq!(strip.runs.iter().map(|r| r.pages).sum::<usize>(), objects.len());
            seen.sort_unstable();
            prop_assert!(seen.is_sorted_by(|a, b| a < b));
            let (from, to) = (usize::from(cut.0.min(cut.1)), usize::from(cut.0.max(cut.1)));
            let part: Vec<usize> = strip.pages(from..to).flatten().collect();
            let (from, to) = (from.min(all.len()), to.min(all.len()));
            prop_assert_eq!(&part[..], &all[from..to]);
        }
    }

    #[test]
    fn thousands_of_small_objects_are_few_runs_of_all_pages() {
        let mut objects: Vec<u32> = (0..90_000).map(|p| p / 3).collect();
        objects[40_000..50_000].fill(1 << 20);
        let strip = Strip::of(&histogram(&objects));
        assert_eq!(
            strip
                .runs
                .iter()
                .map(|r| (r.objects, r.pages))
                .collect::<Vec<_>>(),
            [(13_334, 40_000), (1, 10_000), (13_334, 40_000)]
        );
    }

    #[test]
    fn objects_that_do_not_interleave_are_one_stretch() {
        assert_eq!(Strip::of(&histogram(&[4, 4, 1, 1, 1, 2])).stretches.len(), 1);
    }
}
