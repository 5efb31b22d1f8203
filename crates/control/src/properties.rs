//! Properties that the controller guarantees for every policy.

use crate::*;
use nodewise_machine::NodeId;
use nodewise_placement::{MigrationPolicy, Move, Observed, Reason};
use nodewise_profile::PageNumber;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

const NODES: usize = 4;
const PAGES: u64 = 12;
const SECOND: u64 = 1_000_000_000;

/// Pages 0..PAGES with counts that a test sets.
#[derive(Clone, Debug)]
struct World {
    homes: Vec<u32>,
    counts: Vec<[u64; NODES]>,
    exact: bool,
}

impl World {
    fn new() -> Self {
        Self {
            homes: vec![0; PAGES as usize],
            counts: vec![[9, 5, 5, 5]; PAGES as usize],
            exact: true,
        }
    }
}

impl Observed for World {
    fn nodes(&self) -> usize {
        NODES
    }

    fn len(&self) -> usize {
        self.homes.len()
    }

    fn page(&self, index: usize) -> PageNumber {
        PageNumber(index as u64)
    }

    fn home(&self, index: usize) -> NodeId {
        NodeId(self.homes[index])
    }

    fn counts(&self, index: usize, counts: &mut [u64]) {
        counts.copy_from_slice(&self.counts[index]);
    }

    fn exact(&self) -> bool {
        self.exact
    }
}

/// The next proposals: (page, node, evidence).
type Script = Arc<Mutex<Vec<(u64, u32, f64)>>>;

/// A policy that proposes the moves of a script.
struct Scripted(Script);

impl MigrationPolicy for Scripted {
    fn name(&self) -> String {
        "scripted".into()
    }

    fn decide(&mut self, observed: &dyn Observed) -> Vec<Move> {
        let make = |&(page, to, evidence): &(u64, u32, f64)| Move {
            index: page as usize,
            page: PageNumber(page),
            from: observed.home(page as usize),
            to: NodeId(to),
            reason: Reason {
                to_count: evidence,
                evidence,
                ..Reason::default()
            },
        };
        let mut moves: Vec<Move> = self.0.lock().unwrap().iter().map(make).collect();
        moves.retain(|m| m.from != m.to);
        moves.sort_by_key(|m| m.index);
        moves.dedup_by_key(|m| m.index);
        moves
    }

    fn messages(&self, nodes: usize, moves: usize) -> u64 {
        (nodes * moves) as u64
    }
}

fn controller(settings: Settings) -> (Controller, Script) {
    let script = Script::default();
    (
        Controller::new(Box::new(Scripted(Arc::clone(&script))), settings),
        script,
    )
}

fn unlimited() -> Settings {
    Settings {
        budget: f64::INFINITY,
        minimum_samples: 0,
        cooldown: 0,
        half_life: 0,
        ..Settings::default()
    }
}

fn say(script: &Script, proposals: &[(u64, u32, f64)]) {
    *script.lock().unwrap() = proposals.to_vec();
}

fn moved(moves: &[Move]) -> BatchResult {
    BatchResult {
        results: vec![PageResult::Moved; moves.len()],
        took_ns: 1000,
    }
}

/// One turn in which all decided moves succeed.
fn turn(controller: &mut Controller, now: u64, world: &mut World) -> Decision {
    let decision = controller.step(now, world);
    controller.record(now, &moved(&decision.moves));
    decision.moves.iter().for_each(|m| world.homes[m.index] = m.to.0);
    decision
}

/// The paper's counts, recomputed from the homes of each page in order: moves, ping-pongs, multiple.
fn recount(paths: &HashMap<u64, Vec<u32>>) -> (u64, u64, u64, Vec<u64>) {
    let (mut migrations, mut ping_pongs, mut multiple, mut pages) = (0, 0, 0, Vec::new());
    for path in paths.values() {
        let moves = path.len() - 1;
        migrations += moves as u64;
        let back = path.windows(3).filter(|w| w[0] == w[2]).count() as u64;
        ping_pongs += back;
        multiple += path.len().saturating_sub(2) as u64 - back;
        if moves > 0 {
            pages.resize(pages.len().max(moves), 0);
            pages[moves - 1] += 1;
        }
    }
    (migrations, ping_pongs, multiple, pages)
}

