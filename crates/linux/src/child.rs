//! A child process that its parent stands in for: signals go on to it, its status comes back.

use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// What a shell's user or a batch system sends; the rest end us as they would end anybody.
const FORWARDED: [libc::c_int; 8] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGCONT,
    libc::SIGWINCH,
];

/// A running child whose signals we forward.
pub struct Forwarding {
    child: Child,
    before: libc::sigset_t,
}

impl Forwarding {
    /// Starts `command`; from here to [`Forwarding::wait`]'s end this thread takes no signals itself.
    /// Call it before starting other threads, or signals may reach those.
    ///
    /// # Errors
    /// The command cannot be started: the error of `fork` or `exec`.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let before = block(&watched())?;
        // SAFETY: between fork and exec, one system call on a copy of the mask.
        unsafe { command.pre_exec(move || restore(&before)) };
        match command.spawn() {
            Ok(child) => Ok(Self { child, before }),
            Err(error) => {
                restore(&before)?;
                Err(error)
            }
        }
    }

    /// The child's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end, forwarding signals; calls `look` after `pause`, which returns the next one.
    ///
    /// # Errors
    /// The child cannot be waited for.
    pub fn wait(
        mut self,
        mut pause: Duration,
        mut look: impl FnMut(u32) -> Duration,
    ) -> io::Result<ExitStatus> {
        let watched = watched();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            match next_signal(&watched, pause) {
                Some(information) => self.forward(&information),
                None => pause = look(self.child.id()),
            }
        };
        restore(&self.before)?;
        Ok(status)
    }

    fn forward(&self, information: &libc::siginfo_t) {
        // The terminal's own signals reach the whole group, the child included.
        if information.si_signo == libc::SIGCHLD || information.si_code == libc::SI_KERNEL {
            return;
        }
        // SAFETY: a plain system call; the child is not reaped yet, so its id is still its own.
        unsafe { libc::kill(self.child.id() as libc::pid_t, information.si_signo) };
    }
}

/// Makes what `command` starts depend on this thread: it is killed when the thread ends, however that
/// happens. It gets a process group of its own, so that a terminal's Ctrl-C does not reach it, and
/// keeps the descriptors `inherited`, under their numbers.
pub fn depend(command: &mut Command, inherited: Vec<RawFd>) -> &mut Command {
    let parent = std::process::id() as libc::pid_t;
    let before_exec = move || {
        // SAFETY: between fork and exec, system calls only; the descriptors are open, as the caller
        // says, or the call fails.
        unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 || libc::setpgid(0, 0) != 0 {
                return Err(io::Error::last_os_error());
            }
            if libc::getppid() != parent {
                libc::_exit(125); // the parent died before it could have been noticed
            }
            for descriptor in &inherited {
                if libc::fcntl(*descriptor, libc::F_SETFD, 0) != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(before_exec) }
}

/// A status as a shell gives it: 128 and the signal's number for a child that was killed.
#[must_use]
pub fn shell_status(status: ExitStatus) -> u8 {
    let number = status
        .code()
        .or_else(|| status.signal().map(|s| 128 + s))
        .unwrap_or(255);
    number as u8
}

fn watched() -> libc::sigset_t {
    // SAFETY: an all-zero set is a valid argument to sigemptyset, which makes it whole.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a valid set, the numbers are valid signals.
    unsafe {
        libc::sigemptyset(&mut set);
        for signal in FORWARDED.into_iter().chain([libc::SIGCHLD]) {
            libc::sigaddset(&mut set, signal);
        }
    }
    set
}

fn block(set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    // SAFETY: an all-zero set is a valid place for the old mask.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: both sets are valid.
    match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, set, &mut before) } {
        0 => Ok(before),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn restore(before: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: `before` is a valid set; the old mask is not wanted.
    match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn next_signal(set: &libc::sigset_t, pause: Duration) -> Option<libc::siginfo_t> {
    let pause = libc::timespec {
        tv_sec: pause.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(pause.subsec_nanos()),
    };
    // SAFETY: an all-zero siginfo is a valid place for the answer.
    let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: all three pointers are valid for the call.
    let signal = unsafe { libc::sigtimedwait(set, &mut information, &pause) };
    (signal > 0).then_some(information)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> u8 {
        let child = Forwarding::start(Command::new("/bin/sh").args(["-c", script])).unwrap();
        shell_status(
            child
                .wait(Duration::from_secs(1), |_| Duration::from_secs(1))
                .unwrap(),
        )
    }

    #[test]
    fn statuses_pass_through() {
        assert_eq!(run("exit 0"), 0);
        assert_eq!(run("exit 7"), 7);
        assert_eq!(run("kill -9 $$"), 137);
    }

    #[test]
    fn a_dependent_child_dies_with_its_thread() {
        let start = || {
            depend(Command::new("/bin/sleep").arg("600"), Vec::new())
                .spawn()
                .unwrap()
        };
        let mut child = std::thread::spawn(start).join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }

    #[test]
    fn a_dependent_child_keeps_only_the_descriptors_named() {
        use std::os::fd::AsRawFd;
        let (kept, lost) = (
            std::fs::File::open("/").unwrap(),
            std::fs::File::open("/").unwrap(),
        );
        let script = format!(
            "test -e /dev/fd/{} && ! test -e /dev/fd/{}",
            kept.as_raw_fd(),
            lost.as_raw_fd()
        );
        let mut command = Command::new("/bin/sh");
        let command = depend(command.args(["-c", &script]), vec![kept.as_raw_fd()]);
        assert!(command.status().unwrap().success());
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let error = Forwarding::start(&mut Command::new("/nonexistent/program"))
            .err()
            .unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
