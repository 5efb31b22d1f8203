//! The capacity of the caches of some CPUs.

use nodewise_linux::Host;
use nodewise_machine::parse_bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes assumed if the kernel does not report caches.
const DEFAULT_CACHE_BYTES: u64 = 32 << 20;

/// Bytes of all caches of level two and above of these CPUs, each counted once.
pub(super) fn caches(host: &Host, cpus: &[u32]) -> u64 {
    let all = by_level(host, cpus).range(2..).map(|(_, bytes)| bytes).sum();
    if all == 0 { DEFAULT_CACHE_BYTES } else { all }
}

/// Bytes of all last-level caches of these CPUs together; `None` if the kernel does not report any.
#[must_use]
pub fn last_level(host: &Host, cpus: &[u32]) -> Option<u64> {
    by_level(host, cpus)
        .range(2..)
        .next_back()
        .map(|(_, bytes)| *bytes)
}

/// Bytes of the caches of these CPUs by level, each counted once.
fn by_level(host: &Host, cpus: &[u32]) -> BTreeMap<u32, u64> {
    let (mut seen, mut levels) = (BTreeSet::new(), BTreeMap::new());
    for cpu in cpus {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache");
        let names = host.names(&folder).unwrap_or_default();
        for index in names.iter().filter(|name| name.starts_with("index")) {
            let line = |file: &str| host.line(&format!("{folder}/{index}/{file}"));
            let level = line("level").and_then(|l| l.parse::<u32>().ok()).unwrap_or(0);
            let size = line("size").and_then(|s| parse_bytes(&s)).unwrap_or(0);
            if size > 0 && seen.insert((level, line("shared_cpu_list").unwrap_or_default())) {
                *levels.entry(level).or_default() += size;
            }
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_cache_counts_once_and_the_first_level_not() {
        let root = std::env::temp_dir().join(format!("nodewise-caches-{}", std::process::id()));
        for (cpu, index, level, size, shared) in [
            (0, 0, "1", "32K", "0"),
            (0, 2, "2", "1M", "0"),
            (0, 3, "3", "16M", "0-1"),
            (1, 2, "2", "1M", "1"),
            (1, 3, "3", "16M", "0-1"),
        ] {
            let folder = root.join(format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}"));
            std::fs::create_dir_all(&folder).unwrap();
            for (file, text) in [("level", level), ("size", size), ("shared_cpu_list", shared)] {
                std::fs::write(folder.join(file), text).unwrap();
            }
        }
        let host = Host::at(&root);
        assert_eq!(caches(&host, &[0, 1]), 18 << 20);
        assert_eq!(caches(&host, &[1]), 17 << 20);
        assert_eq!(caches(&host, &[7]), DEFAULT_CACHE_BYTES);
        assert_eq!(
            [last_level(&host, &[0, 1]), last_level(&host, &[7])],
            [Some(16 << 20), None]
        );
        std::fs::remove_dir_all(&root).unwrap();
    }
}
