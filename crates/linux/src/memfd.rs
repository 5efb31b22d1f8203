//! Anonymous memory files (`memfd_create(2)`), non-blocking descriptors, and waiting for them.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::time::Duration;

/// An empty file in memory, gone with its last descriptor; closed on exec.
///
/// # Errors
/// No memory or no descriptor left.
pub fn create(name: &CStr) -> io::Result<File> {
    // SAFETY: `name` ends with a NUL.
    let descriptor = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    Ok(unsafe { File::from_raw_fd(descriptor) })
}

/// Reads from here return at once from now on, with [`io::ErrorKind::WouldBlock`] where nothing is.
///
/// # Errors
/// As the kernel answers.
pub fn never_block(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: two system calls on an open descriptor, no memory involved.
    let set = unsafe {
        let flags = libc::fcntl(descriptor.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(descriptor.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
    };
    if set < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Waits until one of the descriptors can be read or was closed on the other side, at most `pause`.
///
/// # Errors
/// As the kernel answers; a signal is none.
pub fn wait_readable(descriptors: &[BorrowedFd<'_>], pause: Duration) -> io::Result<()> {
    let one = |d: &BorrowedFd<'_>| libc::pollfd {
        fd: d.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut polled: Vec<libc::pollfd> = descriptors.iter().map(one).collect();
    let pause = i32::try_from(pause.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: as many entries as said, alive during the call.
    let found = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, pause) };
    let error = io::Error::last_os_error();
    if found < 0 && error.kind() != io::ErrorKind::Interrupted {
        return Err(error);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn a_file_in_memory_has_what_was_written() {
        let mut file = create(c"test").unwrap();
        file.write_all(b"abc").unwrap();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        assert_eq!(std::fs::read(path).unwrap(), b"abc");
    }

    #[test]
    fn an_empty_pipe_says_so_and_a_full_one_wakes() {
        let (mut reader, mut writer) = io::pipe().unwrap();
        never_block(reader.as_fd()).unwrap();
        let mut byte = [0];
        assert_eq!(
            reader.read(&mut byte).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        writer.write_all(b"x").unwrap();
        wait_readable(&[reader.as_fd()], Duration::from_secs(60)).unwrap();
        assert_eq!(reader.read(&mut byte).unwrap(), 1);
    }
}
