//! Limits on the size of a profile that is read. They are larger than any recording needs, and they keep numbers in a
//! damaged or hostile file from causing allocations larger than its content. `docs/profile-format.md` states them.

use crate::runs::Runs;
use nodewise_linux::Host;
use nodewise_profile::{Access, Migration, PageNumber, Profile, Thread};
use std::collections::{BTreeMap, HashMap};

/// Largest number of rows in a row group of the access table: twice what [`crate::Writer`] makes.
pub const GROUP_ROWS: u64 = 1 << 20;
/// Rows per byte of file in tables whose rows carry identifiers of their own, which hardly compress.
pub const ROWS_WITH_IDS: u64 = 4;
/// Rows per byte of file in other tables, whose columns repeat values and so compress to next to nothing.
pub const ROWS: u64 = 1024;
/// Bytes of text per byte of file.
pub const TEXT: u64 = 4096;
/// Rows that the smallest file may hold, whatever its size.
pub const MIN_ROWS: u64 = 1024;

/// Largest number of threads: OpenMP numbers, and one for each other thread.
pub const THREADS: u64 = 1 << 20;
/// Largest number of other runs of a command that a profile is compared with.
pub const RUNS: u32 = 1 << 10;
/// Largest number of code regions: a counter's key has 19 bits for them.
pub const REGIONS: usize = 1 << 19;
/// log2 of the pages of an object: an address space of 57 bits.
const OBJECT_PAGES_LOG2: u32 = 45;

/// Bytes of memory that analysis takes for one cell, a pair of page and thread.
const CELL_BYTES: u64 = 64;
/// Cells that are always allowed, however little memory is left.
const MIN_CELLS: u64 = 1 << 22;
/// Largest number of cells over all slices: 10⁷ pages × 64 threads × 1,000 slices, plus two thirds. A few bytes of a
/// file can stand for any number of cells, and a reader has to visit all of them.
const MAX_CELLS: u64 = 1 << 40;
/// log2 of the pages of a block, the unit in which pages seen before are distinguished from new ones.
const BLOCK_LOG2: u32 = 12;

/// Checks the small tables against the limits.
pub fn tables(p: &Profile) -> Result<(), String> {
    let numbers = numbers(&p.threads);
    if numbers > THREADS {
        return Err(format!(
            "its threads are numbered up to {numbers}, beyond {THREADS}"
        ));
    }
    if p.regions.len() > REGIONS {
        return Err(format!("{} code regions, more than {REGIONS}", p.regions.len()));
    }
    if let Some(i) = p.objects.iter().position(|o| o.pages >> OBJECT_PAGES_LOG2 > 0) {
        let pages = p.objects[i].pages;
        return Err(format!(
            "object {i} has {pages} pages, more than an address space"
        ));
    }
    let pieces = pieces(&p.migrations);
    if pieces > cells_here() {
        return Err(format!(
            "its migrations overlap in {pieces} places, more than there is memory for"
        ));
    }
    Ok(())
}

/// Divides the address space at the ends of all migrations into pieces, and sums up how many migrations cover each
/// piece. The sum determines the memory needed to follow the moves of pages.
fn pieces(migrations: &[Migration]) -> u64 {
    let ends = migrations
        .iter()
        .flat_map(|m| [(m.page, 1), (m.page.offset(m.len.into()), -1)]);
    let mut ends: Vec<(PageNumber, i64)> = ends.collect();
    ends.sort_unstable();
    let mut under_way = 0;
    let at = |ends: &[(PageNumber, i64)]| {
        under_way += ends.iter().map(|e| e.1).sum::<i64>();
        under_way.unsigned_abs()
    };
    ends.chunk_by(|a, b| a.0 == b.0)
        .map(at)
        .fold(0, u64::saturating_add)
}

/// Number of thread numbers: for each process up to its largest OpenMP number, and one for each other thread.
fn numbers(threads: &[Thread]) -> u64 {
    let mut teams: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
    for thread in threads {
        let (team, others) = teams.entry(thread.process).or_default();
        match thread.openmp {
            Some(number) => *team = (*team).max(u64::from(number) + 1),
            None => *others += 1,
        }
    }
    teams.values().map(|(team, others)| team + others).sum()
}

/// Counts the cells of rows as they are read, and compares them with the memory that is left.
#[derive(Debug)]
pub struct CellBudget {
    most: u64,
    slice: u32,
    /// Cells of the current slice.
    in_slice: u64,
    /// Cells of all slices so far.
    all: u64,
    /// Blocks of pages by thread, recorded only once `all` exceeds `most`. They show which pages were seen before and
    /// thus need no further memory.
    blocks: HashMap<u32, Runs>,
    /// Blocks of all threads.
    block_count: u64,
}

