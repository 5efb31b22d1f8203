//! Samples accesses to pages of a running process without the kernel's NUMA balancing: a page is set aside (moved out
//! of its place) for a moment, so that the next access to it by any thread, read or write, is a page fault. Needs Linux
//! 6.8 (`UFFDIO_MOVE`; Documentation/admin-guide/mm/userfaultfd.rst). This module only causes the faults;
//! [`crate::faults`] reads who caused them.
//!
//! By `ptrace`, the process is made to open the descriptor and to map a small area. Its threads wait while a page is
//! put back, also inside system calls. Changes that the process makes to its memory meanwhile (forks, `munmap`,
//! `mremap`, `madvise`, `mprotect`) keep their meaning. A separate process, the keeper, holds the pages, so that
//! nothing is lost when this process is killed. The keeper has all signals blocked; if it is killed all the same
//! (SIGKILL), threads that access a page which is aside at that moment wait for ever.

mod abi;
mod injected;
mod injection;
mod keeper;
mod mappings;
mod set_aside;
#[cfg(test)]
mod tests;
mod thread_ends;

pub use set_aside::{HUGE, SMALL};
pub use thread_ends::robust_lists;

use crate::{Host, cleanup_process};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// The largest number of threads that are examined when one is chosen to be interrupted.
const MAX_EXAMINED: usize = 64;
/// How many threads are tried, as the chosen one may end first.
const MAX_TRIES: u32 = 8;
/// The machine code of the instruction `syscall`.
const SYSTEM_CALL: [u8; 2] = [0x0f, 0x05];

/// One sampling request: present pages of one private, anonymous, readable and writable mapping, and for how long they
/// are set aside.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// Address of the mapping that holds the pages. The first access to a page of it that is not present ends the
    /// window.
    pub start: u64,
    /// Size of the mapping in bytes.
    pub bytes: u64,
    /// Size of each page in bytes, [`SMALL`] or [`HUGE`].
    pub page_bytes: u64,
    /// After how many milliseconds a page is put back that no thread accessed.
    pub milliseconds: u64,
    /// How many entries of `pages` are used.
    pub count: u64,
    /// The addresses of these pages, ascending.
    pub pages: [u64; Self::MOST],
}

impl Window {
    /// The largest number of pages in a window.
    pub const MOST: usize = 32;
    /// The largest number of pages in a window of huge pages.
    pub const MOST_HUGE: usize = 8;

