//! Properties of policies that move pages between slices.

mod common;

use common::*;
use nodewise_analysis::{Affinity, Histogram};
use nodewise_control::Settings;
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::migration::{Dominant, Whole};
use nodewise_placement::{Context, Mapping, migration_policy, page_policy, policies::Nothing};
use nodewise_profile::{Access, InMemory, Profile, SliceId};
use nodewise_simulation::{
    Moving, Parameters, Simulation, latency_ratio, migration_seconds_per_gb, simulate_moving,
    with_latency_ratio,
};
use proptest::prelude::*;

const NODES: u32 = 4;
const PAGES: usize = 40;

/// No limits on a policy, and no decay of counts.
fn unlimited() -> Settings {
    Settings {
        budget: f64::INFINITY,
        minimum_samples: 0,
        half_life: 0,
        cooldown: 0,
        ..Settings::default()
    }
}

/// A profile of eight threads on four nodes, two on each.
struct Case {
    machine: Machine,
    profile: Profile,
    histogram: Histogram,
    affinity: Affinity,
    source: InMemory,
}

impl Case {
    fn new(rows: &[Access]) -> Self {
        let machine = machine(NODES, 2, 3000.0, 1000.0);
        Self {
            histogram: histogram(rows, 8),
            affinity: compact(&machine, 8),
            profile: Profile::default(),
            source: InMemory::new(rows.to_vec()),
            machine,
        }
    }

    fn context(&self) -> Context<'_> {
        Context {
            profile: &self.profile,
            histogram: &self.histogram,
            affinity: &self.affinity,
            machine: &self.machine,
        }
    }

    fn place(&self, policy: &str) -> Mapping {
        page_policy(policy, &self.machine, &Nothing)
            .unwrap()
            .place(&self.context())
    }

    fn moving(&self, policy: &str, settings: Settings) -> Moving {
        let mut moving = Moving::new(
            policy,
            0,
            migration_policy(policy, &self.machine).unwrap(),
            settings,
        );
        moving.traced = true;
        moving
    }

    fn simulate(&self, mappings: &[Mapping], moving: Vec<Moving>) -> Simulation {
        simulate_moving(
            &self.context(),
            mappings,
            moving,
            &self.source,
            &Parameters::default(),
        )
        .unwrap()
    }
}

fn in_slice(slice: u32, row: Access) -> Access {
    Access {
        slice: SliceId(slice),
        ..row
    }
}

