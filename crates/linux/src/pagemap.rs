//! `/proc/PID/pagemap`: which pages of a process are there (Linux, Documentation/admin-guide/mm/pagemap.rst).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// A page's entry in `/proc/PID/pagemap`. The frame's number reads as zero without privileges, the
/// flags do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    /// Whether the page is in memory.
    #[must_use]
    pub fn present(self) -> bool {
        self.0 >> 63 & 1 == 1
    }

    /// Whether the page is swapped out.
    #[must_use]
    pub fn swapped(self) -> bool {
        self.0 >> 62 & 1 == 1
    }

    /// Whether the page was written since its process's bits were cleared (`soft_dirty`).
    #[must_use]
    pub fn soft_dirty(self) -> bool {
        self.0 >> 55 & 1 == 1
    }

    /// Whether the page is mapped exactly once.
    #[must_use]
    pub fn exclusive(self) -> bool {
        self.0 >> 56 & 1 == 1
    }
}

const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
/// Category flags: `PAGE_IS_FILE`, `PAGE_IS_PRESENT`, `PAGE_IS_PFNZERO`, `PAGE_IS_HUGE`.
const OF_FILE: u64 = 1 << 2;
const PRESENT: u64 = 1 << 3;
const ZEROS: u64 = 1 << 5;
const HUGE: u64 = 1 << 6;

/// The argument of the ioctl, `struct pm_scan_arg` (include/uapi/linux/fs.h).
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walked_to: u64,
    regions: u64,
    most_regions: u64,
    most_pages: u64,
    inverted: u64,
    all_of: u64,
    any_of: u64,
    wanted: u64,
}

/// `struct page_region`: pages of one kind.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

/// Neighbouring pages in memory, all huge or all small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// The address of the first page.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// Whether they are mapped as huge pages.
    pub huge: bool,
}

/// The page table of a process, `/proc/PID/pagemap`.
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

    /// Calls `there` with the number of every page in memory among `count` pages from page `first` on. Pages that are
    /// protected for sampling count as being in memory. From Linux 6.7 on, the cost is proportional to the pages in
    /// memory, before that to `count`.
    ///
    /// # Errors
    /// The process has ended.
    pub fn resident(&self, first: u64, count: u64, mut there: impl FnMut(u64)) -> io::Result<()> {
        let (mut from, end) = (first, first.saturating_add(count));
        let mut found = [Region::default(); 64];
        while from < end {
            let Some((regions, next)) = self.scan(from, end, PRESENT, &mut found) else {
                return self.walk(from, end - from, there);
            };
            let pages = found[..regions].iter().flat_map(|r| r.start >> 12..r.end >> 12);
            pages.for_each(&mut there);
            from = next.max(from + 1);
        }
        Ok(())
    }

    /// Whether unused addresses cost no time, as from Linux 6.7 on.
    #[must_use]
    pub fn leaps(&self) -> bool {
        self.scan(0, 1, PRESENT, &mut [Region::default()]).is_some()
    }

    /// Calls `found` with the runs of anonymous pages in memory between two addresses, ascending.
    ///
    /// # Errors
    /// The process has ended, or Linux is older than 6.7.
    pub fn runs(&self, start: u64, end: u64, mut found: impl FnMut(PageRun)) -> io::Result<()> {
        let (mut from, end) = (start >> 12, end >> 12);
        let mut regions = [Region::default(); 64];
        while from < end {
            let kinds = PRESENT | OF_FILE | ZEROS | HUGE;
            let (count, next) = self
                .scan(from, end, kinds, &mut regions)
                .ok_or(io::ErrorKind::Unsupported)?;
            for region in &regions[..count] {
                if region.categories & (OF_FILE | ZEROS) == 0 {
                    found(PageRun {
                        start: region.start,
                        end: region.end,
                        huge: region.categories & HUGE != 0,
                    });
                }
            }
            from = next.max(from + 1);
        }
        Ok(())
    }

    /// Runs of pages in memory, and the page at which to continue; `None` if the kernel does not support this, or the
    /// process has ended.
    fn scan(&self, first: u64, end: u64, wanted: u64, found: &mut [Region]) -> Option<(usize, u64)> {
        let mut scan = Scan {
            size: size_of::<Scan>() as u64,
            start: first << 12,
            end: end << 12,
            regions: found.as_mut_ptr() as u64,
            most_regions: found.len() as u64,
            all_of: PRESENT,
            wanted,
            ..Scan::default()
        };
        // SAFETY: the kernel reads and writes one `Scan` of the size it says, and writes at most this many
        // regions to where `found` is.
        let regions = unsafe { libc::ioctl(self.0.as_raw_fd(), PAGEMAP_SCAN, &raw mut scan) };
        Some((usize::try_from(regions).ok()?, scan.walked_to >> 12))
    }

    fn walk(&self, first: u64, count: u64, mut there: impl FnMut(u64)) -> io::Result<()> {
        self.each(first, count, |page, entry| {
            if entry.present() {
                there(page);
            }
        })
    }

    /// Calls `seen` with the number and entry of every page, except for those without information.
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

    #[test]
    fn runs_are_of_anonymous_memory_alone() {
        let map = Pagemap::of(std::process::id()).unwrap();
        if !map.leaps() {
            return;
        }
        let mut memory = vec![0_u8; 64 << 12];
        let base = (memory.as_ptr() as u64 + 4095) & !4095;
        let offset = (base - memory.as_ptr() as u64) as usize;
        for page in [2, 3, 4, 9] {
            memory[offset + (page << 12)] = 1;
        }
        let (mut pages, mut code) = (Vec::new(), 0);
        map.runs(base, base + (32 << 12), |run| {
            pages.extend((run.start..run.end).step_by(4096).map(|at| (at - base) >> 12));
        })
        .unwrap();
        for page in [2, 3, 4, 9] {
            assert!(pages.contains(&page), "{pages:?}");
        }
        let own = runs_are_of_anonymous_memory_alone as *const () as u64 & !4095;
        map.runs(own, own + 4096, |_| code += 1).unwrap();
        assert_eq!(code, 0, "code is a file's");
    }

    #[test]
    fn leaping_finds_the_pages_that_walking_finds() {
        let mut memory = vec![0_u8; 4096 << 12];
        let base = (memory.as_ptr() as u64 >> 12) + 1;
        // Every third, so that there are more runs than are asked for at once.
        (0..4000).step_by(3).for_each(|page| memory[page << 12] = 1);
        let map = Pagemap::of(std::process::id()).unwrap();
        let (mut leapt, mut walked) = (Vec::new(), Vec::new());
        map.resident(base, 4090, |page| leapt.push(page)).unwrap();
        map.walk(base, 4090, |page| walked.push(page)).unwrap();
        assert_eq!(leapt, walked);
        assert!(walked.len() >= 1300, "{}", walked.len());
    }
}
