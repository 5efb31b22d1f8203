//! Where all pages of a process are.

use nodewise_linux::numa_maps::Range;
use nodewise_linux::pagemap::Pagemap;
use nodewise_linux::{Host, pages};
use nodewise_profile::{BASE_PAGE_SHIFT, BASE_PAGE_SIZE};
use std::collections::BTreeMap;

/// Pages queried in one call.
const QUERY: usize = 4096;
/// What `numa_maps` shows of memory whose pages the kernel samples: no policy, or one with `MPOL_F_NUMA_BALANCING`.
const SAMPLED: [&str; 2] = ["default", "=balancing"];

/// The memory of a process that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// Private memory that may be written, without memory for which the program has set a policy: what hint faults sample.
    Sampled,
    /// All private memory that may be written.
    Private,
    /// All mapped memory but code: also shared memory, and files that are only read.
    Mapped,
}

/// Addresses of the pages in memory of a process, ascending, the first `most` of them, with the kernel's number of their nodes; of
/// larger pages (`1 << shift` bytes) the first part that is in memory. The node is unknown while a hint fault is due before
/// Linux 6.6.
pub fn residents(host: &Host, pid: u32, shift: u32, looked: Looked, most: usize) -> Vec<(u64, Option<u32>)> {
    let (Ok(areas), Ok(ranges), Ok(pagemap)) = (host.maps(pid), host.numa_maps(pid), Pagemap::of(pid)) else {
        return Vec::new(); // the process has ended
    };
    let ranges: BTreeMap<u64, Range> = ranges.into_iter().map(|r| (r.start, r)).collect();
    let observed = |start: u64| {
        ranges.get(&start).is_some_and(|r| {
            let sampled = || SAMPLED.iter().any(|policy| r.policy.contains(policy));
            r.page_size == BASE_PAGE_SIZE && !r.pages.is_empty() && (looked != Looked::Sampled || sampled())
        })
    };
    let permitted = |permissions: &str| match looked {
        Looked::Mapped => permissions.starts_with('r') && !permissions.contains('x'),
        _ => permissions == "rw-p",
    };
    let mut addresses: Vec<u64> = Vec::new();
    for area in areas
        .iter()
        .filter(|a| permitted(&a.permissions) && observed(a.start))
    {
        let (first, count) = (
            area.start >> BASE_PAGE_SHIFT,
            (area.end - area.start) >> BASE_PAGE_SHIFT,
        );
        let read = pagemap.resident(first, count, |page| {
            let address = page << BASE_PAGE_SHIFT;
            let is_new = addresses
                .last()
                .is_none_or(|last| last >> shift != address >> shift);
            if is_new && addresses.len() < most {
                addresses.push(address);
            }
        });
        if read.is_err() {
            return Vec::new();
        }
        if addresses.len() == most {
            break;
        }
    }
    let mut found = Vec::with_capacity(addresses.len());
    for some in addresses.chunks(QUERY) {
        let statuses = pages::query(pid, some).unwrap_or_default();
        let nodes = some.iter().zip(statuses);
        found.extend(nodes.map(|(address, status)| (*address, status.node())));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_found_with_its_node_and_memory_never_touched_is_not() {
        let pages = 64;
        let mut touched = vec![0u8; pages << BASE_PAGE_SHIFT];
        touched.iter_mut().for_each(|byte| *byte = 1);
        let start = touched.as_ptr() as u64;
        let untouched: Vec<u8> = Vec::with_capacity(64 << 20);
        let found = residents(
            &Host::default(),
            std::process::id(),
            BASE_PAGE_SHIFT,
            Looked::Private,
            usize::MAX,
        );
        assert!(found.is_sorted_by(|a, b| a.0 < b.0));
        let within = |start: u64, bytes: u64| {
            found
                .iter()
                .filter(|f| (start..start + bytes).contains(&f.0))
                .count()
        };
        let whole = start.next_multiple_of(BASE_PAGE_SIZE);
        assert_eq!(within(whole, (pages as u64 - 1) << BASE_PAGE_SHIFT), pages - 1);
        assert!(within(untouched.as_ptr() as u64, 64 << 20) < 8);
        let few = residents(
            &Host::default(),
            std::process::id(),
            BASE_PAGE_SHIFT,
            Looked::Private,
            7,
        );
        assert_eq!(few[..], found[..7]);
        let huge = residents(
            &Host::default(),
            std::process::id(),
            21,
            Looked::Mapped,
            usize::MAX,
        );
        assert!(huge.windows(2).all(|two| two[0].0 >> 21 < two[1].0 >> 21));
        assert!(
            residents(
                &Host::default(),
                u32::MAX,
                BASE_PAGE_SHIFT,
                Looked::Sampled,
                usize::MAX
            )
            .is_empty()
        );
    }
}
