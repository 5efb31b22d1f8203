//! `/proc/PID/pagemap`: which pages of a process are there (Linux, Documentation/admin-guide/mm/pagemap.rst).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// What a process's table says of one page. The frame's number reads as zero without privileges, the
/// flags do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    /// In memory.
    #[must_use]
    pub fn present(self) -> bool {
        self.0 >> 63 & 1 == 1
    }

    /// Swapped out.
    #[must_use]
    pub fn swapped(self) -> bool {
        self.0 >> 62 & 1 == 1
    }

    /// Mapped once, by nobody else.
    #[must_use]
    pub fn exclusive(self) -> bool {
        self.0 >> 56 & 1 == 1
    }
}

/// A process's pages.
#[derive(Debug)]
pub struct Pagemap(File);

impl Pagemap {
    /// Those of a process.
    ///
    /// # Errors
    /// No such process, or not ours to look into.
    pub fn of(pid: u32) -> io::Result<Self> {
        File::open(format!("/proc/{pid}/pagemap")).map(Self)
    }

    /// Calls `there` with the number of every page in memory among `count` pages from page `first` on.
    /// Pages protected to be sampled count as being there.
    ///
    /// # Errors
    /// The process has ended.
    pub fn resident(&self, first: u64, count: u64, mut there: impl FnMut(u64)) -> io::Result<()> {
        self.each(first, count, |page, entry| {
            if entry.present() {
                there(page);
            }
        })
    }

    /// Calls `seen` with every page's number and entry, those of which nothing is known left out.
    ///
    /// # Errors
    /// The process has ended.
    pub fn each(&self, first: u64, count: u64, mut seen: impl FnMut(u64, Entry)) -> io::Result<()> {
        const CHUNK: u64 = 512;
        let mut bytes = [0; CHUNK as usize * 8];
        let (mut page, end) = (first, first.saturating_add(count));
        while page < end {
            let wanted = CHUNK.min(end - page) as usize * 8;
            let read = self.0.read_at(&mut bytes[..wanted], page * 8)?;
            if read == 0 {
                break;
            }
            for (entry, number) in bytes[..read].as_chunks::<8>().0.iter().zip(page..) {
                match u64::from_ne_bytes(*entry) {
                    0 => {}
                    known => seen(number, Entry(known)),
                }
            }
            page += (read / 8).max(1) as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touched_pages_are_there_and_others_are_not() {
        const PAGES: usize = 600;
        // Fresh from the kernel, and larger than what an allocator keeps.
        let mut memory = vec![0_u8; PAGES << 12 << 3];
        let base = memory.as_ptr() as u64 >> 12;
        memory[8192 + 4095] = 1;
        let mut seen = Vec::new();
        let map = Pagemap::of(std::process::id()).unwrap();
        map.resident(base + 1, PAGES as u64, |page| seen.push(page))
            .unwrap();
        let touched = &raw const memory[8192 + 4095] as u64 >> 12;
        assert!(seen.contains(&touched));
        assert!(seen.is_sorted());
        assert!(Pagemap::of(u32::MAX).is_err());
    }
}
