//! The part of the kernel's interface (include/uapi/linux/userfaultfd.h) that is used here. The descriptor was opened
//! by the observed process, so all calls act on that process's memory.

use std::os::fd::RawFd;

/// The version of the interface, `UFFD_API`.
const VERSION: u64 = 0xaa;
const API: libc::c_ulong = 0xc018_aa3f;
const REGISTER: libc::c_ulong = 0xc020_aa00;
const UNREGISTER: libc::c_ulong = 0x8010_aa01;
const WAKE: libc::c_ulong = 0x8010_aa02;
const COPY: libc::c_ulong = 0xc028_aa03;
/// `UFFDIO_MOVE`: moves pages without copying their contents, and wakes threads that wait for them. The argument:
/// destination, source, bytes, 0, and the number of bytes moved. Linux permits it only to threads of the process
/// itself.
pub const MOVE: u64 = 0xc028_aa05;
/// The fault to wait for: access to a missing page (`UFFDIO_REGISTER_MODE_MISSING`).
const MISSING: u64 = 1;

/// The range of user addresses: from above `vm.mmap_min_addr` to the end of four-level page tables.
const FIRST: u64 = 1 << 20;
const END: u64 = 0x7fff_ffff_f000;

const EVENT_FORK: u64 = 1 << 1;
const EVENT_REMAP: u64 = 1 << 2;
const EVENT_REMOVE: u64 = 1 << 3;
const EVENT_UNMAP: u64 = 1 << 6;
const CAN_MOVE: u64 = 1 << 16;
/// The events that we need to be told of while pages are set aside, and `UFFDIO_MOVE` (Linux 6.8).
pub const FEATURES: u64 = EVENT_FORK | EVENT_REMAP | EVENT_REMOVE | EVENT_UNMAP | CAN_MOVE;

/// `struct uffd_msg`: 32 bytes, of which the first tells how to read the others.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Message {
    event: u8,
    reserved: [u8; 7],
    words: [u64; 3],
}

/// An event of the observed process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A thread accesses this address, where no page is present, and waits.
    Fault(u64),
    /// The process forked; the descriptor of the child's memory.
    Fork(RawFd),
    /// A range was moved (`mremap`): from, to, bytes.
    Remap(u64, u64, u64),
    /// The contents of this range are discarded (`madvise`): start and end.
    Remove(u64, u64),
    /// This range was unmapped: start and end.
    Unmap(u64, u64),
    Other,
}

impl Event {
    /// Whether the event changes which pages are mapped where, so that its order among others of its kind matters.
    pub fn moves_places(&self) -> bool {
        matches!(self, Self::Remap(..) | Self::Unmap(..))
    }
}

impl Message {
    pub fn event(&self) -> Event {
        let [first, second, third] = self.words;
        match self.event {
            0x12 => Event::Fault(second), // the first word holds flags
            0x13 => Event::Fork(first as u32 as RawFd),
            0x14 => Event::Remap(first, second, third),
            0x15 => Event::Remove(first, second),
            0x16 => Event::Unmap(first, second),
            _ => Event::Other,
        }
    }
}

/// A userfaultfd descriptor. Calls return 0 or the error number, and allocate nothing.
#[derive(Clone, Copy)]
pub struct Descriptor(pub RawFd);

impl Descriptor {
    /// Enables [`FEATURES`]; needs `CAP_SYS_PTRACE`.
    pub fn begin(self) -> i32 {
        self.call(API, &mut [VERSION, FEATURES, 0])
    }

    /// From now on, threads that access a missing page of this range wait for us.
    pub fn register(self, start: u64, bytes: u64) -> i32 {
        self.call(REGISTER, &mut [start, bytes, MISSING, 0])
    }

    /// From now on, threads that access a missing page of this range no longer wait for us; those that wait there
    /// continue.
    pub fn unregister(self, start: u64, bytes: u64) -> i32 {
        self.call(UNREGISTER, &mut [start, bytes])
    }

    /// Wakes all waiting threads; those that still miss a page wait again. Unregistering a range does not wake threads
    /// that began to wait just before, nor those whose memory was moved or unmapped.
    pub fn wake_all(self) {
        self.call(WAKE, &mut [FIRST, END - FIRST]);
    }

    /// Fills missing pages with a copy of `bytes`, and wakes threads that wait for them.
    pub fn copy(self, to: u64, bytes: &[u8]) -> i32 {
        self.call(COPY, &mut [to, bytes.as_ptr() as u64, bytes.len() as u64, 0, 0])
    }

    /// Whether a thread is changing the mappings: it has not continued yet, whether or not we have read its event.
    pub fn changing(self) -> bool {
        // A copy of no bytes is always refused; the error number tells whether a change is under way.
        self.copy(0, &[]) == libc::EAGAIN
    }

    /// The next event, or none if there is none at present.
    pub fn read(self) -> Option<Event> {
        let mut message = Message::default();
        let size = size_of::<Message>();
        // SAFETY: the kernel writes at most `size` bytes, to a message that we own.
        let got = unsafe { libc::read(self.0, (&raw mut message).cast(), size) };
        (got == size as isize).then(|| message.event())
    }

    pub fn close(self) {
        // SAFETY: passes only a number; the caller owns the descriptor.
        unsafe { libc::close(self.0) };
    }

    fn call<const N: usize>(self, request: libc::c_ulong, argument: &mut [u64; N]) -> i32 {
        // SAFETY: the kernel reads and writes as many words as the request's number encodes, and every caller passes
        // that `N`.
        let result = unsafe { libc::ioctl(self.0, request, argument.as_mut_ptr()) };
        if result == 0 { 0 } else { errno() }
    }
}

pub fn errno() -> i32 {
    // SAFETY: the address of this thread's own error number.
    unsafe { *libc::__errno_location() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_laid_out_as_the_kernels() {
        let message = |event, words| Message {
            event,
            reserved: [0; 7],
            words,
        };
        assert_eq!(size_of::<Message>(), 32);
        assert_eq!(message(0x12, [1, 0x7000, 42]).event(), Event::Fault(0x7000));
        assert_eq!(message(0x13, [9, 0, 0]).event(), Event::Fork(9));
        assert_eq!(message(0x14, [1, 2, 3]).event(), Event::Remap(1, 2, 3));
        assert_eq!(message(0x15, [1, 2, 0]).event(), Event::Remove(1, 2));
        assert_eq!(message(0x16, [1, 2, 0]).event(), Event::Unmap(1, 2));
        assert_eq!(message(0, [0; 3]).event(), Event::Other);
    }
}
