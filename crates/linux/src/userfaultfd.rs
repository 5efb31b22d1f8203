//! Samples accesses to pages of a running process without the kernel's NUMA balancing: a page is set aside for a moment, so that
//! the next access to it, read or write, of any thread, is a page fault (Linux 6.8: `UFFDIO_MOVE`; Documentation/admin-guide/mm/userfaultfd.rst).
//! The fault itself is seen like any other, by [`crate::faults`]; here it is only brought about.
//!
//! The process is made to open the descriptor and to map a small area (`ptrace`). Its threads wait while a page is put back,
//! in system calls as well. What is done to the memory meanwhile — forks, `munmap`, `mremap`, `madvise`, `mprotect` — keeps its meaning.
//! A process of its own keeps the pages, so that nothing is lost when this one is killed; if *that* is killed (by name, as it
//! takes no signal) threads wait for ever for pages that are aside at that moment.

mod abi;
mod aside;
mod injection;
mod inside;
mod keeper;
mod mappings;
#[cfg(test)]
mod tests;
mod thread_ends;

pub use thread_ends::robust_lists;

use crate::{Host, cleanup_process};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// Bytes of a huge page.
pub const HUGE: u64 = 2 << 20;
/// Bytes of a small one.
pub const SMALL: u64 = 4 << 10;
/// The number of threads among which one is chosen to be interrupted.
const MOST_LOOKED_AT: usize = 64;
/// How often a thread is chosen.
const TRIES: u32 = 8;
/// The code of the instruction `syscall`.
const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];

/// What to sample at once: pages that are there, of a private anonymous mapping that can be read and written.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// Address of the range in which the pages lie, a whole mapping: the first access to a page of it that is not there ends the window.
    pub start: u64,
    /// Bytes of the range.
    pub bytes: u64,
    /// Bytes of each page, [`SMALL`] or [`HUGE`].
    pub page_bytes: u64,
    /// How long pages stay aside that are not accessed.
    pub milliseconds: u64,
    /// How many pages are set aside.
    pub count: u64,
    /// The addresses of these pages, ascending.
    pub pages: [u64; Self::MOST],
}

impl Window {
    /// The largest number of pages at once.
    pub const MOST: usize = 32;
    /// The largest number of huge ones.
    pub const MOST_HUGE: usize = 8;

    /// Without the pages in which these addresses lie.
    #[must_use]
    pub fn without(mut self, addresses: &[u64]) -> Self {
        let pages = self.pages;
        let contains = |page: u64| {
            addresses
                .iter()
                .any(|a| (page..page + self.page_bytes).contains(a))
        };
        let mut count = 0;
        for page in pages
            .iter()
            .take(self.count as usize)
            .filter(|page| !contains(**page))
        {
            self.pages[count] = *page;
            count += 1;
        }
        self.count = count as u64;
        self
    }
}

/// What became of a window.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The error's number if nothing was sampled.
    error: u64,
    /// Pages that were set aside.
    pub aside: u64,
    /// Pages that Linux did not let us: shared with another process, pinned, or gone.
    pub refused: u64,
    /// Pages that were not accessed while they were aside.
    pub untouched: u64,
    /// Places for pages that cannot be used any more, since the attachment.
    pub lost: u64,
    /// CPU time that it took in the process that keeps the pages, nanoseconds; about as much goes to the system calls of our thread.
    pub cpu_ns: u64,
    /// What threads waited for pages, and for the window's end, nanoseconds.
    pub waited_ns: u64,
    /// 1 if it ended early: a page that was not there was accessed, or the memory's map changed.
    pub cut_short: u64,
    /// 1 if a process of several threads moved memory (`mremap`) again before it was known that no other move was under way.
    pub together: u64,
    /// 1 if a page was put back in one of several places in which it could belong by these.
    pub doubtful: u64,
}

impl Reply {
    fn failed(error: i32) -> Self {
        Self {
            error: error as u64,
            ..Self::default()
        }
    }

    /// Whether the process has ended, or executes another program.
    #[must_use]
    pub fn gone(&self) -> bool {
        self.error == libc::ESRCH as u64
    }
}

