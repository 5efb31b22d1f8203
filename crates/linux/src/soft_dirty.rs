//! Soft-dirty bits: after they are cleared, the next write to each page of a process faults once (Linux,
//! Documentation/admin-guide/mm/soft-dirty.rst). This shows which thread writes which page, also for memory that was
//! touched long before. The program only notices the time: system calls that write to such pages fault in the same way.

use crate::Host;
use crate::pagemap::Pagemap;
use std::io;
use std::time::{Duration, Instant};

/// Whether this kernel supports these bits.
#[must_use]
pub fn works() -> bool {
    // The page was just written, so it is present, and dirty since its creation.
    let page = std::hint::black_box(Box::new([1u8; 4096]));
    let number = page.as_ptr().addr() as u64 >> 12;
    let mut dirty = false;
    let seen = Pagemap::of(std::process::id()).and_then(|pages| {
        pages.each(number, 1, |_, entry| {
            dirty = entry.present() && entry.soft_dirty();
        })
    });
    drop(std::hint::black_box(page));
    seen.is_ok() && dirty
}

/// Whether a process reads its own bits, as garbage collectors do; then they must not be cleared.
#[must_use]
pub fn is_used_by(host: &Host, pid: u32) -> bool {
    let folder = format!("proc/{pid}/fd");
    let names = host.names(&folder).unwrap_or_default();
    names.iter().any(|name| {
        let target = std::fs::read_link(host.proc().join(format!("{pid}/fd/{name}")));
        target.is_ok_and(|file| file.ends_with("pagemap") || file.ends_with("clear_refs"))
    })
}

/// Clears the bits of a process. Returns how long that took, since the process can neither map memory nor have a page
/// fault handled meanwhile.
///
/// # Errors
/// No such process, or another user's.
pub fn clear(pid: u32) -> io::Result<Duration> {
    let start = Instant::now();
    std::fs::write(format!("/proc/{pid}/clear_refs"), "4")?;
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{Record, Source};

    #[test]
    fn a_write_after_the_bits_are_cleared_is_seen_with_its_address() {
        if !works() {
            return; // a kernel without them: the follower says so
        }
        let mut page = vec![1u8; 3 << 20];
        // SAFETY: takes nothing.
        let tid = unsafe { libc::gettid() } as u32;
        let Ok(mut source) = Source::of_threads(&[tid], 1) else {
            return; // page faults may not be observed here
        };
        clear(std::process::id()).unwrap();
        let at = std::hint::black_box(&mut page)[1 << 20..].as_mut_ptr();
        // SAFETY: inside the vector.
        unsafe { at.write_volatile(7) };
        let mut records = Vec::new();
        source.drain(&mut records);
        let address = at.addr() as u64;
        let seen = |r: &Record| matches!(r, Record::Fault(f) if f.address == address && f.tid == tid);
        assert!(records.iter().any(seen), "{records:?}");
    }

    #[test]
    fn a_huge_page_is_cleared_and_written_as_one() {
        const HUGE: usize = 2 << 20;
        let pid = std::process::id();
        let mut memory = vec![0u8; 5 * HUGE];
        let start = memory.as_mut_ptr().addr().next_multiple_of(HUGE) - memory.as_ptr().addr();
        let part = &mut memory[start..start + 4 * HUGE];
        // SAFETY: a part of the vector; the advice changes no contents.
        unsafe { libc::madvise(part.as_mut_ptr().cast(), part.len(), libc::MADV_HUGEPAGE) };
        part.fill(1);
        let areas = Host::default().huge_mappings(pid).unwrap();
        if !works() || areas.values().sum::<u64>() < 4 * HUGE as u64 {
            return; // no bits, or no huge pages
        }
        // SAFETY: takes nothing.
        let tid = unsafe { libc::gettid() } as u32;
        let Ok(mut source) = Source::of_threads(&[tid], 1) else {
            return; // page faults may not be observed here
        };
        clear(pid).unwrap();
        std::hint::black_box(&mut *part).fill(2);
        let mut records = Vec::new();
        source.drain(&mut records);
        let range = part.as_ptr_range();
        let inside = |r: &&Record| matches!(r, Record::Fault(f) if (range.start.addr()..range.end.addr()).contains(&(f.address as usize)));
        assert_eq!(records.iter().filter(inside).count(), 4, "{records:?}");
    }

    #[test]
    fn who_reads_its_own_page_table_is_known() {
        let host = Host::default();
        let own = std::process::id();
        let open = std::fs::File::open("/proc/self/pagemap").unwrap();
        assert!(is_used_by(&host, own));
        drop(open);
    }
}
