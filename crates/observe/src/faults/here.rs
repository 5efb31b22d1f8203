//! Checks whether hint faults can be observed on this host.

use nodewise_linux::Host;
use nodewise_linux::process::Capability;
use std::fmt;
use std::io;

/// Why accesses cannot be sampled, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Unavailable {
    what: &'static str,
    because: String,
    remedy: String,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: not here, because {}", self.what, self.because)?;
        if self.remedy.is_empty() {
            Ok(())
        } else {
            write!(f, "; remedy: {}", self.remedy)
        }
    }
}

impl Unavailable {
    pub(super) fn new(because: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::of("hint faults", because, remedy)
    }

    /// The same for a named sensor.
    pub(super) fn of(what: &'static str, because: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            what,
            because: because.into(),
            remedy: remedy.into(),
        }
    }

    /// The reason, as part of a sentence.
    #[must_use]
    pub fn because(&self) -> &str {
        &self.because
    }

    /// What the user can do about it; empty if nothing.
    #[must_use]
    pub fn remedy(&self) -> &str {
        &self.remedy
    }

    /// The process cannot be inspected.
    pub(super) fn process(host: &Host, pid: u32) -> Self {
        if host.has_process(pid) {
            let because = format!("process {pid} is another user's");
            return Self::of(
                "samples",
                because,
                "run as that user, as root, or with CAP_SYS_PTRACE and CAP_PERFMON",
            );
        }
        Self::of("samples", format!("there is no process {pid}"), "")
    }

    /// The kernel refused events for a control group.
    pub(super) fn group(host: &Host, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            return Self::new(
                "the kernel knows no such control group, or none has a controller yet",
                "echo +pids >/sys/fs/cgroup/cgroup.subtree_control",
            );
        }
        Self::events(host, error)
    }

    /// The kernel refused events.
    pub(super) fn events(host: &Host, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::PermissionDenied {
            let paranoid = host
                .perf_event_paranoid()
                .map_or_else(|| "unknown".to_owned(), |p| p.to_string());
            let because = format!("perf_event_open is not permitted (perf_event_paranoid is {paranoid})");
            return Self::new(because, "sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON");
        }
        if error.raw_os_error() == Some(24) {
            return Self::new(
                "there are too few descriptors for its threads",
                "ulimit -n 65536, or CAP_PERFMON",
            );
        }
        Self::new(format!("perf_event_open: {error}"), "")
    }
}

/// Checks that automatic NUMA balancing is turned on: without it there are no hint faults.
///
/// # Errors
/// It is turned off or missing; the error says why.
pub fn check(host: &Host) -> Result<(), Unavailable> {
    match host.numa_balancing() {
        None => Err(Unavailable::new(
            "this kernel has no automatic NUMA balancing",
            "a kernel with CONFIG_NUMA_BALANCING, or record --via emulate",
        )),
        // The other bit is memory tiering, which does not sample accesses between nodes of equal memory.
        Some(mode) if mode & 1 == 0 => Err(Unavailable::new(
            format!("kernel.numa_balancing is {mode}"),
            "sysctl kernel.numa_balancing=1 (the kernel then also moves pages by itself)",
        )),
        Some(_) => Ok(()),
    }
}

/// Whether we may watch all processes, CPU by CPU. This is cheaper than thread by thread, and the rate can be adapted.
#[must_use]
pub fn sees_everybody(host: &Host) -> bool {
    let status = host.own_status().unwrap_or_default();
    status.has(Capability::Perfmon)
        || status.has(Capability::SysAdmin)
        || host.perf_event_paranoid().is_some_and(|p| p <= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_with_the_remedy() {
        let root = std::env::temp_dir().join(format!("nodewise-here-{}", std::process::id()));
        let folder = root.join("proc/sys/kernel");
        std::fs::create_dir_all(&folder).unwrap();
        let host = Host::at(&root);
        let refusal = check(&host).unwrap_err().to_string();
        assert!(
            refusal.starts_with("hint faults: not here, because this kernel has no automatic"),
            "{refusal}"
        );
        let with = |mode: &str| {
            std::fs::write(folder.join("numa_balancing"), mode).unwrap();
            check(&host)
        };
        for off in ["0", "2"] {
            let refusal = with(off).unwrap_err().to_string();
            assert!(
                refusal.contains(&format!("numa_balancing is {off}; remedy: sysctl")),
                "{refusal}"
            );
        }
        for on in ["1", "3"] {
            assert_eq!(with(on), Ok(()));
        }
        let none = Unavailable::process(&host, 7).to_string();
        assert_eq!(none, "samples: not here, because there is no process 7");
        std::fs::remove_dir_all(root).unwrap();
    }
}
