//! Who counts the accesses that an interval is decided by, and who moves its pages.

use crate::budget::Budget;
use crate::{BatchResult, PageResult, Settings};
use nodewise_machine::NodeId;
use nodewise_placement::{Move, Observed};
use nodewise_profile::PageNumber;
use std::collections::HashMap;
use std::ops::Range;

/// A source of access counts: a live, simulated or replayed program.
pub trait Observer {
    /// Access counts so far, with older accesses discounted.
    fn observed(&self) -> &dyn Observed;

    /// Reports that a page was moved; its counts restart, since the new home has no samples of it yet.
    fn moved(&mut self, moved: &Move);

    /// Drops all counts of these pages, which no longer exist; ascending.
    fn forget(&mut self, pages: &[PageNumber]);

    /// Halves all counts (exponential decay).
    fn halve(&mut self);

    /// Reports the start of an interval.
    fn begin(&mut self) {}
}

/// Moves pages: through the kernel, in the simulator, or not at all ([`DryRun`]).
pub trait Actuator {
    /// Makes these moves, which ascend by page, and returns the result of each.
    fn apply(&mut self, moves: &[Move]) -> BatchResult;

    /// Pages that each node has free memory for now, if that is known.
    fn free(&self) -> Option<Vec<u64>> {
        None
    }
}

/// An actuator that moves nothing: it remembers where pages would be and reports the assumed cost.
#[derive(Clone, Debug)]
pub struct DryRun {
    homes: HashMap<PageNumber, NodeId>,
    budget: Budget,
    page_bytes: u64,
}

impl DryRun {
    /// A dry run with the costs and page size of these settings.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            homes: HashMap::new(),
            budget: Budget::new(
                settings.budget,
                settings.seconds_per_gb,
                settings.seconds_per_batch,
            ),
            page_bytes: settings.page_bytes,
        }
    }

    /// The node a page would be on, if it was moved.
    #[must_use]
    pub fn home(&self, page: PageNumber) -> Option<NodeId> {
        self.homes.get(&page).copied()
    }

    /// Removes the pages of a range, those of a process that ended.
    pub fn forget(&mut self, pages: &Range<PageNumber>) {
        self.homes.retain(|page, _| !pages.contains(page));
    }

    /// Removes a page that was unmapped or replaced.
    pub fn forget_page(&mut self, page: PageNumber) {
        self.homes.remove(&page);
    }
}

impl Actuator for DryRun {
    fn apply(&mut self, moves: &[Move]) -> BatchResult {
        self.homes.extend(moves.iter().map(|m| (m.page, m.to)));
        BatchResult {
            results: vec![PageResult::Moved; moves.len()],
            took_ns: self.budget.predicted_ns(moves.len() as u64 * self.page_bytes) as u64,
        }
    }
}
