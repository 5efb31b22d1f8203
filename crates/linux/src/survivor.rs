//! A small process that outlives us, to put right what we leave behind.

use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;

/// Starts one of this name. It takes no signal, belongs to no terminal and keeps `kept` of our descriptors
/// alone, which it has as 0, 1, and so on. Whoever waits for our end keeps the reading end of a pipe.
///
/// # Safety
/// `does` runs in a child that was forked, maybe from one of several threads: it may make system calls and
/// use memory that there is, but not allocate, lock or panic.
///
/// # Errors
/// No process can be started.
pub(crate) unsafe fn start(name: &CStr, kept: &[RawFd], does: impl FnOnce()) -> io::Result<libc::pid_t> {
    // SAFETY: the child does as the caller promises, makes system calls on its own memory besides, and never
    // returns; a failure of one leaves nothing better to do than to go on.
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
/// Nobody else may use a descriptor from here on.
unsafe fn keep(kept: &[RawFd]) {
    let count = kept.len() as RawFd;
    // Twice: the first time out of each other's way.
    let mut apart = [0; 4];
    for (copy, descriptor) in apart.iter_mut().zip(kept) {
        // SAFETY: takes numbers alone.
        *copy = unsafe { libc::fcntl(*descriptor, libc::F_DUPFD, count) };
    }
    for (number, copy) in (0..count).zip(apart) {
        // SAFETY: takes numbers alone.
        unsafe { libc::dup2(copy, number) };
    }
    // SAFETY: takes numbers alone.
    unsafe { libc::syscall(libc::SYS_close_range, count, u32::MAX, 0) };
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
}
