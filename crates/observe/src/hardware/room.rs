//! How much memory of a node may be used for measurements.

use nodewise_linux::Host;

/// Bytes of a node that programs could get at once: free memory, and the inactive file cache.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_what_is_free_and_what_files_can_give_back() {
        let root = std::env::temp_dir().join(format!("nodewise-room-{}", std::process::id()));
        let node = root.join("sys/devices/system/node/node3");
        std::fs::create_dir_all(&node).unwrap();
        let text = "Node 3 MemFree:  8 kB\nNode 3 Inactive(file):  2 kB\n";
        std::fs::write(node.join("meminfo"), text).unwrap();
        let host = Host::at(&root);
        assert_eq!((free_on(&host, 3), free_on(&host, 4)), (Some(10_240), None));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
