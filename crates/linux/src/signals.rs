//! Synchronous signal handling: signals are blocked and waited for in one thread.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

pub use libc::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};

/// Signals that are blocked for this thread and threads it starts, to be waited for. The previous mask is restored
/// when this is dropped.
pub struct Signals {
    watched: libc::sigset_t,
    before: libc::sigset_t,
}

/// A signal that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Number of the signal.
    pub number: i32,
    /// Whether the kernel sent it: a terminal's key, a child's end.
    pub by_kernel: bool,
}

impl Signals {
    /// Blocks these signals. Call it before starting other threads, or signals may reach those.
    ///
    /// # Errors
    /// As the kernel answers.
    pub fn block(numbers: &[i32]) -> io::Result<Self> {
        let watched = set(numbers);
        // SAFETY: an all-zero set is a valid place for the old mask.
        let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: both sets are valid.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const watched, &raw mut before) } {
            0 => Ok(Self { watched, before }),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Makes `command` start with the previous signal mask.
    pub fn before_exec(&self, command: &mut Command) {
        let before = self.before;
        // SAFETY: between fork and exec, one system call on a copy of the mask.
        unsafe { command.pre_exec(move || restore(&before)) };
    }

    /// The next signal, if one arrives within `limit`.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> Option<Signal> {
        let limit = libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: limit.subsec_nanos().into(),
        };
        // SAFETY: an all-zero siginfo is a valid place for the answer.
        let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: all three pointers are valid for the call.
        let number =
            unsafe { libc::sigtimedwait(&raw const self.watched, &raw mut information, &raw const limit) };
        (number > 0).then_some(Signal {
            number,
            by_kernel: information.si_code == libc::SI_KERNEL || number == SIGCHLD,
        })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let _ = restore(&self.before);
    }
}

/// Sends a signal; a process that has ended is ignored.
pub fn send(pid: u32, number: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::kill(pid as libc::pid_t, number) };
}

/// Sends a signal to a process group; one that has ended is ignored.
pub fn send_to_group(leader: u32, number: i32) {
    // SAFETY: a plain system call.
    unsafe { libc::killpg(leader as libc::pid_t, number) };
}

/// Makes a write beyond the limit on file sizes (`ulimit -f`) an error, where SIGXFSZ would end the process. It sets a
/// handler rather than ignoring the signal, as programs that we start get the default action back. If the signal was
/// already ignored (as Python does), it stays ignored, here and in programs that we start.
pub fn survive_file_limit() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: an all-zero action is a valid place for the old one; the new one's handler does nothing.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        let result = libc::sigaction(libc::SIGXFSZ, std::ptr::null(), &raw mut before);
        if result == 0 && before.sa_sigaction == libc::SIG_DFL {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
        }
    }
}

fn set(numbers: &[i32]) -> libc::sigset_t {
    // SAFETY: an all-zero set is a valid argument to sigemptyset, which makes it whole.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a valid set, the numbers are valid signals.
    unsafe {
        libc::sigemptyset(&raw mut set);
        for number in numbers {
            libc::sigaddset(&raw mut set, *number);
        }
    }
    set
}

fn restore(before: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: `before` is a valid set; the old mask is not wanted.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}
