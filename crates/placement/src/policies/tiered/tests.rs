//! Tiers keep to their size, hold the hottest, and are filled from the nearest node on.

use crate::Context;
use crate::fixtures::{Pattern, Recorded, machine};
use crate::policies::{Nothing, page_policy};
use nodewise_machine::{Machine, MemoryKind};
use nodewise_profile::ObjectId;
use proptest::prelude::*;

const PAGE: u64 = 4096;

/// Two nodes with two CPUs each, and behind each a node without CPUs: 2 of node 0, 3 of node 1.
fn tiered() -> Machine {
    let mut machine = machine(4, 2);
    for slow in 2..4 {
        machine.nodes[slow].cpus.clear();
        machine.nodes[slow].kind = Some(MemoryKind::Cxl);
    }
    machine.latency_ns = vec![
        vec![100.0, 150.0, 300.0, 400.0],
        vec![150.0, 100.0, 400.0, 300.0],
        vec![300.0, 400.0, 300.0, 500.0],
        vec![400.0, 300.0, 500.0, 300.0],
    ];
    machine
}

/// One object whose pages have these accesses by each of four threads, two a node.
fn recorded(machine: Machine, pages: &[Vec<u64>]) -> Recorded {
    let accesses = |page: u64, thread: u32| pages[page as usize][thread as usize];
    Recorded::new(machine, 4, &[(pages.len() as u64, &accesses)])
}

fn place(policy: &str, context: &Context<'_>) -> Vec<u32> {
    let policy = page_policy(policy, context.machine, &Nothing).unwrap_or_else(|e| panic!("{e}"));
    policy.place(context).nodes.iter().map(|n| n.0).collect()
}

fn refusal(policy: &str) -> String {
    let made = page_policy(policy, &tiered(), &Nothing);
    made.err()
        .map_or_else(|| panic!("{policy} is accepted"), |e| e.to_string())
}

fn pages() -> impl Strategy<Value = Vec<Vec<u64>>> {
    proptest::collection::vec(proptest::collection::vec(0u64..100, 4), 1..60)
}

proptest! {
    #[test]
    fn the_fast_nodes_have_the_most_accesses_that_so_many_pages_can_have(pages in pages(), size in 1u64..70) {
        let recorded = recorded(tiered(), &pages);
        let nodes = place(&format!("hot:0-1@{}K", 4 * size), &recorded.context());
        let histogram = &recorded.histogram;
        let fast: Vec<usize> = (0..histogram.len()).filter(|p| nodes[*p] < 2).collect();
        prop_assert_eq!(fast.len() as u64, size.min(histogram.len() as u64));
        let mut all: Vec<u64> = histogram.iter().map(|p| p.accesses()).collect();
        all.sort_unstable_by_key(|a| std::cmp::Reverse(*a));
        let had: u64 = fast.iter().map(|p| histogram.page(*p).accesses()).sum();
        prop_assert_eq!(had, all[..fast.len()].iter().sum::<u64>());
    }

    /// No swap of two pages would lower the latency of all accesses together.
    #[test]
    fn no_two_pages_would_be_better_in_each_others_place(pages in pages(), size in 1u64..70) {
        // The gain of the fast nodes is the same for all readers, so that the hottest pages are those that gain most.
        let mut machine = tiered();
        machine.latency_ns = vec![vec![100.0, 100.0, 300.0, 300.0]; 4];
        let recorded = recorded(machine, &pages);
        let nodes = place(&format!("hot:0-1@{}K", 4 * size), &recorded.context());
        let cost = |page: usize, node: u32| {
            recorded.histogram.page(page).accesses() as f64 * recorded.machine.latency_ns[0][node as usize]
        };
        for one in 0..nodes.len() {
            for other in 0..one {
                let now = cost(one, nodes[one]) + cost(other, nodes[other]);
                prop_assert!(now <= cost(one, nodes[other]) + cost(other, nodes[one]));
            }
        }
    }

    #[test]
    fn no_node_has_more_pages_than_memory(pages in pages(), sizes in [(1u64..40), (1u64..40), (1u64..40), (1u64..40)], near in proptest::bool::ANY) {
        let mut machine = tiered();
        for (node, size) in machine.nodes.iter_mut().zip(sizes) {
            node.memory = size * PAGE;
        }
        if near {
            machine.latency_ns[0] = vec![100.0, 350.0, 300.0, 400.0];
        }
        let has: u64 = sizes.iter().sum();
        prop_assume!(pages.len() as u64 <= has);
        let recorded = recorded(machine, &pages);
        for policy in ["hot:0-1", "hot-objects:0-1", "fill:0-1", "hot:cxl", "fill:0@16K"] {
            let nodes = place(policy, &recorded.context());
            for (node, has) in sizes.into_iter().enumerate() {
                let used = nodes.iter().filter(|n| **n == node as u32).count() as u64;
                prop_assert!(used <= has, "{policy}: node {node} has {used} pages of {has}");
            }
        }
    }
}

