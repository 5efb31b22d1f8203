//! Measures the cost of a page fault on this host, with minor faults of our own.

use crate::clock;
use std::io;
use std::time::Duration;

const PAGE: usize = 4096;

/// The CPU time that this thread needs to touch this number of new small pages.
///
/// # Errors
/// No memory.
pub fn minor_faults(pages: usize) -> io::Result<Duration> {
    let bytes = pages.max(1) * PAGE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, kind, -1, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: advice on our own mapping; without huge pages in the kernel it fails, and there are none.
    unsafe { libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE) };
    let began = clock::own_cpu_time();
    for at in (0..bytes).step_by(PAGE) {
        // SAFETY: inside our own mapping, which nothing else refers to.
        unsafe { base.cast::<u8>().add(at).write_volatile(1) };
    }
    let took = clock::own_cpu_time() - began;
    // SAFETY: our own mapping, of this size.
    unsafe { libc::munmap(base, bytes) };
    Ok(took)
}

#[cfg(test)]
mod tests {
    #[test]
    fn faults_take_time() {
        assert!(super::minor_faults(256).unwrap() > std::time::Duration::ZERO);
    }
}
