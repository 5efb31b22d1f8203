//! Waits for a word in shared memory to change.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps until the word's waiters are woken, the word differs from `seen`, or the timeout; may return spuriously.
pub fn wait(word: &AtomicU32, seen: u32, at_most: Duration) {
    let timeout = libc::timespec {
        tv_sec: at_most.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(at_most.subsec_nanos()),
    };
    // SAFETY: the word and the timeout outlive the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, &timeout) };
}

/// Wakes all waiters of the word, in any process.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the word outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::SeqCst;

    #[test]
    fn a_word_that_has_changed_is_not_waited_for() {
        let word = AtomicU32::new(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                word.store(2, SeqCst);
                wake(&word);
            });
            while word.load(SeqCst) == 1 {
                wait(&word, 1, Duration::from_secs(60));
            }
        });
        wait(&word, 1, Duration::from_secs(3600));
    }
}