impl CellBudget {
    /// Room for `most` cells of the page × thread histogram, for each slice and for the distinct cells of all slices.
    pub fn new(most: u64) -> Self {
        Self {
            most,
            slice: 0,
            in_slice: 0,
            all: 0,
            blocks: HashMap::new(),
            block_count: 0,
        }
    }

    /// Counts the cells of a row.
    pub fn check(&mut self, row: &Access) -> Result<(), String> {
        if row.slice.0 != self.slice {
            (self.slice, self.in_slice) = (row.slice.0, 0);
        }
        self.in_slice += u64::from(row.len);
        if self.all > self.most && self.in_slice <= self.most {
            let last = row.page.0 + u64::from(row.len) - 1;
            let runs = self.blocks.entry(row.thread.0).or_default();
            self.block_count += runs.add(row.page.0 >> BLOCK_LOG2, (last >> BLOCK_LOG2) + 1);
        }
        self.all += u64::from(row.len);
        let cells = self.in_slice.max(self.block_count << BLOCK_LOG2);
        if cells > self.most {
            return Err(self.refusal(cells));
        }
        match self.all > MAX_CELLS {
            true => Err(format!(
                "its slices have more than {MAX_CELLS} cells of pages and threads; if it is a real recording, record \
                 fewer slices"
            )),
            false => Ok(()),
        }
    }

    fn refusal(&self, cells: u64) -> String {
        let gib = |cells: u64| (cells * CELL_BYTES).div_ceil(1 << 30);
        format!(
            "its pages and threads take {} GiB or more, and a quarter of the memory left is {} GiB; if it is a real \
             recording, read it where there is more memory",
            gib(cells),
            gib(self.most)
        )
    }
}

/// Number of cells that fit a quarter of the memory that this process can still get.
pub fn cells_here() -> u64 {
    (Host::default().memory_left() / 4 / CELL_BYTES).max(MIN_CELLS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_profile::{SliceId, ThreadId};

    fn row(slice: u32, thread: u32, page: u64, len: u32) -> Access {
        Access {
            slice: SliceId(slice),
            thread: ThreadId(thread),
            page: PageNumber(page),
            len,
            ..Access::default()
        }
    }

    fn fits(most: u64, rows: &[Access]) -> bool {
        let mut room = CellBudget::new(most);
        rows.iter().all(|row| room.check(row).is_ok())
    }

    #[test]
    fn a_slice_has_so_many_cells() {
        assert!(fits(1 << 20, &[row(0, 0, 0, 1 << 19), row(0, 1, 0, 1 << 19)]));
        assert!(!fits(
            1 << 20,
            &[row(0, 0, 0, 1 << 19), row(0, 1, 0, 1 + (1 << 19))]
        ));
        assert!(!fits(1 << 20, &[row(0, 0, 0, 1 << 30)]));
    }

    #[test]
    fn the_same_pages_may_come_in_every_slice() {
        let rows: Vec<_> = (0..1000).map(|s| row(s, s % 4, 0, 1 << 18)).collect();
        assert!(fits(1 << 20, &rows));
        let ever_others: Vec<_> = (0..1000)
            .map(|s| row(s, 0, u64::from(s) << 18, 1 << 18))
            .collect();
        assert!(!fits(1 << 20, &ever_others));
    }

    #[test]
    fn a_real_recording_of_many_slices_has_room() {
        let mut room = CellBudget::new(1 << 30);
        for slice in 0..1000 {
            for thread in 0..64 {
                room.check(&row(slice, thread, 4096, 10_000_000)).unwrap();
            }
        }
        assert_eq!(room.block_count, 64 * 10_000_000u64.div_ceil(1 << BLOCK_LOG2));
    }

    #[test]
    fn moves_count_by_what_they_share_and_not_by_their_pages() {
        let moved = |page, len| Migration {
            page: PageNumber(page),
            len,
            ..Migration::default()
        };
        assert_eq!(pieces(&[moved(0, u32::MAX), moved(1 << 33, u32::MAX)]), 2);
        assert_eq!(pieces(&[moved(0, 8), moved(8, 8), moved(0, 16)]), 4);
        let nested: Vec<_> = (0..1000).map(|i| moved(i, 1000)).collect();
        assert_eq!(pieces(&nested), 1000 * 1000);
    }

    #[test]
    fn numbers_of_threads_are_those_of_their_teams() {
        let thread = |process, openmp| Thread {
            process,
            openmp,
            ..Thread::default()
        };
        assert_eq!(
            numbers(&[thread(0, Some(3)), thread(0, None), thread(1, None)]),
            6
        );
        assert_eq!(
            numbers(&[thread(0, Some(u32::MAX)), thread(1, Some(u32::MAX))]),
            1 << 33
        );
    }
}
