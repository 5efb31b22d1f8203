//! The kernel's interface (include/uapi/linux/userfaultfd.h), as far as it is used here. All of it works on a descriptor that
//! another process opened: it is that process's memory that is meant.

use std::os::fd::RawFd;

/// The version of the interface, `UFFD_API`.
const VERSION: u64 = 0xaa;
const API: libc::c_ulong = 0xc018_aa3f;
const REGISTER: libc::c_ulong = 0xc020_aa00;
const UNREGISTER: libc::c_ulong = 0x8010_aa01;
const WAKE: libc::c_ulong = 0x8010_aa02;
const COPY: libc::c_ulong = 0xc028_aa03;
/// Moves pages, not their contents; who waits for them goes on. The argument: to, from, bytes, 0, and what was moved. Linux lets threads
/// of the process alone do this.
pub const MOVE: u64 = 0xc028_aa05;
/// What is waited for: `UFFDIO_REGISTER_MODE_MISSING`.
const MISSING: u64 = 1;

/// Where programs have memory: from above what no kernel lets them map, to the end of four-level page tables.
const FIRST: u64 = 1 << 20;
const END: u64 = 0x7fff_ffff_f000;

const EVENT_FORK: u64 = 1 << 1;
const EVENT_REMAP: u64 = 1 << 2;
const EVENT_REMOVE: u64 = 1 << 3;
const EVENT_UNMAP: u64 = 1 << 6;
const CAN_MOVE: u64 = 1 << 16;
/// What a process must tell us while pages of it are set aside, and that pages can be (Linux 6.8).
pub const FEATURES: u64 = EVENT_FORK | EVENT_REMAP | EVENT_REMOVE | EVENT_UNMAP | CAN_MOVE;

/// `struct uffd_msg`: 32 bytes, whose meaning the first one tells.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Message {
    event: u8,
    reserved: [u8; 7],
    words: [u64; 3],
}

/// What a process did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A thread accesses this address, where no page is, and waits.
    Fault(u64),
    /// It forked: the child's descriptor.
    Fork(RawFd),
    /// Memory changed its place: from, to, bytes.
    Remap(u64, u64, u64),
    /// The contents of this range are given up.
    Remove(u64, u64),
    /// This range is unmapped.
    Unmap(u64, u64),
    Other,
}

impl Message {
    pub fn event(&self) -> Event {
        let [first, second, third] = self.words;
        match self.event {
            0x12 => Event::Fault(second), // the first word has flags
            0x13 => Event::Fork(first as u32 as RawFd),
            0x14 => Event::Remap(first, second, third),
            0x15 => Event::Remove(first, second),
            0x16 => Event::Unmap(first, second),
            _ => Event::Other,
        }
    }
}

/// A descriptor of userfaultfd. Calls return 0 or the error's number; they allocate nothing.
#[derive(Clone, Copy)]
pub struct Descriptor(pub RawFd);

impl Descriptor {
    /// Agrees on [`FEATURES`]; needs `CAP_SYS_PTRACE`.
    pub fn begin(self) -> i32 {
        self.call(API, &mut [VERSION, FEATURES, 0])
    }

    /// Accesses to missing pages of a range wait for us from now on.
    pub fn register(self, start: u64, bytes: u64) -> i32 {
        self.call(REGISTER, &mut [start, bytes, MISSING, 0])
    }

    /// Accesses to a range no longer wait for us; threads that wait there go on.
    pub fn unregister(self, start: u64, bytes: u64) -> i32 {
        self.call(UNREGISTER, &mut [start, bytes])
    }

    /// All threads that wait go on, and wait again if they have to. To unregister a range does not wake those that came to wait in
    /// the moment before, nor those whose memory is not there any more.
    pub fn wake_all(self) {
        self.call(WAKE, &mut [FIRST, END - FIRST]);
    }

    /// Fills missing pages with our `bytes`; who waits for them goes on.
    pub fn copy(self, to: u64, bytes: &[u8]) -> i32 {
        self.call(COPY, &mut [to, bytes.as_ptr() as u64, bytes.len() as u64, 0, 0])
    }

    /// Whether a thread has changed the memory's map and not yet gone on since: before or after we have read of it.
    pub fn changing(self) -> bool {
        // Of no bytes: it is refused in any case.
        self.copy(0, &[]) == libc::EAGAIN
    }

    /// The next thing that the process did, if there is one.
    pub fn read(self) -> Option<Event> {
        let mut message = Message::default();
        let size = size_of::<Message>();
        // SAFETY: the kernel writes at most `size` bytes to a message that is ours.
        let got = unsafe { libc::read(self.0, (&raw mut message).cast(), size) };
        (got == size as isize).then(|| message.event())
    }

    pub fn close(self) {
        // SAFETY: takes a number; whoever calls owns the descriptor.
        unsafe { libc::close(self.0) };
    }

    fn call<const N: usize>(self, request: libc::c_ulong, argument: &mut [u64; N]) -> i32 {
        // SAFETY: the kernel reads and writes as many words as the request's number says, which are `N` at all callers.
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
