//! Tests that rules reproduce their mapping, also at another size and thread count.

use super::*;
use crate::fixtures::{Pattern, Recorded, machine};
use crate::policies::Nothing;
use crate::{PagePolicy, page_policy};
use nodewise_profile::ThreadId;
use proptest::prelude::*;

fn policy(text: &str) -> Box<dyn PagePolicy> {
    page_policy(text, &machine(4, 4), &Nothing).unwrap()
}

fn recognised(recorded: &Recorded, policy: &str) -> Recognised {
    let context = recorded.context();
    recognise(&context, &self::policy(policy).place(&context))
}

/// The rules as `KIND NAME: DISTRIBUTION [+ RUNS]`.
fn words(recognised: &Recognised) -> Vec<String> {
    let runs = |rule: &Rule| {
        if rule.runs.is_empty() {
            String::new()
        } else {
            format!(" + {}", rule.runs.len())
        }
    };
    let name = |rule: &Rule| rule.object.name.clone().unwrap_or_default();
    recognised
        .placement
        .rules
        .iter()
        .map(|r| format!("{}: {}{}", name(r), r.distribution, runs(r)))
        .collect()
}

/// Thread t works on the t-th of as many blocks as there are threads, and on the adjacent pages of the neighbouring
/// blocks.
fn blocks(pages: u64, threads: u32) -> impl Fn(u64, u32) -> u64 {
    move |page, thread| {
        let owner = page * u64::from(threads) / pages;
        let halo =
            (page.saturating_sub(1)..=(page + 1).min(pages - 1)).map(|p| p * u64::from(threads) / pages);
        if owner == u64::from(thread) {
            100
        } else {
            u64::from(halo.into_iter().any(|o| o == u64::from(thread))) * 3
        }
    }
}

/// The same pattern inside each of `planes` planes.
fn planes(pages: u64, planes: u64, threads: u32) -> impl Fn(u64, u32) -> u64 {
    let plane = pages / planes;
    move |page, thread| u64::from(page % plane * u64::from(threads) / plane == u64::from(thread)) * 50
}

