//! Properties that all page policies guarantee, and the behaviour of each one.

use super::*;
use crate::fixtures::{Recorded, machine};
use nodewise_analysis::{Metrics, measure};
use nodewise_machine::NodeId;
use proptest::prelude::*;

const NODES: u32 = 4;

fn policy(text: &str) -> Box<dyn PagePolicy> {
    page_policy(text, &machine(NODES, 2), &Nothing).unwrap_or_else(|e| panic!("{e}"))
}

fn metrics(recorded: &Recorded, policy: &str) -> Metrics {
    let context = recorded.context();
    let homes = self::policy(policy).place(&context).nodes;
    let nodes = recorded.machine.node_count();
    measure(
        context.profile,
        context.histogram,
        context.affinity,
        &homes,
        nodes,
    )
    .program
}

/// A recording of one object, whose pages have these accesses by thread.
fn recorded(pages: &[Vec<u64>]) -> Recorded {
    let accesses = |page: u64, thread: u32| pages[page as usize][thread as usize];
    Recorded::new(machine(NODES, 2), 8, &[(pages.len() as u64, &accesses)])
}

fn pages() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let accesses = prop_oneof![3 => Just(0u64), 2 => 0u64..9, 1 => 0u64..1000];
    proptest::collection::vec(proptest::collection::vec(accesses, 8), 1..80)
}

/// Algorithm 1, line by line.
fn algorithm_1(pages: &[Vec<u64>]) -> Vec<u32> {
    let n = NODES as usize;
    let by_node: Vec<Vec<u64>> = pages
        .iter()
        .map(|p| p.chunks(2).map(|c| c.iter().sum()).collect())
        .collect();
    let total_acc: u64 = by_node.iter().flatten().sum();
    let mut sorted: Vec<usize> = (0..pages.len())
        .filter(|p| by_node[*p].iter().sum::<u64>() > 0)
        .collect();
    sorted.sort_by_key(|p| std::cmp::Reverse(by_node[*p].iter().sum::<u64>()));
    let mut acc_node = vec![0u64; n];
    let mut node = vec![0; pages.len()];
    for p in sorted {
        let mut candidates: Vec<usize> = (0..n).collect();
        candidates.sort_by_key(|c| std::cmp::Reverse(by_node[p][*c]));
        let chosen = candidates
            .into_iter()
            .find(|c| acc_node[*c] * n as u64 <= total_acc)
            .unwrap();
        node[p] = chosen as u32;
        acc_node[chosen] += by_node[p].iter().sum::<u64>();
    }
    node.into_iter()
        .zip(by_node)
        .filter(|(_, p)| p.iter().sum::<u64>() > 0)
        .map(|(n, _)| n)
        .collect()
}

proptest! {
    #[test]
    fn every_mapping_is_total_and_repeatable(pages in pages()) {
        let recorded = recorded(&pages);
        for policy in page_policies("all,random:7,node:3,mixed:0.5,cyclic,skew,prime,prime:11,bind-block", &recorded.machine, &Nothing).unwrap() {
            let mapping = policy.place(&recorded.context());
            prop_assert_eq!(mapping.nodes.len(), recorded.histogram.len());
            prop_assert!(mapping.nodes.iter().all(|n| n.0 < NODES));
            prop_assert_eq!(&mapping, &policy.place(&recorded.context()));
            prop_assert_eq!(mapping.policy, policy.name());
        }
    }

    #[test]
    fn locality_has_the_largest_local_fraction(pages in pages()) {
        let recorded = recorded(&pages);
        let best = metrics(&recorded, "locality");
        prop_assert_eq!(best.local, best.exclusive);
        for policy in POLICIES.iter().filter(|k| k.compared) {
            prop_assert!(metrics(&recorded, policy.name).local <= best.local, "{}", policy.name);
        }
        prop_assert_eq!(metrics(&recorded, "frequency").local, best.local);
    }

    #[test]
    fn balanced_is_algorithm_1(pages in pages()) {
        let nodes = policy("balanced").place(&recorded(&pages).context()).nodes;
        prop_assert_eq!(nodes.into_iter().map(|n| n.0).collect::<Vec<_>>(), algorithm_1(&pages));
    }

    #[test]
    fn balanced_overshoots_by_one_page_at_most(pages in pages()) {
        let recorded = recorded(&pages);
        let m = metrics(&recorded, "balanced");
        let largest = recorded.histogram.iter().map(|p| p.accesses()).max().unwrap_or(0);
        let share = m.accesses() / u64::from(NODES);
        prop_assert!(m.home_accesses.iter().all(|a| *a <= share + largest));
        // The difference between the extremes is bounded in turn: the smallest load is what the others leave.
        let slack = u64::from(NODES) * largest;
        prop_assert!(m.access_balance() >= 1.0 - (slack + u64::from(NODES)) as f64 / m.accesses().max(1) as f64);
    }

    #[test]
    fn mixed_at_its_ends_is_locality_and_interleave(pages in pages()) {
        let recorded = recorded(&pages);
        let place = |p: &str| policy(p).place(&recorded.context()).nodes;
        prop_assert_eq!(place("mixed:0"), place("locality"));
        prop_assert_eq!(place("mixed:1"), place("interleave"));
    }

    #[test]
    fn interleave_is_even_over_consecutive_pages(count in 1usize..200) {
        let m = metrics(&recorded(&vec![vec![1; 8]; count]), "interleave");
        let (most, least) = (m.home_pages.iter().max().unwrap(), m.home_pages.iter().min().unwrap());
        prop_assert!(most - least <= 1);
    }

    #[test]
    fn larger_decisions_never_gain_locality(pages in pages()) {
        let fine = recorded(&pages);
        let mut coarse = fine.clone();
        coarse.histogram = coarse.histogram.coarsened(9);
        prop_assert!(metrics(&coarse, "locality").local <= metrics(&fine, "locality").local);
    }
}

