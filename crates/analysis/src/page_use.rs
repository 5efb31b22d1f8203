//! Which of a region's threads access each page of an object, summarised by circular statistics in a few bytes a page.
//!
//! Thread k of T is mapped to the angle 2π (k + ½) / T. The unit vectors of a page's accesses are summed: the mean
//! direction is the page's position among the threads, and the mean resultant length says how concentrated its accesses
//! are, from 1 (one owner) to 0 (all threads alike); see Mardia and Jupp, *Directional Statistics*, 2.2. Sums over
//! slices can be taken in any order, and patterns of blocks that restart at the first thread are continuous.
//!
//! A region may have several loops. Accesses that agree with a static block distribution (x-wise) are summed
//! separately, so that a second pattern can be recognised.

use crate::region_sums::RegionSums;
use crate::visitor::Visitor;
use crate::{Histogram, thread_numbers};
use nodewise_profile::{Access, Object, ObjectId, Profile, RegionId, ThreadId};
use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::TAU;
use std::sync::Arc;

/// A region that makes a smaller share of an object's accesses gets no map.
const MIN_REGION_SHARE: f64 = 0.01;
/// Largest number of regions per object that get a map, the busiest ones first. Bounds the memory.
const MAX_MAPS_PER_OBJECT: usize = 16;

/// Tolerance, in threads, at the border of a thread's block: the middle of a page may lie this far outside and still
/// count as in the block.
const BLOCK_BORDER_TOLERANCE: f64 = 0.15;

/// Accesses to one page in one region.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PageUse {
    pub accesses: f32,
    pub writes: f32,
    pub lines: f32,
    resultant: [f32; 2],
    /// Accesses by the threads to which a static block distribution gives the page, and the sum of their vectors.
    in_block: f32,
    in_block_resultant: [f32; 2],
}

impl PageUse {
    pub fn add(&mut self, direction: [f32; 2], in_block: bool, reads: u64, writes: u64, lines: u64) {
        let accesses = (reads + writes) as f32;
        let vector = direction.map(|d| d * accesses);
        self.accesses += accesses;
        self.writes += writes as f32;
        self.lines += lines as f32;
        self.resultant = [self.resultant[0] + vector[0], self.resultant[1] + vector[1]];
        if in_block {
            self.in_block += accesses;
            self.in_block_resultant = [
                self.in_block_resultant[0] + vector[0],
                self.in_block_resultant[1] + vector[1],
            ];
        }
    }

    /// The accesses by the threads to which a static block distribution gives the page, and all other accesses.
    pub fn split_by_block(&self) -> [Self; 2] {
        let part = |accesses: f32, resultant| Self {
            accesses,
            resultant,
            ..Self::default()
        };
        let [a, b] = [0, 1].map(|i| self.resultant[i] - self.in_block_resultant[i]);
        let rest = self.accesses - self.in_block;
        // Rounding errors of the subtraction are not accesses of any thread.
        let rest = if rest > 1e-3 * self.accesses { rest } else { 0.0 };
        [part(self.in_block, self.in_block_resultant), part(rest, [a, b])]
    }

    /// The sum of the unit vectors of its accesses.
    pub fn resultant(&self) -> [f64; 2] {
        self.resultant.map(f64::from)
    }

    /// Mean resultant length: from 0 (all threads alike) to 1 (one thread).
    pub fn agreement(&self) -> f64 {
        f64::from(self.resultant[0]).hypot(self.resultant[1].into())
            / f64::from(self.accesses.max(f32::MIN_POSITIVE))
    }

    /// Mean direction as a fraction of the circle, 0 to 1.
    pub fn place(&self) -> f64 {
        (f64::from(self.resultant[1]).atan2(self.resultant[0].into()) / TAU).rem_euclid(1.0)
    }
}

/// The threads of a region and their positions on the circle.
#[derive(Debug)]
pub(crate) struct RegionThreads {
    /// The thread with each number; the first one if several share a number.
    pub threads: Vec<ThreadId>,
    /// Unit vector of each thread's position on the circle, by [`ThreadId`].
    directions: Vec<[f32; 2]>,
    ranks: Vec<f64>,
}

