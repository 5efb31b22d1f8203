//! Restores the affinity of threads of other processes if this process is killed while they are bound.
//!
//! Bindings are noted in memory that is shared with a small guard process. If the guard finds its pipe closed while
//! there are notes, it restores the affinities in our place.

use crate::affinity::{WORDS, apply, current, mask};
use crate::cleanup_process;
use std::io::{self, PipeWriter};
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Largest number of notes: one for each process and set of CPUs that its threads were bound to.
const MAX_NOTES: usize = 1024;
/// Largest number of times that a process's threads are listed.
const MAX_PASSES: usize = 16;
/// Number of generations of forked processes that are examined.
const MAX_GENERATIONS: u32 = 4;
/// Number of bytes of a directory listing that are read at once.
const LISTING_BYTES: usize = 4096;

/// A note that the threads of a process with the affinity `given` had the affinity `before`.
struct Note {
    /// Id of the process; 0: the entry is free.
    process: AtomicU32,
    given: [u64; WORDS],
    before: [u64; WORDS],
}

struct Table {
    /// Number of entries that were ever used; all later ones are free.
    used: AtomicU32,
    notes: [Note; MAX_NOTES],
}

/// The guard process, with the notes shared with it.
#[derive(Debug)]
pub struct AffinityGuard {
    table: NonNull<Table>,
    alive: Option<PipeWriter>,
    keeper: libc::pid_t,
}

// SAFETY: the memory belongs to this value and is written only through `&mut`; the guard reads it after our end.
unsafe impl Send for AffinityGuard {}

impl AffinityGuard {
    /// Starts the guard process.
    ///
    /// # Errors
    /// No memory, or no process can be started.
    pub fn start() -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh mapping at an address of the kernel's choice.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), size_of::<Table>(), protection, kind, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let table = NonNull::new(at.cast::<Table>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let (reading, alive) = io::pipe()?;
        // SAFETY: the closure only makes system calls and uses memory that is already mapped.
        let keeper = unsafe {
            cleanup_process::start(c"nodewise-unbind", &[reading.as_raw_fd()], || {
                wait_and_restore(table);
            })
        }?;
        Ok(Self {
            table,
            alive: Some(alive),
            keeper,
        })
    }

    fn table(&mut self) -> &mut Table {
        // SAFETY: zeroed when mapped, which is a valid table without notes; unmapped when dropped.
        unsafe { self.table.as_mut() }
    }

    /// Notes that threads of a process are bound to the CPUs `given` from now on, and had `before`. Returns whether there was
    /// room.
    pub fn note(&mut self, process: u32, given: &[u32], before: &[u32]) -> bool {
        let (given, before) = (mask(given), mask(before));
        let table = self.table();
        let used = table.used.load(Ordering::Relaxed) as usize;
        let of = |note: &Note| note.process.load(Ordering::Relaxed);
        let known = |note: &Note| of(note) == process && note.given == given;
        if table.notes[..used].iter().any(known) {
            return true;
        }
        let free = table.notes[..used]
            .iter()
            .position(|note| of(note) == 0)
            .unwrap_or(used);
        let Some(note) = table.notes.get_mut(free) else {
            return false;
        };
        (note.given, note.before) = (given, before);
        note.process.store(process, Ordering::Release);
        if free == used {
            table.used.store(used as u32 + 1, Ordering::Release);
        }
        true
    }

    /// Removes the notes of a process: its threads have their affinity back, or are to keep the present one.
    pub fn forget(&mut self, process: u32) {
        for note in self.used() {
            if note.process.load(Ordering::Relaxed) == process {
                note.process.store(0, Ordering::Release);
            }
        }
    }

    /// Removes the notes of all processes.
    pub fn forget_all(&mut self) {
        self.used()
            .iter()
            .for_each(|note| note.process.store(0, Ordering::Release));
    }

    fn used(&mut self) -> &mut [Note] {
        let table = self.table();
        let used = table.used.load(Ordering::Relaxed) as usize;
        &mut table.notes[..used.min(MAX_NOTES)]
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        // Notes that are left belong to a session that did not end properly; the guard acts on them.
        drop(self.alive.take());
        // SAFETY: our own child, which is waited for nowhere else; our own mapping, which nothing uses from here on.
        unsafe {
            libc::waitpid(self.keeper, std::ptr::null_mut(), 0);
            libc::munmap(self.table.as_ptr().cast(), size_of::<Table>());
        }
    }
}