#[test]
fn first_touch_follows_its_thread_and_frequency_leaves_ties_to_it() {
    let mut pages = vec![vec![0; 8]; 3];
    (pages[0][4], pages[1][0], pages[1][1], pages[1][7], pages[2][3]) = (9, 1, 1, 2, 1);
    let mut recorded = recorded(&pages);
    recorded.profile.first_touches[0].thread = nodewise_profile::ThreadId(7);
    let place = |p: &str| {
        let mapping = policy(p).place(&recorded.context());
        mapping.nodes.into_iter().map(|n| n.0).collect::<Vec<_>>()
    };
    assert_eq!(place("first-touch"), [3, 3, 3]);
    assert_eq!(place("locality"), [2, 0, 1]);
    assert_eq!(place("frequency"), [2, 3, 1]);
    assert_eq!(place("round-robin"), [0, 1, 2]);
    recorded.profile.objects[1].kind = nodewise_profile::ObjectKind::Stack;
    let frequency = policy("frequency").place(&recorded.context());
    assert_eq!(frequency.nodes, [3, 3, 3].map(NodeId));
}

#[test]
fn weights_are_shares_of_bandwidth_and_each_turn_is_in_a_row() {
    // 1, 2, 3, 4 GB/s: 3.2, 6.4, 9.6, 12.8 of 32.
    assert_eq!(weighted::weights(&machine(4, 1)), [3, 6, 10, 13]);
    assert_eq!(weighted::weights(&machine(1, 1)), [1]);
    let m = metrics(&recorded(&vec![vec![1; 8]; 64]), "weighted");
    assert_eq!(m.home_pages, [6, 12, 20, 26]);
}

#[test]
fn random_depends_on_its_seed_alone() {
    let recorded = recorded(&vec![vec![1; 8]; 400]);
    let place = |p: &str| policy(p).place(&recorded.context()).nodes;
    assert_eq!(place("random"), place("random:0"));
    assert_ne!(place("random:1"), place("random:2"));
    assert!(
        metrics(&recorded, "random")
            .home_pages
            .iter()
            .all(|p| (60..140).contains(p))
    );
}

#[test]
fn mai_policies_deal_each_array_from_its_own_first_page() {
    let all = |_: u64, _: u32| 1;
    let mut recorded = Recorded::new(machine(NODES, 2), 8, &[(8, &all), (8, &all)]);
    let place = |recorded: &Recorded, p: &str| {
        let mapping = policy(p).place(&recorded.context());
        mapping.nodes.into_iter().map(|n| n.0).collect::<Vec<_>>()
    };
    for (policy, one) in [
        ("cyclic", [0, 1, 2, 3, 0, 1, 2, 3]),
        ("skew", [0, 1, 2, 3, 1, 2, 3, 0]),
        ("prime", [0, 1, 2, 3, 0, 0, 1, 2]),
        ("prime:7", [0, 1, 2, 3, 0, 1, 2, 0]),
        ("bind-block", [0, 0, 1, 1, 2, 2, 3, 3]),
    ] {
        assert_eq!(place(&recorded, policy), [one, one].concat(), "{policy}");
    }
    assert_eq!(policy("prime").name(), "prime:5");
    recorded.profile.objects[2].kind = nodewise_profile::ObjectKind::Stack;
    assert_eq!(place(&recorded, "bind-block")[8..], [0; 8]);
}

