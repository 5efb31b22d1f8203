//! One turn of the loop.

use crate::budget::Budget;
use crate::{Controller, Decision, Fate, Outcome, Settings};
use nodewise_machine::NodeId;
use nodewise_placement::{Move, Observed};
use nodewise_profile::PageNumber;
use std::collections::HashMap;
use std::ops::Range;

/// What observes a program: live, simulated, replayed.
pub trait Observer {
    /// What was seen so far, older counts discounted.
    fn observed(&self) -> &dyn Observed;

    /// A page is somewhere else now; its counts begin anew, as its new home has seen none of them.
    fn moved(&mut self, moved: &Move);

    /// These are no more: of pages of that number nothing is known. They ascend.
    fn gone(&mut self, pages: &[PageNumber]);

    /// Halves all counts.
    fn halve(&mut self);

    /// A new interval begins.
    fn begin(&mut self) {}
}

/// What moves pages: Linux, the simulator, nothing.
pub trait Actuator {
    /// Makes these moves, ascending by page, as far as it can.
    fn apply(&mut self, moves: &[Move]) -> Outcome;
}

/// Moves nothing, but remembers where pages would be and takes the time that moving them is assumed to.
#[derive(Clone, Debug)]
pub struct DryRun {
    homes: HashMap<PageNumber, NodeId>,
    budget: Budget,
    page_bytes: u64,
}

impl DryRun {
    /// At these prices.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self {
            homes: HashMap::new(),
            budget: Budget::new(settings),
            page_bytes: settings.page_bytes,
        }
    }

    /// Where a page would be, if it would have been moved.
    #[must_use]
    pub fn home(&self, page: PageNumber) -> Option<NodeId> {
        self.homes.get(&page).copied()
    }

    /// Forgets the pages of a range: of a process that ended.
    pub fn forget(&mut self, pages: &Range<PageNumber>) {
        self.homes.retain(|page, _| !pages.contains(page));
    }

    /// Forgets a page: unmapped, or another one by now.
    pub fn forget_page(&mut self, page: PageNumber) {
        self.homes.remove(&page);
    }
}

impl Actuator for DryRun {
    fn apply(&mut self, moves: &[Move]) -> Outcome {
        self.homes.extend(moves.iter().map(|m| (m.page, m.to)));
        Outcome {
            fates: vec![Fate::Moved; moves.len()],
            took_ns: self.budget.predicted_ns(moves.len() as u64 * self.page_bytes) as u64,
        }
    }
}

/// What one turn decided and did.
#[derive(Clone, Debug)]
pub struct Interval {
    /// What was to be done.
    pub decision: Decision,
    /// What was.
    pub outcome: Outcome,
}

/// Decide, move, learn; `now` says the time, nanoseconds from any origin.
pub fn run_interval(
    controller: &mut Controller,
    now: &mut dyn FnMut() -> u64,
    observer: &mut dyn Observer,
    actuator: &mut dyn Actuator,
) -> Interval {
    let decision = controller.step(now(), observer.observed());
    let outcome = if decision.moves.is_empty() {
        Outcome::default()
    } else {
        actuator.apply(&decision.moves)
    };
    controller.done(now(), &outcome);
    let mut gone = Vec::new();
    for (i, each) in decision.moves.iter().enumerate() {
        match outcome.fate(i) {
            Fate::Gone => gone.push(each.page),
            fate if fate.arrived() => observer.moved(each),
            _ => {}
        }
    }
    if !gone.is_empty() {
        observer.gone(&gone);
    }
    if decision.halve {
        observer.halve();
    }
    observer.begin();
    Interval { decision, outcome }
}
