//! The parts of a file that are looked at together: windows of 2 MiB, where the file has data.

use nodewise_analysis::random::SplitMix;
use nodewise_linux::page_cache::next_data;
use std::fs::File;

/// Bytes of a window; the largest page of the page cache lies within one.
pub(crate) const WINDOW: u64 = 2 << 20;

/// Windows of a file with data in them, ascending, by their numbers. Holes are passed over, so that a file of 2⁶⁰ bytes
/// without data has none.
pub(crate) struct DataWindows<'a> {
    file: &'a File,
    size: u64,
    next: u64,
    /// Where the stretch of data ends that was found last.
    data_end: u64,
}

impl<'a> DataWindows<'a> {
    pub fn of(file: &'a File, size: u64) -> Self {
        Self {
            file,
            size,
            next: 0,
            data_end: 0,
        }
    }
}

impl Iterator for DataWindows<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let from = self.next.checked_mul(WINDOW)?;
        let window = if from < self.data_end {
            self.next
        } else {
            let data = next_data(self.file, from, self.size)?;
            self.data_end = data.end;
            data.start / WINDOW
        };
        self.next = window + 1;
        Some(window)
    }
}

/// Windows drawn from all of a file, holes included: one at random of each of `count` equally large parts, so that a
/// pattern of nodes in the file cannot fall into step with them.
pub(crate) fn drawn(size: u64, count: u64) -> Vec<u64> {
    let all = size.div_ceil(WINDOW);
    let mut random = SplitMix(size);
    let start = |part: u64| (u128::from(part) * u128::from(all) / u128::from(count)) as u64;
    let one = |part: u64| {
        let width = (start(part + 1) - start(part)) as usize;
        start(part) + random.below(width) as u64
    };
    (0..count.min(all)).map(one).collect()
}

/// Bytes of a window of a file of `size` bytes; 0 behind its end.
pub(crate) fn length(window: u64, size: u64) -> u64 {
    WINDOW.min(size.saturating_sub(window.saturating_mul(WINDOW)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn every_part_of_a_large_file_has_a_window() {
        let drawn = drawn(1000 * WINDOW, 100);
        assert_eq!(drawn.len(), 100);
        assert!(drawn.iter().enumerate().all(|(i, w)| *w / 10 == i as u64));
        // Not in step with nodes that take turns.
        let odd = drawn.iter().filter(|w| *w % 2 == 1).count();
        assert!((30..=70).contains(&odd), "{odd}");
    }

    #[test]
    fn holes_have_no_windows() {
        let file = nodewise_linux::memfd::create(c"nodewise-test").unwrap();
        let size = 1 << 60;
        file.set_len(size).unwrap();
        assert_eq!(DataWindows::of(&file, size).count(), 0);
        file.write_all_at(&[1; 4096], 3 * WINDOW - 2048).unwrap();
        file.write_all_at(&[1], 1 << 50).unwrap();
        let found: Vec<u64> = DataWindows::of(&file, size).collect();
        assert_eq!(found, [2, 3, (1 << 50) / WINDOW]);
        assert_eq!((length(3, 3 * WINDOW + 5), length(9, WINDOW)), (5, 0));
    }
}