fn proposals() -> impl Strategy<Value = Vec<(u64, u32, f64)>> {
    proptest::collection::vec((0..PAGES, 0..NODES as u32, 0.0..20.0), 0..20)
}

proptest! {
    #[test]
    fn the_ledger_is_a_recount_of_where_pages_went(
        rounds in proptest::collection::vec((proposals(), proptest::collection::vec(any::<bool>(), PAGES as usize)), 1..20),
        counts in proptest::collection::vec(proptest::array::uniform4(0u64..9), PAGES as usize),
    ) {
        let (mut controller, script) = controller(unlimited());
        let mut world = World { counts, ..World::new() };
        let mut paths: HashMap<u64, Vec<u32>> = (0..PAGES).map(|p| (p, vec![0])).collect();
        let (mut incorrect, mut tried) = (0, 0);
        for (now, (wanted, succeeds)) in rounds.iter().enumerate() {
            say(&script, wanted);
            let decision = controller.step(now as u64, &world);
            let result = |m: &Move| if succeeds[m.index] { PageResult::Moved } else { PageResult::Busy };
            let outcome = BatchResult { results: decision.moves.iter().map(result).collect(), took_ns: 1 };
            controller.record(now as u64, &outcome);
            tried += decision.moves.len() as u64;
            for m in decision.moves.iter().filter(|m| succeeds[m.index]) {
                let counts = world.counts[m.index];
                let others = (0..NODES).filter(|n| *n != m.from.index());
                incorrect += u64::from(others.clone().all(|n| counts[n] < counts[m.from.index()]));
                paths.get_mut(&m.page.0).unwrap().push(m.to.0);
                world.homes[m.index] = m.to.0;
            }
        }
        let ledger = controller.ledger();
        let (migrations, ping_pongs, multiple, pages) = recount(&paths);
        prop_assert_eq!((ledger.migrations, ledger.ping_pongs, ledger.multiple), (migrations, ping_pongs, multiple));
        let mut shown = ledger.pages.clone();
        while shown.last() == Some(&0) { shown.pop(); }
        prop_assert_eq!(shown, pages);
        prop_assert_eq!(ledger.incorrect.unwrap_or(0), incorrect);
        prop_assert_eq!((ledger.result(PageResult::Moved), ledger.result(PageResult::Busy)), (migrations, tried - migrations));
        prop_assert_eq!((ledger.bytes, ledger.messages), (migrations * 4096, tried * NODES as u64));
        let distinct = paths.values().filter(|p| p.len() > 1).count() as u64;
        prop_assert_eq!(ledger.migrations, distinct + ledger.ping_pongs + ledger.multiple);
    }

    #[test]
    fn what_was_spent_and_is_predicted_never_exceeds_the_budget(
        rounds in proptest::collection::vec((proposals(), 0u64..2 * SECOND, 0u64..500_000), 1..30),
        budget in 0.0..0.2f64, cost in 0.0..1e5f64, fixed in prop_oneof![Just(0.0), 0.0..0.2f64],
    ) {
        let settings = Settings { budget, seconds_per_gb: cost, seconds_per_batch: fixed, ..unlimited() };
        let (mut controller, script) = controller(settings);
        let (mut world, mut now) = (World::new(), 0);
        for (wanted, passes, took_ns) in rounds {
            now += passes;
            say(&script, &wanted);
            let decision = controller.step(now, &world);
            let pages = decision.moves.len() as u64;
            let predicted = controller.predicted_ns(pages);
            if pages > 0 {
                let spent = controller.ledger().spent_ns as f64;
                prop_assert!(spent + predicted <= budget * controller.run_ns() as f64 + 1.0);
            }
            let outcome = BatchResult { took_ns, ..moved(&decision.moves) };
            controller.record(now, &outcome);
            decision.moves.iter().for_each(|m| world.homes[m.index] = m.to.0);
        }
        prop_assert!(controller.run_ns() <= now);
    }

    #[test]
    fn proposals_are_taken_up_or_held_back_for_one_reason(wanted in proposals(), k in 0u32..20, budget in 0.0..1e-5f64) {
        let settings = Settings { budget, minimum_samples: k, pages_per_second: Some(6.0), ..Settings::default() };
        let (mut controller, script) = controller(settings);
        let world = World::new();
        controller.step(0, &world);
        say(&script, &wanted);
        let proposed = Scripted(script).decide(&world);
        let decision = controller.step(SECOND, &world);
        prop_assert_eq!(decision.moves.len() as u64 + decision.held_back.total(), proposed.len() as u64);
        prop_assert!(decision.moves.is_sorted_by(|a, b| a.index < b.index));
        let few = proposed.iter().filter(|m| m.reason.evidence < f64::from(k)).count() as u64;
        prop_assert_eq!(decision.held_back.few_samples, few);
        prop_assert!(decision.moves.len() <= 6);
        let least = decision.moves.iter().map(|m| m.reason.to_count).fold(f64::INFINITY, f64::min);
        let kept = |m: &Move| decision.moves.contains(m);
        prop_assert!(decision.moves.is_empty() || proposed.iter().all(|m| kept(m) || m.reason.to_count <= least));
    }

    #[test]
    fn a_clock_that_jumps_never_makes_time(jumps in proptest::collection::vec(0u64..100 * SECOND, 1..40)) {
        let (mut controller, script) = controller(Settings::default());
        let mut world = World::new();
        say(&script, &[(1, 1, 9.0), (2, 2, 9.0)]);
        let mut forward = 0;
        for (i, now) in jumps.iter().enumerate() {
            forward += i.checked_sub(1).map_or(0, |before| now.saturating_sub(jumps[before]));
            turn(&mut controller, *now, &mut world);
        }
        prop_assert_eq!(controller.run_ns(), forward);
    }
}

