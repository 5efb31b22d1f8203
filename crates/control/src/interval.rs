//! One interval of the control loop: observe, decide, move, record.

use crate::budget::Budget;
use crate::controller::by_benefit;
use crate::{BatchResult, Controller, Decision, PageResult, Settings};
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

/// The decision and the results of one interval.
#[derive(Clone, Debug)]
pub struct Interval {
    /// The moves that were decided, without those into a tier for which there was no room.
    pub decision: Decision,
    /// Results of the moves that were tried.
    pub outcome: BatchResult,
}

/// Size of the first part of a batch, bytes: measures the current cost of moving.
const TRIAL_BYTES: u64 = 256 << 10;
/// Largest factor by which a part exceeds the part before.
const GROWTH: f64 = 8.0;

/// Makes the moves in parts of growing size, each of which takes at most half of the remaining budget by the measured
/// cost of the parts before. Moves without a result were not tried.
/// `allowed_ns`: what they may cost.
fn carry_out(
    controller: &Controller,
    moves: &[Move],
    allowed_ns: Option<u64>,
    actuator: &mut dyn Actuator,
) -> BatchResult {
    let Some(allowed) = allowed_ns else {
        return actuator.apply(moves);
    };
    let trial = (TRIAL_BYTES / controller.settings().page_bytes).max(1) as usize;
    let (mut all, mut next) = (BatchResult::default(), trial);
    while next >= trial && all.results.len() < moves.len() {
        let rest = &moves[all.results.len()..];
        let part = &rest[..next.min(rest.len())];
        let outcome = actuator.apply(part);
        all.results.extend((0..part.len()).map(|i| outcome.result(i)));
        all.took_ns = all.took_ns.saturating_add(outcome.took_ns);
        let (done, left) = (
            all.results.len() as f64,
            allowed.saturating_sub(all.took_ns) as f64,
        );
        next = (0.5 * left * done / all.took_ns.max(1) as f64).min(GROWTH * done) as usize;
    }
    all
}

/// Makes the moves of a decision. What leaves a tier is moved first, so that there is room for what comes into it; no more
/// comes than there is room for then.
fn make(controller: &mut Controller, decision: &mut Decision, actuator: &mut dyn Actuator) -> BatchResult {
    let leaves = |m: &Move| {
        controller
            .tier()
            .is_some_and(|tier| !tier.nodes().contains(&m.to))
    };
    let leaving = decision.moves.partition_point(leaves);
    let allowed = controller.allowance_ns();
    if leaving == 0 {
        return carry_out(controller, &decision.moves, allowed, actuator);
    }
    let share = if leaving < decision.moves.len() { 2 } else { 1 };
    let (first, for_first) = (&decision.moves[..leaving], allowed.map(|ns| ns / share));
    let mut all = carry_out(controller, first, for_first, actuator);
    if all.results.len() < leaving || leaving == decision.moves.len() {
        return all;
    }
    if let Some(free) = actuator.free() {
        let fit = fitting(&decision.moves[leaving..], free);
        controller.drop_moves(decision, |i| i < leaving || fit[i - leaving]);
    }
    let left = allowed.map(|ns| ns.saturating_sub(all.took_ns));
    let outcome = carry_out(controller, &decision.moves[leaving..], left, actuator);
    all.results.extend(outcome.results);
    all.took_ns = all.took_ns.saturating_add(outcome.took_ns);
    all
}

/// Which of the moves find room on their nodes, those of most benefit first.
fn fitting(moves: &[Move], mut free: Vec<u64>) -> Vec<bool> {
    let mut order: Vec<usize> = (0..moves.len()).collect();
    order.sort_unstable_by(|a, b| by_benefit(&moves[*a], &moves[*b]));
    let mut fits = vec![false; moves.len()];
    for i in order {
        let room = free.get_mut(moves[i].to.index()).filter(|room| **room > 0);
        fits[i] = room.is_some();
        room.into_iter().for_each(|room| *room -= 1);
    }
    fits
}