    /// The same window without the pages that contain one of these addresses.
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

/// The result of a window.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The error number if nothing was sampled, else 0.
    error: u64,
    /// Pages that were set aside.
    pub set_aside: u64,
    /// Pages that were not set aside: Linux refused (shared with another process, pinned or not present), or the keeper
    /// did.
    pub refused: u64,
    /// Pages that were not accessed while they were aside.
    pub untouched: u64,
    /// Slots that cannot be used any more, since the process was attached.
    pub lost: u64,
    /// CPU time of the keeper, nanoseconds. The system calls of our thread inside the process take about as much again.
    pub cpu_ns: u64,
    /// How long threads waited for pages and for the window's end, nanoseconds.
    pub waited_ns: u64,
    /// 1 if the window ended early: a thread accessed a page that was not present, or the process changed its mappings.
    pub cut_short: u64,
    /// 1 if a process of several threads moved memory (`mremap`) again before the previous move was known to be
    /// complete.
    pub concurrent_moves: u64,
    /// 1 if such concurrent moves left several places where a page could belong, and one of them was chosen.
    pub ambiguous_place: u64,
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
    /// `CAP_SYS_PTRACE` is missing, another process traces this one, or the process may not open the descriptor:
    /// without that capability it needs `vm.unprivileged_userfaultfd=1`.
    NotPermitted,
    /// Linux is older than 6.8.
    OldKernel,
    /// This kernel has no userfaultfd.
    NoUserfaultfd,
    /// The process runs 32-bit code.
    Not64Bit,
    /// None of its threads could be interrupted.
    NotInterrupted,
    /// The process has reached a limit on mapped memory.
    NoMemory,
    /// The process has ended.
    Gone,
    /// The kernel refused for another reason.
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

/// The thread to interrupt, and what must be known to make system calls with it.
#[derive(Clone, Copy, Debug)]
struct InjectionTarget {
    pid: u32,
    tid: u32,
    instruction: u64,
    filtered: bool,
    /// The path `/proc/PID/maps`, padded with zeros.
    maps: [u8; 32],
}

/// Checks that this kernel has the needed features of userfaultfd and that we may use them.
///
/// # Errors
/// The kernel lacks them, or we lack the privileges.
pub fn works() -> Result<(), Refusal> {
    match keeper::probe() {
        0 => Ok(()),
        error => Err(Refusal::of(io::Error::from_raw_os_error(error))),
    }
}

/// A process whose pages can be set aside. Dropping it puts all pages back and removes our thread and memory from the
/// process.
#[derive(Debug)]
pub struct Sampler {
    commands: Option<File>,
    replies: File,
    keeper: libc::pid_t,
    busy: bool,
}

impl Sampler {
    /// Starts a keeper, which interrupts a thread of the process and starts one of ours there.
    ///
    /// # Errors
    /// The process cannot be entered; it continues unchanged.
    pub fn attach(host: &Host, pid: u32) -> Result<Self, Refusal> {
        for _ in 1..MAX_TRIES {
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
        let target = injection_target(host, pid)?;
        let (commands, commanding) = io::pipe()?;
        let (replies, replying) = io::pipe()?;
        let mut buffer = vec![0; HUGE as usize];
        let memory = OpenOptions::new()
            .read(true)
            .write(true)
            .open(format!("/proc/{pid}/mem"))?;
        let kept = [commands.as_raw_fd(), replying.as_raw_fd(), memory.as_raw_fd()];
        // SAFETY: the closure only makes system calls and uses memory that is already allocated.
        let keeper = unsafe {
            cleanup_process::start(c"nodewise-keeper", &kept, || keeper::run(&target, &mut buffer))
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

    /// Opens a window; [`Sampler::reply`] has the result when it is over. No other window may be open.
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
        commands.write_all(&bytes)?; // shorter than PIPE_BUF: written at once
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
            set_aside: next(),
            refused: next(),
            untouched: next(),
            lost: next(),
            cpu_ns: next(),
            waited_ns: next(),
            cut_short: next(),
            concurrent_moves: next(),
            ambiguous_place: next(),
        })
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // The keeper puts everything back and ends when the pipe of commands is closed.
        self.commands = None;
        // SAFETY: the id of our own child, which is waited for nowhere else.
        unsafe { libc::waitpid(self.keeper, std::ptr::null_mut(), 0) };
    }
}

fn injection_target(host: &Host, pid: u32) -> io::Result<InjectionTarget> {
    let tid = thread(host, pid)?;
    let status = host.read(&format!("proc/{pid}/task/{tid}/status"));
    let mut maps = [0; 32];
    let path = format!("/proc/{pid}/maps");
    maps[..path.len()].copy_from_slice(path.as_bytes());
    Ok(InjectionTarget {
        pid,
        tid,
        instruction: instruction(host, pid)?,
        filtered: status.is_ok_and(|text| filtered(&text)),
        maps,
    })
}

/// Whether a seccomp filter restricts the thread's system calls, as in most containers.
fn filtered(status: &str) -> bool {
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|mode| mode.trim() != "0")
}

/// The thread that an interruption disturbs least: one that waits for a lock (Linux restarts that wait), else one that
/// computes, else the main thread.
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
        .take(MAX_EXAMINED)
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

/// An address of the instruction `syscall` in the process: one in the vDSO, which the kernel maps into every process.
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
