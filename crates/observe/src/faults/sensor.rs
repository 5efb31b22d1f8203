//! What brings about the page faults that are samples.

use super::here::{NotHere, check};
use nodewise_linux::Host;
use nodewise_linux::userfaultfd::{self, Refusal};

const NAME: &str = "userfaultfd";

/// What the user is told of [`Sensor::Userfaultfd`].
pub const SETS_ASIDE: &str = "accesses are sampled by userfaultfd: pages are taken out of the program one by one, for up to 50 ms, \
                              and put back when it accesses them (docs/sensors.md)";

/// What makes accesses to pages in memory fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sensor {
    /// The first of the others that works.
    #[default]
    Auto,
    /// The kernel's automatic NUMA balancing: cheapest, and nothing is done to the program; the kernel moves pages by itself.
    HintFaults,
    /// Pages are set aside one by one (Linux 6.8, root): works where NUMA balancing is switched off.
    Userfaultfd,
}

impl Sensor {
    /// As on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::HintFaults => "hint-faults",
            Self::Userfaultfd => NAME,
        }
    }

    /// The one that is used.
    ///
    /// # Errors
    /// It does not work here; of [`Sensor::Auto`], none does.
    pub fn choose(self, host: &Host) -> Result<Self, NotHere> {
        match self {
            Self::HintFaults => check(host).map(|()| self),
            Self::Userfaultfd => user_faults().map(|()| self),
            Self::Auto => check(host).map(|()| Self::HintFaults).or_else(|hint_faults| {
                // The remedy for the first is the easier one.
                user_faults().map(|()| Self::Userfaultfd).map_err(|_| hint_faults)
            }),
        }
    }
}

/// Checks whether pages can be set aside here.
///
/// # Errors
/// They cannot; the error says why.
pub fn user_faults() -> Result<(), NotHere> {
    userfaultfd::works().map_err(|error| because(&error))
}

fn because(refusal: &Refusal) -> NotHere {
    let (because, remedy) = match refusal {
        Refusal::NotPermitted => ("it needs CAP_SYS_PTRACE", "run as root"),
        Refusal::OldKernel => ("this kernel does not move pages with it", "Linux 6.8 or newer"),
        Refusal::NoUserfaultfd => ("this kernel has none", "a kernel with CONFIG_USERFAULTFD"),
        other => return NotHere::of(NAME, format!("{other:?}"), ""),
    };
    NotHere::of(NAME, because, remedy)
}

/// Why a process cannot be sampled.
pub fn not_entered(host: &Host, pid: u32, refusal: &Refusal) -> NotHere {
    let (because, remedy) = match refusal {
        Refusal::NotPermitted => match tracer(host, pid) {
            Some(tracer) => (
                format!("process {pid} is traced by process {tracer} (a debugger, strace)"),
                "end that first",
            ),
            None => (
                format!("process {pid} may not open one"),
                "if it is not root's, sysctl vm.unprivileged_userfaultfd=1; if its system calls are filtered (a container), CAP_SYS_ADMIN",
            ),
        },
        Refusal::Not64Bit => (format!("process {pid} is no 64-bit program"), ""),
        Refusal::NotInterrupted => (
            format!("no thread of process {pid} could be interrupted"),
            "try again",
        ),
        Refusal::NoMemory => (format!("process {pid} may map no more memory"), ""),
        Refusal::Gone => (format!("process {pid} has ended"), ""),
        Refusal::Other(error) => (format!("process {pid}: {error}"), ""),
        _ => return because(refusal),
    };
    NotHere::of(NAME, because, remedy)
}

/// Why a process is better left alone: what it does with its memory cannot wait for a page (docs/sensors.md).
pub fn left_alone(host: &Host, pid: u32) -> Option<NotHere> {
    let names = host.names(&format!("proc/{pid}/fd")).unwrap_or_default();
    let opens = |name: &String| {
        let target = std::fs::read_link(host.proc().join(format!("{pid}/fd/{name}"))).ok()?;
        let target = target.to_string_lossy().into_owned();
        (target.starts_with("/dev/vfio/") || target == "anon_inode:[userfaultfd]").then_some(target)
    };
    let what = names.iter().find_map(opens)?;
    Some(NotHere::of(
        NAME,
        format!("process {pid} has {what} open: devices use its memory, or it handles page faults itself"),
        "sysctl kernel.numa_balancing=1, and --sensor hint-faults",
    ))
}

/// Why a process is not sampled any more: where its pages belong could not be told for sure.
pub fn moves_memory(pid: u32) -> NotHere {
    NotHere::of(
        NAME,
        format!("several threads of process {pid} move its memory (mremap) at the same time"),
        "sysctl kernel.numa_balancing=1, and --sensor hint-faults",
    )
}

/// The process that traces another.
fn tracer(host: &Host, pid: u32) -> Option<u32> {
    let text = host.read(&format!("proc/{pid}/status")).ok()?;
    let tracer = text.lines().find_map(|line| line.strip_prefix("TracerPid:"))?;
    tracer.trim().parse().ok().filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_it_does_not_work_is_said_with_the_remedy() {
        assert_eq!(
            because(&Refusal::OldKernel).to_string(),
            "userfaultfd: not here, because this kernel does not move pages with it; remedy: Linux 6.8 or newer"
        );
        let empty = Host::at(std::path::Path::new("/nowhere"));
        assert_eq!(left_alone(&empty, 7), None);
        let process = not_entered(&empty, 7, &Refusal::NotPermitted).to_string();
        assert!(process.contains("vm.unprivileged_userfaultfd=1"), "{process}");
    }
}
