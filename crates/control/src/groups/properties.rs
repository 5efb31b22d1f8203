//! Properties of orders that hold for all samples.

use super::assignment::{Cost, assign};
use super::*;
use nodewise_profile::PageNumber;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn rooms(cpus: &[u32]) -> Vec<Room> {
    let room = |(n, cpus): (usize, &u32)| Room {
        node: NodeId(n as u32),
        cpus: f64::from(*cpus),
    };
    cpus.iter().enumerate().map(room).collect()
}

/// Threads from (process, current node, samples by node), numbered from 0.
fn threads(all: &[(u32, u32, &[f64])]) -> Vec<Thread> {
    let thread = |(number, (process, node, accesses)): (usize, &(u32, u32, &[f64]))| Thread {
        process: *process,
        number: number as u32,
        node: NodeId(*node),
        bound: None,
        load: 1.0,
        accesses: accesses.to_vec(),
    };
    all.iter().enumerate().map(thread).collect()
}

/// Samples in which the threads of each group use pages of their own, one thread after the other.
fn shared(groups: &[&[u32]]) -> Sharing {
    let mut sharing = Sharing::default();
    for (group, members) in groups.iter().enumerate() {
        for round in 0..40 {
            for page in 0..16 {
                let member = members[(round * 7 + page * 3 + round * page) % members.len()];
                sharing.add(PageNumber((group * 1000 + page) as u64), member);
            }
        }
    }
    sharing
}

/// The node of each thread after this decision, if its process got an order.
fn bound(decision: &ThreadDecision, threads: &[Thread]) -> Vec<Option<u32>> {
    let of = |t: &Thread| match decision.orders.get(&t.process)? {
        Order::Bind(nodes) => nodes.get(&t.number).map(|n| n.0),
        Order::Release(_) => None,
    };
    threads.iter().map(of).collect()
}

/// The first decision with an order.
fn confirmed(threads: &[Thread], sharing: &Sharing, rooms: &[Room]) -> ThreadDecision {
    let mut groups = Groups::default();
    let first = groups.step(0, threads, sharing, rooms);
    assert_eq!(first.orders, BTreeMap::new(), "the kernel has the first word");
    let mut step = |second| groups.step(second * SECOND, threads, sharing, rooms);
    let found = (1..6).map(&mut step).find(|decision| !decision.orders.is_empty());
    found.unwrap_or_else(|| step(6))
}

#[test]
fn processes_on_each_others_nodes_change_places_and_no_page_moves() {
    let all = threads(&[
        (1, 0, &[0.0, 99.0]),
        (1, 0, &[0.0, 99.0]),
        (2, 1, &[99.0, 0.0]),
        (2, 1, &[99.0, 0.0]),
    ]);
    let decision = confirmed(&all, &shared(&[&[0, 1], &[2, 3]]), &rooms(&[2, 2]));
    assert_eq!(bound(&decision, &all), [1, 1, 0, 0].map(Some));
    assert_eq!(decision.remote, (1.0, 0.0));
}

#[test]
fn threads_that_share_come_together_where_most_of_their_memory_is() {
    // Both processes' memory is on node 0, and their threads are spread.
    let all = threads(&[
        (1, 0, &[99.0, 0.0]),
        (1, 1, &[99.0, 0.0]),
        (2, 0, &[60.0, 39.0]),
        (2, 1, &[60.0, 39.0]),
    ]);
    let decision = confirmed(&all, &shared(&[&[0, 1], &[2, 3]]), &rooms(&[2, 2]));
    assert_eq!(bound(&decision, &all), [0, 0, 1, 1].map(Some));
    // The same within one process.
    let all: Vec<Thread> = all.into_iter().map(|t| Thread { process: 1, ..t }).collect();
    let decision = confirmed(&all, &shared(&[&[0, 1], &[2, 3]]), &rooms(&[2, 2]));
    assert_eq!(bound(&decision, &all), [0, 0, 1, 1].map(Some));
}

