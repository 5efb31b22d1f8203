//! Runs a child process: forwards signals to it and returns its exit status.

use crate::signals::{self, Signal, Signals};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Signals that a shell's user or a batch system sends; all others have their usual effect on us.
const FORWARDED: [i32; 8] = [
    signals::SIGHUP,
    signals::SIGINT,
    signals::SIGQUIT,
    signals::SIGTERM,
    signals::SIGUSR1,
    signals::SIGUSR2,
    signals::SIGCONT,
    signals::SIGWINCH,
];

/// A running child whose signals we forward.
pub struct Forwarding {
    child: Child,
    signals: Signals,
}

/// An event of a child process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The child has ended.
    Ended(ExitStatus),
    /// A signal that is not forwarded to the child.
    Kept(i32),
    /// Nothing happened within the pause.
    Nothing,
}

impl Forwarding {
    /// Starts `command`. Until [`Forwarding::wait`] returns, signals to this thread are forwarded instead of acting on
    /// it. Call it before starting other threads, or signals may reach those.
    ///
    /// # Errors
    /// The command cannot be started: the error of `fork` or `exec`.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut watched = FORWARDED.to_vec();
        watched.push(signals::SIGCHLD);
        let signals = Signals::block(&watched)?;
        signals.before_exec(command);
        let child = command.spawn()?;
        Ok(Self { child, signals })
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
        loop {
            match self.next(pause, &[])? {
                Event::Ended(status) => return Ok(status),
                Event::Kept(_) => {}
                Event::Nothing => pause = look(self.child.id()),
            }
        }
    }

    /// Waits for an event, at most `pause`. Signals are forwarded to the child except for those in `kept`.
    ///
    /// # Errors
    /// The child cannot be waited for.
    pub fn next(&mut self, pause: Duration, kept: &[i32]) -> io::Result<Event> {
        let until = Instant::now() + pause;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Event::Ended(status));
            }
            match self.signals.wait(until.saturating_duration_since(Instant::now())) {
                Some(signal) if kept.contains(&signal.number) => return Ok(Event::Kept(signal.number)),
                Some(signal) => self.forward(signal),
                None => return Ok(Event::Nothing),
            }
        }
    }

    /// Signals from the terminal reach the whole process group, including the child. The child has not been reaped yet,
    /// so its id is still valid.
    fn forward(&self, signal: Signal) {
        if !signal.by_kernel {
            signals::send(self.child.id(), signal.number);
        }
    }
}

/// CPU time of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In their own code.
    pub user: Duration,
    /// In the kernel on their behalf.
    pub system: Duration,
}

impl CpuTime {
    /// CPU time in both.
    #[must_use]
    pub fn total(self) -> Duration {
        self.user + self.system
    }

    /// What was used since an earlier look.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user: self.user.saturating_sub(earlier.user),
            system: self.system.saturating_sub(earlier.system),
        }
    }
}

/// CPU time of all children that have ended and were waited for, and of their descendants in the same way.
#[must_use]
pub fn cpu_of_ended() -> CpuTime {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the structure is ours, plain data, and zeros are valid should the call fail, which it cannot.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let time = |t: libc::timeval| {
        Duration::from_secs(u64::try_from(t.tv_sec).unwrap_or(0))
            + Duration::from_micros(u64::try_from(t.tv_usec).unwrap_or(0))
    };
    CpuTime {
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
    }
}

/// Makes the process that `command` starts depend on this thread: it is killed when the thread ends for any reason. It
/// gets its own process group, so that a terminal's Ctrl-C does not reach it, and keeps the descriptors `inherited`
/// under their numbers.
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

/// An exit status as a shell reports it: 128 plus the signal's number for a child that was killed.
#[must_use]
pub fn shell_status(status: ExitStatus) -> u8 {
    let number = status
        .code()
        .or_else(|| status.signal().map(|s| 128 + s))
        .unwrap_or(255);
    number as u8
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
