//! Gives threads of other processes back the CPUs that they had, should this process be killed while they are bound.
//!
//! What was bound is noted in memory that is shared with a small process; where that finds its pipe closed while there are
//! notes, it makes up for what we could not do any more.

use crate::affinity::{WORDS, apply, current, mask};
use crate::cleanup_process;
use std::io::{self, PipeWriter};
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Notes at most: one for each process and set of CPUs that its threads were bound to.
const NOTES: usize = 1024;
/// Times that a process's threads are listed, at most.
const PASSES: usize = 16;
/// Generations of forked processes that are looked at.
const GENERATIONS: u32 = 4;
/// Bytes of a listing that are read at once.
const LISTED: usize = 4096;

/// Threads of this process that have these CPUs had those before.
struct Note {
    /// The process; 0: no note.
    process: AtomicU32,
    given: [u64; WORDS],
    before: [u64; WORDS],
}

struct Table {
    /// Notes after these were never used.
    used: AtomicU32,
    notes: [Note; NOTES],
}

/// The process that stands by.
#[derive(Debug)]
pub struct AffinityGuard {
    table: NonNull<Table>,
    alive: Option<PipeWriter>,
    keeper: libc::pid_t,
}

// SAFETY: the memory is this value's own, written through `&mut` alone; the other process reads it after our end.
unsafe impl Send for AffinityGuard {}

impl AffinityGuard {
    /// Starts it.
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
        // SAFETY: system calls alone, on memory that is there.
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
        // SAFETY: zeroed when mapped, which is a table without notes; unmapped when dropped.
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

    /// Its threads have what they had, or are to keep what they have.
    pub fn forget(&mut self, process: u32) {
        for note in self.used() {
            if note.process.load(Ordering::Relaxed) == process {
                note.process.store(0, Ordering::Release);
            }
        }
    }

    /// Likewise, of all processes.
    pub fn forget_all(&mut self) {
        self.used()
            .iter()
            .for_each(|note| note.process.store(0, Ordering::Release));
    }

    fn used(&mut self) -> &mut [Note] {
        let table = self.table();
        let used = table.used.load(Ordering::Relaxed) as usize;
        &mut table.notes[..used.min(NOTES)]
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        // Notes that are left are of a session that did not come to its end.
        drop(self.alive.take());
        // SAFETY: the child is ours, and not waited for elsewhere; the mapping is ours, and used by nobody from here on.
        unsafe {
            libc::waitpid(self.keeper, std::ptr::null_mut(), 0);
            libc::munmap(self.table.as_ptr().cast(), size_of::<Table>());
        }
    }
}

/// In the other process, which has the pipe as 0: its end is our end.
fn wait_and_restore(table: NonNull<Table>) {
    let mut byte = 0_u8;
    // SAFETY: a byte of our own; the table is mapped, and nobody writes to it any more.
    let table = unsafe {
        libc::read(0, (&raw mut byte).cast(), 1);
        table.as_ref()
    };
    let used = table.used.load(Ordering::Acquire) as usize;
    for note in &table.notes[..used.min(NOTES)] {
        match note.process.load(Ordering::Acquire) {
            0 => {}
            // A thread that is created meanwhile by one that is still bound is bound as well.
            process => {
                for _ in 0..PASSES {
                    if !restore(process, note, 0) {
                        break;
                    }
                }
            }
        }
    }
}

/// Restores the threads of a process that have the CPUs of a note, and those of processes that it has forked, of which there may be
/// no note yet, by system calls alone. Whether there was any.
fn restore(process: u32, note: &Note, generation: u32) -> bool {
    let mut any = false;
    let path = path(&[Part::Text(b"/proc/"), Part::Number(process), Part::Text(b"/task")]);
    let mut listed = [0_u64; LISTED / 8];
    // SAFETY: a name that ends in a zero; room for as much as is asked for, aligned as its entries are.
    unsafe {
        let folder = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_DIRECTORY);
        loop {
            let bytes = libc::syscall(libc::SYS_getdents64, folder, listed.as_mut_ptr(), LISTED);
            let Ok(bytes @ 1..) = usize::try_from(bytes) else {
                break;
            };
            let all = std::slice::from_raw_parts(listed.as_ptr().cast::<u8>(), bytes);
            each_number(all, |tid| {
                if current(tid).is_ok_and(|now| now == note.given) {
                    any |= apply(tid, &note.before).is_ok();
                }
                if generation < GENERATIONS {
                    each_child(process, tid, |child| any |= restore(child, note, generation + 1));
                }
            });
        }
        libc::close(folder);
    }
    any
}

/// A part of a path.
enum Part<'a> {
    Text(&'a [u8]),
    Number(u32),
}

/// A path of these parts, ending in 0, without a heap.
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

/// The processes that a thread has forked and that have not ended (`/proc/PID/task/TID/children`).
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
    // SAFETY: a name that ends in a zero; room for as much as is asked for.
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

/// The names that are numbers in what `getdents64` returned.
fn each_number(entries: &[u8], mut does: impl FnMut(u32)) {
    /// `d_ino`, `d_off`, and then the entry's length; the name comes after the type.
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

    /// What a process whose owner is killed after `does` leaves of a thread's CPUs.
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
