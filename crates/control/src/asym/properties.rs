//! Properties that the scheduler guarantees.

use super::*;
use nodewise_machine::{Channels, Machine};
use nodewise_placement::asym::{NodePlacement, Place, weighted_bandwidth};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const GB: u64 = 1_000_000_000;

fn machine() -> Machine {
    Machine::named("machine-a").unwrap()
}

fn places(nodes: &[u32]) -> Vec<Place> {
    let place = |n: &u32| Place {
        node: NodeId(*n),
        threads: 8,
    };
    nodes.iter().map(place).collect()
}

fn all_places() -> Vec<Place> {
    places(&[0, 1, 2, 3, 4, 5, 6, 7])
}

fn cluster(at: &[u32], weight: f64, bytes: u64) -> Cluster {
    let mut resident = vec![0; 8];
    at.iter().for_each(|n| resident[*n as usize] = bytes);
    Cluster {
        threads: (0..8 * at.len() as u32).collect(),
        nodes: at.len(),
        weight,
        at: at.iter().copied().map(NodeId).collect(),
        resident,
        ..Cluster::default()
    }
}

fn application(id: u32, clusters: Vec<Cluster>, run_s: u64) -> Application {
    Application {
        id,
        clusters,
        run_ns: run_s * SECOND,
        accesses: vec![1.0; 8],
    }
}

/// Moves threads as decided, and their memory with them.
fn carry_out(applications: &mut [Application], decision: &Decision) {
    for application in &mut *applications {
        for (index, cluster) in application.clusters.iter_mut().enumerate() {
            if cluster.on.is_empty() && cluster.at.len() == cluster.nodes {
                let threads_of = |v: usize| vec![cluster.at[v]; cluster.threads_of(v).len()];
                cluster.on = (0..cluster.nodes).flat_map(threads_of).collect();
            }
            for each in &decision.moves {
                if (each.application, each.cluster) != (application.id, index) {
                    continue;
                }
                cluster.on.resize(cluster.threads.len(), each.to);
                for (thread, on) in cluster.threads.iter().zip(&mut cluster.on) {
                    if each.threads.contains(thread) {
                        assert!(each.from.is_none_or(|n| n == *on), "{each:?} from {on}");
                        *on = each.to;
                    }
                }
            }
            cluster.at = (0..cluster.nodes)
                .map(|v| cluster.on[cluster.threads_of(v).start])
                .collect();
            let bytes = cluster.resident.iter().copied().max().unwrap_or(0);
            cluster.resident.fill(0);
            for node in cluster.occupied_nodes() {
                cluster.resident[node.index()] = bytes;
            }
        }
    }
}

fn objective(applications: &[Application]) -> f64 {
    let clusters: Vec<Cluster> = applications.iter().flat_map(|a| a.clusters.clone()).collect();
    let channels = Channels::of(&machine());
    weighted_bandwidth(&channels, &clusters, &NodePlacement::current(&clusters))
}

#[test]
fn a_bad_start_is_left_for_a_good_placement_and_then_all_is_quiet() {
    let mut scheduler = Scheduler::new(&machine(), Settings::default());
    let mut both = vec![
        application(0, vec![cluster(&[0, 3, 5], 18.0, GB / 10)], 100),
        application(1, vec![cluster(&[1, 2], 18.0, GB / 10)], 100),
    ];
    let before = objective(&both);
    let first = scheduler.step(0, &all_places(), &both);
    assert!(
        first.then > first.now * 1.1 && first.then >= 0.9 * first.best,
        "{first:?}"
    );
    assert!((first.now - before).abs() < 1e-6 * before);
    assert!(!first.dynamic.is_empty() && first.full.is_empty() && first.refused.is_empty());
    carry_out(&mut both, &first);
    assert!((objective(&both) - first.then).abs() < 1e-6 * first.then);
    for second in 1..20 {
        both.iter_mut().for_each(|a| a.run_ns += SECOND);
        let next = scheduler.step(second * SECOND, &all_places(), &both);
        assert_eq!(next.moves, [], "second {second}");
    }
}

#[test]
fn who_has_nothing_to_gain_stays_even_on_the_worst_nodes() {
    let mut scheduler = Scheduler::new(&machine(), Settings::default());
    let both = [
        application(0, vec![cluster(&[0, 3, 5], 0.0, 0)], 100),
        application(1, vec![cluster(&[1, 2], 0.0, 0), cluster(&[7], 20.0, 0)], 100),
    ];
    let decision = scheduler.step(0, &all_places(), &both);
    assert_eq!(
        (decision.moves, decision.dynamic, decision.best),
        (vec![], vec![], 0.0)
    );
}

