//! How much memory of a node programs can still get (`/proc/zoneinfo`).

use crate::Host;
use std::collections::BTreeMap;

const PAGE: u64 = 4096;

/// Memory of a node that is not in use, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreeMemory {
    /// Pages that nothing is in.
    pub free: u64,
    /// The inactive part of the file cache, which the kernel drops first when memory is asked for.
    pub inactive_files: u64,
    /// The active part of the file cache.
    pub active_files: u64,
    /// What programs do not get of the free pages: below the high watermark of a zone the kernel reclaims memory, and in low zones
    /// it keeps some more (`lowmem_reserve_ratio`) for allocations that can be made nowhere else.
    pub kept: u64,
}

impl FreeMemory {
    /// Free memory that can be taken without any being reclaimed.
    #[must_use]
    pub fn spare(&self) -> u64 {
        self.free.saturating_sub(self.kept)
    }

    /// Of all nodes, by the kernel's number.
    fn parse(zoneinfo: &str) -> BTreeMap<u32, Self> {
        let (mut node, mut found) = (0, BTreeMap::<u32, Self>::new());
        let (mut free, mut high) = (0, 0);
        for line in zoneinfo.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let bytes = |count: &str| count.parse::<u64>().unwrap_or(0) * PAGE;
            if let ["Node", number, ..] = words[..] {
                node = number.trim_end_matches(',').parse().unwrap_or(u32::MAX);
                continue;
            }
            let memory = found.entry(node).or_default();
            match words[..] {
                ["pages", "free", count] => {
                    (free, high) = (bytes(count), 0);
                    memory.free += free;
                }
                ["nr_inactive_file", count] => memory.inactive_files += bytes(count),
                ["nr_active_file", count] => memory.active_files += bytes(count),
                ["high", count] => {
                    high = bytes(count);
                    memory.kept += high.min(free);
                }
                // By the highest zone that an allocation may be made in; programs' may be made in any.
                ["protection:", ref reserves @ ..] => {
                    let pages = reserves.iter().map(|r| bytes(r.trim_matches(['(', ')', ','])));
                    let kept = high + pages.max().unwrap_or(0);
                    memory.kept += kept.min(free) - high.min(free);
                }
                _ => {}
            }
        }
        found
    }
}

impl Host {
    /// What of each node's memory is free, by the kernel's number of the node; `None` if it does not say.
    #[must_use]
    pub fn free_memory_by_node(&self) -> Option<BTreeMap<u32, FreeMemory>> {
        Some(FreeMemory::parse(&self.read("proc/zoneinfo").ok()?))
    }

    /// Pages of this size, a power of two of bytes, that [can be taken](FreeMemory::spare) on each of these nodes, which go by the
    /// kernel's numbers; `None` if it does not say.
    #[must_use]
    pub fn spare_pages(&self, nodes: impl Iterator<Item = u32>, page_size: u64) -> Option<Vec<u64>> {
        let by_node = self.free_memory_by_node()?;
        let spare = |node| by_node.get(&node).map_or(0, |memory| memory.spare() / page_size);
        Some(nodes.map(spare).collect())
    }

    /// The same of one node.
    #[must_use]
    pub fn free_memory(&self, os_index: u32) -> Option<FreeMemory> {
        let nodes = self.free_memory_by_node()?;
        Some(nodes.get(&os_index).copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_has_is_the_sum_of_its_zones() {
        let text = "Node 0, zone    DMA32\n  per-node stats\n      nr_inactive_file 100\n      nr_active_file 20\n  \
            pages free     1000\n        min      11\n        high     17\n        protection: (0, 0)\n    pagesets\n    \
            cpu: 0\n              high:  378\nNode 0, zone   Normal\n  pages free     500\n        high     3\nNode 1, \
            zone   Normal\n  pages free     7\n        high     9\n";
        let both = FreeMemory {
            free: 1500 * PAGE,
            inactive_files: 100 * PAGE,
            active_files: 20 * PAGE,
            kept: 20 * PAGE,
        };
        let nodes = FreeMemory::parse(text);
        assert_eq!(nodes[&0], both);
        assert_eq!(both.spare(), 1480 * PAGE);
        assert_eq!(nodes[&1].spare(), 0);
        let low = "Node 0, zone DMA\n pages free 3000\n high 10\n protection: (0, 900, 2000, 2000)\nNode 0, zone DMA32\n pages free \
            500\n high 20\n protection: (0, 0, 1100, 1100)\nNode 0, zone Normal\n pages free 40\n high 30\n protection: (0, 0, 0, 0)\n";
        let low = FreeMemory::parse(low)[&0];
        assert_eq!((low.free, low.spare()), (3540 * PAGE, (990 + 10) * PAGE));
        assert_eq!(nodes.get(&2), None);
    }
}
