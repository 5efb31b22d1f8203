//! File locks that the kernel releases when their holder ends.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a folder to lock it; what is no folder (any more) is refused and not waited for.
///
/// # Errors
/// As the kernel answers.
pub fn open_folder(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
        .open(path)
}

/// Tries to lock a file or folder exclusively, until the last descriptor of `file` is closed.
///
/// # Errors
/// The file system has no locks.
pub fn try_exclusive(file: &File) -> io::Result<bool> {
    // SAFETY: an open descriptor, no memory involved.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        error => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_locked_while_its_descriptor_is_open() {
        let path = std::env::temp_dir().join(format!("nodewise-lock-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let (held, other) = (File::open(&path).unwrap(), File::open(&path).unwrap());
        assert!(try_exclusive(&held).unwrap());
        assert!(!try_exclusive(&other).unwrap());
        drop(held);
        assert!(try_exclusive(&other).unwrap());
        std::fs::remove_dir(&path).unwrap();
    }
}