#[test]
fn memory_that_does_not_follow_in_two_seconds_is_moved_as_a_whole_once() {
    let mut scheduler = Scheduler::new(&machine(), Settings::default());
    let mut one = vec![application(7, vec![cluster(&[0, 3], 18.0, GB / 10)], 100)];
    let first = scheduler.step(0, &all_places(), &one);
    let from: Vec<NodeId> = first.moves.iter().filter_map(|m| m.from).collect();
    carry_out(&mut one, &first);
    // All memory that it uses is still on its old nodes.
    one[0].accesses = (0..8).map(|n| f64::from(from.contains(&NodeId(n)))).collect();
    assert_eq!(scheduler.step(SECOND, &all_places(), &one).full, []);
    let full = scheduler.step(2 * SECOND, &all_places(), &one).full;
    let moved: Vec<NodeId> = full[0].from.iter().map(|p| p.0).collect();
    assert_eq!((full.len(), full[0].application, full[0].old_share), (1, 7, 1.0));
    assert!(from.iter().all(|n| moved.contains(n)));
    assert_eq!(scheduler.step(9 * SECOND, &all_places(), &one).full, []);
}

#[test]
fn memory_that_followed_is_left_to_follow() {
    let mut scheduler = Scheduler::new(&machine(), Settings::default());
    let mut one = vec![application(7, vec![cluster(&[0, 3], 18.0, GB / 10)], 100)];
    let first = scheduler.step(0, &all_places(), &one);
    assert!(!first.moves.is_empty());
    carry_out(&mut one, &first);
    assert_eq!(scheduler.step(5 * SECOND, &all_places(), &one).full, []);
}

#[test]
fn who_may_not_move_for_its_cost_stays_and_the_sum_says_why() {
    let mut scheduler = Scheduler::new(&machine(), Settings::default());
    // Moving 17 GB of one node takes 5.1 s; after 100 s, 5 s may be spent.
    let both = [
        application(0, vec![cluster(&[0, 3, 5], 18.0, 17 * GB)], 100),
        application(1, vec![cluster(&[1, 2], 18.0, GB / 10)], 100),
    ];
    let decision = scheduler.step(0, &all_places(), &both);
    assert!(!decision.moves.is_empty());
    assert!(decision.moves.iter().all(|m| m.application == 1), "{decision:?}");
    assert!(decision.moves.iter().all(|m| ![0, 3, 5].contains(&m.to.0)));
    let refused = decision.refused[0];
    assert_eq!((refused.application, refused.allowed_ns), (0, 5e9));
    assert!(refused.predicted_ns > 4e9);
    assert!(
        refused.to_string().starts_with("application 0 stays: moving "),
        "{refused}"
    );
    // After ten minutes the budget suffices.
    let later = both.map(|a| Application {
        run_ns: 600 * SECOND,
        ..a
    });
    let decision = scheduler.step(100 * SECOND, &all_places(), &later);
    assert!(decision.moves.iter().any(|m| m.application == 0), "{decision:?}");
}

#[test]
fn two_may_be_refused_at_once() {
    let mut scheduler = Scheduler::new(&machine(), Settings::default());
    let both = [
        application(0, vec![cluster(&[0, 3, 5], 18.0, 17 * GB)], 100),
        application(1, vec![cluster(&[1, 2], 18.0, 20 * GB)], 100),
    ];
    let decision = scheduler.step(0, &all_places(), &both);
    let refused: Vec<u32> = decision.refused.iter().map(|r| r.application).collect();
    assert_eq!((refused.len(), decision.moves.len()), (2, 0), "{decision:?}");
    assert!(refused.contains(&0) && refused.contains(&1));
    assert!((decision.then - decision.now).abs() < 1e-6 * decision.now);
}

#[test]
fn however_many_are_too_dear_they_are_all_refused_and_the_cheap_one_moves() {
    let mut scheduler = Scheduler::new(&machine(), Settings::default());
    let one = |id: u32, at: u32, bytes| application(id, vec![cluster(&[at], 9.0, bytes)], 100);
    // The first application would get better nodes if others left theirs.
    let mut all = vec![application(9, vec![cluster(&[0, 3], 20.0, 0)], 100)];
    all.extend([1, 2, 4, 5, 6, 7].map(|n| one(n, n, 90 * GB)));
    let decision = scheduler.step(0, &all_places(), &all);
    assert!(decision.moves.iter().all(|m| m.application == 9), "{decision:?}");
    assert_eq!(decision.trouble, None);
    let ids: std::collections::BTreeSet<u32> = decision.refused.iter().map(|r| r.application).collect();
    assert_eq!(ids.len(), decision.refused.len(), "each once");
}

