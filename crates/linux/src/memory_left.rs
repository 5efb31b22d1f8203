//! How much more memory this process can allocate.

use crate::{ControlGroup, Host};

impl Host {
    /// Bytes that this process can still allocate: the least of the host's available memory, the limits of its control
    /// groups, and its own limits (`ulimit -v`, `ulimit -d`). Limits that the kernel does not report are ignored.
    #[must_use]
    pub fn memory_left(&self) -> u64 {
        let host_wide = self.available_memory().unwrap_or(u64::MAX);
        // Limits of all outer groups count, too. Group names are tried as seen inside and outside of a container.
        let groups = self.control_groups("self", "memory");
        let groups = groups.iter().filter_map(|group| self.left_in(group));
        groups.chain(self.own_limits()).fold(host_wide, u64::min)
    }

    /// The remainder of a group's memory limit; none if it has no limit.
    fn left_in(&self, group: &ControlGroup) -> Option<u64> {
        let number = |file: &str| {
            self.line(&format!("{}/{file}", group.folder))?
                .parse::<u64>()
                .ok()
        };
        let (limit, usage) = match group.unified {
            true => ("memory.max", "memory.current"),
            false => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        };
        Some(number(limit)?.saturating_sub(number(usage).unwrap_or(0)))
    }

    /// The remainders of the process's own limits, if it has any.
    fn own_limits(&self) -> impl Iterator<Item = u64> {
        let text = |file| self.read(file).unwrap_or_default();
        let (limits, status) = (text("proc/self/limits"), text("proc/self/status"));
        let number = |text: &str, key: &str| {
            let line = text.lines().find_map(|l| l.strip_prefix(key))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let kinds = [("Max address space", "VmSize:"), ("Max data size", "VmData:")];
        kinds.into_iter().filter_map(move |(limit, used)| {
            let used = number(&status, used).unwrap_or(0) << 10;
            Some(number(&limits, limit)?.saturating_sub(used))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_counts() {
        let root = std::env::temp_dir().join(format!("nodewise-memory-left-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let host = Host::at(&root);
        assert_eq!(host.memory_left(), u64::MAX);
        write("proc/meminfo", "MemAvailable:    1000 kB\n");
        write("proc/self/cgroup", "4:memory:/a\n0::/b/c\n");
        assert_eq!(host.memory_left(), 1_024_000);
        write("sys/fs/cgroup/b/c/memory.max", "max\n");
        assert_eq!(host.memory_left(), 1_024_000);
        write("sys/fs/cgroup/b/c/memory.max", "600000\n");
        write("sys/fs/cgroup/b/c/memory.current", "100000\n");
        assert_eq!(host.memory_left(), 500_000);
        // A slice above it.
        write("sys/fs/cgroup/b/memory.max", "300000\n");
        write("sys/fs/cgroup/b/memory.current", "100000\n");
        assert_eq!(host.memory_left(), 200_000);
        let limits = "Max data size             unlimited            unlimited            bytes     \n\
                      Max address space         150000               unlimited            bytes     \n";
        write("proc/self/limits", limits);
        write("proc/self/status", "VmSize:\t     100 kB\nVmData:\t      10 kB\n");
        assert_eq!(host.memory_left(), 150_000 - 102_400);
        write("proc/self/limits", &limits.replacen("unlimited", "11264    ", 1));
        assert_eq!(host.memory_left(), 1024);
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "512\n");
        assert_eq!(host.memory_left(), 512);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
