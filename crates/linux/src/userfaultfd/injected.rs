//! What we keep inside an observed process: a thread that runs no code of its own, a descriptor, and an area for pages.

use super::abi::{Descriptor, MOVE, errno};
use super::injection::{Memory, Stopped};
use super::{HUGE, InjectionTarget, SMALL, Window};

/// The slots for pages: first huge ones, each aligned to its size, then small ones.
const HUGE_SLOTS: usize = Window::MOST_HUGE;
const SMALL_SLOTS: usize = 512;
pub const SLOTS: usize = HUGE_SLOTS + SMALL_SLOTS;
/// Size in bytes of the area that holds the slots. One page for the arguments of system calls follows it; one more huge
/// page is mapped so that the area can be aligned.
const AREA: u64 = (HUGE_SLOTS as u64 + 1) * HUGE;
const MAPPED: u64 = AREA + HUGE;
/// The address hint for the area: far from the program's memory, between its heap and the mappings that grow down from
/// the stack. Otherwise the area could occupy a hole that the program has just made and is about to fill (`MAP_FIXED`).
const PLACE: u64 = 0x3a00_0000_0000;
/// The name of the thread that we start in the process; the preload library gives its thread the same name.
const NAME: &[u8] = b"nodewise\0";

pub struct Injected {
    /// A thread that makes system calls for us, and sleeps otherwise.
    thread: Stopped,
    /// Our duplicate of the descriptor; `number` is the descriptor's number in that thread.
    pub uffd: Descriptor,
    number: u64,
    mapped: u64,
    pub memory: Memory,
}

impl Injected {
    /// Starts our thread in the process, which opens the descriptor and maps the area.
    pub fn enter(target: &InjectionTarget, memory: Memory) -> Result<Self, i32> {
        let program = Stopped::interrupt(target.tid, target.instruction, target.filtered, memory)?;
        let entered = program
            .start_thread()
            .and_then(|thread| open(&program, thread, target.pid));
        program.resume();
        let (thread, uffd, number) = entered?;
        thread.schedule();
        let close = |first, last| thread.call(libc::SYS_close_range, [first, last, 0, 0, 0, 0]);
        let _ = close(number + 1, u64::from(u32::MAX));
        if number > 0 {
            let _ = close(0, number - 1);
        }
        match set_up(&thread, uffd, memory) {
            Ok(mapped) => Ok(Self {
                thread,
                uffd,
                number,
                mapped,
                memory,
            }),
            Err(error) => {
                uffd.close();
                thread.exit();
                Err(error)
            }
        }
    }

    /// Removes our thread and memory from the process. The descriptor is closed first: otherwise the removal of the
    /// memory would wait until we read its event.
    pub fn leave(self) {
        self.uffd.close();
        if self.thread.wake().is_ok() {
            let _ = self
                .thread
                .call(libc::SYS_munmap, [self.mapped, MAPPED, 0, 0, 0, 0]);
            self.thread.exit();
        }
    }

    pub fn wake(&self) -> Result<(), i32> {
        self.thread.wake().inspect_err(|_| {
            self.keep_asleep();
        })
    }

    /// Lets our thread sleep again, if it still exists.
    pub fn rest(&self) {
        if self.thread.sleep().is_err() {
            self.keep_asleep();
        }
    }

    /// Handles a stop or the end of our thread, so that it continues to sleep; whether it still exists. A process that
    /// ends or executes another program waits until we have reaped the thread.
    pub fn keep_asleep(&self) -> bool {
        self.thread.keep_asleep()
    }

    /// Whether a range overlaps our memory in the process.
    pub fn owns(&self, start: u64, bytes: u64) -> bool {
        start < self.mapped + MAPPED && start + bytes > self.mapped
    }

    fn area(&self) -> u64 {
        self.mapped.next_multiple_of(HUGE)
    }

    /// Pages can be moved to the area only while it is registered. Contents are read from it only while it is not: a
    /// read of a missing page would wait for us.
    pub fn register_area(&self) -> i32 {
        self.uffd.register(self.area(), AREA)
    }

    pub fn unregister_area(&self) {
        self.uffd.unregister(self.area(), AREA);
    }

    /// The slots for pages of this size.
    pub fn slots(bytes: u64) -> std::ops::Range<usize> {
        if bytes == HUGE {
            0..HUGE_SLOTS
        } else {
            HUGE_SLOTS..SLOTS
        }
    }

