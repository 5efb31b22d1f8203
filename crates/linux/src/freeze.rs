//! Suspends a process temporarily; it is resumed even if this process is killed.

use crate::{Host, cleanup_process};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait for threads to stop; threads in uninterruptible sleep stop only when they leave it.
const STOP_TIMEOUT: Duration = Duration::from_millis(500);
/// If this process sends no heartbeat for this time, the watcher resumes the frozen process.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(2);
const HEARTBEAT_BYTE: u8 = b'+';
const RESUMED_BYTE: u8 = b'.';

/// A process stopped by `SIGSTOP`, with all its threads; resumed when this is dropped. A watcher process in a session
/// of its own holds a pipe from us: if we are killed, or send no heartbeat for ten seconds, it sends `SIGCONT`.
#[derive(Debug)]
pub struct Frozen(Option<Watched>);

#[derive(Debug)]
struct Watched {
    process: OwnedFd,
    pipe: Arc<OwnedFd>,
    watcher: libc::pid_t,
    /// Time at which it was told to stop.
    since: Instant,
    /// A thread that sends heartbeats; it stops together with us, whoever stops our process.
    heart: Option<JoinHandle<()>>,
}

/// Checks whether a process may be stopped, without doing anything to it.
///
/// # Errors
/// The process is gone or not ours.
pub fn may_stop(pid: u32) -> io::Result<()> {
    send_signal(open_pidfd(pid)?.as_raw_fd(), 0)
}

impl Frozen {
    /// Stops a process. One that was stopped already stays stopped afterwards.
    ///
    /// # Errors
    /// The process is gone or not ours, or no watcher can be started: then nothing was stopped.
    pub fn stop(pid: u32) -> io::Result<Self> {
        if states(pid).first() == Some(&'T') {
            return Ok(Self(None));
        }
        let process = open_pidfd(pid)?;
        let (reading, pipe) = pipe()?;
        let watcher = watch(&reading, &process)?;
        let pipe = Arc::new(pipe);
        let heart = Some(start_heartbeats(Arc::downgrade(&pipe)));
        let frozen = Self(Some(Watched {
            since: Instant::now(),
            process,
            pipe,
            watcher,
            heart,
        }));
        frozen.signal(libc::SIGSTOP)?;
        wait_until_stopped(pid);
        Ok(frozen)
    }

    /// Resumes the process. Returns how long it was stopped; `None` if it was not stopped by us.
    #[must_use]
    pub fn resume(self) -> Option<Duration> {
        let since = self.0.as_ref()?.since;
        // An error means that the process has ended.
        let _ = self.signal(libc::SIGCONT);
        Some(since.elapsed())
    }

    fn signal(&self, signal: libc::c_int) -> io::Result<()> {
        self.0
            .as_ref()
            .map_or(Ok(()), |w| send_signal(w.process.as_raw_fd(), signal))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        // An error means that the process has ended.
        let _ = self.signal(libc::SIGCONT);
        if let Some(watched) = self.0.take() {
            send_byte(&watched.pipe, RESUMED_BYTE);
            // SAFETY: our own child's id, whose status is not wanted.
            unsafe { libc::waitpid(watched.watcher, std::ptr::null_mut(), 0) };
            drop(watched.pipe);
            if let Some(heart) = watched.heart {
                heart.thread().unpark();
                let _ = heart.join();
            }
        }
    }
}

/// Sends heartbeats until the pipe is dropped.
fn start_heartbeats(pipe: Weak<OwnedFd>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        while let Some(pipe) = pipe.upgrade() {
            send_byte(&pipe, HEARTBEAT_BYTE);
            drop(pipe);
            std::thread::park_timeout(HEARTBEAT_INTERVAL);
        }
    })
}

/// Sends a byte to the watcher. Errors are ignored: with a full pipe or a watcher that has ended no heartbeat is
/// needed.
fn send_byte(pipe: &OwnedFd, byte: u8) {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: one byte of our own.
    unsafe { libc::send(pipe.as_raw_fd(), (&raw const byte).cast(), 1, flags) };
}

fn open_pidfd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers alone.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) })
}

