//! Files and the page cache: opening them so that nothing changes, what they are kept in, loading and dropping them.

use crate::process::Capability;
use crate::{Host, dax};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file for reading. Its access time stays, if this user may ask for that (its owner and root may), a pipe
/// is not waited for, and with `links` false a symbolic link is not followed.
///
/// # Errors
/// As the kernel answers; `InvalidInput` if it is no regular file.
pub fn open(path: &Path, links: bool) -> io::Result<File> {
    let follow = if links { 0 } else { libc::O_NOFOLLOW };
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | follow;
    let with = |flags: i32| File::options().read(true).custom_flags(flags).open(path);
    let file = match with(flags | libc::O_NOATIME) {
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => with(flags)?,
        opened => opened?,
    };
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is no regular file",
        )),
    }
}

/// Whether `mincore` tells which pages of a file are in memory: to its owner, to who may write to it, and to who has
/// `CAP_FOWNER`. Others are told that all are (`can_do_mincore`, mm/mincore.c).
#[must_use]
pub fn tells_residence(file: &File) -> bool {
    if file
        .metadata()
        .is_ok_and(|m| m.uid() == crate::process::own_user())
    {
        return true;
    }
    let path = std::ffi::CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).expect("no NUL");
    // SAFETY: the path ends with a NUL.
    let writable =
        unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, libc::AT_EACCESS) } == 0;
    writable || owns_all()
}

/// Whether this process counts as the owner of every file: in a user namespace the capability holds for its own users'
/// files alone.
fn owns_all() -> bool {
    let host = Host::default();
    let capable = host.own_status().is_ok_and(|own| own.has(Capability::Fowner));
    let whole = || {
        let map = host.line("proc/self/uid_map").unwrap_or_default();
        map.split_ascii_whitespace().eq(["0", "0", "4294967295"])
    };
    capable && whole()
}

/// Where the file has data next, from `offset` on: the bytes of a stretch that is no hole; `None` after the last. Where
/// the file system does not tell, the rest of the file is one stretch.
#[must_use]
pub fn next_data(file: &File, offset: u64, size: u64) -> Option<std::ops::Range<u64>> {
    let seek = |from: u64, whence: libc::c_int| {
        // SAFETY: an open descriptor, no memory involved; nothing here depends on its offset.
        let at = unsafe {
            libc::lseek(
                file.as_raw_fd(),
                libc::off_t::try_from(from).unwrap_or(libc::off_t::MAX),
                whence,
            )
        };
        u64::try_from(at).map_err(|_| io::Error::last_os_error())
    };
    if offset >= size {
        return None;
    }
    match seek(offset, libc::SEEK_DATA) {
        Ok(start) if start >= size => None,
        Ok(start) => Some(start..seek(start, libc::SEEK_HOLE).unwrap_or(size).min(size)),
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => None,
        Err(_) => Some(offset..size),
    }
}

/// The file system type of a ramfs, `RAMFS_MAGIC` (include/uapi/linux/magic.h).
const RAMFS: libc::__fsword_t = 0x8584_58f6;

/// What a file's pages are kept in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A disk or a server: pages in memory are a cache of it.
    Storage,
    /// Memory alone (`tmpfs`): shared memory objects, memfds, System V segments. Such an object can have a policy.
    Memory,
    /// Memory alone, in which pages stay where they were allocated (`ramfs`).
    Fixed,
    /// A pool of huge pages (`hugetlbfs`). What of it is in memory, only mappings tell.
    HugePages,
    /// The device itself (`dax`): pages have no copy in memory.
    Device,
}