#[test]
fn threads_with_memory_of_their_own_stay_and_memory_follows() {
    let all = threads(&[
        (1, 0, &[99.0, 0.0]),
        (1, 0, &[99.0, 0.0]),
        (1, 1, &[99.0, 0.0]),
        (1, 1, &[99.0, 0.0]),
    ]);
    let decision = confirmed(&all, &shared(&[&[0], &[1], &[2], &[3]]), &rooms(&[2, 2]));
    assert_eq!(bound(&decision, &all), [0, 0, 1, 1].map(Some));
}

#[test]
fn who_is_well_placed_or_cannot_gain_or_is_hardly_known_is_left_alone() {
    let own: [&[u32]; 4] = [&[0], &[1], &[2], &[3]];
    let local = threads(&[
        (1, 0, &[99.0, 2.0]),
        (1, 0, &[99.0, 0.0]),
        (1, 1, &[0.0, 99.0]),
        (1, 1, &[0.0, 99.0]),
    ]);
    assert_eq!(
        confirmed(&local, &shared(&own), &rooms(&[2, 2])).orders,
        BTreeMap::new()
    );
    let all = threads(&[
        (1, 0, &[99.0, 0.0]),
        (1, 0, &[99.0, 0.0]),
        (1, 1, &[99.0, 0.0]),
        (1, 1, &[99.0, 0.0]),
    ]);
    assert_eq!(
        confirmed(&all, &shared(&[&[0, 1, 2, 3]]), &rooms(&[2, 2])).orders,
        BTreeMap::new()
    );
    let few = threads(&[(1, 0, &[0.0, 30.0]), (1, 0, &[0.0, 33.0])]);
    assert_eq!(
        confirmed(&few, &shared(&own), &rooms(&[2, 2])).orders,
        BTreeMap::new()
    );
}

#[test]
fn a_gain_that_goes_by_itself_moves_nothing() {
    let remote = |share: f64| threads(&[(1, 0, &[100.0 - share, share]), (1, 0, &[100.0 - share, share])]);
    let (mut groups, sharing) = (Groups::default(), shared(&[&[0, 1]]));
    for (second, share) in [90.0, 3.0, 60.0, 2.0].into_iter().enumerate() {
        let decision = groups.step(second as u64 * SECOND, &remote(share), &sharing, &rooms(&[2, 2]));
        assert_eq!(decision.orders, BTreeMap::new(), "{share}");
    }
}

#[test]
fn what_made_it_worse_is_undone_and_not_soon_repeated() {
    let at = |node: u32, accesses: &[f64], bound: Option<u32>| -> Vec<Thread> {
        let all = threads(&[(1, node, accesses), (1, node, accesses)]);
        let each = |t: Thread| Thread {
            bound: bound.map(NodeId),
            ..t
        };
        all.into_iter().map(each).collect()
    };
    let (mut groups, sharing, rooms) = (Groups::default(), shared(&[&[0, 1]]), rooms(&[2, 2]));
    let before = at(0, &[400.0, 600.0], None);
    // Nothing is ordered for five steps, as the memory of the group may still come to it.
    for second in 0..5 {
        assert_eq!(
            groups.step(second * SECOND, &before, &sharing, &rooms).orders,
            BTreeMap::new()
        );
    }
    assert!(matches!(
        groups.step(5 * SECOND, &before, &sharing, &rooms).orders[&1],
        Order::Bind(_)
    ));
    let worse = at(1, &[900.0, 100.0], Some(1));
    for second in 6..13 {
        assert_eq!(
            groups
                .step(second * SECOND, &worse, &sharing, &rooms)
                .orders
                .get(&1),
            None,
            "{second}"
        );
    }
    assert_eq!(
        groups.step(13 * SECOND, &worse, &sharing, &rooms).orders[&1],
        Order::Release(Why::MoreRemote)
    );
    for second in 14..43 {
        assert_eq!(
            groups
                .step(second * SECOND, &before, &sharing, &rooms)
                .orders
                .get(&1),
            None,
            "{second}"
        );
    }
}