/// Up to six slices in which up to eight threads read any of 40 pages.
fn rows() -> impl Strategy<Value = Vec<Access>> {
    let row = (0u32..6, 0u32..8, 0..PAGES as u64, 1u64..500);
    prop::collection::vec(row, 1..120).prop_map(|cells| {
        let row = |(s, t, p, lines)| in_slice(s, read(t, p, lines));
        cells.into_iter().map(row).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_policy_that_never_moves_costs_what_its_start_costs(rows in rows()) {
        let case = Case::new(&rows);
        let never = Whole {
            name: "never".into(),
            policy: Dominant { hysteresis: f64::INFINITY },
        };
        let never = Moving::new("never", 0, Box::new(never), unlimited());
        let found = case.simulate(&[case.place("interleave")], vec![never]);
        let (start, moving) = (&found.predictions[0], &found.predictions[1]);
        let moved = moving.moved.as_ref().unwrap();
        prop_assert_eq!(moved.ledger.migrations, 0);
        let same = nodewise_simulation::Prediction { policy: moving.policy.clone(), moved: moving.moved.clone(), ..start.clone() };
        prop_assert_eq!(&same, moving);
    }

    #[test]
    fn a_replay_of_a_simulated_run_is_that_run(rows in rows(), hysteresis in 0.0..2.0) {
        let case = Case::new(&rows);
        let start = [case.place("interleave")];
        let settings = Settings { half_life: 2, ..unlimited() };
        let first = case.simulate(&start, vec![case.moving(&format!("dominant:hysteresis={hysteresis}"), settings)]);
        let done = first.predictions[1].moved.clone().unwrap();
        let again = case.simulate(&start, vec![Moving::replay(0, &done.migrations)]);
        let (a, b) = (&first.predictions[1], &again.predictions[1]);
        prop_assert_eq!((&a.seconds, &a.slices, &a.mapped), (&b.seconds, &b.slices, &b.mapped));
        let b = b.moved.as_ref().unwrap();
        prop_assert_eq!(done.seconds, b.seconds);
        prop_assert_eq!(
            (done.ledger.migrations, done.ledger.ping_pongs, done.ledger.multiple),
            (b.ledger.migrations, b.ledger.ping_pongs, b.ledger.multiple)
        );
    }

    #[test]
    fn a_pattern_that_never_changes_moves_a_page_once_at_most(cells in prop::collection::vec((0u32..8, 0..PAGES as u64, 1u64..500), 1..80)) {
        let rows: Vec<_> = (0..5u32)
            .flat_map(|s| cells.iter().map(move |&(t, p, lines)| in_slice(s, read(t, p, lines))))
            .collect();
        let case = Case::new(&rows);
        let settings = Settings { half_life: 1, ..unlimited() };
        let found = case.simulate(&[case.place("interleave")], vec![case.moving("dominant", settings)]);
        let moves = &found.predictions[1].moved.as_ref().unwrap().migrations;
        let pages: std::collections::BTreeSet<_> = moves.iter().map(|m| m.page).collect();
        prop_assert_eq!(pages.len(), moves.len());
    }

    // The pattern changes once; the second half is long enough to outweigh the counts of the first.
    #[test]
    fn without_limits_dominant_ends_as_local_as_locality(
        before in prop::collection::vec((0u32..8, 0..PAGES as u64, 1u64..500), 1..60),
        after in prop::collection::vec((0u32..8, 0..PAGES as u64, 1u64..500), 1..60),
    ) {
        let slice = |s: u32, cells: &[(u32, u64, u64)]| cells.iter().map(|&(t, p, lines)| in_slice(s, read(t, p, lines))).collect::<Vec<_>>();
        let rows: Vec<_> = (0..3).flat_map(|s| slice(s, &before)).chain((3..30).flat_map(|s| slice(s, &after))).collect();
        let last = Case::new(&slice(0, &after));
        let case = Case::new(&rows);
        let settings = Settings { half_life: 1, ..unlimited() };
        let found = case.simulate(&[case.place("interleave")], vec![case.moving("dominant:hysteresis=0", settings)]);
        let best = last.simulate(&[last.place("locality")], vec![]).baseline().local_fraction;
        let reached = found.predictions[1].slices.last().unwrap().local_fraction();
        prop_assert!((reached - best).abs() < 1e-12, "{} is not {}", reached, best);
    }

    #[test]
    fn slices_make_the_run(rows in rows()) {
        let case = Case::new(&rows);
        let found = case.simulate(&[case.place("interleave"), case.place("locality")], vec![case.moving("dominant", unlimited())]);
        for p in &found.predictions {
            let (local, all) = p.slices.iter().fold((0, 0), |(l, a), s| (l + s.local, a + s.accesses));
            prop_assert!((local as f64 / all as f64 - p.local_fraction).abs() < 1e-12);
            let moves: u64 = p.slices.iter().map(|s| s.migrations).sum();
            prop_assert_eq!(moves, p.moved.as_ref().map_or(0, |m| m.ledger.migrations));
        }
        let moved = &found.predictions[2].moved.as_ref().unwrap().ledger;
        prop_assert_eq!(moved.incorrect, (moved.migrations > 0).then_some(0), "dominant knows all counts");
    }
}

/// One page, used by node 1 alone in every slice.
fn one_page(slices: u32) -> Case {
    Case::new(
        &(0..slices)
            .map(|s| in_slice(s, read(2, 0, 100)))
            .collect::<Vec<_>>(),
    )
}

fn on_node_0() -> Mapping {
    Mapping {
        policy: "node:0".into(),
        nodes: vec![NodeId(0)],
    }
}

#[test]
fn a_decision_holds_from_the_next_slice_on() {
    let case = one_page(3);
    let found = case.simulate(&[on_node_0()], vec![case.moving("dominant", unlimited())]);
    let local: Vec<_> = found.predictions[1]
        .slices
        .iter()
        .map(|s| (s.local_fraction(), s.migrations))
        .collect();
    assert_eq!(local, [(0.0, 1), (1.0, 0), (1.0, 0)]);
}

#[test]
fn a_longer_interval_decides_later() {
    let case = one_page(5);
    let mut moving = case.moving("dominant", unlimited());
    moving.interval = 3;
    let found = case.simulate(&[on_node_0()], vec![moving]);
    let moves: Vec<_> = found.predictions[1].slices.iter().map(|s| s.migrations).collect();
    assert_eq!(moves, [0, 0, 1, 0, 0]);
}

#[test]
fn a_moved_page_costs_its_copy_and_the_overhead() {
    let case = one_page(3);
    let found = case.simulate(&[on_node_0()], vec![case.moving("dominant", unlimited())]);
    let (still, moving) = (&found.predictions[0], &found.predictions[1]);
    // 4096 bytes at 1000 MB/s (the link), and 0.3 s per GB.
    let expected = 4096.0 / 1e9 + 4096.0 * 0.3e-9;
    assert_close(moving.moved.as_ref().unwrap().seconds, expected);
    assert_close(
        migration_seconds_per_gb(&case.machine, &Parameters::default()),
        1.3,
    );
    // Two of three slices became local.
    assert!(moving.seconds.typical - expected < still.seconds.typical);
}

#[test]
fn a_budget_of_nothing_moves_nothing() {
    let case = one_page(6);
    let settings = Settings {
        budget: 0.0,
        ..unlimited()
    };
    let found = case.simulate(&[on_node_0()], vec![case.moving("dominant", settings)]);
    let moved = found.predictions[1].moved.as_ref().unwrap();
    assert_eq!(moved.ledger.migrations, 0);
    assert_eq!(moved.held_back.budget, 6);
}

#[test]
fn remote_memory_is_as_far_as_asked() {
    let near = machine(NODES, 2, 3000.0, 1000.0);
    let far = with_latency_ratio(&near, 30.0);
    assert_close(latency_ratio(&far), 30.0);
    assert_close(far.links[0].bandwidth, 1000.0 / 15.0);
    assert_eq!(far.nodes, near.nodes);
    assert_eq!(far.latency_ns[1][1], near.latency_ns[1][1]);
}

/// Of 40 pages outside, the first ten are hot, then the last ten; ten fit.
#[test]
fn fast_memory_follows_the_hot_pages_and_is_never_overfilled() {
    let rows: Vec<Access> = (0..24)
        .flat_map(|slice| {
            let hot = if slice < 12 { 0..10 } else { 30..40 };
            let lines = move |page: &u64| if hot.contains(page) { 400 } else { 3 };
            (0..PAGES as u64).map(move |page| in_slice(slice, read(2, page, lines(&page))))
        })
        .collect();
    let case = Case::new(&rows);
    let settings = Settings {
        half_life: 1,
        ..unlimited()
    };
    let found = case.simulate(&[case.place("node:3")], vec![case.moving("hot:0@40K", settings)]);
    let moved = found.predictions[1].moved.as_ref().unwrap();
    let mut fast: Vec<u64> = Vec::new();
    let first = case.histogram.pages[0].0;
    for slice in 0..24 {
        for m in moved.migrations.iter().filter(|m| m.slice.0 == slice) {
            let page = m.page.0 - first;
            match m.to {
                0 => fast.push(page),
                _ => fast.retain(|p| *p != page),
            }
        }
        assert!(fast.len() <= 10, "{slice}: {fast:?}");
        let hot = if slice < 12 { 0..10 } else { 30..40 };
        let there = fast.iter().filter(|p| hot.contains(*p)).count();
        // Old accesses are halved in every interval, so a change is seen after two or three, and a place is free one later.
        let settled = matches!(slice, 1..12 | 18..);
        assert!(!settled || there == 10, "{slice}: {fast:?}");
    }
    assert_eq!((moved.ledger.migrations, moved.ledger.ping_pongs), (30, 0));
    assert!(moved.incorrect.iter().all(Option::is_none));
}
