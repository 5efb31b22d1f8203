//! What each node's memory is used for: `meminfo` and the pools of huge pages below `/sys/devices/system/node/nodeN`.

use nodewise_linux::Host;
use serde::Serialize;

/// The memory of a node, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeUse {
    /// The kernel's number of the node.
    pub node: u32,
    /// All memory that the node has.
    pub total: u64,
    /// Memory that is not used for anything.
    pub free: u64,
    /// Pages of files and shared memory.
    pub file_pages: u64,
    /// Of these, shared memory: `tmpfs`, memfds, System V segments.
    pub shared_memory: u64,
    /// Of the file pages, mapped by processes.
    pub mapped: u64,
    /// Pages of files on the kernel's list of inactive ones, which it drops first.
    pub inactive_file: u64,
    /// In pools of huge pages of all sizes.
    pub huge_pool: u64,
    /// Of that, not in use.
    pub huge_free: u64,
}

impl NodeUse {
    /// All nodes of a host that have a `meminfo`, ascending.
    #[must_use]
    pub fn all(host: &Host) -> Vec<Self> {
        let names = host.names("sys/devices/system/node").unwrap_or_default();
        let numbers = names.iter().filter_map(|n| n.strip_prefix("node")?.parse().ok());
        let mut all: Vec<Self> = numbers.filter_map(|node| Self::read(host, node)).collect();
        all.sort_unstable_by_key(|n| n.node);
        all
    }

    fn read(host: &Host, node: u32) -> Option<Self> {
        let below = format!("sys/devices/system/node/node{node}");
        let mut found = Self::parse(node, &host.read(&format!("{below}/meminfo")).ok()?);
        for pool in host.names(&format!("{below}/hugepages")).unwrap_or_default() {
            let size = pool
                .strip_prefix("hugepages-")
                .and_then(|s| s.strip_suffix("kB")?.parse::<u64>().ok());
            let pages = |name: &str| {
                let line = host.line(&format!("{below}/hugepages/{pool}/{name}"));
                line.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0)
            };
            let bytes = |pages: u64| pages.saturating_mul(size.unwrap_or(0)).saturating_mul(1024);
            found.huge_pool += bytes(pages("nr_hugepages"));
            found.huge_free += bytes(pages("free_hugepages"));
        }
        Some(found)
    }

    /// `Node 0 MemTotal:       24604592 kB`; lines it does not know are skipped.
    fn parse(node: u32, text: &str) -> Self {
        let mut found = Self {
            node,
            ..Self::default()
        };
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace().skip(2);
            let (Some(key), Some(value)) = (words.next(), words.next()) else {
                continue;
            };
            let bytes = value.parse::<u64>().unwrap_or(0).saturating_mul(1024);
            match key {
                "MemTotal:" => found.total = bytes,
                "MemFree:" => found.free = bytes,
                "FilePages:" => found.file_pages = bytes,
                "Shmem:" => found.shared_memory = bytes,
                "Mapped:" => found.mapped = bytes,
                "Inactive(file):" => found.inactive_file = bytes,
                _ => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read() {
        let text = "Node 3 MemTotal:       1000 kB\nNode 3 MemFree:  10 kB\nNode 3 FilePages: 500 kB\n\
            Node 3 Inactive(file): 400 kB\nNode 3 Shmem: 7 kB\nodd\nNode 3 Mapped:  x kB\n";
        let node = NodeUse::parse(3, text);
        assert_eq!((node.node, node.total, node.free), (3, 1_024_000, 10_240));
        assert_eq!(
            (node.file_pages, node.inactive_file, node.shared_memory),
            (512_000, 409_600, 7168)
        );
        assert_eq!(node.mapped, 0);
    }

    #[test]
    fn this_host_has_memory() {
        let nodes = NodeUse::all(&Host::default());
        assert!(
            nodes
                .iter()
                .all(|n| n.free <= n.total && n.huge_free <= n.huge_pool)
        );
    }
}