impl RegionThreads {
    pub fn new(numbers: &[u32], members: &BTreeSet<ThreadId>) -> Self {
        let mut by_number: BTreeMap<u32, Vec<ThreadId>> = BTreeMap::new();
        for &thread in members {
            let number = numbers.get(thread.index()).copied().unwrap_or(thread.0);
            by_number.entry(number).or_default().push(thread);
        }
        let size = by_number.len() as f64;
        let direction = |rank: usize| {
            let angle = TAU * (rank as f64 + 0.5) / size;
            [angle.cos() as f32, angle.sin() as f32]
        };
        let beyond = members.last().map_or(0, |t| t.index() + 1);
        let (mut directions, mut ranks) = (vec![[0.0; 2]; beyond], vec![0.0; beyond]);
        for (rank, threads) in by_number.values().enumerate() {
            for thread in threads {
                directions[thread.index()] = direction(rank);
                ranks[thread.index()] = rank as f64;
            }
        }
        Self {
            threads: by_number.values().map(|threads| threads[0]).collect(),
            directions,
            ranks,
        }
    }

    /// Whether a static block distribution gives a page to a thread; `at` is the page's relative position in the
    /// object, 0 to 1.
    fn is_in_block(&self, thread: ThreadId, at: f64) -> bool {
        let middle = self
            .ranks
            .get(thread.index())
            .map_or(f64::INFINITY, |rank| rank + 0.5);
        (middle - at * self.threads.len() as f64).abs() <= 0.5 + BLOCK_BORDER_TOLERANCE
    }

    pub fn direction(&self, thread: ThreadId) -> [f32; 2] {
        self.directions.get(thread.index()).copied().unwrap_or_default()
    }
}

/// Accesses to the pages of one object in one region.
#[derive(Debug)]
pub(crate) struct PageMap {
    pub object: ObjectId,
    pub region: RegionId,
    pub team: Arc<RegionThreads>,
    /// Index in the histogram of the first of `pages`.
    pub first: usize,
    /// The object's pages in the histogram; without accesses where the region did not use them.
    pub pages: Vec<PageUse>,
    /// Page size as in the histogram.
    pub shift: u32,
}

/// The maps of all objects, filled in one pass.
#[derive(Debug)]
pub(crate) struct Maps<'a> {
    pub histogram: &'a Histogram,
    maps: Vec<PageMap>,
    /// For each object, its regions and the indices of their maps.
    found: Vec<Vec<(RegionId, usize)>>,
    /// Index in the histogram at which the last row began: the next row is near.
    at: usize,
}

impl<'a> Maps<'a> {
    pub fn new(profile: &Profile, histogram: &'a Histogram, sums: &RegionSums) -> Self {
        let teams = teams(profile, sums);
        let mut maps = Vec::new();
        let mut found = vec![Vec::new(); profile.objects.len()];
        for (index, object) in profile.objects.iter().enumerate().skip(1) {
            let id = ObjectId::from_index(index);
            for region in regions_worth_a_map(sums, id, object) {
                found[index].push((region, maps.len()));
                maps.push(empty_map(histogram, (id, object), region, &teams));
            }
        }
        Self {
            histogram,
            maps,
            found,
            at: 0,
        }
    }

    pub fn finish(self) -> Vec<PageMap> {
        self.maps
    }
}

impl Visitor for Maps<'_> {
    fn rows(&mut self, rows: &[Access]) {
        for row in rows.iter().filter(|r| r.len > 0) {
            let regions = self.found.get(row.object.index()).into_iter().flatten();
            if let Some((_, map)) = regions.into_iter().find(|(region, _)| *region == row.region) {
                self.at = add(&mut self.maps[*map], self.histogram, self.at, row);
            }
        }
    }
}

fn teams(profile: &Profile, sums: &RegionSums) -> BTreeMap<RegionId, Arc<RegionThreads>> {
    let numbers = thread_numbers(profile);
    let mut members: BTreeMap<RegionId, BTreeSet<ThreadId>> = BTreeMap::new();
    for (_, region, cell) in sums.cells() {
        members.entry(region).or_default().extend(cell.thread_ids());
    }
    members
        .iter()
        .map(|(region, threads)| (*region, Arc::new(RegionThreads::new(&numbers, threads))))
        .collect()
}

