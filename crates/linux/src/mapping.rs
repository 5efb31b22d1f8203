//! Files mapped as memory shared with another process.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A file mapped `MAP_SHARED`. Other processes may write to it at any time, so it is accessed as atomic words. It keeps
/// no descriptor open, as there may be thousands of these.
pub struct SharedFile {
    path: PathBuf,
    base: *mut libc::c_void,
    bytes: usize,
}

// SAFETY: the mapping is only reached through atomic words, and moves with its owner.
unsafe impl Send for SharedFile {}
// SAFETY: as above.
unsafe impl Sync for SharedFile {}

impl SharedFile {
    /// Maps all of an existing file to read it.
    ///
    /// # Errors
    /// The file cannot be opened or mapped, or is no regular one.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::of(path, &nodewise_input::open(path)?, false)
    }

    /// Makes a file of `bytes` zeros, its blocks allocated, and maps it to read and write it.
    ///
    /// # Errors
    /// The file exists, or cannot be written or mapped.
    pub fn create(path: &Path, bytes: u64) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        allocate(&file, bytes)?;
        Self::of(path, &file, true)
    }

    fn of(path: &Path, file: &File, writable: bool) -> io::Result<Self> {
        let mut shared = Self {
            path: path.to_owned(),
            base: std::ptr::null_mut(),
            bytes: 0,
        };
        shared.map(file, writable)?;
        Ok(shared)
    }

    /// Extends the mapping to the present size of the file that is now at its path, for reading.
    ///
    /// # Errors
    /// The file cannot be opened or mapped, or is no regular one.
    pub fn follow(&mut self) -> io::Result<()> {
        self.map(&nodewise_input::open(&self.path)?, false)
    }

    fn map(&mut self, file: &File, writable: bool) -> io::Result<()> {
        let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        if bytes <= self.bytes {
            return Ok(());
        }
        let protection = libc::PROT_READ | if writable { libc::PROT_WRITE } else { 0 };
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.unmap();
        (self.base, self.bytes) = (base, bytes);
        Ok(())
    }

    /// The file as 64-bit words; a last part of one is left out.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: page-aligned, mapped for all of `bytes` while `self` lives, any bits are valid, and
        // atomics allow for writers elsewhere. Files of a recording are never shortened.
        unsafe { std::slice::from_raw_parts(self.base.cast(), self.bytes / 8) }
    }

    /// The file as 32-bit words, for futexes.
    #[must_use]
    pub fn half_words(&self) -> &[AtomicU32] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: as for `words`.
        unsafe { std::slice::from_raw_parts(self.base.cast(), self.bytes / 4) }
    }

    fn unmap(&mut self) {
        if self.bytes > 0 {
            // SAFETY: our own mapping, and no reference into it outlives the borrow of `self`.
            unsafe { libc::munmap(self.base, self.bytes) };
        }
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        self.unmap();
    }
}

/// Allocates disk blocks for the whole file, so that a full disk is an error here instead of a SIGBUS later.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: takes no pointers.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn a_mapping_follows_its_file() {
        let path = std::env::temp_dir().join(format!("nodewise-mapping-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let shared = SharedFile::create(&path, 16).unwrap();
        shared.words()[1].store(7, Relaxed);
        let mut seen = SharedFile::open(&path).unwrap();
        assert_eq!(seen.words()[1].load(Relaxed), 7);
        std::fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .write_at(&[1], 8192)
            .unwrap();
        seen.follow().unwrap();
        assert_eq!((seen.words().len(), seen.words()[1].load(Relaxed)), (1024, 7));
        assert!(SharedFile::create(&path, 16).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