/// Runs in the guard, which has the pipe as descriptor 0: the pipe is closed when our process ends.
fn wait_and_restore(table: NonNull<Table>) {
    let mut byte = 0_u8;
    // SAFETY: reads to a local byte; the table is mapped, and no process writes to it any more.
    let table = unsafe {
        libc::read(0, (&raw mut byte).cast(), 1);
        table.as_ref()
    };
    let used = table.used.load(Ordering::Acquire) as usize;
    for note in &table.notes[..used.min(MAX_NOTES)] {
        match note.process.load(Ordering::Acquire) {
            0 => {}
            // Repeated because a thread that is still bound may create another one meanwhile, which inherits the
            // binding.
            process => {
                for _ in 0..MAX_PASSES {
                    if !restore(process, note, 0) {
                        break;
                    }
                }
            }
        }
    }
}

/// Restores the threads of a process that have the affinity of a note, and those of processes that it has forked, which
/// may have no note yet; by system calls alone. Returns whether there were any.
fn restore(process: u32, note: &Note, generation: u32) -> bool {
    let mut any = false;
    let path = path(&[Part::Text(b"/proc/"), Part::Number(process), Part::Text(b"/task")]);
    let mut listed = [0_u64; LISTING_BYTES / 8];
    // SAFETY: the path is terminated by 0; the buffer is as large as is said, and aligned for directory entries.
    unsafe {
        let folder = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_DIRECTORY);
        loop {
            let bytes = libc::syscall(libc::SYS_getdents64, folder, listed.as_mut_ptr(), LISTING_BYTES);
            let Ok(bytes @ 1..) = usize::try_from(bytes) else {
                break;
            };
            let all = std::slice::from_raw_parts(listed.as_ptr().cast::<u8>(), bytes);
            each_number(all, |tid| {
                if current(tid).is_ok_and(|now| now == note.given) {
                    any |= apply(tid, &note.before).is_ok();
                }
                if generation < MAX_GENERATIONS {
                    each_child(process, tid, |child| any |= restore(child, note, generation + 1));
                }
            });
        }
        libc::close(folder);
    }
    any
}

/// A component of a path.
enum Part<'a> {
    Text(&'a [u8]),
    Number(u32),
}