/// Why pages cannot be set aside.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// `CAP_SYS_PTRACE` is missing, the process is traced by another, or it may not open the descriptor: processes of users without that
    /// capability need `vm.unprivileged_userfaultfd=1`.
    NotPermitted,
    /// Linux is older than 6.8.
    OldKernel,
    /// This kernel has no userfaultfd.
    NoUserfaultfd,
    /// The process runs 32-bit code.
    Not64Bit,
    /// None of its threads could be interrupted.
    NotInterrupted,
    /// It may map no more memory.
    NoMemory,
    /// The process has ended.
    Gone,
    /// The kernel refuses for another reason.
    Other(io::Error),
}

impl Refusal {
    fn of(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted,
            Some(libc::EINVAL) => Self::OldKernel,
            Some(libc::ENOSYS) => Self::NoUserfaultfd,
            Some(libc::ENOEXEC) => Self::Not64Bit,
            Some(libc::ETIMEDOUT) => Self::NotInterrupted,
            Some(libc::ENOMEM) => Self::NoMemory,
            Some(libc::ESRCH | libc::ENOENT) => Self::Gone,
            _ if error.kind() == io::ErrorKind::NotFound => Self::Gone,
            _ => Self::Other(error),
        }
    }
}

/// Where to enter a process.
#[derive(Clone, Copy, Debug)]
struct Place {
    pid: u32,
    tid: u32,
    instruction: u64,
    filtered: bool,
    /// `/proc/PID/maps`, filled up with zeros.
    maps: [u8; 32],
}

/// Whether this kernel can do it, and we may.
///
/// # Errors
/// It cannot, or we may not.
pub fn works() -> Result<(), Refusal> {
    match keeper::probe() {
        0 => Ok(()),
        error => Err(Refusal::of(io::Error::from_raw_os_error(error))),
    }
}

/// A process whose pages can be set aside. When dropped, all is put back first, and the process is as it was.
#[derive(Debug)]
pub struct Sampler {
    commands: Option<File>,
    replies: File,
    keeper: libc::pid_t,
    busy: bool,
}

impl Sampler {
    /// Enters a process.
    ///
    /// # Errors
    /// It cannot be entered; it goes on as if nothing had been tried.
    pub fn attach(host: &Host, pid: u32) -> Result<Self, Refusal> {
        for _ in 1..TRIES {
            match Self::enter(host, pid) {
                // The thread that was chosen has ended, not the process.
                Err(Refusal::Gone) if host.has_process(pid) => {}
                other => return other,
            }
        }
        Self::enter(host, pid)
    }

    fn enter(host: &Host, pid: u32) -> Result<Self, Refusal> {
        let mut sampler = Self::start(host, pid).map_err(Refusal::of)?;
        match sampler.receive().map_err(Refusal::of)?.error {
            0 => Ok(sampler),
            error => Err(Refusal::of(io::Error::from_raw_os_error(error as i32))),
        }
    }

