//! Pages that did not move, each with its cause.

use super::run::{BASE, Run};
use std::ops::Range;

/// Why a page did not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The page is mapped by other processes too.
    Shared,
    /// The page is swapped out.
    Swapped,
    /// The page is pinned, or was in use by the kernel at each attempt.
    Busy,
    /// The target node is full.
    NoRoom,
    /// The page was unmapped or swapped out meanwhile, the process ended, or the page was not reached before the end.
    Gone,
    /// The kernel does not migrate pages of its kind.
    Unmovable,
}

impl Cause {
    /// All causes, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::Shared,
        Self::Swapped,
        Self::Busy,
        Self::NoRoom,
        Self::Gone,
        Self::Unmovable,
    ];

    /// The stable name used in JSON: `no_room`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Swapped => "swapped",
            Self::Busy => "busy",
            Self::NoRoom => "no_room",
            Self::Gone => "gone",
            Self::Unmovable => "unmovable",
        }
    }
}

/// Pages that did not move, each once, with its cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stayed {
    /// Runs with their causes; ascending after [`Stayed::sort`].
    runs: Vec<(Run, Cause)>,
}

impl Stayed {
    /// Adds a run of pages.
    pub(super) fn add(&mut self, run: Run, cause: Cause) {
        match self.runs.last_mut() {
            Some((last, known))
                if *known == cause
                    && last.shift == run.shift
                    && last.address + (u64::from(last.count) << last.shift) == run.address
                    && last.count.checked_add(run.count).is_some() =>
            {
                last.count += run.count;
            }
            _ => self.runs.push((run, cause)),
        }
    }

    /// Adds one page of `1 << shift` bytes.
    pub(crate) fn add_page(&mut self, address: u64, shift: u32, cause: Cause) {
        let count = 1;
        self.add(
            Run {
                address,
                count,
                shift,
            },
            cause,
        );
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.runs.extend(other.runs);
    }

    pub(super) fn sort(&mut self) {
        self.runs.sort_unstable_by_key(|(run, _)| run.address);
    }

    /// Pages of 4 KiB that stayed for this cause.
    #[must_use]
    pub fn count(&self, cause: Cause) -> u64 {
        let of_cause = self.runs.iter().filter(|(_, c)| *c == cause);
        of_cause.map(|(run, _)| run.pages()).sum()
    }

    /// Pages of 4 KiB that stayed.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.runs.iter().map(|(run, _)| run.pages()).sum()
    }

    /// The most frequent cause among the pages in this range that stayed; `None` if none did.
    #[must_use]
    pub fn cause_of(&self, addresses: Range<u64>) -> Option<Cause> {
        let from = self.runs.partition_point(|(run, _)| end(run) <= addresses.start);
        let within = self.runs[from..]
            .iter()
            .take_while(|(run, _)| run.address < addresses.end);
        let mut bytes = [0; Cause::ALL.len()];
        for (run, cause) in within {
            bytes[*cause as usize] += end(run).min(addresses.end) - run.address.max(addresses.start);
        }
        // Among equally frequent causes, the first in the order of reports.
        let causes = Cause::ALL.into_iter().rev().filter(|c| bytes[*c as usize] > 0);
        causes.max_by_key(|c| bytes[*c as usize])
    }
}

fn end(run: &Run) -> u64 {
    run.address + (run.pages() << BASE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_keeps_its_own_cause_however_they_were_entered() {
        let mut stayed = Stayed::default();
        stayed.add_page(0x5000, BASE, Cause::Busy);
        stayed.add_page(0x1000, BASE, Cause::Shared);
        stayed.add_page(0x2000, BASE, Cause::Shared);
        stayed.add_page(0x3000, BASE, Cause::NoRoom);
        stayed.add_page(0x40_0000, 21, Cause::Unmovable);
        stayed.sort();
        let page = |address: u64| stayed.cause_of(address..address + 0x1000);
        assert_eq!(page(0x1000), Some(Cause::Shared));
        assert_eq!(page(0x2000), Some(Cause::Shared));
        assert_eq!(page(0x3000), Some(Cause::NoRoom));
        assert_eq!(page(0x4000), None);
        assert_eq!(page(0x5000), Some(Cause::Busy));
        assert_eq!(page(0x5f_f000), Some(Cause::Unmovable));
        assert_eq!(stayed.cause_of(0x1000..0x6000), Some(Cause::Shared));
        assert_eq!((stayed.count(Cause::Shared), stayed.total()), (2, 4 + 512));
        assert_eq!(stayed.runs.len(), 4, "neighbours of one cause are one run");
    }
}
