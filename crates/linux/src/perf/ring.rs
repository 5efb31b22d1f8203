//! A perf event and its ring buffer.

use perf_event_open_sys::bindings::perf_event_attr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const PAGE: usize = 4096;
/// Word offsets in the kernel's first page (`perf_event_mmap_page`).
const DATA_HEAD: usize = 1024 / 8;
const DATA_TAIL: usize = 1032 / 8;
const CLOEXEC: libc::c_ulong = 8; // PERF_FLAG_FD_CLOEXEC

/// Opens an event on one CPU for the thread `pid` (0: the caller, -1: all), or with the flag for a control group, where
/// `pid` is a descriptor of its folder.
pub(crate) fn open(
    attributes: &mut perf_event_attr,
    pid: i32,
    cpu: i32,
    flags: libc::c_ulong,
) -> io::Result<OwnedFd> {
    open_in_group(attributes, pid, cpu, -1, flags)
}

/// As [`open`], in the group of another event, given by its descriptor; -1: in a group of its own.
pub(crate) fn open_in_group(
    attributes: &mut perf_event_attr,
    pid: i32,
    cpu: i32,
    leader: i32,
    flags: libc::c_ulong,
) -> io::Result<OwnedFd> {
    attributes.size = size_of::<perf_event_attr>() as u32;
    // SAFETY: the attributes are valid, say their size, and outlive the call.
    let event =
        unsafe { perf_event_open_sys::perf_event_open(attributes, pid, cpu, leader, flags | CLOEXEC) };
    if event < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(event) })
}

/// A buffer that the kernel appends to and we read from.
pub(crate) struct Ring {
    base: *mut libc::c_void,
    bytes: usize,
    event: OwnedFd,
}

// SAFETY: the mapping is reached through atomic words only, and moves with its owner.
unsafe impl Send for Ring {}

impl Ring {
    /// A buffer for the records of `event`, of the first of these numbers of pages, powers of two, that the
    /// kernel grants.
    pub fn of(event: OwnedFd, pages: &[usize]) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let fd = event.as_raw_fd();
        for bytes in pages.iter().map(|p| (1 + p) * PAGE) {
            // SAFETY: a fresh mapping at an address of the kernel's choice.
            let base =
                unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, fd, 0) };
            if base != libc::MAP_FAILED {
                return Ok(Self { base, bytes, event });
            }
        }
        Err(io::Error::last_os_error())
    }

    /// The event it was made for.
    pub fn event(&self) -> &OwnedFd {
        &self.event
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped for this many bytes while `self` lives; the kernel writes whole words.
        unsafe { std::slice::from_raw_parts(self.base.cast(), self.bytes / 8) }
    }

    /// Removes all records from the buffer, and calls `visit` with each one's type, `misc`, and the words after its
    /// header.
    pub fn drain(&self, mut visit: impl FnMut(u32, u16, &[u64])) {
        let (control, data) = self.words().split_at(PAGE / 8);
        let head = control[DATA_HEAD].load(Acquire);
        let mut tail = control[DATA_TAIL].load(Relaxed);
        let word = |at: u64| data[(at / 8) as usize % data.len()].load(Relaxed);
        let mut body = Vec::new();
        while tail < head {
            // struct perf_event_header: type, misc, size.
            let header = word(tail);
            let size = header >> 48;
            if size < 8 {
                break;
            }
            body.clear();
            body.extend((tail + 8..tail + size).step_by(8).map(word));
            visit(header as u32, (header >> 32) as u16, &body);
            tail += size;
        }
        control[DATA_TAIL].store(head, Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of this size.
        unsafe { libc::munmap(self.base, self.bytes) };
    }
}

/// The text in a record's words, up to its end.
pub(crate) fn text(words: &[u64]) -> String {
    let bytes = words.iter().flat_map(|w| w.to_ne_bytes());
    let bytes: Vec<u8> = bytes.take_while(|&b| b != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The raw bytes of a tracepoint's sample, which follow their length of half a word.
pub(crate) fn raw(words: &[u64]) -> Vec<u8> {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    bytes.get(4..).map(<[u8]>::to_vec).unwrap_or_default()
}

/// Runs `open` for each CPU there may be; those that are offline are left out.
pub(crate) fn each_cpu<T>(mut open: impl FnMut(i32) -> io::Result<T>) -> io::Result<Vec<T>> {
    // SAFETY: a plain query.
    let configured = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
    let mut all = Vec::new();
    for cpu in 0..i32::try_from(configured).unwrap_or(1).max(1) {
        match open(cpu) {
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            result => all.push(result?),
        }
    }
    Ok(all)
}
