//! How often the kernel's balancing samples accesses: `sched/numa_balancing` in debugfs, for all processes.

use crate::{Host, ReadError};
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Milliseconds between scans of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// From a program's start to the first.
    pub delay_ms: u32,
    /// At least.
    pub least_ms: u32,
    /// At most.
    pub most_ms: u32,
}

const FILES: [&str; 3] = ["scan_delay_ms", "scan_period_min_ms", "scan_period_max_ms"];

impl Scan {
    /// Scans at a steady period.
    #[must_use]
    pub fn every(ms: u32) -> Self {
        let ms = ms.max(1);
        Self {
            delay_ms: ms,
            least_ms: ms,
            most_ms: ms.saturating_mul(4),
        }
    }

    fn values(self) -> [u32; 3] {
        [self.delay_ms, self.least_ms, self.most_ms]
    }

    /// The files with what to write, in an order that never has the least above the most.
    fn writes(self, folder: &std::path::Path) -> Vec<(PathBuf, String)> {
        let [delay, least, most] = self.values();
        let file = |which: usize, value: u32| (folder.join(FILES[which]), value.to_string());
        vec![file(1, 1), file(2, most), file(1, least), file(0, delay)]
    }
}

impl Host {
    /// What the kernel does now.
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

/// The kernel's setting in our hands. It is put back when this is dropped, and when this process ends in
/// any other way: a process of its own waits for that.
pub struct Held {
    folder: PathBuf,
    /// Closed when we end, however we do.
    alive: libc::c_int,
    keeper: libc::pid_t,
}

impl Held {
    /// Takes the setting, and sets it.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub fn take(host: &Host, scan: Scan) -> io::Result<Self> {
        let before = host.scan().map_err(|e| io::Error::new(e.kind(), e.to_string()))?;
        let folder = host.sys().join("kernel/debug/sched/numa_balancing");
        let held = Self::keep(before.writes(&folder), folder)?;
        held.set(scan)?;
        Ok(held)
    }

    /// Sets it again.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set(&self, scan: Scan) -> io::Result<()> {
        scan.writes(&self.folder)
            .into_iter()
            .try_for_each(|(file, value)| std::fs::write(file, value))
    }

    fn keep(restore: Vec<(PathBuf, String)>, folder: PathBuf) -> io::Result<Self> {
        let named =
            |(file, value): (PathBuf, String)| Some((CString::new(file.as_os_str().as_bytes()).ok()?, value));
        let restore: Vec<(CString, String)> = restore.into_iter().filter_map(named).collect();
        let mut ends = [0; 2];
        // SAFETY: two descriptors are written to where `ends` is.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the child makes system calls alone and never returns; what it reads was made before.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => wait_and_restore(ends[0], &restore),
            keeper => {
                // SAFETY: the child's end, which is of no use here.
                unsafe { libc::close(ends[0]) };
                Ok(Self {
                    folder,
                    alive: ends[1],
                    keeper,
                })
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: our own descriptor, closed once; the child is ours, and not waited for elsewhere.
        unsafe {
            libc::close(self.alive);
            libc::waitpid(self.keeper, std::ptr::null_mut(), 0);
        }
    }
}

/// In the child: nothing but the pipe is kept, no signal ends it, and its parent's end is the end of the
/// pipe.
fn wait_and_restore(pipe: libc::c_int, restore: &[(CString, String)]) -> ! {
    // SAFETY: system calls on our own memory and descriptors, after fork; a failure of any leaves
    // nothing better to do than to go on.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
        libc::setsid();
        libc::dup2(pipe, 0);
        libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
        let mut byte = 0_u8;
        while libc::read(0, (&raw mut byte).cast(), 1) == -1 && *libc::__errno_location() == libc::EINTR {}
        for (file, value) in restore {
            let descriptor = libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_TRUNC);
            libc::write(descriptor, value.as_ptr().cast(), value.len());
            libc::close(descriptor);
        }
        libc::_exit(0)
    }
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
}
