//! Scan period of the kernel's NUMA balancing: `sched/numa_balancing` in debugfs, for all processes.

use crate::{Host, ReadError, cleanup_process};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, PipeWriter};
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Milliseconds between scans of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Delay from a program's start to the first scan, milliseconds.
    pub delay_ms: u32,
    /// Shortest period between scans, milliseconds.
    pub least_ms: u32,
    /// Longest period between scans, milliseconds.
    pub most_ms: u32,
}

const FILES: [&str; 3] = ["scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms"];

impl Scan {
    /// A fixed scan period. With a longer maximum the kernel would slow down while pages are well placed, and would
    /// notice late that they no longer are.
    #[must_use]
    pub fn every(ms: u32) -> Self {
        let ms = ms.max(1);
        Self {
            delay_ms: ms,
            least_ms: ms,
            most_ms: ms,
        }
    }

    fn of([delay_ms, least_ms, most_ms]: [u32; 3]) -> Self {
        Self {
            delay_ms,
            least_ms,
            most_ms,
        }
    }

    fn values(self) -> [u32; 3] {
        [self.delay_ms, self.least_ms, self.most_ms]
    }

    /// The files with their values, in an order in which the minimum never exceeds the maximum.
    fn writes(self, folder: &std::path::Path) -> Vec<(PathBuf, String)> {
        let [delay, least, most] = self.values();
        let file = |which: usize, value: u32| (folder.join(FILES[which]), value.to_string());
        vec![file(1, 1), file(2, most), file(1, least), file(0, delay)]
    }
}

impl Host {
    /// The kernel's current setting.
    ///
    /// # Errors
    /// debugfs is not mounted, not ours to read, or locked.
    pub fn scan(&self) -> Result<Scan, ReadError> {
        let folder = "sys/kernel/debug/sched/numa_balancing";
        let number = |name: &str| {
            let below = format!("{folder}/{name}");
            let text = self.read(&below)?;
            text.trim()
                .parse::<u32>()
                .map_err(|_| self.odd(&below, "not a number"))
        };
        Ok(Scan {
            delay_ms: number(FILES[0])?,
            least_ms: number(FILES[1])?,
            most_ms: number(FILES[2])?,
        })
    }
}

/// Exclusive ownership of the kernel's setting within this program's processes. The old setting is restored when this
/// is dropped, and by a keeper process when this process ends in any other way. If the keeper is killed too, the next
/// owner finds the old setting in a note. A setting that was changed by others meanwhile is left as it is.
pub struct Held {
    folder: PathBuf,
    /// The note; locked by this process and the keeper.
    note: File,
    /// A pipe to the keeper, which the kernel closes when this process ends.
    alive: Option<PipeWriter>,
    keeper: libc::pid_t,
}

impl Held {
    /// Takes ownership of the setting, and changes it.
    ///
    /// # Errors
    /// It cannot be read or written, or another of our processes has it: `WouldBlock`.
    pub fn take(host: &Host, scan: Scan) -> io::Result<Self> {
        let now = host.scan().map_err(|e| io::Error::new(e.kind(), e.to_string()))?;
        let file = lock(&host.run())?;
        let left = Note::read(&file).filter(|left| left.explains(now.values()));
        let before = left.map_or(now.values(), |left| left.before);
        let note = Note {
            before,
            earlier: now.values(),
            latest: now.values(),
        };
        note.write(&file)?;
        let held = Self::keep(
            host.sys().join("kernel/debug/sched/numa_balancing"),
            file,
            Scan::of(before),
        )?;
        held.set(scan)?;
        Ok(held)
    }

    /// Changes the setting again.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set(&self, scan: Scan) -> io::Result<()> {
        if let Some(Note { before, latest, .. }) = Note::read(&self.note) {
            let note = Note {
                before,
                earlier: latest,
                latest: scan.values(),
            };
            note.write(&self.note)?;
        }
        scan.writes(&self.folder)
            .into_iter()
            .try_for_each(|(file, value)| std::fs::write(file, value))
    }

    fn keep(folder: PathBuf, note: File, before: Scan) -> io::Result<Self> {
        let named = |file: PathBuf| CString::new(file.as_os_str().as_bytes()).map_err(io::Error::other);
        let files = FILES.map(|name| named(folder.join(name)));
        let writes = before.writes(&folder).into_iter();
        let writes: io::Result<Vec<_>> = writes.map(|(file, value)| Ok((named(file)?, value))).collect();
        let ([delay, least, most], writes) = (files, writes?);
        let files = [delay?, least?, most?];
        let (reading, alive) = io::pipe()?;
        let kept = [reading.as_raw_fd(), note.as_raw_fd()];
        // SAFETY: system calls alone; what it reads was made before.
        let keeper =
            unsafe { cleanup_process::start(c"nodewise-scan", &kept, || wait_and_restore(&files, &writes)) };
        Ok(Self {
            folder,
            note,
            alive: Some(alive),
            keeper: keeper?,
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.alive.take());
        // SAFETY: the child is ours, and not waited for elsewhere.
        unsafe { libc::waitpid(self.keeper, std::ptr::null_mut(), 0) };
    }
}

/// The contents of the note: three settings, each of delay, minimum and maximum, milliseconds.
#[derive(Clone, Copy)]
struct Note {
    before: [u32; 3],
    /// The setting before the latest one, whose writing may have been interrupted.
    earlier: [u32; 3],
    latest: [u32; 3],
}

const NOTE_BYTES: usize = 36;