#[test]
fn a_page_is_near_its_readers_within_its_tier() {
    let pages = [[9, 0, 0, 0], [0, 0, 0, 8], [2, 0, 0, 0], [0, 0, 1, 0]].map(Vec::from);
    let recorded = recorded(tiered(), &pages);
    assert_eq!(place("hot:0-1@8K", &recorded.context()), [0, 1, 2, 3]);
    assert_eq!(place("hot:2-3@8K", &recorded.context()), [2, 3, 0, 1]);
    assert_eq!(place("hot:cxl@8K", &recorded.context()), [2, 3, 0, 1]);
    assert_eq!(place("hot:0-1", &recorded.context()), [0, 1, 0, 1]);
    // All pages are touched by thread 0 first.
    assert_eq!(place("fill:0-1@8K", &recorded.context()), [0, 0, 2, 2]);
}

#[test]
fn another_fast_node_is_taken_only_where_the_slow_ones_cost_more() {
    let mut machine = tiered();
    machine.nodes[0].memory = PAGE;
    let pages = [[9, 0, 0, 0], [8, 0, 0, 0]].map(Vec::from);
    assert_eq!(
        place("hot:0-1", &recorded(machine.clone(), &pages).context()),
        [0, 1]
    );
    machine.latency_ns[0] = vec![100.0, 350.0, 300.0, 400.0];
    assert_eq!(place("hot:0-1", &recorded(machine, &pages).context()), [0, 2]);
}

#[test]
fn lines_make_a_page_hot_not_accesses_that_caches_serve() {
    let pages = [[100, 0, 0, 0], [10, 0, 0, 0]].map(Vec::from);
    let mut recorded = recorded(tiered(), &pages);
    recorded.histogram.entries[1].lines = 5;
    assert_eq!(place("hot:0@4K", &recorded.context()), [1, 0]);
}

#[test]
fn objects_are_placed_as_a_whole_and_the_last_one_is_divided() {
    let heats = [3, 9, 5];
    let of = |heat: u64| move |_: u64, thread: u32| if thread == 0 { heat } else { 0 };
    let objects: Vec<_> = heats.iter().map(|h| of(*h)).collect();
    let patterns: Vec<Pattern<'_>> = objects
        .iter()
        .map(|o| (4, o as &dyn Fn(u64, u32) -> u64))
        .collect();
    let mut recorded = Recorded::new(tiered(), 4, &patterns);
    for entry in &mut recorded.histogram.entries {
        entry.lines = entry.reads as u32;
    }
    let context = recorded.context();
    let fast = |policy: &str| {
        let nodes = place(policy, &context);
        let of = |object: u32| {
            let pages = nodes.iter().zip(&context.histogram.objects);
            pages.filter(|(n, o)| **n == 0 && **o == ObjectId(object)).count()
        };
        [of(1), of(2), of(3)]
    };
    assert_eq!(fast("hot-objects:0@24K"), [0, 4, 2]);
    assert_eq!(fast("hot-objects:0@16K"), [0, 4, 0]);
    assert_eq!(fast("hot-objects:0@1G"), [4, 4, 4]);

    // 9 lines a page are not six times 3: each of the three could be the one that is waited for most.
    let notes = |policy: &str, context: &Context<'_>| {
        page_policy(policy, &context.machine.clone(), &Nothing)
            .unwrap()
            .notes(context)
    };
    assert!(notes("hot-objects:0@16K", &context)[0].contains(": 0.0 % of what it puts there"));
    assert_eq!(notes("hot-objects:0@48K", &context), [""; 0]);
    let mut clear = recorded.clone();
    for (entry, page) in clear.histogram.entries.iter_mut().zip(0..) {
        entry.lines = if (4..8).contains(&page) { 100 } else { 3 };
    }
    assert!(notes("hot-objects:0@32K", &clear.context())[0].contains(": 50.0 % of what it puts there"));
    // A divided object: whatever else is in the tier, it has the rest.
    assert!(notes("hot-objects:0@12K", &clear.context())[0].contains(": 100.0 % of what it puts there"));
}

#[test]
fn what_cannot_be_a_tier_is_refused_in_one_line() {
    for (policy, expected) in [
        ("hot", "name the nodes to fill first"),
        ("hot:0-3", "these are all nodes of test"),
        ("hot:7", "nodes with memory are 0-3 on test"),
        ("hot:", "`` is no list of nodes"),
        (
            "hot:fast",
            "nor a kind of memory (dram, hbm, cxl, device, persistent)",
        ),
        ("hot:0@0", "`0` is less than a page"),
        ("hot:0@4", "`4` is less than a page"),
        ("hot:HBM", "no node of test is said to be hbm"),
        ("fill:0@x", "`x` is no size such as 8G"),
        ("hot-objects:0@-1", "`-1` is no size such as 8G"),
    ] {
        let refused = refusal(policy);
        assert!(
            refused.contains(expected) && refused.starts_with("policy `"),
            "{refused}"
        );
        assert!(!refused.contains('\n'));
    }
    let named = page_policy("hot:0+2@1G", &tiered(), &Nothing).unwrap().name();
    assert_eq!(named, "hot:0+2@1G");
}
