//! Whether standard output was open when this process began.
//!
//! Rust's start-up code opens `/dev/null` in place of a closed standard descriptor, and writes to it succeed.
//! Afterwards this cannot be distinguished from a `/dev/null` that the user asked for. So the check is made earlier, in
//! an initialiser of the executable, which the loader calls before `main`.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether there was no standard output, so that output is lost.
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