#[test]
fn a_map_of_a_mai_policy_is_one_word_an_array() {
    let all = |_: u64, _: u32| 1;
    let recorded = Recorded::new(machine(NODES, 2), 8, &[(640, &all)]);
    for (name, rule) in [
        ("skew", "skew 0,1,2,3"),
        ("prime:13", "prime 13 0,1,2,3"),
        ("bind-block", "block by thread"),
    ] {
        let mapping = policy(name).place(&recorded.context());
        let placement = crate::recognise(&recorded.context(), &mapping).placement;
        assert_eq!(placement.rules[0].distribution.to_string(), rule);
        assert!(placement.rules[0].runs.is_empty());
    }
}

#[test]
fn names_are_read_as_written_and_lists_expanded() {
    let names = |list: &str| -> Vec<String> {
        page_policies(list, &machine(NODES, 2), &Nothing)
            .unwrap()
            .iter()
            .map(|p| p.name())
            .collect()
    };
    assert_eq!(
        names("mixed, node:3,locality,mixed:0.90"),
        ["mixed:0.9", "node:3", "locality"]
    );
    assert_eq!(
        names("mixed:0.97..0.99"),
        ["mixed:0.97", "mixed:0.98", "mixed:0.99"]
    );
    assert_eq!(names("all").len(), POLICIES.iter().filter(|k| k.compared).count());
}

#[test]
fn bad_names_are_refused_in_one_line() {
    let error = |text: &str| {
        page_policies(text, &machine(NODES, 2), &Nothing)
            .err()
            .unwrap()
            .to_string()
    };
    assert_eq!(
        error("nearest"),
        "unknown policy `nearest`; known: first-touch, random[:SEED], interleave, round-robin, locality, balanced, \
         mixed[:MIN_EXCLUSIVITY], frequency, weighted[:readers], cyclic, skew, prime[:P], bind-block, hot:NODES[@SIZE], hot-objects:NODES[@SIZE], fill:NODES[@SIZE], node:N, map:FILE, mirror[:OBJECTS][@NODES] and instances (simulate, report), ./LIBRARY.so"
    );
    assert_eq!(
        error("node:4"),
        "policy `node:4`: test has nodes 0 to 3; write node:N"
    );
    assert_eq!(
        error("locality:2"),
        "policy `locality:2` takes no parameter: write `locality`"
    );
    assert_eq!(
        error("mixed:90"),
        "mixed:90: the least exclusivity is a number from 0 to 1, such as 0.9"
    );
    assert_eq!(
        error("random:x"),
        "policy `random:x`: the seed must be a whole number"
    );
    assert_eq!(
        error("prime:9"),
        "policy `prime:9`: test has 4 nodes; write a prime from there on, such as prime:5"
    );
    assert_eq!(error("map"), "policy `map` needs a file: write map:FILE");
    assert_eq!(error("./p.so"), "./p.so: shared libraries cannot be loaded here");
}

#[test]
fn a_user_policy_that_misbehaves_is_refused() {
    let recorded = recorded(&[vec![1; 8], vec![1; 8]]);
    let answer = |nodes: Result<Vec<u32>, String>| {
        Custom::new("./p.so", Box::new(move |_| nodes.clone())).try_place(&recorded.context())
    };
    assert_eq!(answer(Ok(vec![3, 0])).unwrap().nodes, [3, 0].map(NodeId));
    assert_eq!(
        answer(Ok(vec![3])).unwrap_err().to_string(),
        "./p.so: gave 1 nodes for 2 pages"
    );
    assert_eq!(
        answer(Ok(vec![0, 4])).unwrap_err().to_string(),
        "./p.so: put page 1 on node 4, but test has nodes 0 to 3"
    );
    assert_eq!(answer(Err("no".into())).unwrap_err().to_string(), "./p.so: no");
}
