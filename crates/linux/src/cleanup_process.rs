//! A small forked process that outlives this one, to restore kernel settings and resume processes.

use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;

/// Largest number of descriptors that a cleanup process keeps.
const MOST_KEPT: usize = 4;

/// Starts a cleanup process with this name. It blocks all signals, belongs to no terminal, and keeps only the
/// descriptors `kept`, as 0, 1, and so on. To learn of our end it may keep the reading end of a pipe.
///
/// # Safety
/// `does` runs in a forked child, possibly of a process with several threads: it may make system calls and use existing
/// memory, but must not allocate, lock or panic.
///
/// # Errors
/// No process can be started.
pub(crate) unsafe fn start(name: &CStr, kept: &[RawFd], does: impl FnOnce()) -> io::Result<libc::pid_t> {
    // SAFETY: the child does what the caller promises, otherwise only makes system calls on its own memory, and never
    // returns; there is no useful reaction to an error of these.
    unsafe {
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let mut all: libc::sigset_t = std::mem::zeroed();
                libc::sigfillset(&raw mut all);
                libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
                libc::setsid();
                libc::prctl(libc::PR_SET_NAME, name.as_ptr());
                keep(kept);
                does();
                libc::_exit(0)
            }
            child => Ok(child),
        }
    }
}

/// Renumbers these descriptors from 0 and closes all others.
///
/// # Safety
/// No other code may use a descriptor from here on.
unsafe fn keep(kept: &[RawFd]) {
    let count = kept.len();
    let mut apart = [0; MOST_KEPT];
    apart[..count].copy_from_slice(kept);
    apart[..count].sort_unstable();
    // Makes room first: the limit on descriptors may have been reached.
    let mut next = 0;
    for descriptor in &apart[..count] {
        close(next, descriptor - 1);
        next = descriptor + 1;
    }
    close(next, RawFd::MAX);
    // Duplicates each to a number above the final ones first, so that no descriptor overwrites another.
    for (copy, descriptor) in apart.iter_mut().zip(kept) {
        // SAFETY: passes only numbers.
        *copy = unsafe { libc::fcntl(*descriptor, libc::F_DUPFD, count as RawFd) };
    }
    for (number, copy) in (0..).zip(&apart[..count]) {
        // SAFETY: passes only numbers.
        unsafe { libc::dup2(*copy, number) };
    }
    close(count as RawFd, RawFd::MAX);
}

fn close(first: RawFd, last: RawFd) {
    if first <= last {
        // SAFETY: passes only numbers; the caller owns all descriptors.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsRawFd;

    #[test]
    fn it_keeps_what_it_is_given_and_nothing_else() {
        let (mut reading, writing) = io::pipe().unwrap();
        let other = File::open("/dev/null").unwrap();
        let kept = [other.as_raw_fd(), writing.as_raw_fd()];
        let (first, last) = (writing.as_raw_fd().max(other.as_raw_fd()), 4000);
        let writes = || {
            // SAFETY: takes numbers, and a byte that is ours.
            unsafe {
                let open = (2..last.max(first + 1))
                    .filter(|d| libc::fcntl(*d, libc::F_GETFD) != -1)
                    .count();
                let answer = u8::from(open == 0 && libc::fcntl(0, libc::F_GETFD) != -1);
                libc::write(1, (&raw const answer).cast(), 1);
            }
        };
        // SAFETY: system calls alone.
        let child = unsafe { start(c"survivor", &kept, writes) }.unwrap();
        drop(writing);
        let mut answer = Vec::new();
        reading.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, [1]);
        // SAFETY: our own child's id.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }

    #[test]
    fn it_starts_where_no_descriptor_is_left() {
        let (mut reading, writing) = io::pipe().unwrap();
        let kept = [writing.as_raw_fd()];
        let none_left = kept[0].max(reading.as_raw_fd()) as libc::rlim_t + 1;
        // SAFETY: the child makes system calls, and in it the second call does.
        let child = unsafe {
            match libc::fork() {
                0 => {
                    let limit = libc::rlimit {
                        rlim_cur: none_left,
                        rlim_max: none_left,
                    };
                    libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
                    while libc::dup(2) >= 0 {}
                    let _ = start(c"survivor", &kept, || {
                        libc::write(0, c"+".as_ptr().cast(), 1);
                    });
                    libc::_exit(0)
                }
                child => child,
            }
        };
        drop(writing);
        let mut answer = Vec::new();
        reading.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"+");
        // SAFETY: our own child's id.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
}