#[test]
fn threads_that_wait_for_cpus_of_their_node_are_let_go_where_others_have_some() {
    // Four threads inherited the binding of a thread that was the only active one when it was bound.
    let bound = |count: u32| -> Vec<Thread> {
        let all = threads(&vec![(1, 0, &[99.0, 0.0][..]); count as usize]);
        let each = |t: Thread| Thread {
            bound: Some(NodeId(0)),
            ..t
        };
        all.into_iter().map(each).collect()
    };
    let (mut groups, sharing, rooms) = (Groups::default(), shared(&[&[0, 1, 2, 3]]), rooms(&[2, 2]));
    for second in 0..4 {
        assert_eq!(
            groups.step(second * SECOND, &bound(2), &sharing, &rooms).orders,
            BTreeMap::new()
        );
    }
    assert_eq!(
        groups.step(4 * SECOND, &bound(4), &sharing, &rooms).orders,
        BTreeMap::new()
    );
    let decision = groups.step(5 * SECOND, &bound(4), &sharing, &rooms);
    assert_eq!(decision.orders[&1], Order::Release(Why::Overfull));
}

/// A process whose memory is on node 0, and one of which little is known; the threads of both are on both nodes.
fn in_each_others_way() -> Vec<Thread> {
    threads(&[
        (1, 0, &[99.0, 0.0]),
        (1, 1, &[99.0, 0.0]),
        (2, 0, &[0.0, 5.0]),
        (2, 1, &[0.0, 5.0]),
    ])
}

#[test]
fn a_process_that_is_in_the_way_of_one_that_gains_makes_room() {
    let decision = confirmed(
        &in_each_others_way(),
        &shared(&[&[0, 1], &[2, 3]]),
        &rooms(&[2, 2]),
    );
    assert_eq!(bound(&decision, &in_each_others_way()), [0, 0, 1, 1].map(Some));
}