/// Builds a path from components, terminated by 0, without allocation.
fn path(parts: &[Part<'_>]) -> [u8; 64] {
    let mut path = [0; 64];
    let mut end = 0;
    for part in parts {
        let mut digits = [0; 10];
        let text = match part {
            Part::Text(text) => text,
            Part::Number(number) => {
                let (mut rest, mut first) = (*number, digits.len());
                while first == digits.len() || rest > 0 {
                    first -= 1;
                    digits[first] = b'0' + (rest % 10) as u8;
                    rest /= 10;
                }
                &digits[first..]
            }
        };
        path[end..end + text.len()].copy_from_slice(text);
        end += text.len();
    }
    path
}

/// Calls `does` for each process that a thread has forked and that has not ended (`/proc/PID/task/TID/children`).
fn each_child(process: u32, tid: u32, mut does: impl FnMut(u32)) {
    let path = path(&[
        Part::Text(b"/proc/"),
        Part::Number(process),
        Part::Text(b"/task/"),
        Part::Number(tid),
        Part::Text(b"/children"),
    ]);
    let mut read = [0_u8; 256];
    let mut number = 0;
    // SAFETY: the path is terminated by 0; the buffer is as large as is said.
    unsafe {
        let file = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        while let Ok(bytes @ 1..) = usize::try_from(libc::read(file, read.as_mut_ptr().cast(), read.len())) {
            for byte in &read[..bytes] {
                match byte {
                    b'0'..=b'9' => number = number * 10 + u32::from(byte - b'0'),
                    _ if number > 0 => does(std::mem::take(&mut number)),
                    _ => {}
                }
            }
        }
        libc::close(file);
    }
}

/// Calls `does` for each numeric name in the result of `getdents64`.
fn each_number(entries: &[u8], mut does: impl FnMut(u32)) {
    /// Offsets in an entry: after `d_ino` and `d_off` comes its length; the name follows the type.
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let mut rest = entries;
    while let Some(length) = rest.get(LENGTH..LENGTH + 2) {
        let length = usize::from(u16::from_ne_bytes([length[0], length[1]]));
        let Some(name) = rest.get(NAME..length) else {
            return;
        };
        let digits = name.iter().take_while(|d| **d != 0);
        let mut digits = digits.map(|d| d.is_ascii_digit().then(|| u32::from(d - b'0')));
        let number = digits.try_fold(0_u32, |n, digit| n.checked_mul(10)?.checked_add(digit?));
        if let Some(tid) = number {
            does(tid);
        }
        rest = &rest[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::{bind, cpus_of};
    use crate::sleeper::Sleeper;
    use std::time::Duration;

    /// The affinity of a thread after a process that does `does` with a guard was killed.
    fn killed_after(target: u32, does: impl Fn(&mut AffinityGuard)) -> Vec<u32> {
        // SAFETY: the child makes system calls and uses memory of its own; other threads' locks are not taken.
        match unsafe { libc::fork() } {
            0 => {
                let mut guard = AffinityGuard::start();
                guard.iter_mut().for_each(&does);
                // SAFETY: ends this process at once, with the guard.
                unsafe { libc::raise(libc::SIGKILL) };
            }
            child => {
                // SAFETY: our own child.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            }
        }
        std::thread::sleep(Duration::from_millis(500));
        cpus_of(target).unwrap()
    }

    #[test]
    fn a_child_that_nobody_noted_is_restored_with_its_parent() {
        let before = cpus_of(std::process::id()).unwrap();
        let one = before[..1].to_vec();
        let mut parent = std::process::Command::new("sh")
            .args(["-c", "read line; sleep 600 & echo $!; wait"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = parent.id();
        let (mut asks, answers) = (parent.stdin.take().unwrap(), parent.stdout.take().unwrap());
        let _ = bind(pid, &one);
        std::io::Write::write_all(&mut asks, b"\n").unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(answers), &mut line).unwrap();
        let child: u32 = line.trim().parse().unwrap();
        assert_eq!(cpus_of(child).unwrap(), one);
        let left = killed_after(pid, |guard| {
            guard.note(pid, &one, &before);
        });
        let of_the_child = cpus_of(child);
        // SAFETY: a process of this test.
        unsafe { libc::kill(child as i32, libc::SIGKILL) };
        let _ = (parent.kill(), parent.wait());
        assert_eq!((left, of_the_child.unwrap()), (before.clone(), before));
    }

    #[test]
    fn who_is_killed_leaves_threads_with_what_they_had() {
        let target = Sleeper::start();
        let before = cpus_of(target.id()).unwrap();
        let one = &before[..1];
        let left = killed_after(target.id(), |guard| {
            assert!(guard.note(target.id(), one, &before));
            let _ = bind(target.id(), one);
        });
        assert_eq!(left, before);
        let left = killed_after(target.id(), |guard| {
            guard.note(target.id(), one, &before);
            let _ = bind(target.id(), one);
            guard.forget(target.id());
        });
        assert_eq!(left, one, "forgotten, so it keeps what it has");
    }

    #[test]
    fn numbers_are_read_from_a_listing() {
        let mut found = Vec::new();
        let entry = |name: &[u8]| {
            let length = (19 + name.len() + 1).next_multiple_of(8);
            let mut bytes = vec![0; length];
            bytes[16..18].copy_from_slice(&(length as u16).to_ne_bytes());
            bytes[19..19 + name.len()].copy_from_slice(name);
            bytes
        };
        let listing = [&b"."[..], b"..", b"4711", b"99999999999", b"3"]
            .map(entry)
            .concat();
        each_number(&listing, |n| found.push(n));
        assert_eq!(found, [4711, 3]);
        each_number(&listing[..listing.len() - 9], |_| {});
    }
}
