//! Which regions use which objects, and with how many threads: what a histogram has summed away.

use nodewise_profile::{Access, ObjectId, RegionId, ThreadId};
use std::collections::BTreeMap;

/// One object in one region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionUse {
    /// Loads.
    pub reads: u64,
    /// Stores.
    pub writes: u64,
    /// Lines of traffic.
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

    /// Loads and stores.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.reads + self.writes
    }
}

/// Object × region sums; filled while streaming the accesses.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    cells: BTreeMap<(ObjectId, RegionId), RegionUse>,
}

impl Usage {
    /// Adds rows, in any order.
    pub fn add(&mut self, rows: &[Access]) {
        for same in rows.chunk_by(|a, b| (a.object, a.region) == (b.object, b.region)) {
            let cell = self.cells.entry((same[0].object, same[0].region)).or_default();
            for row in same {
                let pages = u64::from(row.len);
                cell.reads += row.reads * pages;
                cell.writes += row.writes * pages;
                cell.lines += row.lines * pages;
                let (word, bit) = (row.thread.index() / 64, row.thread.index() % 64);
                if cell.threads.len() <= word {
                    cell.threads.resize(word + 1, 0);
                }
                cell.threads[word] |= 1 << bit;
            }
        }
    }

    /// The regions that used an object.
    pub fn regions(&self, object: ObjectId) -> impl Iterator<Item = (RegionId, &RegionUse)> {
        let range = (object, RegionId(0))..=(object, RegionId(u32::MAX));
        self.cells.range(range).map(|(key, cell)| (key.1, cell))
    }
}
