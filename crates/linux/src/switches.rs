//! Kernel settings that determine what can be observed and placed.

use crate::Host;

impl Host {
    /// The kernel's release: `6.1.0-18-amd64`.
    #[must_use]
    pub fn kernel_release(&self) -> Option<String> {
        self.line("proc/sys/kernel/osrelease")
    }

    /// Automatic NUMA balancing: 0 off, 1 on, 2 memory tiering; `None` when not built in.
    #[must_use]
    pub fn numa_balancing(&self) -> Option<u32> {
        self.number("proc/sys/kernel/numa_balancing")
    }

    /// Transparent huge pages: `always`, `madvise` or `never`.
    #[must_use]
    pub fn transparent_huge_pages(&self) -> Option<String> {
        let line = self.line("sys/kernel/mm/transparent_hugepage/enabled")?;
        let chosen = line.split_once('[')?.1.split_once(']')?.0;
        Some(chosen.to_owned())
    }

    /// Who may use performance events: 2 and below let a user watch their own processes.
    #[must_use]
    pub fn perf_event_paranoid(&self) -> Option<i32> {
        self.line("proc/sys/kernel/perf_event_paranoid")?.parse().ok()
    }

    /// Yama's restriction on looking into processes; 0 where Yama is absent.
    #[must_use]
    pub fn ptrace_scope(&self) -> u32 {
        self.number("proc/sys/kernel/yama/ptrace_scope").unwrap_or(0)
    }

    /// The cgroup version that the memory controller is in.
    #[must_use]
    pub fn memory_cgroup(&self) -> Option<u32> {
        let unified = self.line("sys/fs/cgroup/cgroup.controllers");
        if unified.is_some_and(|line| line.split_whitespace().any(|c| c == "memory")) {
            return Some(2);
        }
        self.names("sys/fs/cgroup/memory")
            .is_ok_and(|n| !n.is_empty())
            .then_some(1)
    }

    fn number(&self, below: &str) -> Option<u32> {
        self.line(below)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bracketed_word_is_the_setting() {
        let root = std::env::temp_dir().join(format!("nodewise-switches-{}", std::process::id()));
        let folder = root.join("sys/kernel/mm/transparent_hugepage");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("enabled"), "always [madvise] never\n").unwrap();
        let host = Host::at(&root);
        assert_eq!(host.transparent_huge_pages().as_deref(), Some("madvise"));
        assert_eq!(
            (host.numa_balancing(), host.ptrace_scope(), host.memory_cgroup()),
            (None, 0, None)
        );
        std::fs::remove_dir_all(root).unwrap();
    }
}