    fn start(host: &Host, pid: u32) -> io::Result<Self> {
        let place = place(host, pid)?;
        let (commands, commanding) = io::pipe()?;
        let (replies, replying) = io::pipe()?;
        let mut buffer = vec![0; HUGE as usize];
        let memory = OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))?;
        let kept = [commands.as_raw_fd(), replying.as_raw_fd(), memory.as_raw_fd()];
        // SAFETY: it makes system calls and uses memory that there is.
        let keeper = unsafe {
            cleanup_process::start(c"nodewise-keeper", &kept, || keeper::run(&place, &mut buffer))
        }?;
        Ok(Self {
            commands: Some(File::from(OwnedFd::from(commanding))),
            replies: File::from(OwnedFd::from(replies)),
            keeper,
            busy: true,
        })
    }

    /// Whether a window is open.
    #[must_use]
    pub fn busy(&self) -> bool {
        self.busy
    }

    /// Opens a window; a reply will come when it is over. None may be open.
    ///
    /// # Errors
    /// The keeper has ended.
    pub fn open(&mut self, window: &Window) -> io::Result<()> {
        let words: [u64; 5] = [
            window.start,
            window.bytes,
            window.page_bytes,
            window.milliseconds,
            window.count,
        ];
        let bytes: Vec<u8> = words
            .iter()
            .chain(&window.pages)
            .flat_map(|w| w.to_ne_bytes())
            .collect();
        let commands = self.commands.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        commands.write_all(&bytes)?; // less than a pipe takes in one piece
        self.busy = true;
        Ok(())
    }

    /// The reply to the open window if it is over.
    ///
    /// # Errors
    /// The keeper has ended.
    pub fn reply(&mut self) -> io::Result<Option<Reply>> {
        let mut wanted = libc::pollfd {
            fd: self.replies.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: reads and writes one entry.
        let there = self.busy && unsafe { libc::poll(&raw mut wanted, 1, 0) } > 0;
        there.then(|| self.receive()).transpose()
    }

    fn receive(&mut self) -> io::Result<Reply> {
        let mut bytes = [0; size_of::<Reply>()];
        self.replies.read_exact(&mut bytes)?;
        self.busy = false;
        let mut words = bytes.as_chunks::<8>().0.iter().map(|w| u64::from_ne_bytes(*w));
        let mut next = || words.next().unwrap_or_default();
        Ok(Reply {
            error: next(),
            aside: next(),
            refused: next(),
            untouched: next(),
            lost: next(),
            cpu_ns: next(),
            waited_ns: next(),
            cut_short: next(),
            together: next(),
            doubtful: next(),
        })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // It puts everything back when the pipe of commands is closed, and ends.
        self.commands = None;
        // SAFETY: our own child's id, which is waited for here only.
        unsafe { libc::waitpid(self.keeper, std::ptr::null_mut(), 0) };
    }
}

fn place(host: &Host, pid: u32) -> io::Result<Place> {
    let tid = thread(host, pid)?;
    let status = host.read(&format!("proc/{pid}/task/{tid}/status"));
    let mut maps = [0; 32];
    let path = format!("/proc/{pid}/maps");
    maps[..path.len()].copy_from_slice(path.as_bytes());
    Ok(Place {
        pid,
        tid,
        instruction: instruction(host, pid)?,
        filtered: status.is_ok_and(|text| filtered(&text)),
        maps,
    })
}

/// Whether the system calls of a thread are filtered, as in most containers.
fn filtered(status: &str) -> bool {
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|mode| mode.trim() != "0")
}

/// A thread that takes an interruption best: one that waits for a lock, since Linux lets that wait go on; or one that computes.
fn thread(host: &Host, pid: u32) -> io::Result<u32> {
    let tids = host
        .names(&format!("proc/{pid}/task"))
        .map_err(|_| io::ErrorKind::NotFound)?;
    let tids: Vec<u32> = tids.iter().filter_map(|name| name.parse().ok()).collect();
    let futex = libc::SYS_futex.to_string();
    let call = |tid: &u32| {
        host.read(&format!("proc/{pid}/task/{tid}/syscall"))
            .unwrap_or_default()
    };
    let calls: Vec<(u32, String)> = tids
        .iter()
        .take(MOST_LOOKED_AT)
        .map(|tid| (*tid, call(tid)))
        .collect();
    let first = |word: &str| {
        calls
            .iter()
            .find(|(_, call)| call.split_whitespace().next() == Some(word))
    };
    let found = first(&futex).or_else(|| first("running")).map(|(tid, _)| tid);
    let found = found.or_else(|| tids.iter().find(|tid| **tid == pid));
    found
        .or(tids.first())
        .copied()
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Where the process has the instruction `syscall`: in the code that the kernel gives to every process.
fn instruction(host: &Host, pid: u32) -> io::Result<u64> {
    let maps = host.maps(pid).map_err(io::Error::other)?;
    let area = maps
        .iter()
        .find(|area| area.name == "[vdso]")
        .ok_or(io::ErrorKind::Unsupported)?;
    let mut code = vec![0; (area.end - area.start) as usize];
    File::open(host.proc().join(format!("{pid}/mem")))?.read_exact_at(&mut code, area.start)?;
    let at = code.windows(2).position(|two| two == SYSTEM_CALL);
    at.map(|at| area.start + at as u64)
        .ok_or_else(|| io::ErrorKind::Unsupported.into())
}
