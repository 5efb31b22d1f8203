//! Properties of intervals in which pages are exchanged between fast memory and the rest.

use crate::*;
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::{Move, Observed, migration_policy};
use nodewise_profile::PageNumber;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const FAST: NodeId = NodeId(0);
const SLOW: NodeId = NodeId(1);

/// Moves a page to the fast node only where that has room, as the kernel does.
struct Rooms {
    free: u64,
    full: u64,
}

impl Actuator for Rooms {
    fn apply(&mut self, moves: &[Move]) -> BatchResult {
        let result = |m: &Move| match m.to {
            FAST if self.free == 0 => {
                self.full += 1;
                PageResult::Full
            }
            FAST => {
                self.free -= 1;
                PageResult::Moved
            }
            _ => {
                self.free += 1;
                PageResult::Moved
            }
        };
        BatchResult {
            results: moves.iter().map(result).collect(),
            took_ns: 0,
        }
    }
}

fn settings() -> Settings {
    Settings {
        budget: f64::INFINITY,
        minimum_samples: 2,
        half_life: 0,
        ..Settings::default()
    }
}

fn controller(settings: Settings) -> Controller {
    let machine = Machine::named("nehalem-2s").expect("a shipped machine");
    Controller::new(migration_policy("hot:0", &machine).unwrap(), settings)
}

/// Pages of which the first `fast` are on the fast node.
fn tracker(pages: u64, fast: u64) -> Tracker {
    let mut tracker = Tracker::new(2, 0, 1000).ranking();
    for page in 0..pages {
        tracker.add(PageNumber(page), FAST, 0);
        tracker.set_home(PageNumber(page), if page < fast { FAST } else { SLOW });
    }
    tracker.settle();
    tracker
}

fn in_fast(tracker: &Tracker) -> u64 {
    (0..tracker.len()).filter(|i| tracker.home(*i) == FAST).count() as u64
}

/// One interval, told what memory is free.
fn interval(controller: &mut Controller, tracker: &mut Tracker, rooms: &mut Rooms, now: u64) -> Interval {
    tracker.set_free(vec![rooms.free, 1000]);
    tracker.settle();
    run_interval(controller, &mut || now, tracker, rooms)
}

proptest! {
    #[test]
    fn an_exchange_leaves_no_place_in_fast_memory_unused(
        fast in 1u64..20,
        rate in prop::option::of(1.0f64..30.0),
        rounds in prop::collection::vec(prop::collection::vec(0u32..40, 40), 1..12),
    ) {
        let settings = Settings { pages_per_second: rate, ..settings() };
        let mut controller = controller(settings);
        let mut tracker = tracker(40, fast);
        let mut rooms = Rooms { free: 0, full: 0 };
        for (round, heat) in (1..).zip(&rounds) {
            for (page, count) in (0..).zip(heat) {
                tracker.add(PageNumber(page), FAST, *count);
            }
            let before = in_fast(&tracker);
            let turn = interval(&mut controller, &mut tracker, &mut rooms, round * SECOND);
            prop_assert_eq!(in_fast(&tracker) + rooms.free, fast);
            prop_assert!(in_fast(&tracker) >= before, "{} of {}", in_fast(&tracker), before);
            prop_assert_eq!(turn.decision.moves.len(), turn.outcome.results.len());
            if let Some(rate) = rate {
                prop_assert!(controller.ledger().migrations as f64 <= rate * (round + 1) as f64);
            }
        }
        prop_assert_eq!(rooms.full, 0);
    }
}

#[test]
fn a_page_comes_in_the_interval_in_which_another_leaves_for_it() {
    let (mut controller, mut tracker) = (controller(settings()), tracker(4, 2));
    let mut rooms = Rooms { free: 0, full: 0 };
    for (page, count) in [(0, 30), (1, 1), (2, 20), (3, 1)] {
        tracker.add(PageNumber(page), FAST, count);
    }
    let turn = interval(&mut controller, &mut tracker, &mut rooms, SECOND);
    let moves: Vec<_> = turn.decision.moves.iter().map(|m| (m.page.0, m.to)).collect();
    assert_eq!(moves, [(1, SLOW), (2, FAST)]);
}

#[test]
fn nothing_leaves_for_a_page_in_cooldown() {
    let settings = Settings {
        cooldown: 4,
        ..settings()
    };
    let (mut controller, mut tracker) = (controller(settings), tracker(3, 2));
    let mut rooms = Rooms { free: 0, full: 0 };
    let mut moves = |heat: [u32; 3], now: u64| {
        for (page, count) in (0..).zip(heat) {
            tracker.add(PageNumber(page), FAST, count);
        }
        let turn = interval(&mut controller, &mut tracker, &mut rooms, now * SECOND);
        let moves = turn.decision.moves.iter().map(|m| (m.page.0, m.to));
        moves.collect::<Vec<_>>()
    };
    assert_eq!(moves([40, 5, 20], 1), [(1, SLOW), (2, FAST)]);
    // Page 1 would take the place of page 0 now, but it has left just before.
    assert_eq!(moves([0, 200, 0], 2), []);
}
