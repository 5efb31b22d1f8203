//! What the kernel knows of page frames: `/proc/kpagecount` and `/proc/kpageflags` (Linux,
//! Documentation/admin-guide/mm/pagemap.rst). Only root reads them, and in many containers not even root.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The flag of pages on the list of active ones, `KPF_ACTIVE` (include/uapi/linux/kernel-page-flags.h).
const ACTIVE: u64 = 1 << 6;
/// `KPF_COMPOUND_TAIL`: any page but the first of a large one. Before Linux 6.10 or so it lacks the flags of the first.
const TAIL: u64 = 1 << 16;
/// Frames of the largest page that is managed as one in the page cache; such a page is aligned.
const LARGEST: u64 = 512;
/// Frame numbers that are so near to each other are read at once.
const NEAR: u64 = 64;

/// What the kernel tells of a page frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// How many times it is mapped, by any process.
    pub mappings: u64,
    flags: u64,
}

impl Frame {
    /// Whether it is on the kernel's list of active pages: those that were used more than once. Means something if
    /// [`Frames::has_lists`].
    #[must_use]
    pub fn active(self) -> bool {
        self.flags & ACTIVE != 0
    }
}

/// The kernel's files on page frames.
#[derive(Debug)]
pub struct Frames {
    pagemap: File,
    counts: File,
    flags: File,
    has_lists: bool,
}

impl Frames {
    /// Opens the files.
    ///
    /// # Errors
    /// Not allowed to this user, or in this container.
    pub fn open() -> io::Result<Self> {
        let frames = Self {
            pagemap: File::open("/proc/self/pagemap")?,
            counts: File::open("/proc/kpagecount")?,
            flags: File::open("/proc/kpageflags")?,
            has_lists: !has_generations(),
        };
        // Without `CAP_SYS_ADMIN` the files can be read, but the numbers of frames are zero.
        let here = 0_u8;
        match frames.of(&[&raw const here as u64 & !4095])?[0] {
            Some(_) => Ok(frames),
            None => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Whether the kernel keeps a list of active pages. With its generations of pages (`lru_gen`) no flag tells whether a
    /// page was used.
    #[must_use]
    pub fn has_lists(&self) -> bool {
        self.has_lists
    }

    /// The frames of pages of this process, by their addresses, ascending; `None` where no page is mapped.
    ///
    /// # Errors
    /// As the kernel answers.
    pub fn of(&self, addresses: &[u64]) -> io::Result<Vec<Option<Frame>>> {
        let (Some(first), Some(last)) = (addresses.first(), addresses.last()) else {
            return Ok(Vec::new());
        };
        let entries = words(&self.pagemap, first >> 12, (last >> 12) + 1)?;
        let number = |address: &u64| {
            let entry = entries[((address >> 12) - (first >> 12)) as usize];
            // Present, and a number that the kernel shows to us.
            (entry >> 63 == 1)
                .then_some(entry & ((1 << 55) - 1))
                .filter(|n| *n > 0)
        };
        let numbers: Vec<Option<u64>> = addresses.iter().map(number).collect();
        let mut order: Vec<usize> = (0..numbers.len()).filter(|i| numbers[*i].is_some()).collect();
        order.sort_unstable_by_key(|i| numbers[*i]);
        let mut found = vec![None; numbers.len()];
        for near in order.chunk_by(|a, b| numbers[*b] <= numbers[*a].map(|n| n + NEAR)) {
            let at = |i: usize| numbers[i].expect("only those that have one");
            let (start, end) = (at(near[0]) & !(LARGEST - 1), at(near[near.len() - 1]) + 1);
            let (counts, flags) = (words(&self.counts, start, end)?, words(&self.flags, start, end)?);
            for i in near {
                let n = (at(*i) - start) as usize;
                let first = (0..=n).rev().find(|first| flags[*first] & TAIL == 0).unwrap_or(n);
                found[*i] = Some(Frame {
                    mappings: counts[n],
                    flags: flags[n] | flags[first],
                });
            }
        }
        Ok(found)
    }
}

fn has_generations() -> bool {
    let enabled = std::fs::read_to_string("/sys/kernel/mm/lru_gen/enabled").unwrap_or_default();
    let bits = u32::from_str_radix(enabled.trim().trim_start_matches("0x"), 16);
    bits.is_ok_and(|bits| bits & 1 == 1)
}

/// The 64-bit words from number `start` to before `end`.
fn words(file: &File, start: u64, end: u64) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; ((end - start) * 8) as usize];
    file.read_exact_at(&mut bytes, start * 8)?;
    let word = |w: &[u8]| u64::from_ne_bytes(w.try_into().expect("eight bytes"));
    Ok(bytes.chunks_exact(8).map(word).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_mapped_once() {
        let Ok(frames) = Frames::open() else { return };
        let memory = vec![1u8; 64 << 12];
        let first = (memory.as_ptr() as u64 + 4095) & !4095;
        let mut addresses: Vec<u64> = (0..63).map(|p| first + (p << 12)).collect();
        let found = frames.of(&addresses).unwrap();
        assert!(
            found.iter().all(|f| f.is_some_and(|f| f.mappings == 1)),
            "{found:?}"
        );
        addresses.insert(0, 0x1000);
        assert_eq!(frames.of(&addresses[..1]).unwrap(), [None]);
        assert!(frames.of(&[]).unwrap().is_empty());
    }
}
