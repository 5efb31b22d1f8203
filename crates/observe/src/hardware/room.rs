//! How much memory may be taken to measure with.

use nodewise_linux::Host;
use std::path::Path;

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
    groups(host)
        .iter()
        .filter_map(|group| group.left(host))
        .fold(host_wide, u64::min)
}

struct Group {
    limit: String,
    usage: String,
}

impl Group {
    fn left(&self, host: &Host) -> Option<u64> {
        let number = |file: &str| host.line(file)?.parse::<u64>().ok();
        Some(number(&self.limit)?.saturating_sub(number(&self.usage).unwrap_or(0)))
    }
}

/// The memory groups this process is in and those around them, as their files are named inside and outside of a container.
fn groups(host: &Host) -> Vec<Group> {
    let mut all = Vec::new();
    for line in host.read("proc/self/cgroup").unwrap_or_default().lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        // A limit on any group above counts too.
        for path in Path::new(path).ancestors() {
            let path = path.to_string_lossy();
            let path = path.trim_end_matches('/');
            if controllers.is_empty() {
                all.push(Group {
                    limit: format!("sys/fs/cgroup{path}/memory.max"),
                    usage: format!("sys/fs/cgroup{path}/memory.current"),
                });
            } else if controllers.split(',').any(|c| c == "memory") {
                all.push(Group {
                    limit: format!("sys/fs/cgroup/memory{path}/memory.limit_in_bytes"),
                    usage: format!("sys/fs/cgroup/memory{path}/memory.usage_in_bytes"),
                });
            }
        }
    }
    all
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
