//! Whether standard output was open when this process began.
//!
//! Rust's start-up opens `/dev/null` in the place of a standard descriptor that is closed, and whatever is written there
//! succeeds. Afterwards that cannot be told from a `/dev/null` that the user asked for, so it is looked at before, among
//! the executable's initialisers, which the loader calls ahead of `main`.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether there was no standard output: what is written to it since goes nowhere.
#[must_use]
pub fn was_closed() -> bool {
    CLOSED.load(Relaxed)
}

extern "C" fn look() {
    // SAFETY: asks for a descriptor's flags and changes nothing.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED.store(flags == -1, Relaxed);
}

// SAFETY: the section holds addresses of functions without arguments, and this one needs nothing of Rust's start-up.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;
