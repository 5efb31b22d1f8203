//! Use of objects by code region, and how a region's threads divide them; a histogram sums over regions.

use crate::Histogram;
use crate::division::{self, Division};
use crate::page_use::Maps;
use crate::pattern::{HARDLY_WRITTEN, Pattern};
use crate::visitor::{Visitor, read};
use nodewise_profile::{Access, AccessSource, ObjectId, Profile, RegionId, ThreadId};
use std::collections::BTreeMap;

/// One object in one region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionUse {
    /// Load instructions in the region.
    pub reads: u64,
    /// Store instructions in the region.
    pub writes: u64,
    /// Cache lines of traffic in the region.
    pub lines: u64,
    /// One bit a thread, 64 threads a word.
    threads: Vec<u64>,
}

impl RegionUse {
    /// How many threads used the object there.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Which threads used it there, ascending.
    pub fn thread_ids(&self) -> impl Iterator<Item = ThreadId> {
        let bits = |(word, bits): (usize, &u64)| {
            let bits = *bits;
            (0..64)
                .filter(move |b| bits >> b & 1 == 1)
                .map(move |b| ThreadId::from_index(64 * word + b))
        };
        self.threads.iter().enumerate().flat_map(bits)
    }

    /// Number of loads and stores.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }

    fn absorb(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.lines += other.lines;
        self.threads
            .resize(self.threads.len().max(other.threads.len()), 0);
        self.threads
            .iter_mut()
            .zip(&other.threads)
            .for_each(|(all, more)| *all |= more);
    }

    fn add(&mut self, row: &Access) {
        let pages = u64::from(row.len);
        self.reads += row.reads * pages;
        self.writes += row.writes * pages;
        self.lines += row.lines * pages;
        let (word, bit) = (row.thread.index() / 64, row.thread.index() % 64);
        if self.threads.len() <= word {
            self.threads.resize(word + 1, 0);
        }
        self.threads[word] |= 1 << bit;
    }
}

/// Object × region: sums, and the division of the pages where the object has pages of its own.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    cells: BTreeMap<(ObjectId, RegionId), RegionUse>,
    divisions: BTreeMap<ObjectId, Vec<Division>>,
}

/// The first pass: sums, from which follows which regions of an object matter.
impl Visitor for Usage {
    fn rows(&mut self, rows: &[Access]) {
        for same in rows.chunk_by(|a, b| (a.object, a.region) == (b.object, b.region)) {
            let cell = self.cells.entry((same[0].object, same[0].region)).or_default();
            same.iter().for_each(|row| cell.add(row));
        }
    }
}

/// The second pass: how threads divide the pages of an object in the regions that matter.
#[derive(Debug)]
pub struct UsageMaps<'a> {
    profile: &'a Profile,
    usage: Usage,
    maps: Maps<'a>,
}

impl UsageMaps<'_> {
    /// The usage with sums and divisions, once all rows were seen.
    #[must_use]
    pub fn finish(self) -> Usage {
        let mut usage = self.usage;
        usage.divisions = division::divisions(self.profile, &usage, self.maps.finish());
        usage
    }
}

impl Visitor for UsageMaps<'_> {
    fn rows(&mut self, rows: &[Access]) {
        self.maps.rows(rows);
    }
}

impl Usage {
    /// Two passes over the accesses: sums, then the pages of the regions that matter.
    ///
    /// # Errors
    /// When the source cannot be read to its end.
    pub fn of<S: AccessSource>(
        source: &S,
        profile: &Profile,
        histogram: &Histogram,
    ) -> Result<Self, S::Error> {
        let mut usage = Self::default();
        read(source, &mut [&mut usage])?;
        let mut maps = usage.maps(profile, histogram);
        read(source, &mut [&mut maps])?;
        Ok(maps.finish())
    }

    /// What is left to be looked at once all sums are there: the pages of the regions that matter.
    #[must_use]
    pub fn maps<'a>(self, profile: &'a Profile, histogram: &'a Histogram) -> UsageMaps<'a> {
        UsageMaps {
            profile,
            maps: Maps::new(profile, histogram, &self),
            usage: self,
        }
    }

    /// The regions that used an object.
    pub fn regions(&self, object: ObjectId) -> impl Iterator<Item = (RegionId, &RegionUse)> {
        let range = (object, RegionId(0))..=(object, RegionId(u32::MAX));
        self.cells.range(range).map(|(key, cell)| (key.1, cell))
    }

    /// How threads divide an object in each region that makes 1 % of its accesses, most accesses
    /// first; nothing for stacks, images and what nobody claimed.
    #[must_use]
    pub fn divisions(&self, object: ObjectId) -> &[Division] {
        self.divisions.get(&object).map_or(&[], Vec::as_slice)
    }

    /// What an object is over all its regions. Shared ones that are hardly written are told apart.
    #[must_use]
    pub fn pattern(&self, object: ObjectId) -> Pattern {
        let mut sum = RegionUse::default();
        self.regions(object).for_each(|(_, cell)| sum.absorb(cell));
        let pattern = match division::pattern_of_all(self.divisions(object)) {
            Some(pattern) => pattern,
            None if sum.threads() <= 1 || !self.divisions(object).is_empty() => Pattern::OneThread,
            None => Pattern::Uniform,
        };
        // One thread's initialisation does not make it a written object.
        let teams = || self.divisions(object).iter().filter(|d| d.is_significant());
        let (reads, writes) = match teams().next() {
            Some(_) => teams().fold((0, 0), |(r, w), d| (r + d.reads, w + d.writes)),
            None => (sum.reads, sum.writes),
        };
        let hardly_written = (writes as f64) < HARDLY_WRITTEN * (reads + writes) as f64;
        match pattern {
            Pattern::Uniform if hardly_written && self.conflict_free(object) => Pattern::ReadShared,
            Pattern::Random if hardly_written => Pattern::Gather,
            pattern => pattern,
        }
    }

    /// Whether uniform means that all threads sweep it, not that regions divide it differently.
    fn conflict_free(&self, object: ObjectId) -> bool {
        let significant = |d: &&Division| d.is_significant();
        !self
            .divisions(object)
            .iter()
            .filter(significant)
            .any(Division::has_owners)
    }

    pub(crate) fn region(&self, object: ObjectId, region: RegionId) -> RegionUse {
        self.cells.get(&(object, region)).cloned().unwrap_or_default()
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = (ObjectId, RegionId, &RegionUse)> {
        self.cells.iter().map(|(key, cell)| (key.0, key.1, cell))
    }
}
