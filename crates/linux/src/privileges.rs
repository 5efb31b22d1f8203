//! Drops the capabilities of a process that handles untrusted input, and lowers its scheduling priority.

use std::io;

/// `_LINUX_CAPABILITY_VERSION_3` (include/uapi/linux/capability.h): two words each.
const VERSION_3: u32 = 0x2008_0522;
const PR_CAP_AMBIENT: i32 = 47;
const PR_CAP_AMBIENT_CLEAR_ALL: libc::c_ulong = 4;
/// The kernel's last: nobody gives way to us.
const NICEST: i32 = 19;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// Gives up all capabilities of this thread and of those it starts, and the way to new ones. The user stays who it
/// is. Call it before starting other threads.
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

/// Lets this thread, and those it starts, run only when nobody else wants to.
pub fn stand_back() {
    give_way(NICEST);
}

/// Lets this thread, and those it starts, have at least this niceness: where all CPUs are busy, one of 10 gets a tenth of
/// one beside a thread of the usual priority.
pub fn give_way(niceness: i32) {
    // SAFETY: takes numbers alone. To be nicer is always allowed. No error is told apart from -1, which is less.
    unsafe {
        if libc::getpriority(libc::PRIO_PROCESS, 0) < niceness {
            libc::setpriority(libc::PRIO_PROCESS, 0, niceness);
        }
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
            give_way(10);
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
            stand_back();
            give_way(10);
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