#[test]
fn a_page_rests_twice_as_long_after_each_move() {
    let (mut controller, script) = controller(Settings {
        cooldown: 2,
        ..unlimited()
    });
    let mut world = World::new();
    let mut moves = Vec::new();
    for now in 0..40u64 {
        let elsewhere = 1 - world.homes[3];
        say(&script, &[(3, elsewhere, 9.0)]);
        let decision = turn(&mut controller, now, &mut world);
        moves.extend((!decision.moves.is_empty()).then_some(now));
        assert_eq!(decision.moves.len() as u64 + decision.held_back.resting, 1);
    }
    assert_eq!(moves, [0, 3, 8, 17, 34]);
    assert_eq!(controller.ledger().ping_pongs, 4);
}

#[test]
fn the_cost_of_a_gigabyte_is_what_it_took() {
    let (mut controller, script) = controller(Settings {
        page_bytes: 1 << 20,
        seconds_per_batch: 0.0,
        ..unlimited()
    });
    let mut world = World::new();
    assert!((controller.seconds_per_gb() - 0.3).abs() < 1e-12);
    for now in 0..200 {
        let other = 1 + now as u32 % 2;
        say(&script, &(0..PAGES).map(|p| (p, other, 9.0)).collect::<Vec<_>>());
        let decision = controller.step(now, &world);
        let gigabytes = decision.moves.len() as f64 * f64::from(1 << 20) / 1e9;
        let took_ns = (2.0 * gigabytes * 1e9) as u64;
        controller.record(
            now,
            &BatchResult {
                took_ns,
                ..moved(&decision.moves)
            },
        );
        decision.moves.iter().for_each(|m| world.homes[m.index] = m.to.0);
    }
    let found = controller.seconds_per_gb();
    assert!((1.5..=2.0).contains(&found), "{found}");
}

/// A turn in which moving takes `fixed_ns` and another `page_ns` for each page.
fn priced(controller: &mut Controller, now: u64, world: &mut World, fixed_ns: u64, page_ns: u64) -> usize {
    let decision = controller.step(now, world);
    let took_ns = fixed_ns + page_ns * decision.moves.len() as u64;
    controller.record(
        now,
        &BatchResult {
            took_ns,
            ..moved(&decision.moves)
        },
    );
    decision.moves.iter().for_each(|m| world.homes[m.index] = m.to.0);
    decision.moves.len()
}

/// A world of this many pages, and proposals that move all of them to one node.
fn all(pages: u64, to: u32) -> (World, Vec<(u64, u32, f64)>) {
    let counts = vec![[9, 5, 5, 5]; pages as usize];
    let world = World {
        homes: vec![0; pages as usize],
        counts,
        exact: true,
    };
    (world, (0..pages).map(|p| (p, to, 9.0)).collect())
}

