//! Files shared with another process through memory.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// A file mapped `MAP_SHARED`. Others write to it at any time, so it is seen as atomic words.
pub struct SharedFile {
    file: File,
    writable: bool,
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
    /// The file cannot be opened or mapped.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::of(File::open(path)?, false)
    }

    /// Makes a file of `bytes` zeros and maps it to read and write it.
    ///
    /// # Errors
    /// The file exists, or cannot be written or mapped.
    pub fn create(path: &Path, bytes: u64) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        file.set_len(bytes)?;
        Self::of(file, true)
    }

    fn of(file: File, writable: bool) -> io::Result<Self> {
        let mut shared = Self {
            file,
            writable,
            base: std::ptr::null_mut(),
            bytes: 0,
        };
        shared.follow()?;
        Ok(shared)
    }

    /// Maps what the file has grown by since.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn follow(&mut self) -> io::Result<()> {
        let bytes = usize::try_from(self.file.metadata()?.len()).map_err(io::Error::other)?;
        if bytes <= self.bytes {
            return Ok(());
        }
        let protection = libc::PROT_READ | if self.writable { libc::PROT_WRITE } else { 0 };
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED,
                self.file.as_raw_fd(),
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
