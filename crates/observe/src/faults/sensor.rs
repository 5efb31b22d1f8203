//! The mechanisms (sensors) by which accesses are sampled: they make some fault, but for DAMON, which reads accessed bits.

use super::here::{Unavailable, check};
use nodewise_linux::Host;
use nodewise_linux::damon;
use nodewise_linux::userfaultfd::{self, Refusal};

const NAME: &str = "userfaultfd";
const DAMON: &str = "damon";

/// The notice to the user when [`Sensor::Userfaultfd`] is used.
pub const SETS_ASIDE: &str = "accesses are sampled by userfaultfd: pages are taken out of the program one by one, for up to 50 ms, \
                              and put back when it accesses them (docs/sensors.md)";

/// The mechanism by which accesses to resident pages are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sensor {
    /// The first of the following that works.
    #[default]
    Auto,
    /// The kernel's automatic NUMA balancing: cheapest, and leaves the program alone, but the kernel moves pages on its
    /// own.
    HintFaults,
    /// Pages are set aside one by one (Linux 6.8, root): works where NUMA balancing is switched off.
    Userfaultfd,
    /// DAMON counts accesses by region and does not tell who makes them (Linux 5.19, root): for policies that rank pages alone, on all
    /// mapped memory, files that are only read included. Nothing faults.
    Damon,
}

impl Sensor {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::HintFaults => "hint-faults",
            Self::Userfaultfd => NAME,
            Self::Damon => DAMON,
        }
    }

    /// The sensor that is used: itself, or for [`Sensor::Auto`] the first that works.
    ///
    /// # Errors
    /// The sensor does not work here; for [`Sensor::Auto`], none does.
    pub fn choose(self, host: &Host) -> Result<Self, Unavailable> {
        match self {
            Self::HintFaults => check(host).map(|()| self),
            Self::Userfaultfd => user_faults().map(|()| self),
            Self::Damon => damon::works(host)
                .map(|()| self)
                .map_err(|e| damon_unavailable(&e)),
            Self::Auto => check(host).map(|()| Self::HintFaults).or_else(|hint_faults| {
                // The remedy for the missing hint faults is the easier one, so that error is reported.
                user_faults().map(|()| Self::Userfaultfd).map_err(|_| hint_faults)
            }),
        }
    }
}

/// Checks whether pages can be set aside here.
///
/// # Errors
/// The reason why they cannot.
pub fn user_faults() -> Result<(), Unavailable> {
    userfaultfd::works().map_err(|error| because(&error))
}

/// Why DAMON cannot be used, and the remedy.
#[must_use]
pub fn damon_unavailable(refusal: &damon::Refusal) -> Unavailable {
    let (because, remedy) = match refusal {
        damon::Refusal::Missing => (
            "this kernel has none (sysfs)".to_owned(),
            "a kernel of 5.19 or newer with CONFIG_DAMON_VADDR and CONFIG_DAMON_SYSFS",
        ),
        damon::Refusal::NotPermitted => ("it is root's".to_owned(), "run as root"),
        damon::Refusal::InUse => (
            "others use it, whose settings would be lost".to_owned(),
            "end them (damo stop; the kernel's own: /sys/module/damon_*/parameters/enabled), or, if none is left: echo 0 >/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds",
        ),
        damon::Refusal::NoTracepoint => (
            "its reports cannot be read".to_owned(),
            "mount -t tracefs tracefs /sys/kernel/tracing",
        ),
        damon::Refusal::Other(error) => (error.clone(), ""),
    };
    Unavailable::of(DAMON, because, remedy)
}

fn because(refusal: &Refusal) -> Unavailable {
    let (because, remedy) = match refusal {
        Refusal::NotPermitted => ("it needs CAP_SYS_PTRACE", "run as root"),
        Refusal::OldKernel => ("this kernel does not move pages with it", "Linux 6.8 or newer"),
        Refusal::NoUserfaultfd => ("this kernel has none", "a kernel with CONFIG_USERFAULTFD"),
        other => return Unavailable::of(NAME, format!("{other:?}"), ""),
    };
    Unavailable::of(NAME, because, remedy)
}

/// The error for a process that could not be attached.
pub fn not_entered(host: &Host, pid: u32, refusal: &Refusal) -> Unavailable {
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
    Unavailable::of(NAME, because, remedy)
}

/// Why a process must not be sampled: it uses its memory in ways that cannot wait for a page (docs/sensors.md). None if
/// it may be.
pub fn left_alone(host: &Host, pid: u32) -> Option<Unavailable> {
    let names = host.names(&format!("proc/{pid}/fd")).unwrap_or_default();
    let opens = |name: &String| {
        let target = std::fs::read_link(host.proc().join(format!("{pid}/fd/{name}"))).ok()?;
        let target = target.to_string_lossy().into_owned();
        (target.starts_with("/dev/vfio/") || target == "anon_inode:[userfaultfd]").then_some(target)
    };
    let what = names.iter().find_map(opens)?;
    Some(Unavailable::of(
        NAME,
        format!("process {pid} has {what} open: devices use its memory, or it handles page faults itself"),
        "sysctl kernel.numa_balancing=1, and --sensor hint-faults",
    ))
}

/// The reason to stop sampling a process: it was uncertain where its pages belong.
pub fn moves_memory(pid: u32) -> Unavailable {
    Unavailable::of(
        NAME,
        format!("several threads of process {pid} move its memory (mremap) at the same time"),
        "sysctl kernel.numa_balancing=1, and --sensor hint-faults",
    )
}

/// The id of the process that traces this one.
fn tracer(host: &Host, pid: u32) -> Option<u32> {
    let [tracer] = host.status_values(pid, ["TracerPid"]);
    tracer?.parse().ok().filter(|pid| *pid > 0)
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
