//! Tests of intervals: what moves may cost, and moves whose results the kernel hides.

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
