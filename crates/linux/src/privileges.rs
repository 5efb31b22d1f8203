//! Drops the capabilities of a process that handles untrusted input, and lowers its scheduling priority.

use std::io;

/// `_LINUX_CAPABILITY_VERSION_3` (include/uapi/linux/capability.h): two words each.
const VERSION_3: u32 = 0x2008_0522;
const PR_CAP_AMBIENT: i32 = 47;
const PR_CAP_AMBIENT_CLEAR_ALL: libc::c_ulong = 4;
/// The highest niceness of the kernel: no other process yields to us.
const NICEST: i32 = 19;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// Gives up all capabilities of this thread and of threads that it starts, and the ability to gain new ones. The user
/// id stays. Call it before starting other threads.
///
/// # Errors
/// As the kernel answers; then some may be left.
pub fn give_up() -> io::Result<()> {
    let header = Header {
        version: VERSION_3,
        pid: 0,
    };
    let none = [[0_u32; 3]; 2];
    // SAFETY: takes numbers alone, or lives in this frame for the call; the kernel reads the structures of its
    // version 3.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        // Kernels before 4.3 know no such set.
        libc::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        match libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Makes this thread, and those it starts, run only when no other thread wants the CPU.
pub fn run_when_idle() {
    set_niceness(NICEST);
}

/// The niceness of this thread.
#[must_use]
pub fn niceness() -> i32 {
    // SAFETY: passes only numbers. An error reads as -1, which is a niceness too.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
}

/// Gives this thread a lower niceness, if it has the privilege (`CAP_SYS_NICE` or `RLIMIT_NICE`); else it stays.
pub fn lower_niceness(niceness: i32) {
    // SAFETY: passes only numbers.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, niceness) };
}

/// Gives this thread, and those it starts, at least this niceness. On busy CPUs, a thread of niceness 10 gets a tenth
/// of the time of one with the usual niceness.
pub fn set_niceness(niceness: i32) {
    if self::niceness() < niceness {
        // SAFETY: passes only numbers. Raising niceness is always allowed.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, niceness) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host;

    #[test]
    fn nothing_is_left_and_nothing_comes_back() {
        let after = std::thread::spawn(|| {
            give_up().unwrap();
            set_niceness(10);
            let nice = |stat: String| {
                stat.rsplit(") ")
                    .next()
                    .unwrap()
                    .split(' ')
                    .nth(16)
                    .unwrap()
                    .to_owned()
            };
            assert_eq!(nice(Host::default().read("proc/thread-self/stat").unwrap()), "10");
            run_when_idle();
            set_niceness(10);
            let text = Host::default().read("proc/thread-self/status").unwrap();
            let stat = Host::default().read("proc/thread-self/stat").unwrap();
            (text, stat)
        });
        let (text, stat) = after.join().unwrap();
        let value = |key: &str| {
            text.lines()
                .find_map(|l| l.strip_prefix(key))
                .unwrap()
                .trim()
                .to_owned()
        };
        for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
            assert_eq!(value(set).trim_start_matches('0'), "", "{set}");
        }
        assert_eq!(value("NoNewPrivs:"), "1");
        // Field 19, counted from behind the name in brackets.
        let nice = stat.rsplit(") ").next().unwrap().split(' ').nth(16).unwrap();
        assert_eq!(nice, "19");
    }
}