impl Backing {
    /// What this file's pages are kept in.
    ///
    /// # Errors
    /// As the kernel answers.
    pub fn of(file: &File) -> io::Result<Self> {
        // SAFETY: an all-zero `statfs` is valid, and the kernel fills it in.
        let mut answer: libc::statfs = unsafe { std::mem::zeroed() };
        // SAFETY: an open descriptor; `answer` lives in this frame.
        match unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut answer) } {
            0 if dax::is_on_device(file) => Ok(Self::Device),
            0 => Ok(match answer.f_type {
                libc::TMPFS_MAGIC => Self::Memory,
                RAMFS => Self::Fixed,
                libc::HUGETLBFS_MAGIC => Self::HugePages,
                _ => Self::Storage,
            }),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Reads a part of a file into the page cache, just this part: no read-ahead. The kernel allocates its pages by the
/// memory policy of the thread that calls ([`crate::mempolicy::Policy::apply`]); those that are in memory already stay
/// where they are.
///
/// # Errors
/// The file cannot be read.
pub fn load(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    // SAFETY: an open descriptor, no memory involved. Where the advice is not taken, neighbours may come along.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
    let mut buffer = vec![0_u8; bytes.min(1 << 20) as usize];
    let (mut at, end) = (offset, offset + bytes);
    while at < end {
        let length = buffer.len().min((end - at) as usize);
        match file.read_at(&mut buffer[..length], at)? {
            0 => break,
            read => at += read as u64,
        }
    }
    Ok(())
}

/// Has the kernel forget the pages of a file which no process maps or writes; changed ones are written to the disk
/// first.
///
/// # Errors
/// As the kernel answers; a file on a file system that can only be read has nothing to write, which is none.
pub fn drop_cache(file: &File) -> io::Result<()> {
    // SAFETY: an open descriptor, no memory involved.
    match unsafe { libc::fdatasync(file.as_raw_fd()) } {
        0 => {}
        _ => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::EROFS | libc::EINVAL)) => {}
            error => return Err(error),
        },
    }
    // SAFETY: as above.
    match unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_pages::FilePages;
    use std::os::unix::fs::FileExt;

    const PAGE: u64 = 4096;

    #[test]
    fn a_memfd_is_kept_in_memory() {
        let memfd = crate::memfd::create(c"nodewise-test").unwrap();
        assert_eq!(Backing::of(&memfd).unwrap(), Backing::Memory);
        let sources = File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")).unwrap();
        assert_ne!(Backing::of(&sources).unwrap(), Backing::HugePages);
    }

    #[test]
    fn holes_are_no_data() {
        let memfd = crate::memfd::create(c"nodewise-test").unwrap();
        let size = 1 << 60;
        memfd.set_len(size).unwrap();
        assert_eq!(next_data(&memfd, 0, size), None);
        memfd.write_all_at(&[1; 8192], 1 << 40).unwrap();
        let data = next_data(&memfd, 5, size).unwrap();
        assert_eq!(data, 1 << 40..(1 << 40) + 8192);
        assert_eq!(next_data(&memfd, data.end, size), None);
    }

    #[test]
    fn what_is_no_regular_file_is_refused_and_not_waited_for() {
        let fifo = std::env::temp_dir().join(format!("nodewise-fifo-{}", std::process::id()));
        let path = std::ffi::CString::new(fifo.to_str().unwrap()).unwrap();
        // SAFETY: the path ends with a NUL.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
        assert_eq!(open(&fifo, true).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let link = fifo.with_extension("link");
        std::os::unix::fs::symlink(file!(), &link).unwrap();
        assert_eq!(open(&link, false).unwrap_err().raw_os_error(), Some(libc::ELOOP));
        std::fs::remove_file(&fifo).unwrap();
        std::fs::remove_file(&link).unwrap();
    }

    #[test]
    fn what_was_dropped_can_be_loaded_again() {
        // On the disk that the sources are on: a file in memory cannot be dropped.
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dropped-{}", std::process::id()));
        std::fs::write(&path, vec![7; 64 << 12]).unwrap();
        let file = File::open(&path).unwrap();
        let view = FilePages::map(&file, 0, 64 * PAGE).unwrap();
        let there = || view.resident().unwrap().into_iter().filter(|r| *r).count();
        drop_cache(&file).unwrap();
        let dropped = there();
        load(&file, 16 * PAGE, 8 * PAGE).unwrap();
        let loaded = there();
        std::fs::remove_file(&path).unwrap();
        // An overlay or network file system may keep its own.
        if dropped == 0 {
            assert_eq!(loaded, 8, "just what was asked for");
        }
    }
}