impl Note {
    /// Reads the note; `None` if there is none. Makes a single system call.
    fn read(file: &File) -> Option<Self> {
        let mut bytes = [0; NOTE_BYTES];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let mut values = [[0; 3]; 3];
        for (value, bytes) in values.iter_mut().flatten().zip(bytes.chunks_exact(4)) {
            *value = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        let [before, earlier, latest] = values;
        Some(Self {
            before,
            earlier,
            latest,
        })
    }

    fn write(&self, file: &File) -> io::Result<()> {
        let values = [self.before, self.earlier, self.latest].concat();
        let bytes: Vec<u8> = values.into_iter().flat_map(u32::to_ne_bytes).collect();
        file.write_all_at(&bytes, 0)
    }

    /// Whether these values were written by us, possibly in part: the minimum is 1 during a change.
    fn explains(&self, values: [u32; 3]) -> bool {
        (0..3).all(|i| {
            values[i] == self.latest[i] || values[i] == self.earlier[i] || (i == 1 && values[i] == 1)
        })
    }
}

/// Opens and locks the note; the lock lasts until the last of its owners has ended.
fn lock(folder: &Path) -> io::Result<File> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join("nodewise-scan");
    let mut options = File::options();
    let file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path);
    let file = file.map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
    if crate::lock::try_exclusive(&file)? {
        return Ok(file);
    }
    let taken = "another nodewise has the kernel's scan setting until it ends";
    Err(io::Error::new(io::ErrorKind::WouldBlock, taken))
}

/// Runs in the keeper, which has the pipe as descriptor 0 and the note as 1: the pipe is closed when its parent ends.
fn wait_and_restore(files: &[CString; 3], writes: &[(CString, String)]) {
    // SAFETY: system calls on our own memory and descriptors; there is no useful reaction to an error of these. The
    // note's descriptor is never closed.
    unsafe {
        let mut byte = 0_u8;
        libc::read(0, (&raw mut byte).cast(), 1);
        let note = ManuallyDrop::new(File::from_raw_fd(1));
        let now = [&files[0], &files[1], &files[2]].map(|file| number(file));
        if Note::read(&note).is_some_and(|note| note.explains(now)) {
            for (file, value) in writes {
                let descriptor = libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_TRUNC);
                libc::write(descriptor, value.as_ptr().cast(), value.len());
                libc::close(descriptor);
            }
        }
        libc::ftruncate(1, 0);
    }
}

/// The number in a file, by system calls alone; 0 if there is none.
fn number(file: &CStr) -> u32 {
    let mut digits = [0_u8; 16];
    // SAFETY: a name that ends in a zero, and room for as much as is asked for.
    let length = unsafe {
        let descriptor = libc::open(file.as_ptr(), libc::O_RDONLY);
        let length = libc::read(descriptor, digits.as_mut_ptr().cast(), digits.len());
        libc::close(descriptor);
        length
    };
    let digits = &digits[..usize::try_from(length).unwrap_or(0)];
    let digits = digits.iter().take_while(|d| d.is_ascii_digit());
    digits.fold(0, |n: u32, d| {
        n.wrapping_mul(10).wrapping_add(u32::from(d - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of the kernel's files.
    fn host(name: &str) -> (PathBuf, Host) {
        let root = std::env::temp_dir().join(format!("nodewise-scan-{name}-{}", std::process::id()));
        let folder = root.join("sys/kernel/debug/sched/numa_balancing");
        std::fs::create_dir_all(&folder).unwrap();
        for (file, value) in FILES.iter().zip(["1000", "1000", "60000"]) {
            std::fs::write(folder.join(file), value).unwrap();
        }
        (root.clone(), Host::at(&root))
    }

    const BEFORE: Scan = Scan {
        delay_ms: 1000,
        least_ms: 1000,
        most_ms: 60000,
    };

    #[test]
    fn what_was_is_put_back() {
        let (root, host) = host("drop");
        let held = Held::take(&host, Scan::every(100)).unwrap();
        assert_eq!(host.scan().unwrap(), Scan::every(100));
        held.set(Scan::every(300)).unwrap();
        assert_eq!(host.scan().unwrap().least_ms, 300);
        drop(held);
        assert_eq!(host.scan().unwrap(), BEFORE);
        std::fs::remove_dir_all(root).unwrap();
        assert!(Held::take(&host, BEFORE).is_err());
    }

    #[test]
    fn one_at_a_time_has_it() {
        let (root, host) = host("twice");
        let first = Held::take(&host, Scan::every(100)).unwrap();
        let second = Held::take(&host, Scan::every(50));
        assert!(matches!(second, Err(e) if e.kind() == io::ErrorKind::WouldBlock));
        drop(first);
        assert_eq!(host.scan().unwrap(), BEFORE);
        drop(Held::take(&host, Scan::every(50)).unwrap());
        assert_eq!(host.scan().unwrap(), BEFORE);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_somebody_else_set_meanwhile_stays() {
        let (root, host) = host("else");
        let held = Held::take(&host, Scan::every(100)).unwrap();
        let folder = host.sys().join("kernel/debug/sched/numa_balancing");
        std::fs::write(folder.join(FILES[2]), "777\n").unwrap();
        drop(held);
        assert_eq!(host.scan().unwrap().most_ms, 777);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_was_is_put_back_by_the_next_if_the_keeper_is_killed() {
        let (root, host) = host("killed");
        let held = Held::take(&host, Scan::every(100)).unwrap();
        held.set(Scan::every(200)).unwrap();
        // SAFETY: a signal to our own child.
        unsafe { libc::kill(held.keeper, libc::SIGKILL) };
        drop(held);
        assert_eq!(host.scan().unwrap(), Scan::every(200));
        drop(Held::take(&host, Scan::every(50)).unwrap());
        assert_eq!(host.scan().unwrap(), BEFORE);
        std::fs::remove_dir_all(root).unwrap();
    }
}
