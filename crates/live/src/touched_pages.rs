//! Groups faults by page.

use nodewise_machine::NodeId;
use nodewise_profile::BASE_PAGE_SHIFT;
use std::collections::BTreeMap;
use std::ops::Range;

/// A fault and the page that it was on.
#[derive(Clone, Debug)]
pub struct Touched {
    pub address: u64,
    /// Ids of the process and the thread that faulted.
    pub pid: u32,
    pub tid: u32,
    pub time_ns: u64,
    /// The node of the faulting CPU, if the fault counts as a sample.
    pub node: Option<NodeId>,
    /// Whether the memory is new (first touch).
    pub first: bool,
    /// The part of its mapping that lies in the page, if it is memory that several processes share.
    pub shared: Option<Range<u64>>,
}

/// One touched address of each page, for querying the page's node: other parts of a large page may not be present.
pub fn asked(touches: &[Touched], shift: u32) -> Vec<u64> {
    let by_page: BTreeMap<u64, u64> = touches.iter().map(|t| (t.address >> shift, t.address)).collect();
    by_page
        .into_values()
        .map(|a| a >> BASE_PAGE_SHIFT << BASE_PAGE_SHIFT)
        .collect()
}

/// Start addresses of pages that are new memory, ascending.
pub fn new_pages(touches: &[Touched], shift: u32) -> Vec<u64> {
    let mut pages: Vec<u64> = touches
        .iter()
        .filter(|t| t.first)
        .map(|t| t.address >> shift << shift)
        .collect();
    pages.sort_unstable();
    pages.dedup();
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(address: u64, first: bool) -> Touched {
        Touched {
            address,
            pid: 1,
            tid: 1,
            time_ns: 1,
            node: None,
            first,
            shared: None,
        }
    }

    #[test]
    fn of_a_huge_page_the_touched_part_is_asked_about() {
        let touches = [
            touch(0x20_5123, false),
            touch(0x40_0008, false),
            touch(0x20_7fff, false),
        ];
        assert_eq!(asked(&touches, 21), [0x20_7000, 0x40_0000]);
        assert_eq!(asked(&touches, 12), [0x20_5000, 0x20_7000, 0x40_0000]);
    }

    #[test]
    fn memory_touched_first_is_new() {
        let touches = [
            touch(0x5123, true),
            touch(0x3008, false),
            touch(0x1fff, true),
            touch(0x5000, true),
        ];
        assert_eq!(new_pages(&touches, 12), [0x1000, 0x5000]);
    }
}