/// Runs one interval: decide, move, record. `now` returns the time in nanoseconds from any origin.
pub fn run_interval(
    controller: &mut Controller,
    now: &mut dyn FnMut() -> u64,
    observer: &mut dyn Observer,
    actuator: &mut dyn Actuator,
) -> Interval {
    let mut decision = controller.step(now(), observer.observed());
    let outcome = match decision.moves.is_empty() {
        true => BatchResult::default(),
        false => make(controller, &mut decision, actuator),
    };
    controller.hold_back(&mut decision, outcome.results.len());
    controller.record(now(), &outcome);
    let mut gone = Vec::new();
    for (i, each) in decision.moves.iter().enumerate() {
        match outcome.result(i) {
            PageResult::Gone => gone.push(each.page),
            result if result.arrived() => observer.moved(each),
            _ => {}
        }
    }
    if !gone.is_empty() {
        gone.sort_unstable(); // what leaves a tier comes before what comes into it
        observer.forget(&gone);
    }
    if decision.halve {
        observer.halve();
    }
    observer.begin();
    Interval { decision, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tracker;
    use nodewise_placement::{MigrationPolicy, Reason};
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    /// Proposes to move every page of node 0 to node 1.
    struct Everything;

    impl MigrationPolicy for Everything {
        fn name(&self) -> String {
            "everything".into()
        }

        fn decide(&mut self, observed: &dyn Observed) -> Vec<Move> {
            let away = (0..observed.len()).filter(|i| observed.home(*i) == NodeId(0));
            let reason = Reason {
                to_count: 9.0,
                evidence: 9.0,
                ..Reason::default()
            };
            away.map(|index| Move {
                index,
                page: observed.page(index),
                from: NodeId(0),
                to: NodeId(1),
                reason,
            })
            .collect()
        }
    }

    /// Makes every move, at a configured cost.
    struct Costly(u64);

    impl Actuator for Costly {
        fn apply(&mut self, moves: &[Move]) -> BatchResult {
            BatchResult {
                results: vec![PageResult::Moved; moves.len()],
                took_ns: self.0 * moves.len() as u64,
            }
        }
    }

    proptest! {
        #[test]
        fn a_page_may_cost_what_it_will_and_the_budget_holds(pages in 1u64..4000, page_ns in 1u64..3_000_000, share in 0.01f64..0.2) {
            let settings = Settings { budget: share, half_life: 0, ..Settings::default() };
            let trial = page_ns * TRIAL_BYTES / settings.page_bytes;
            let mut controller = Controller::new(Box::new(Everything), settings);
            let mut tracker = Tracker::new(2, 0, 4096);
            for page in (0..pages).map(PageNumber) {
                tracker.add(page, NodeId(1), 9);
                tracker.set_home(page, NodeId(0));
            }
            tracker.settle();
            let (mut now, mut held_back) = (0, 0);
            for second in 0..40 {
                now = second * SECOND;
                let turn = run_interval(&mut controller, &mut || now, &mut tracker, &mut Costly(page_ns));
                held_back += turn.decision.held_back.budget;
                prop_assert_eq!(turn.decision.moves.len(), turn.outcome.results.len());
                let budget = share * now as f64;
                prop_assert!(controller.ledger().spent_ns as f64 <= budget + trial as f64);
            }
            let (all, afforded) = ((page_ns * pages) as f64, share * now as f64 - 2.0 * trial as f64);
            prop_assert!(controller.ledger().spent_ns as f64 >= all.min(0.5 * afforded));
            prop_assert!(held_back > 0);
            prop_assert_eq!(controller.ledger().stayed(PageResult::Left), 0);
        }
    }
    /// Moves pages, but reports that it did not.
    struct Hidden;

    impl Actuator for Hidden {
        fn apply(&mut self, moves: &[Move]) -> BatchResult {
            BatchResult {
                results: vec![PageResult::Busy; moves.len()],
                took_ns: 1,
            }
        }
    }

    #[test]
    fn a_page_that_came_unseen_is_a_move_of_ours() {
        let settings = Settings {
            budget: f64::INFINITY,
            half_life: 0,
            ..Settings::default()
        };
        let mut controller = Controller::new(Box::new(Everything), settings.clone());
        let mut tracker = Tracker::new(2, 0, 16);
        let page = PageNumber(7);
        tracker.add(page, NodeId(1), 9);
        tracker.set_home(page, NodeId(0));
        tracker.settle();
        let turn = run_interval(&mut controller, &mut || SECOND, &mut tracker, &mut Hidden);
        let ledger = controller.ledger();
        assert_eq!(
            (
                turn.decision.moves.len(),
                ledger.stayed(PageResult::Busy),
                ledger.migrations
            ),
            (1, 1, 0)
        );
        controller.arrived_after_all(page, NodeId(0), NodeId(1));
        let ledger = controller.ledger();
        assert_eq!(
            (ledger.stayed(PageResult::Busy), ledger.migrations, ledger.bytes),
            (0, 1, settings.page_bytes)
        );
        controller.arrived_after_all(page, NodeId(1), NodeId(0));
        assert_eq!(controller.ledger().ping_pongs, 1);
    }
}