#[test]
fn what_a_batch_of_two_pages_took_is_not_the_price_of_a_page() {
    const FIXED: u64 = 280_000_000;
    let (mut controller, script) = controller(Settings {
        budget: 0.05,
        ..unlimited()
    });
    let (mut world, wanted) = all(502, 1);
    controller.step(0, &world);
    say(&script, &wanted[..2]);
    assert_eq!(priced(&mut controller, SECOND, &mut world, FIXED, 0), 2);
    let (two, many) = (controller.predicted_ns(2), controller.predicted_ns(500));
    assert!(many < 1.1 * two && two < 1.1 * FIXED as f64, "{two} {many}");
    // They are moved together as soon as the budget has room for another batch of that cost.
    say(&script, &wanted[2..]);
    let turns: Vec<usize> = (2..13)
        .map(|s| priced(&mut controller, s * SECOND, &mut world, FIXED, 0))
        .collect();
    assert_eq!(
        turns.iter().filter(|moved| **moved > 0).collect::<Vec<_>>(),
        [&500]
    );
}

#[test]
fn both_prices_are_found_from_batches_of_many_sizes() {
    const FIXED: u64 = 5_000_000;
    const PAGE: u64 = 20_000;
    let (mut controller, script) = controller(unlimited());
    let (mut world, _) = all(20_000, 1);
    for turn in 0..200u64 {
        let pages = [3, 20_000, 40, 7, 3000][turn as usize % 5];
        let to = 1 + turn as u32 % 3;
        say(&script, &(0..pages).map(|p| (p, to, 9.0)).collect::<Vec<_>>());
        priced(&mut controller, turn * SECOND, &mut world, FIXED, PAGE);
    }
    for pages in [1, 1000, 20_000] {
        let ratio = controller.predicted_ns(pages) / (FIXED + PAGE * pages) as f64;
        assert!((0.8..1.25).contains(&ratio), "{pages} pages: {ratio}");
    }
}

#[test]
fn a_pause_decides_nothing_and_is_not_run_time() {
    let (mut controller, script) = controller(unlimited());
    let mut world = World::new();
    say(&script, &[(1, 1, 9.0)]);
    controller.step(0, &world);
    controller.pause();
    assert_eq!(
        turn(&mut controller, 100 * SECOND, &mut world),
        Decision::default()
    );
    controller.resume();
    assert_eq!(turn(&mut controller, 500 * SECOND, &mut world).moves.len(), 1);
    assert_eq!(turn(&mut controller, 501 * SECOND, &mut world).moves.len(), 0);
    assert_eq!(controller.run_ns(), SECOND);
}

#[test]
fn moves_that_nobody_speaks_of_were_left() {
    let (mut controller, script) = controller(Settings {
        budget: 0.05,
        ..unlimited()
    });
    let mut world = World::new();
    say(&script, &[(1, 1, 9.0)]);
    controller.step(0, &world);
    assert_eq!(controller.step(SECOND, &world).moves.len(), 1);
    // The budget that was reserved for them is free again.
    assert_eq!(turn(&mut controller, SECOND + 1, &mut world).moves.len(), 1);
    let ledger = controller.ledger();
    assert_eq!((ledger.migrations, ledger.result(PageResult::Left)), (1, 1));
}

#[test]
fn of_sampled_counts_nobody_knows_which_moves_were_wrong() {
    let (mut controller, script) = controller(unlimited());
    let mut world = World {
        exact: false,
        ..World::new()
    };
    say(&script, &[(1, 1, 9.0)]);
    turn(&mut controller, 0, &mut world);
    assert_eq!(controller.ledger().incorrect, None);
    world.exact = true;
    say(&script, &[(2, 1, 9.0)]);
    turn(&mut controller, 1, &mut world);
    assert_eq!(controller.ledger().incorrect, Some(1));
}

#[test]
fn only_so_many_pages_are_remembered() {
    let (mut controller, script) = controller(Settings {
        remembered_pages: 2,
        ..unlimited()
    });
    let mut world = World::new();
    for page in [1, 2, 3, 1] {
        say(&script, &[(page, 1 - world.homes[page as usize], 9.0)]);
        turn(&mut controller, 0, &mut world);
    }
    let ledger = controller.ledger();
    assert_eq!(
        (ledger.migrations, ledger.ping_pongs, ledger.forgotten),
        (4, 0, 2)
    );
}

#[test]
fn counts_are_halved_every_half_life() {
    let (mut controller, _) = controller(Settings {
        half_life: 3,
        ..unlimited()
    });
    let mut world = World::new();
    let halves: Vec<bool> = (0..7)
        .map(|now| turn(&mut controller, now, &mut world).halve)
        .collect();
    assert_eq!(halves, [false, false, true, false, false, true, false]);
}

