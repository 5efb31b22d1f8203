//! Transparent huge pages of a process, from `/proc/PID/smaps` and `smaps_rollup` (proc(5)).

use crate::{Host, ReadError};
use std::collections::BTreeMap;

impl Host {
    /// Bytes of transparent huge pages by the address at which a mapping of the process begins; mappings without any are left
    /// out.
    ///
    /// # Errors
    /// There is no such process, or we may not read its memory map.
    pub fn huge_mappings(&self, pid: u32) -> Result<BTreeMap<u64, u64>, ReadError> {
        Ok(huge_mappings(&self.read(&format!("proc/{pid}/smaps"))?))
    }

    /// Bytes of transparent huge pages of a process. The kernel walks all of its page tables for this, about 10 ns an entry.
    ///
    /// # Errors
    /// There is no such process, or we may not read its memory map.
    pub fn huge_bytes(&self, pid: u32) -> Result<u64, ReadError> {
        let found = huge_mappings(&self.read(&format!("proc/{pid}/smaps_rollup"))?);
        Ok(found.values().sum())
    }
}

fn huge_mappings(smaps: &str) -> BTreeMap<u64, u64> {
    const HUGE: [&str; 3] = ["AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"];
    let (mut mapping, mut found) = (0, BTreeMap::new());
    for line in smaps.lines() {
        let start = line.split_once('-').map(|(start, _)| start);
        if let Some(start) = start.and_then(|s| u64::from_str_radix(s, 16).ok()) {
            mapping = start;
        } else if let Some(size) = HUGE.iter().find_map(|key| line.strip_prefix(key)) {
            let kilobytes: u64 = size.trim().trim_end_matches(" kB").parse().unwrap_or(0);
            if kilobytes > 0 {
                *found.entry(mapping).or_insert(0) += kilobytes * 1024;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_with_huge_pages_are_found_by_their_address() {
        let smaps = "1000-3000 rw-p 0 00:00 0\nRss: 8 kB\nAnonHugePages:      2048 kB\nShmemPmdMapped:     2048 kB\n\
                     3000-4000 rw-p 0 00:00 0 [heap]\nAnonHugePages:         0 kB\n9000-a000 rw-p 0 00:00 0\n";
        assert_eq!(huge_mappings(smaps), BTreeMap::from([(0x1000, 4 << 20)]));
        assert!(Host::default().huge_mappings(std::process::id()).is_ok());
        assert!(Host::default().huge_mappings(u32::MAX).is_err());
    }

    #[test]
    fn huge_pages_of_a_process_are_added_up() {
        let rollup = "1000-ffff ---p 0 00:00 0 [rollup]\nRss: 9000 kB\nAnonHugePages:  4096 kB\nFilePmdMapped: 2048 kB\n";
        assert_eq!(huge_mappings(rollup).values().sum::<u64>(), 6 << 20);
        assert!(Host::default().huge_bytes(std::process::id()).is_ok());
    }
}
