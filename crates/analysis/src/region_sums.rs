//! Sums of the accesses to each object in each code region, and the threads that make them.

use crate::thread_set::ThreadSet;
use crate::visitor::Visitor;
use nodewise_profile::{Access, ObjectId, RegionId, ThreadId};
use std::collections::BTreeMap;

/// Use of one object in one region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionUse {
    /// Load instructions in the region.
    pub reads: u64,
    /// Store instructions in the region.
    pub writes: u64,
    /// Cache lines of traffic in the region.
    pub lines: u64,
    threads: ThreadSet,
}

impl RegionUse {
    /// How many threads used the object there.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Which threads used it there, ascending.
    pub fn thread_ids(&self) -> impl Iterator<Item = ThreadId> {
        self.threads.iter()
    }

    /// Number of loads and stores.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }

    pub(crate) fn absorb(&mut self, other: &Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.lines += other.lines;
        self.threads.absorb(&other.threads);
    }

    fn add(&mut self, row: &Access) {
        let pages = u64::from(row.len);
        self.reads += row.reads * pages;
        self.writes += row.writes * pages;
        self.lines += row.lines * pages;
        self.threads.insert(row.thread);
    }
}

/// Object × region: sums over all rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct RegionSums {
    cells: BTreeMap<(ObjectId, RegionId), RegionUse>,
}

impl Visitor for RegionSums {
    fn rows(&mut self, rows: &[Access]) {
        for same in rows.chunk_by(|a, b| (a.object, a.region) == (b.object, b.region)) {
            let cell = self.cells.entry((same[0].object, same[0].region)).or_default();
            same.iter().for_each(|row| cell.add(row));
        }
    }
}

impl RegionSums {
    /// The regions that used an object.
    pub fn regions(&self, object: ObjectId) -> impl Iterator<Item = (RegionId, &RegionUse)> {
        let range = (object, RegionId(0))..=(object, RegionId(u32::MAX));
        self.cells.range(range).map(|(key, cell)| (key.1, cell))
    }

    pub fn region(&self, object: ObjectId, region: RegionId) -> RegionUse {
        self.cells.get(&(object, region)).cloned().unwrap_or_default()
    }

    pub fn cells(&self) -> impl Iterator<Item = (ObjectId, RegionId, &RegionUse)> {
        self.cells.iter().map(|(key, cell)| (key.0, key.1, cell))
    }
}