fn send_signal(process: RawFd, signal: libc::c_int) -> io::Result<()> {
    let nothing = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: without information the kernel fills in what kill(2) would; flags 0.
    match unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process, signal, nothing, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A pipe's ends for the watcher and for us; closed on exec.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: room for two descriptors.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptors were just opened and have no other owner.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Starts the watcher, which waits for the last byte, the pipe's end, or missing heartbeats.
fn watch(reading: &OwnedFd, process: &OwnedFd) -> io::Result<libc::pid_t> {
    let kept = [reading.as_raw_fd(), process.as_raw_fd()];
    let waits = || {
        let last = loop {
            match receive_byte(0) {
                Some(HEARTBEAT_BYTE) => {}
                last => break last,
            }
        };
        if last != Some(RESUMED_BYTE) {
            // An error cannot be reported any more.
            let _ = send_signal(1, libc::SIGCONT);
        }
    };
    // SAFETY: system calls on its own stack alone.
    unsafe { cleanup_process::start(c"nodewise-thaw", &kept, waits) }
}

/// The next byte; none if the pipe was closed, or no byte came in time.
fn receive_byte(from: RawFd) -> Option<u8> {
    let mut readable = libc::pollfd {
        fd: from,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut byte = 0;
    // SAFETY: one descriptor; one byte of our own. All signals are blocked, so nothing interrupts.
    let read = unsafe {
        libc::poll(&raw mut readable, 1, HEARTBEAT_TIMEOUT.as_millis() as libc::c_int) == 1
            && libc::read(from, (&raw mut byte).cast(), 1) == 1
    };
    read.then_some(byte)
}

fn wait_until_stopped(pid: u32) {
    let start = Instant::now();
    while states(pid).iter().any(|s| !"TtZX".contains(*s)) && start.elapsed() < STOP_TIMEOUT {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// State letter of each thread, main thread first.
fn states(pid: u32) -> Vec<char> {
    let host = Host::default();
    let mut tids = host.names(&format!("proc/{pid}/task")).unwrap_or_default();
    tids.sort_by_key(|t| t.parse::<u32>().ok() != Some(pid));
    let state = |tid: &String| {
        let stat = host.read(&format!("proc/{pid}/task/{tid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    tids.iter().filter_map(state).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sleeper::Sleeper;

    impl Sleeper {
        fn is_stopped(&self) -> bool {
            states(self.id()) == ['T']
        }

        fn comes_to(&self, stopped: bool) -> bool {
            let start = Instant::now();
            while self.is_stopped() != stopped {
                if start.elapsed() > Duration::from_secs(10) {
                    return false;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            true
        }
    }

    #[test]
    fn a_frozen_process_stands_still_until_dropped() {
        let sleeper = Sleeper::start();
        let frozen = Frozen::stop(sleeper.id()).unwrap();
        assert!(frozen.0.is_some() && sleeper.comes_to(true));
        drop(frozen);
        assert!(sleeper.comes_to(false));
    }

    #[test]
    fn who_was_stopped_before_stays_stopped() {
        let sleeper = Sleeper::start();
        let _outer = Frozen::stop(sleeper.id()).unwrap();
        drop(Frozen::stop(sleeper.id()).unwrap());
        assert!(sleeper.is_stopped());
    }

    /// A process that freezes another, does not resume it, and is killed in the end.
    struct Freezer(libc::pid_t);

    impl Freezer {
        fn start(sleeper: &Sleeper) -> Self {
            let target = sleeper.id();
            // SAFETY: the child makes system calls, allocates in a single thread of its own, and ends by a
            // signal.
            let freezer = unsafe { libc::fork() };
            if freezer == 0 {
                let frozen = Frozen::stop(target);
                std::thread::sleep(Duration::from_secs(60));
                drop(frozen);
                std::process::exit(0);
            }
            assert!(sleeper.comes_to(true), "never stopped");
            Self(freezer)
        }

        fn signal(&self, signal: libc::c_int) {
            // SAFETY: our own child's id.
            unsafe { libc::kill(self.0, signal) };
        }
    }

    impl Drop for Freezer {
        fn drop(&mut self) {
            self.signal(libc::SIGKILL);
            // SAFETY: our own child's id.
            unsafe { libc::waitpid(self.0, std::ptr::null_mut(), 0) };
        }
    }

    #[test]
    fn a_killed_freezer_leaves_its_process_running() {
        let sleeper = Sleeper::start();
        drop(Freezer::start(&sleeper));
        assert!(sleeper.comes_to(false), "never ran on");
    }

    #[test]
    fn a_stopped_freezer_does_not_stop_its_process_for_long() {
        let sleeper = Sleeper::start();
        let freezer = Freezer::start(&sleeper);
        freezer.signal(libc::SIGSTOP);
        assert!((0..3).any(|_| sleeper.comes_to(false)), "never ran on");
    }

    #[test]
    fn who_may_be_stopped_is_not_for_that() {
        let sleeper = Sleeper::start();
        may_stop(sleeper.id()).unwrap();
        assert!(!sleeper.is_stopped());
        assert!(may_stop(u32::MAX >> 2).is_err());
    }

    #[test]
    fn nobody_cannot_be_stopped() {
        assert!(Frozen::stop(u32::MAX >> 2).is_err());
    }
}
