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
    page_ns: u64,
    /// Free pages that another program takes after each batch.
    others: u64,
}

impl Rooms {
    /// A fast node without any free page.
    fn full(page_ns: u64) -> Self {
        Self {
            free: 0,
            full: 0,
            page_ns,
            others: 0,
        }
    }
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
        let results = moves.iter().map(result).collect();
        self.free = self.free.saturating_sub(self.others);
        BatchResult {
            results,
            took_ns: self.page_ns * moves.len() as u64,
        }
    }

    fn free(&self) -> Option<Vec<u64>> {
        Some(vec![self.free, 1000])
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
        cooldown in 0u32..3,
        rounds in prop::collection::vec(prop::collection::vec(0u32..40, 40), 1..40),
    ) {
        let settings = Settings { pages_per_second: rate, cooldown, ..settings() };
        let mut controller = controller(settings);
        let mut tracker = tracker(40, fast);
        let mut rooms = Rooms::full(0);
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
                prop_assert!(controller.ledger().migrations as f64 <= rate * round as f64 + 1.0);
            }
        }
        prop_assert_eq!(rooms.full, 0);
    }

    #[test]
    fn what_comes_is_affordable_where_moves_cost_what_they_will(
        page_ns in 1u64..3_000_000, budget in 0.01f64..0.2, heat in prop::collection::vec(0u32..100, 400),
    ) {
        let settings = Settings { budget, ..settings() };
        let trial = page_ns * (256 << 10) / settings.page_bytes;
        let mut controller = controller(settings);
        let (mut tracker, mut rooms) = (tracker(400, 200), Rooms::full(page_ns));
        for now in 1..20 {
            for (page, count) in (0..).zip(&heat) {
                tracker.add(PageNumber(page), FAST, if now % 2 == 0 { *count } else { 100 - count });
            }
            interval(&mut controller, &mut tracker, &mut rooms, now * SECOND);
            prop_assert_eq!(in_fast(&tracker) + rooms.free, 200);
            let allowed = budget * (now * SECOND) as f64;
            // Both batches begin with a part whose price is not known yet.
            prop_assert!(controller.ledger().spent_ns as f64 <= allowed + 2.0 * trial as f64);
        }
        prop_assert_eq!(rooms.full, 0);
    }

    #[test]
    fn no_page_comes_where_another_program_has_taken_the_room(
        others in 1u64..50, heat in prop::collection::vec(0u32..100, 400),
    ) {
        // Affordable, in several parts.
        let mut controller = controller(Settings { budget: 0.5, ..settings() });
        let (mut tracker, mut rooms) = (tracker(400, 200), Rooms { others, ..Rooms::full(100_000) });
        for now in 1..10 {
            for (page, count) in (0..).zip(&heat) {
                tracker.add(PageNumber(page), FAST, *count);
            }
            let turn = interval(&mut controller, &mut tracker, &mut rooms, now * SECOND);
            prop_assert_eq!(turn.decision.moves.len(), turn.outcome.results.len());
        }
        prop_assert_eq!(rooms.full, 0);
    }
}

#[test]
fn a_rate_of_less_than_two_pages_an_interval_lets_pairs_through() {
    let settings = Settings {
        pages_per_second: Some(1.0),
        cooldown: 0,
        ..settings()
    };
    let (mut controller, mut tracker, mut rooms) = (controller(settings), tracker(8, 4), Rooms::full(0));
    for page in 4..8 {
        tracker.add(PageNumber(page), FAST, 100);
    }
    let turns = (1..9).map(|now| interval(&mut controller, &mut tracker, &mut rooms, now * SECOND));
    let moves: Vec<usize> = turns.map(|turn| turn.decision.moves.len()).collect();
    assert_eq!(moves.iter().sum::<usize>(), 8, "{moves:?}");
    assert!(moves.iter().all(|n| *n == 0 || *n == 2), "{moves:?}");
}

#[test]
fn a_page_comes_in_the_interval_in_which_another_leaves_for_it() {
    let (mut controller, mut tracker) = (controller(settings()), tracker(4, 2));
    let mut rooms = Rooms::full(0);
    for (page, count) in [(0, 30), (1, 1), (2, 20), (3, 1)] {
        tracker.add(PageNumber(page), FAST, count);
    }
    let turn = interval(&mut controller, &mut tracker, &mut rooms, SECOND);
    let moves: Vec<_> = turn.decision.moves.iter().map(|m| (m.page.0, m.to)).collect();
    assert_eq!(moves, [(1, SLOW), (2, FAST)]);
}

#[test]
fn pages_in_cooldown_are_passed_over() {
    let settings = Settings {
        cooldown: 4,
        ..settings()
    };
    let (mut controller, mut tracker, mut rooms) = (controller(settings), tracker(4, 2), Rooms::full(0));
    let mut moves = |heat: [u32; 4], now: u64| {
        for (page, count) in (0..).zip(heat) {
            tracker.add(PageNumber(page), FAST, count);
        }
        let turn = interval(&mut controller, &mut tracker, &mut rooms, now * SECOND);
        let moves = turn.decision.moves.iter().map(|m| (m.page.0, m.to));
        moves.collect::<Vec<_>>()
    };
    assert_eq!(moves([10, 5, 20, 0], 1), [(1, SLOW), (2, FAST)]);
    // Page 1 has the most accesses now, but has just left; page 2 has just come.
    assert_eq!(moves([0, 100, 0, 50], 2), [(0, SLOW), (3, FAST)]);
}

#[test]
fn exchanges_pause_where_pages_are_alike_and_resume_where_they_are_not() {
    let settings = Settings {
        cooldown: 2,
        ..settings()
    };
    let (mut controller, mut tracker, mut rooms) = (controller(settings), tracker(400, 200), Rooms::full(0));
    let mut random = 1u64;
    // The weights of a page's samples: the same on average for all pages, or larger by far for those of a quarter.
    let mut moved = |hot: Option<u64>, rounds: std::ops::Range<u64>| -> (u64, u64) {
        let (mut moved, mut held_back) = (0, 0);
        for round in rounds {
            let mut samples = Vec::new();
            for page in 0..400 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let chance = 1 + (random >> 61) as u32;
                let weight = if hot == Some(page / 100) {
                    chance + 20
                } else {
                    chance
                };
                samples.push((PageNumber(page), FAST, weight));
            }
            controller.sampled(&samples);
            tracker.take_samples(&samples, true, &std::collections::BTreeMap::new());
            let turn = interval(&mut controller, &mut tracker, &mut rooms, round * SECOND);
            moved += turn.decision.moves.len() as u64;
            held_back += turn.decision.held_back.no_gain;
        }
        (moved, held_back)
    };
    let (at_first, _) = moved(None, 1..40);
    assert!(at_first > 0, "they are tried");
    let (later, held_back) = moved(None, 40..200);
    assert!(later * 20 < held_back, "{later} moves, {held_back} held back");
    let (now, _) = moved(Some(3), 200..240);
    assert!(now >= 100, "{now}: the hot quarter comes in");
}
