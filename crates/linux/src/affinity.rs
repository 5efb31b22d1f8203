//! CPU affinity masks of threads.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

const CPUS: usize = 8192;
pub(crate) const WORDS: usize = CPUS / 64;

/// The CPUs the calling thread may run on, ascending.
///
/// # Errors
/// More CPUs than the mask holds (8192).
pub fn allowed_cpus() -> io::Result<Vec<u32>> {
    cpus_of(0)
}

/// The CPUs that a thread may run on now, those online, ascending.
///
/// # Errors
/// No such thread; more CPUs than the mask holds (8192).
pub fn cpus_of(tid: u32) -> io::Result<Vec<u32>> {
    let words = current(tid)?;
    Ok((0..CPUS as u32)
        .filter(|c| words[*c as usize / 64] >> (c % 64) & 1 == 1)
        .collect())
}

/// The CPUs of a thread as a mask, by a single system call and without allocation.
pub(crate) fn current(tid: u32) -> io::Result<[u64; WORDS]> {
    let mut words = [0u64; WORDS];
    // SAFETY: the kernel writes at most the given number of bytes.
    let status = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            tid,
            size_of_val(&words),
            words.as_mut_ptr(),
        )
    };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(words)
}

/// Binds the calling thread to these CPUs.
///
/// # Errors
/// None of them may be used here.
pub fn bind_this_thread(cpus: &[u32]) -> io::Result<()> {
    bind(0, cpus)
}

/// Binds any thread to these CPUs; threads that it creates from then on inherit the binding.
///
/// # Errors
/// No such thread; another user's without `CAP_SYS_NICE`; none of the CPUs may be used by it.
pub fn bind(tid: u32, cpus: &[u32]) -> io::Result<()> {
    apply(tid, &mask(cpus))
}

/// The CPU that the calling thread runs on just now.
#[must_use]
pub fn current_cpu() -> u32 {
    // SAFETY: takes no arguments; an error, which current kernels do not return, reads as CPU 0.
    u32::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// Makes `command` start on these CPUs only.
pub fn before_exec(cpus: &[u32], command: &mut Command) {
    let mask = mask(cpus);
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(move || apply(0, &mask)) };
}

pub(crate) fn mask(cpus: &[u32]) -> [u64; WORDS] {
    let mut words = [0u64; WORDS];
    for cpu in cpus.iter().filter(|c| **c < CPUS as u32) {
        words[*cpu as usize / 64] |= 1 << (cpu % 64);
    }
    words
}

pub(crate) fn apply(tid: u32, words: &[u64; WORDS]) -> io::Result<()> {
    // SAFETY: the kernel reads the given number of bytes.
    match unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            tid,
            size_of_val(words),
            words.as_ptr(),
        )
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_a_cpu_to_run_on() {
        assert!(!super::allowed_cpus().unwrap().is_empty());
    }

    #[test]
    fn another_thread_is_bound_and_let_go() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let work = move || {
            // SAFETY: takes nothing.
            sender.send(unsafe { libc::gettid() } as u32).unwrap();
            let _ = ended.recv();
        };
        let thread = std::thread::spawn(work);
        let tid = receiver.recv().unwrap();
        let before = super::cpus_of(tid).unwrap();
        super::bind(tid, &before[..1]).unwrap();
        assert_eq!(super::cpus_of(tid).unwrap(), before[..1]);
        assert_eq!(super::allowed_cpus().unwrap(), before, "others are left alone");
        super::bind(tid, &before).unwrap();
        assert_eq!(super::cpus_of(tid).unwrap(), before);
        drop(end);
        thread.join().unwrap();
    }
}