#[test]
fn memory_of_a_node_goes_where_its_threads_went_by_their_share() {
    let mut scheduler = Scheduler::new(&machine(), Settings::default());
    // Two thirds of the threads of node 3 belong to the first virtual node; those of the second are on both.
    let mut crowd = cluster(&[3, 3], 18.0, GB / 100);
    crowd.threads = (0..12).collect();
    crowd.ends = vec![8, 12];
    let mut one = [application(7, vec![crowd], 100)];
    let nodes = places(&[0, 1, 2, 4, 5, 6, 7]);
    let first = scheduler.step(0, &nodes, &one);
    let to: Vec<(usize, NodeId)> = first.moves.iter().map(|m| (m.threads.len(), m.to)).collect();
    assert_eq!(to.len(), 2, "{first:?}");
    carry_out(&mut one, &first);
    one[0].accesses = (0..8).map(|n| f64::from(n == 3)).collect();
    let full = scheduler.step(2 * SECOND, &nodes, &one).full.remove(0);
    let mut shares: Vec<(NodeId, f64)> = to.iter().map(|(n, to)| (*to, *n as f64 / 12.0)).collect();
    shares.sort_by_key(|s| s.0);
    assert_eq!(full.from, [(NodeId(3), shares)]);
}

#[test]
fn a_node_that_some_threads_came_to_is_not_left() {
    let chain = Cluster {
        threads: vec![0, 1],
        ..cluster(&[0, 1], 1.0, 0)
    };
    let order = cluster_moves::ClusterMove {
        cluster: &chain,
        to: &[1, 2].map(NodeId),
        stays_on: None,
    };
    let moves = order.moves(0, 0);
    assert_eq!(moves.len(), 2);
    let left = cluster_moves::vacated_nodes(&[order], &moves);
    assert_eq!(left, [(NodeId(0), vec![(NodeId(1), 1.0)])]);
}

#[test]
fn a_node_that_vanished_is_left_whatever_that_costs() {
    let mut scheduler = Scheduler::new(&machine(), Settings::default());
    let mut both = vec![
        application(0, vec![cluster(&[0, 1, 2], 18.0, 50 * GB)], 1),
        application(1, vec![cluster(&[4, 5], 18.0, 50 * GB)], 1),
    ];
    let decision = scheduler.step(0, &places(&[0, 1, 2, 3, 4, 6, 7]), &both);
    carry_out(&mut both, &decision);
    assert!(
        both[1].clusters[0].at.contains(&NodeId(4)),
        "no further than it has to: {decision:?}"
    );
    assert_eq!(decision.refused, [], "who moves is not said to stay");
    assert_eq!(
        both[0].clusters[0].at,
        [0, 1, 2].map(NodeId),
        "nothing happened to this one"
    );
    assert!(
        decision
            .moves
            .iter()
            .all(|m| m.application == 1 && m.to != NodeId(5))
    );
    assert!(!both[1].clusters[0].at.contains(&NodeId(5)));
}

#[test]
fn what_keeps_changing_back_and_forth_is_followed_ever_less() {
    let mut scheduler = Scheduler::new(&machine(), Settings::default());
    // Two nodes with a wide link between them, two without.
    let mut both = vec![
        application(0, vec![cluster(&[0, 1], 1.0, 0)], 100),
        application(1, vec![cluster(&[3, 6], 1.0, 0)], 100),
    ];
    let nodes = places(&[0, 1, 3, 6]);
    let mut moved = Vec::new();
    for second in 0..400u64 {
        let heavy = usize::from(second / 2 % 2 == 1);
        both[heavy].clusters[0].weight = 20.0;
        both[1 - heavy].clusters[0].weight = 0.1;
        let decision = scheduler.step(second * SECOND, &nodes, &both);
        if !decision.moves.is_empty() {
            moved.push(second);
        }
        carry_out(&mut both, &decision);
    }
    assert!(moved.len() <= 16, "{moved:?}");
    // But it is eventually moved again.
    assert!(moved.iter().any(|second| *second >= 300), "{moved:?}");
}

#[test]
fn what_cannot_be_decided_is_one_line_and_moves_nothing() {
    let mut scheduler = Scheduler::new(&machine(), Settings::default());
    let one = [application(0, vec![cluster(&[0, 1, 2], 18.0, 0)], 100)];
    let decision = scheduler.step(0, &places(&[4, 5]), &one);
    assert_eq!(decision.moves, []);
    let trouble = decision.trouble.unwrap();
    assert!(trouble.contains("need 3 nodes, but only 2 are free"), "{trouble}");
    let trouble = scheduler.step(1, &[], &one).trouble.unwrap();
    assert!(trouble.starts_with("no node is left for threads"), "{trouble}");
    let nothing = scheduler.step(2, &all_places(), &[]);
    let searched = Counts::default();
    assert_eq!(Decision { searched, ..nothing }, Decision::default());
}