/// The regions that make at least [`MIN_REGION_SHARE`] of an object's accesses, at most [`MAX_MAPS_PER_OBJECT`] of
/// them.
fn regions_worth_a_map(sums: &RegionSums, id: ObjectId, object: &Object) -> Vec<RegionId> {
    let mut regions: Vec<_> = sums.regions(id).map(|(r, cell)| (cell.accesses(), r)).collect();
    let total: u64 = regions.iter().map(|r| r.0).sum();
    regions.retain(|r| !object.kind.is_private() && r.0 > 0 && r.0 as f64 >= MIN_REGION_SHARE * total as f64);
    regions.sort_unstable_by_key(|r| std::cmp::Reverse(*r));
    regions
        .into_iter()
        .take(MAX_MAPS_PER_OBJECT)
        .map(|r| r.1)
        .collect()
}

fn empty_map(
    histogram: &Histogram,
    (id, object): (ObjectId, &Object),
    region: RegionId,
    teams: &BTreeMap<RegionId, Arc<RegionThreads>>,
) -> PageMap {
    let shift = histogram.shift;
    let first = histogram.seek(0, object.first_page.align_down(shift));
    let beyond = histogram.seek(first, object.first_page.offset(object.pages));
    PageMap {
        object: id,
        region,
        team: Arc::clone(&teams[&region]),
        first,
        pages: vec![PageUse::default(); beyond - first],
        shift,
    }
}

/// Adds a row. Returns its first index in the histogram, from which the search for the next row starts.
fn add(map: &mut PageMap, histogram: &Histogram, at: usize, row: &Access) -> usize {
    let direction = map.team.direction(row.thread);
    let page = row.page.align_down(map.shift);
    let from = if histogram.pages.get(at).is_some_and(|p| *p <= page) {
        at
    } else {
        0
    };
    let begin = histogram.seek(from, page);
    let (mut index, mut next, end) = (begin, row.page.0, row.page.0 + u64::from(row.len));
    while next < end && index < histogram.len() {
        let beyond = histogram.pages[index].0 + (1 << map.shift);
        let pages = beyond.min(end).saturating_sub(next);
        let size = map.pages.len() as f64;
        let offset = index.checked_sub(map.first).filter(|i| *i < map.pages.len());
        if let Some(offset) = offset {
            let in_block = map.team.is_in_block(row.thread, (offset as f64 + 0.5) / size);
            let (reads, writes, lines) = (row.reads * pages, row.writes * pages, row.lines * pages);
            map.pages[offset].add(direction, in_block, reads, writes, lines);
        }
        (next, index) = (next.max(beyond.min(end)), index + 1);
    }
    begin
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn team(threads: u32) -> RegionThreads {
        let members = (0..threads).map(ThreadId).collect();
        RegionThreads::new(&(0..threads).collect::<Vec<_>>(), &members)
    }

    fn page(team: &RegionThreads, accesses: &[u64]) -> PageUse {
        let mut page = PageUse::default();
        for (thread, &reads) in accesses.iter().enumerate() {
            page.add(team.direction(ThreadId(thread as u32)), false, reads, 0, 0);
        }
        page
    }

    #[test]
    fn an_owner_is_its_place_and_all_alike_is_none() {
        let team = team(8);
        let owned = page(&team, &[0, 0, 0, 9]);
        assert!((owned.place() * 8.0 - 3.5).abs() < 1e-5 && owned.agreement() > 0.999);
        assert!(page(&team, &[5; 8]).agreement() < 1e-6);
        // The last thread's block and the first thread's share a page: its position is between them, not in the middle
        // of the circle.
        let seam = page(&team, &[4, 0, 0, 0, 0, 0, 0, 4]);
        assert!((seam.place() + 0.5).fract() - 0.5 < 1e-5 && seam.agreement() > 0.9);
    }

    proptest! {
        #[test]
        fn resultants_add_up_whatever_the_slices(accesses in proptest::collection::vec(0u64..1000, 2..20), cut in 0usize..20) {
            let team = team(accesses.len() as u32);
            let whole = page(&team, &accesses);
            let mut parts = PageUse::default();
            for part in [0..cut.min(accesses.len()), cut.min(accesses.len())..accesses.len()] {
                for thread in part.rev() {
                    parts.add(team.direction(ThreadId(thread as u32)), false, accesses[thread], 0, 0);
                }
            }
            prop_assert!((whole.agreement() - parts.agreement()).abs() < 1e-3);
            prop_assert!((0.0..=1.0 + 1e-5).contains(&whole.agreement()));
        }
    }
}