#[test]
fn a_page_that_cannot_move_rests_and_leaves_the_budget_to_others() {
    let (mut controller, script) = controller(Settings {
        cooldown: 2,
        pages_per_second: Some(1.0),
        ..unlimited()
    });
    let world = World::new();
    controller.step(0, &world);
    say(&script, &[(3, 1, 90.0), (5, 1, 9.0)]);
    let mut tried = Vec::new();
    for now in 1..=12u64 {
        let decision = controller.step(now * SECOND, &world);
        tried.extend(decision.moves.iter().map(|m| (now, m.page.0)));
        let results = decision.moves.iter().map(|_| PageResult::Shared).collect();
        controller.record(now * SECOND, &BatchResult { results, took_ns: 1 });
    }
    assert_eq!(tried, [(1, 3), (2, 5), (4, 3), (5, 5), (9, 3), (10, 5)]);
    let ledger = controller.ledger();
    assert_eq!(
        (
            ledger.result(PageResult::Shared),
            ledger.stayed(PageResult::Shared)
        ),
        (6, 2)
    );
}

#[test]
fn a_page_that_moves_at_last_has_not_stayed() {
    let (mut controller, script) = controller(unlimited());
    let mut world = World::new();
    say(&script, &[(3, 1, 9.0)]);
    for result in [PageResult::Busy, PageResult::Full] {
        controller.step(0, &world);
        controller.record(
            0,
            &BatchResult {
                results: vec![result],
                took_ns: 1,
            },
        );
        assert_eq!(controller.ledger().stayed(result), 1);
    }
    assert_eq!(controller.ledger().stayed.iter().sum::<u64>(), 1);
    turn(&mut controller, 0, &mut world);
    assert_eq!(controller.ledger().stayed, [0; PageResult::ALL.len()]);
    assert_eq!(controller.ledger().result(PageResult::Busy), 1);
}

/// Reports every page as gone.
struct NothingMoves;

impl Actuator for NothingMoves {
    fn apply(&mut self, moves: &[Move]) -> BatchResult {
        BatchResult {
            results: vec![PageResult::Gone; moves.len()],
            took_ns: 1,
        }
    }
}

/// A tracker with three pages on node 0 that node 1 uses.
fn tracked() -> Tracker {
    let mut tracker = Tracker::new(NODES, 0, 100);
    for page in (0..3).map(PageNumber) {
        tracker.add(page, NodeId(1), 9);
        tracker.set_home(page, NodeId(0));
    }
    tracker.settle();
    tracker
}

#[test]
fn pages_that_are_gone_are_no_longer_observed() {
    let (mut controller, script) = controller(unlimited());
    let mut tracker = tracked();
    say(&script, &[(0, 1, 9.0), (2, 1, 9.0)]);
    run_interval(&mut controller, &mut || 0, &mut tracker, &mut NothingMoves);
    assert_eq!((tracker.len(), tracker.page(0)), (1, PageNumber(1)));
    assert_eq!(controller.ledger().result(PageResult::Gone), 2);
}

#[test]
fn a_dry_run_decides_on_a_page_once_and_pays_what_it_would_cost() {
    let settings = unlimited();
    let (mut controller, mut dry) = (controller(settings.clone()), DryRun::new(&settings));
    say(&controller.1, &[(0, 1, 9.0), (1, 1, 9.0), (2, 1, 9.0)]);
    let mut tracker = tracked();
    let moves: Vec<usize> = (0..3)
        .map(|_| {
            let turn = run_interval(&mut controller.0, &mut || 0, &mut tracker, &mut dry);
            turn.decision.moves.len()
        })
        .collect();
    assert_eq!(moves, [3, 0, 0]);
    assert_eq!(
        (dry.home(PageNumber(2)), dry.home(PageNumber(3))),
        (Some(NodeId(1)), None)
    );
    let predicted = settings.seconds_per_batch * 1e9 + settings.seconds_per_gb * 3.0 * 4096.0;
    assert_eq!(controller.0.ledger().spent_ns, predicted as u64);
    dry.forget(&(PageNumber(0)..PageNumber(3)));
    assert_eq!(dry.home(PageNumber(2)), None);
}
