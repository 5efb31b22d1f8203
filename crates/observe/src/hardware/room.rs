//! How much memory may be taken to measure with.

use nodewise_linux::{ControlGroup, Host};

/// Bytes of a node that programs could have at once: free, or pages of files nobody uses.
pub(super) fn free_on(host: &Host, os_index: u32) -> Option<u64> {
    let text = host
        .read(&format!("sys/devices/system/node/node{os_index}/meminfo"))
        .ok()?;
    let kilobytes = |key: &str| {
        let line = text.lines().find_map(|l| l.split_once(key))?.1;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    Some((kilobytes("MemFree:")? + kilobytes("Inactive(file):").unwrap_or(0)) * 1024)
}

/// Bytes that this process can still have: of the whole host, and within its control groups.
pub(super) fn left(host: &Host) -> u64 {
    let host_wide = host.available_memory().unwrap_or(u64::MAX);
    // A limit on any group above counts too; they are named as inside and as outside of a container.
    host.control_groups("self", "memory")
        .iter()
        .filter_map(|group| left_in(host, group))
        .fold(host_wide, u64::min)
}

/// What the memory limit of a group leaves; nothing is said where it has none.
fn left_in(host: &Host, group: &ControlGroup) -> Option<u64> {
    let number = |file: &str| {
        host.line(&format!("{}/{file}", group.folder))?
            .parse::<u64>()
            .ok()
    };
    let (limit, usage) = match group.unified {
        true => ("memory.max", "memory.current"),
        false => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    };
    Some(number(limit)?.saturating_sub(number(usage).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_counts() {
        let root = std::env::temp_dir().join(format!("nodewise-room-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let host = Host::at(&root);
        write("proc/meminfo", "MemAvailable:    1000 kB\n");
        write("proc/self/cgroup", "4:memory:/a\n0::/b/c\n");
        assert_eq!(left(&host), 1_024_000);
        write("sys/fs/cgroup/b/c/memory.max", "max\n");
        assert_eq!(left(&host), 1_024_000);
        write("sys/fs/cgroup/b/c/memory.max", "600000\n");
        write("sys/fs/cgroup/b/c/memory.current", "100000\n");
        assert_eq!(left(&host), 500_000);
        // A slice above it.
        write("sys/fs/cgroup/b/memory.max", "300000\n");
        write("sys/fs/cgroup/b/memory.current", "100000\n");
        assert_eq!(left(&host), 200_000);
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n");
        assert_eq!(left(&host), 4096);
        write(
            "sys/devices/system/node/node3/meminfo",
            "Node 3 MemFree:  8 kB\nNode 3 Inactive(file):  2 kB\n",
        );
        assert_eq!((free_on(&host, 3), free_on(&host, 4)), (Some(10_240), None));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