/// One or two applications, some pinned, on nodes that they do not share.
fn anything() -> impl Strategy<Value = Vec<Application>> {
    let order = Just((0..8u32).collect::<Vec<_>>()).prop_shuffle();
    let each = || {
        (
            1usize..4,
            0.0f64..20.0,
            0u64..20 * GB,
            proptest::bool::weighted(0.2),
        )
    };
    (order, proptest::collection::vec(each(), 1..4)).prop_map(|(nodes, each)| {
        let mut left = &nodes[..];
        let mut all = Vec::new();
        for (id, (size, weight, bytes, fixed)) in each.into_iter().enumerate() {
            if size <= left.len() {
                let (at, rest) = left.split_at(size);
                left = rest;
                let one = Cluster {
                    fixed,
                    ..cluster(at, weight, bytes)
                };
                all.push(application(id as u32, vec![one], 0));
            }
        }
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn none_share_a_node_none_is_overspent_and_the_fixed_stay(
        mut applications in anything(),
        weights in proptest::collection::vec((0.0f64..20.0, 0.0f64..20.0, 0.0f64..20.0), 1..12),
        steps in proptest::collection::vec((0u64..30, 0usize..9, any::<bool>()), 12),
        dear in 0.1f64..4.0,
    ) {
        let mut scheduler = Scheduler::new(&machine(), Settings::default());
        let (mut now, mut run_s) = (1000 * SECOND, 0);
        let mut spent = [0u64; 3];
        for ((a, b, c), (passed, gone, back)) in weights.into_iter().zip(steps) {
            now = if back { now.saturating_sub(passed * SECOND) } else { now + passed * SECOND };
            run_s += passed;
            for (application, weight) in applications.iter_mut().zip([a, b, c]) {
                application.run_ns = run_s * SECOND;
                application.clusters[0].weight = weight;
            }
            let nodes: Vec<u32> = (0..8).filter(|n| *n as usize != gone).collect();
            let before = applications.clone();
            let decision = scheduler.step(now, &places(&nodes), &applications);
            carry_out(&mut applications, &decision);
            let mut taken: Vec<NodeId> = applications.iter().flat_map(|a| a.clusters[0].at.clone()).collect();
            taken.sort_unstable();
            prop_assert!(taken.windows(2).all(|w| w[0] != w[1]), "{taken:?}");
            for (was, is) in before.iter().zip(&applications) {
                let (was, is, id) = (&was.clusters[0], &is.clusters[0], is.id);
                prop_assert!(!was.fixed || was.at == is.at);
                let vanished = was.at.iter().any(|n| n.index() == gone);
                let bytes_leaving = was.bytes_leaving(&is.at);
                let took = (bytes_leaving as f64 * 0.3 * dear) as u64;
                if bytes_leaving > 0 && !vanished {
                    let predicted = bytes_leaving as f64 * scheduler.seconds_per_gb(id);
                    let allowed = 0.05 * (run_s * SECOND) as f64;
                    prop_assert!(spent[id as usize] as f64 + predicted <= allowed * (1.0 + 1e-9));
                }
                if bytes_leaving > 0 {
                    spent[id as usize] += took;
                    scheduler.record_cost(id, took, bytes_leaving);
                }
                if decision.trouble.is_none() && !was.fixed {
                    prop_assert!(is.at.iter().all(|n| n.index() != gone), "{is:?} without {gone}");
                }
            }
            prop_assert!(decision.then >= 0.0 && decision.best >= decision.then * (1.0 - 1e-9));
        }
    }

    #[test]
    fn what_stays_the_same_moves_once(
        applications in anything(),
        scattered in proptest::collection::vec(0u32..8, 24),
        on in any::<bool>(),
    ) {
        let mut applications = applications;
        if on {
            for cluster in applications.iter_mut().flat_map(|a| &mut a.clusters) {
                cluster.on = scattered[..cluster.threads.len()].iter().copied().map(NodeId).collect();
                cluster.at = (0..cluster.nodes).map(|v| cluster.on[cluster.threads_of(v).start]).collect();
            }
        }
        let mut scheduler = Scheduler::new(&machine(), Settings::default());
        applications.iter_mut().for_each(|a| a.run_ns = 1 << 60);
        let first = scheduler.step(0, &all_places(), &applications);
        carry_out(&mut applications, &first);
        for second in 1..12 {
            let next = scheduler.step(second * SECOND, &all_places(), &applications);
            prop_assert_eq!(&next.moves, &[]);
        }
        // The threads of a virtual node are on one node now, unless nothing could be decided.
        let moving = applications.iter().flat_map(|a| &a.clusters).filter(|c| !c.fixed);
        for cluster in moving.filter(|_| first.trouble.is_none()) {
            for v in 0..cluster.nodes {
                prop_assert!(cluster.on[cluster.threads_of(v)].iter().all(|n| *n == cluster.at[v]));
            }
        }
    }
}