#[test]
fn a_process_waits_for_room_as_long_as_the_one_in_its_way_may_not_be_moved() {
    let (mut groups, sharing, rooms) = (Groups::default(), shared(&[&[0, 1], &[2, 3]]), rooms(&[2, 2]));
    let known = threads(&[
        (3, 0, &[0.0, 0.0]),
        (3, 0, &[0.0, 0.0]),
        (2, 0, &[0.0, 99.0]),
        (2, 1, &[0.0, 99.0]),
    ]);
    let mut step = |second: u64, all: &[Thread]| groups.step(second * SECOND, all, &sharing, &rooms).orders;
    assert_eq!(step(0, &known[2..]), BTreeMap::new());
    assert!(step(1, &known[2..]).contains_key(&2));
    // Somebody else has spread its threads again, and the first process has come.
    let all = in_each_others_way();
    for second in 2..9 {
        assert_eq!(step(second, &all), BTreeMap::new(), "{second} s");
    }
    assert_eq!(step(9, &all).into_keys().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn a_process_that_made_room_gets_its_cpus_back_when_the_move_is_undone() {
    let (mut groups, sharing, rooms) = (Groups::default(), shared(&[&[0, 1], &[2, 3]]), rooms(&[2, 2]));
    let before = in_each_others_way();
    let mut step = |second: u64, all: &[Thread]| groups.step(second * SECOND, all, &sharing, &rooms).orders;
    let acted = (0..9).find(|second| !step(*second, &before).is_empty()).unwrap();
    // The first process's memory has gone to the other node meanwhile: what it gained by is gone.
    let after: Vec<Thread> = in_each_others_way()
        .into_iter()
        .map(|t| Thread {
            node: NodeId(t.process - 1),
            bound: Some(NodeId(t.process - 1)),
            accesses: if t.process == 1 {
                vec![0.0, 99.0]
            } else {
                t.accesses
            },
            ..t
        })
        .collect();
    let found = (acted + 1..acted + 12)
        .map(|second| step(second, &after))
        .find(|orders| !orders.is_empty());
    let released = found.expect("an order");
    assert_eq!(released[&1], Order::Release(Why::MoreRemote));
    assert!(matches!(released[&2], Order::Release(_)), "{released:?}");
}

#[test]
fn with_more_threads_than_cpus_work_is_shared_out() {
    let all: Vec<Thread> = (0..8)
        .map(|number| Thread {
            process: number / 4,
            number,
            node: NodeId(number % 2),
            load: 0.5,
            accesses: vec![99.0, 0.0],
            ..Thread::default()
        })
        .collect();
    let decision = confirmed(&all, &shared(&[&[0, 1, 2, 3], &[4, 5, 6, 7]]), &rooms(&[2, 2]));
    let nodes = bound(&decision, &all);
    assert!(
        nodes[..4].iter().all(|n| *n == nodes[0]) && nodes[4..].iter().all(|n| *n == nodes[4]),
        "{nodes:?}"
    );
    assert_ne!(nodes[0], nodes[4]);
}

#[test]
fn a_thousand_threads_are_placed_in_no_time_to_speak_of() {
    let all: Vec<Thread> = (0..1000)
        .map(|number| Thread {
            process: 1,
            number,
            node: NodeId(number % 8),
            load: 1.0,
            accesses: (0..8).map(|n| f64::from(u32::from(n == number / 125))).collect(),
            ..Thread::default()
        })
        .collect();
    let sharing = Sharing::default();
    let cost = Cost::new(&all, &sharing);
    let found = assign(&cost, &rooms(&[125; 8])).unwrap();
    assert!(cost.remote_now(&found) < 0.01);
}

proptest! {
    #[test]
    fn nodes_are_never_overfull_and_nothing_is_worse_than_it_was(
        nodes in prop::collection::vec(0u32..4, 1..12),
        samples in prop::collection::vec(prop::collection::vec(0.0f64..100.0, 4), 12),
        uses in prop::collection::vec((0u64..20, 0u32..12), 0..200),
        spare in 0u32..3,
    ) {
        let all: Vec<Thread> = nodes
            .iter()
            .enumerate()
            .map(|(i, node)| Thread {
                process: i as u32 % 3,
                number: i as u32,
                node: NodeId(*node),
                load: 1.0,
                accesses: samples[i].clone(),
                ..Thread::default()
            })
            .collect();
        let mut sharing = Sharing::default();
        uses.iter().for_each(|(page, thread)| sharing.add(PageNumber(*page), *thread));
        // Enough room for where the threads are, and some more.
        let cpus: Vec<u32> = (0..4).map(|n| nodes.iter().filter(|m| **m == n).count() as u32 + spare).collect();
        let cost = Cost::new(&all, &sharing);
        let found = assign(&cost, &rooms(&cpus)).unwrap();
        for (node, cpus) in cpus.iter().enumerate() {
            let there = found.iter().filter(|n| n.index() == node).count() as u32;
            prop_assert!(there <= *cpus, "{there} on node {node}, which has {cpus}");
        }
        let worth = |n: &[NodeId]| cost.remote_later(n) + 0.25 * cost.remote_now(n);
        prop_assert!(worth(&found) <= worth(&cost.current()) + 0.011);
        let mut groups = Groups::default();
        for second in 0..9 {
            let orders = groups.step(second * SECOND, &all, &sharing, &rooms(&cpus)).orders;
            let place = |t: &Thread| match orders.get(&t.process) {
                Some(Order::Bind(nodes)) => nodes[&t.number],
                _ => t.node,
            };
            let after: Vec<NodeId> = all.iter().map(place).collect();
            prop_assert!(overfull(&all, &rooms(&cpus), &after).is_empty(), "{orders:?}");
        }
        let whole = cost.of(&found, |_| true);
        prop_assert!((whole.remote_later - cost.remote_later(&found)).abs() < 1e-9);
    }
}