    pub fn address(&self, slot: usize) -> u64 {
        match slot.checked_sub(HUGE_SLOTS) {
            None => self.area() + slot as u64 * HUGE,
            Some(small) => self.area() + HUGE_SLOTS as u64 * HUGE + small as u64 * SMALL,
        }
    }

    /// Moves pages within the process. Returns how many bytes were moved, from the start on, and the error number if
    /// not all.
    pub fn move_pages(&self, to: u64, from: u64, bytes: u64) -> (u64, i32) {
        let page = self.area() + AREA;
        let argument = [to, from, bytes, 0, 0].map(u64::to_ne_bytes);
        if let Err(error) = self.memory.write(page, argument.as_flattened()) {
            return (0, if error == libc::ESRCH { error } else { libc::EAGAIN });
        }
        let call = [self.number, MOVE, page, 0, 0, 0];
        let Err(error) = self.thread.call(libc::SYS_ioctl, call) else {
            return (bytes, 0);
        };
        // If a huge page was split meanwhile, its parts are moved one by one, up to the first that cannot be moved.
        let mut part = [0; 8];
        let done = self
            .memory
            .read(page + 32, &mut part)
            .map_or(0, |()| i64::from_ne_bytes(part));
        (u64::try_from(done).unwrap_or(0).min(bytes), error)
    }
}

/// Opens a descriptor and leaves it to our thread alone. The program's thread is stopped meanwhile, so steps that may
/// take long are left to [`set_up`].
fn open(program: &Stopped, thread: Stopped, pid: u32) -> Result<(Stopped, Descriptor, u64), i32> {
    let flags = (libc::O_CLOEXEC | libc::O_NONBLOCK) as u64;
    let opened = program.call(libc::SYS_userfaultfd, [flags, 0, 0, 0, 0, 0]);
    let ours = opened.and_then(|number| {
        let ours = descriptor_of(pid, number)?;
        let apart = thread.call(libc::SYS_unshare, [libc::CLONE_FILES as u64, 0, 0, 0, 0, 0]);
        apart.map(|_| (ours, number)).inspect_err(|_| ours.close())
    });
    if let Ok(number) = opened {
        let _ = program.call(libc::SYS_close, [number, 0, 0, 0, 0, 0]);
    }
    match ours {
        Ok((ours, number)) => Ok((thread, ours, number)),
        Err(error) => {
            thread.exit();
            Err(error)
        }
    }
}

/// Maps the area (not inherited by forked children), names our thread and puts it to sleep. Returns the area's address.
fn set_up(thread: &Stopped, uffd: Descriptor, memory: Memory) -> Result<u64, i32> {
    let access = (libc::PROT_READ | libc::PROT_WRITE) as u64;
    let kind = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;
    let mapped = thread.call(libc::SYS_mmap, [PLACE, MAPPED, access, kind, u64::MAX, 0])?;
    let prepare = || {
        let advise = |advice| thread.call(libc::SYS_madvise, [mapped, MAPPED, advice as u64, 0, 0, 0]);
        advise(libc::MADV_DONTFORK)?;
        // Otherwise khugepaged may merge small pages into a huge one, which would make all slots present. Fails
        // harmlessly on kernels without huge pages.
        let _ = advise(libc::MADV_NOHUGEPAGE);
        let page = mapped.next_multiple_of(HUGE) + AREA;
        memory.write(page, NAME)?;
        thread.call(libc::SYS_prctl, [libc::PR_SET_NAME as u64, page, 0, 0, 0, 0])?;
        match uffd.begin() {
            0 => thread.sleep(),
            error => Err(error),
        }
    };
    prepare().map(|()| mapped).inspect_err(|_| {
        let _ = thread.call(libc::SYS_munmap, [mapped, MAPPED, 0, 0, 0, 0]);
    })
}

/// A duplicate, in this process, of a descriptor of another process.
fn descriptor_of(pid: u32, theirs: u64) -> Result<Descriptor, i32> {
    // SAFETY: all calls take only numbers.
    unsafe {
        let process = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if process < 0 {
            return Err(errno());
        }
        let ours = libc::syscall(libc::SYS_pidfd_getfd, process, theirs, 0);
        let error = errno();
        libc::close(process as i32);
        if ours < 0 {
            Err(error)
        } else {
            Ok(Descriptor(ours as i32))
        }
    }
}