/// A grid used in blocks, one used in planes, and an array of the master thread that all threads read.
fn program(scale: u64, threads: u32) -> Recorded {
    let (x, y) = (256 * scale, 16 * 64 * scale);
    let x_wise = blocks(x, threads);
    let y_wise = planes(y, 16, threads);
    let master = |_: u64, thread: u32| u64::from(thread == 0) * 9;
    let objects: [Pattern<'_>; 3] = [(x, &x_wise), (y, &y_wise), (20 * scale, &master)];
    Recorded::new(machine(4, 4), threads, &objects)
}

#[test]
fn each_pattern_is_recognised() {
    // Sixteen threads, four on each of four nodes; the master's array is where first touch placed it.
    let locality = recognised(&program(1, 16), "locality");
    assert_eq!(
        words(&locality),
        ["array2: block by thread repeat 16", "array1: block by thread"]
    );
    let kept = locality.placement.kept;
    assert_eq!(
        (kept.rules_local, kept.transferable_local),
        (kept.mapping_local, kept.mapping_local)
    );
    for (policy, expected) in [
        ("interleave", "interleave 0,1,2,3"),
        ("node:2", "node 2"),
        (
            "weighted",
            "interleave 0,0,0,1,1,1,1,1,1,2,2,2,2,2,2,2,2,2,2,3,3,3,3,3,3,3,3,3,3,3,3,3",
        ),
    ] {
        let found = recognised(&program(1, 16), policy);
        assert!(
            words(&found)
                .iter()
                .all(|w| w.ends_with(&format!(": {expected}"))),
            "{:?}",
            words(&found)
        );
        assert_eq!(found.placement.rules.len(), 3);
    }
}

#[test]
fn parts_by_node_are_a_last_resort() {
    // Thread 0 has three quarters of the pages, thread 15 the rest.
    let lopsided = |page: u64, thread: u32| u64::from(thread == if page < 96 { 4 } else { 15 });
    let recorded = Recorded::new(machine(4, 4), 16, &[(128, &lopsided)]);
    assert_eq!(
        words(&recognised(&recorded, "locality")),
        ["array1: block 1:0.75 3:0.25"]
    );
    // A program whose block borders differ slightly from ours still divides its work by threads.
    let shifted = |page: u64, thread: u32| u64::from(page.saturating_sub(3) * 16 / 128 == u64::from(thread));
    let recorded = Recorded::new(machine(4, 4), 16, &[(128, &shifted)]);
    assert_eq!(
        words(&recognised(&recorded, "locality")),
        ["array1: block by thread + 3"]
    );
}

#[test]
fn first_touch_needs_no_rules() {
    assert!(
        recognised(&program(1, 16), "first-touch")
            .placement
            .rules
            .is_empty()
    );
}

#[test]
fn rules_recorded_small_name_the_right_pages_at_four_times_the_size() {
    // Eight threads fill two nodes; sixteen fill four.
    let rules = recognised(&program(1, 8), "locality").placement;
    let large = program(4, 16);
    let (mapping, applied) = apply(&rules, &large.context());
    let wanted = policy("locality").place(&large.context());
    assert_eq!(mapping.nodes, wanted.nodes);
    assert_eq!((applied.matched_objects, applied.objects), (2, 3)); // first touch suffices for the third
    assert!(applied.unmatched_rules.is_empty() && !applied.folded);
}

#[test]
fn objects_of_one_site_share_a_rule() {
    let own = |owner: u32| move |_: u64, thread: u32| u64::from(thread == owner);
    let patterns: Vec<_> = (0..16).map(own).collect();
    let objects: Vec<Pattern<'_>> = patterns
        .iter()
        .map(|p| (8, p as &dyn Fn(u64, u32) -> u64))
        .collect();
    let mut recorded = Recorded::new(machine(4, 4), 16, &objects);
    let site = recorded.profile.objects[1].site;
    for (i, object) in recorded.profile.objects.iter_mut().enumerate().skip(1) {
        (object.site, object.name) = (site, "own".into());
        object.thread = ThreadId(i as u32 - 1);
    }
    let found = recognised(&recorded, "locality");
    assert_eq!(words(&found), ["own: allocator"]);
    assert!(
        found.evidence[0].starts_with("own × 16: 512 KiB, "),
        "{}",
        found.evidence[0]
    );

    // If the master allocates all of them, each needs its own rule, selected by sequence.
    for (i, object) in recorded.profile.objects.iter_mut().enumerate().skip(1) {
        (object.thread, object.sequence) = (ThreadId(0), i as u32 - 1);
    }
    let found = recognised(&recorded, "locality");
    assert_eq!(
        words(&found),
        [
            vec!["own: node 1"; 4],
            vec!["own: node 2"; 4],
            vec!["own: node 3"; 4]
        ]
        .concat()
    );
    assert_eq!(found.placement.rules[0].object.sequence, Some(4));
    assert_eq!(
        apply(&found.placement, &recorded.context()).0.nodes,
        policy("locality").place(&recorded.context()).nodes
    );
}

#[test]
fn large_pages_keep_their_rules() {
    let threads = 8;
    let x_wise = blocks(64 * 512, threads);
    let mut recorded = Recorded::new(machine(4, 2), threads, &[(64 * 512, &x_wise)]);
    recorded.histogram = recorded.histogram.clone().coarsened(9);
    let found = recognised(&recorded, "locality");
    assert_eq!(
        found.placement.rules[0].distribution,
        Distribution::ByThread { repeat: 1 }
    );
    assert_eq!(
        apply(&found.placement, &recorded.context()).0.nodes,
        policy("locality").place(&recorded.context()).nodes
    );
    assert_eq!(found.placement.page_size, 2 << 20);
}

proptest! {
    #[test]
    fn rules_with_their_runs_are_the_mapping(
        sizes in proptest::collection::vec(1u64..60, 1..4),
        homes in proptest::collection::vec(0u32..4, 180),
        gap in 2u64..9,
    ) {
        let accesses = |page: u64, thread: u32| u64::from(page % gap != 1 && thread < 2);
        let objects: Vec<Pattern<'_>> = sizes.iter().map(|s| (*s, &accesses as &dyn Fn(u64, u32) -> u64)).collect();
        let recorded = Recorded::new(machine(4, 1), 4, &objects);
        let nodes = homes.into_iter().map(NodeId).take(recorded.histogram.len()).collect();
        let mapping = Mapping { policy: "any".into(), nodes };
        let found = recognise(&recorded.context(), &mapping);
        prop_assert_eq!(&apply(&found.placement, &recorded.context()).0, &mapping);
        prop_assert_eq!(Placement::read(&found.to_toml()).unwrap(), found.placement);
    }

    #[test]
    fn blocks_transfer_whatever_the_sizes(pages in 64u64..300, scale in 2u64..5) {
        let (small, large) = (blocks(pages, 8), blocks(pages * scale, 16));
        let small = Recorded::new(machine(4, 4), 8, &[(pages, &small)]);
        let large = Recorded::new(machine(4, 4), 16, &[(pages * scale, &large)]);
        let rules = recognised(&small, "locality").placement.without_runs();
        let wanted = policy("locality").place(&large.context()).nodes;
        let found = apply(&rules, &large.context()).0.nodes;
        let differ = found.iter().zip(&wanted).filter(|(a, b)| a != b).count();
        prop_assert!(differ <= 3, "one page at each border of two nodes, not {}", differ);
    }
}
