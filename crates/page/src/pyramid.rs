//! Sums over 2^level pages. Levels that need only a few bytes per page are kept; finer ones are recomputed on demand.

// Why: docs/decisions/page.md

use rayon::prelude::*;
use std::ops::Range;

/// Number of cells of a tile.
pub const CELLS: usize = 256;
/// Largest memory of a pyramid, bytes per page.
const BYTES_A_PAGE: usize = 6;
/// Levels below this one are always computed on demand.
const FINEST_STORED_LEVEL: u32 = 8;

/// Number of cells of a level for `pages` pages.
#[must_use]
pub fn cells(pages: usize, level: u32) -> usize {
    pages.div_ceil(1 << level)
}

/// The coarsest level, at which a single tile holds all pages.
#[must_use]
pub fn coarsest(pages: usize) -> u32 {
    (0..)
        .find(|level| cells(pages, *level) <= CELLS)
        .unwrap_or_default()
}

/// Rows of sums by level and cell, all with the same number of columns.
#[derive(Debug)]
pub struct Pyramid {
    pages: usize,
    width: usize,
    /// The finest level that is kept, which is `levels[0]`.
    finest: u32,
    /// `[level - finest][cell * width + column]`.
    levels: Vec<Vec<u64>>,
}

impl Pyramid {
    /// Builds the kept levels, with rows of `width` sums; `add` adds the sums over some positions to a row.
    pub fn new(pages: usize, width: usize, add: impl Fn(Range<usize>, &mut [u64]) + Sync) -> Self {
        // Each level is half as large as the one below, so all coarser levels together are as large as the finest.
        let row = 2 * width * size_of::<u64>();
        let finest = (FINEST_STORED_LEVEL..)
            .find(|level| row >> level <= BYTES_A_PAGE)
            .unwrap_or_default();
        let mut pyramid = Self {
            pages,
            width,
            finest,
            levels: Vec::new(),
        };
        for level in finest..=coarsest(pages) {
            let rows = match pyramid.levels.last() {
                Some(finer) => merged(finer, width),
                None => pyramid.summed(level, 0..cells(pages, level), &add),
            };
            pyramid.levels.push(rows);
        }
        pyramid
    }

    /// The rows of some cells, in order.
    pub fn rows(
        &self,
        level: u32,
        cells: Range<usize>,
        add: impl Fn(Range<usize>, &mut [u64]) + Sync,
    ) -> Vec<u64> {
        match level.checked_sub(self.finest) {
            Some(kept) => {
                self.levels[kept as usize][cells.start * self.width..cells.end * self.width].to_vec()
            }
            None => self.summed(level, cells, &add),
        }
    }

    fn summed(
        &self,
        level: u32,
        cells: Range<usize>,
        add: &(impl Fn(Range<usize>, &mut [u64]) + Sync),
    ) -> Vec<u64> {
        let mut rows = vec![0; cells.len() * self.width];
        let cell = |(row, cell): (&mut [u64], usize)| {
            add(cell << level..self.pages.min((cell + 1) << level), row);
        };
        rows.par_chunks_mut(self.width).zip(cells).for_each(cell);
        rows
    }

    /// Memory in use, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|l| l.len() * size_of::<u64>()).sum()
    }
}

/// Adds up pairs of neighbouring rows.
fn merged(finer: &[u64], width: usize) -> Vec<u64> {
    let mut rows = Vec::with_capacity((finer.len() / width).div_ceil(2) * width);
    for pair in finer.chunks(2 * width) {
        let start = rows.len();
        rows.extend_from_slice(&pair[..width]);
        let sums = rows[start..].iter_mut();
        sums.zip(&pair[width..]).for_each(|(sum, more)| *sum += more);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sums for the test: the value of position p is p, and it counts as one page.
    fn add(positions: Range<usize>, row: &mut [u64]) {
        row[1] += positions.len() as u64;
        row[0] += positions.map(|p| p as u64).sum::<u64>();
    }

    proptest! {
        #[test]
        fn a_level_sums_to_the_one_below_it(pages in 1usize..200_000, level in 1u32..12) {
            let pyramid = Pyramid::new(pages, 2, add);
            prop_assume!(level <= coarsest(pages));
            let (fine, coarse) = (cells(pages, level - 1), cells(pages, level));
            let finer = pyramid.rows(level - 1, 0..fine, add);
            prop_assert_eq!(pyramid.rows(level, 0..coarse, add), merged(&finer, 2));
            let (sum, count) = finer.chunks(2).fold((0, 0), |s, r| (s.0 + r[0], s.1 + r[1]));
            prop_assert_eq!((sum, count), ((pages * (pages - 1) / 2) as u64, pages as u64));
        }

        #[test]
        fn it_takes_a_few_bytes_a_page(pages in 1usize..300_000, width in 1usize..3000) {
            let pyramid = Pyramid::new(pages, width, |_, _| ());
            // Cells at the end of each level that are not full add to this.
            let ends = 8 * width * 32;
            prop_assert!(pyramid.bytes() <= (BYTES_A_PAGE + 1) * pages + ends, "{}", pyramid.bytes());
        }
    }

    #[test]
    fn one_tile_holds_everything_at_the_coarsest_level() {
        assert_eq!(
            [0, 1, 256, 257, 512, 513, 10_000_000].map(coarsest),
            [0, 0, 0, 1, 1, 2, 16]
        );
    }
}
