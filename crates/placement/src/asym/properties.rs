//! Properties that the search guarantees, checked against brute force.

use super::problem::Problem;
use super::*;
use crate::formulas::SplitMix;
use nodewise_machine::{Channels, Flow, Link, LinkId, Machine, Node, Route};
use proptest::prelude::*;

/// A connected machine with directed links of these widths: a ring in both directions, and chords.
pub(super) fn machine(nodes: usize, widths: &[u32], chords: &[(usize, usize)]) -> Machine {
    let mut width = widths.iter().copied().cycle().map(f64::from);
    let ring = (0..nodes).flat_map(|n| [(n, (n + 1) % nodes), ((n + 1) % nodes, n)]);
    let chords = chords.iter().map(|(a, b)| (a % nodes, b % nodes));
    let mut ends: Vec<(usize, usize)> = ring.chain(chords).filter(|(a, b)| a != b).collect();
    ends.sort_unstable();
    ends.dedup();
    let id = |n: usize| NodeId(n as u32);
    let link = |(from, to): &(usize, usize)| Link {
        from: id(*from),
        to: id(*to),
        bandwidth: width.next().unwrap_or(1.0),
        class: None,
    };
    let links: Vec<Link> = ends.iter().map(link).collect();
    let routes = (0..nodes)
        .map(|r| (0..nodes).map(|m| route(&links, nodes, m, r)).collect())
        .collect();
    let node = |n| Node {
        os_index: n,
        cpus: vec![nodewise_machine::CpuId(n)],
        memory: 1 << 30,
        bandwidth: 1e6,
        kind: None,
        socket: None,
        cache: None,
    };
    Machine {
        name: "random".into(),
        title: String::new(),
        page_size: 4096,
        nodes: (0..nodes as u32).map(node).collect(),
        latency_ns: vec![vec![100.0; nodes]; nodes],
        links,
        routes,
        hop_rules: Vec::new(),
        backplane: None,
        sources: Vec::new(),
    }
}

/// A route with the fewest links from memory to reader.
fn route(links: &[Link], nodes: usize, memory: usize, reader: usize) -> Route {
    let mut assignment_count: Vec<Option<Vec<LinkId>>> = vec![None; nodes];
    assignment_count[memory] = Some(Vec::new());
    while assignment_count[reader].is_none() {
        let mut next = assignment_count.clone();
        for (i, link) in links.iter().enumerate() {
            if let (Some(way), None) = (&assignment_count[link.from.index()], &next[link.to.index()]) {
                next[link.to.index()] = Some(way.iter().copied().chain([LinkId(i as u32)]).collect());
            }
        }
        assignment_count = next;
    }
    let links_on = assignment_count.swap_remove(reader).unwrap_or_default();
    let narrowest = links_on
        .iter()
        .map(|l| links[l.0 as usize].bandwidth)
        .fold(1e6, f64::min);
    Route {
        links: links_on,
        bandwidth: narrowest,
    }
}

pub(super) fn places(nodes: usize) -> Vec<Place> {
    let place = |n| Place {
        node: NodeId(n),
        threads: 8,
    };
    (0..nodes as u32).map(place).collect()
}

pub(super) fn clusters(sizes: &[(usize, f64)]) -> Vec<Cluster> {
    let cluster = |(i, (nodes, weight)): (usize, &(usize, f64))| Cluster {
        application: i as u32,
        nodes: *nodes,
        weight: *weight,
        ..Cluster::default()
    };
    sizes.iter().enumerate().map(cluster).collect()
}

/// Every placement, with the nodes of each cluster ascending.
fn every(nodes: &[NodeId], clusters: &[Cluster]) -> Vec<NodePlacement> {
    let Some((first, rest)) = clusters.split_first() else {
        return vec![NodePlacement::default()];
    };
    let mut all = Vec::new();
    for mask in 0u32..1 << nodes.len() {
        if mask.count_ones() as usize != first.nodes {
            continue;
        }
        let (mine, left): (Vec<usize>, Vec<usize>) = (0..nodes.len()).partition(|i| mask >> i & 1 == 1);
        let node = |i: Vec<usize>| i.into_iter().map(|i| nodes[i]).collect::<Vec<_>>();
        let mine = node(mine);
        for mut others in every(&node(left), rest) {
            others.places.insert(0, mine.clone());
            all.push(others);
        }
    }
    all
}

fn sorted(placement: &NodePlacement) -> NodePlacement {
    let mut placement = placement.clone();
    placement.places.iter_mut().for_each(|p| p.sort_unstable());
    placement
}

/// Cluster sizes that fit on eight nodes together.
fn sizes() -> impl Strategy<Value = Vec<(usize, f64)>> {
    let weight = prop_oneof![Just(0.0), Just(1.0), Just(3.0), 0.0f64..20.0];
    proptest::collection::vec((1usize..5, weight), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_finds_what_brute_force_finds(
        nodes in 2usize..9,
        widths in proptest::collection::vec(prop_oneof![Just(8u32), Just(16), 1..40u32], 1..20),
        chords in proptest::collection::vec((0usize..8, 0usize..8), 0..14),
        mut sizes in sizes(),
    ) {
        while sizes.iter().map(|s| s.0).sum::<usize>() > nodes {
            sizes.pop();
        }
        let (machine, clusters) = (machine(nodes, &widths, &chords), clusters(&sizes));
        let channels = Channels::of(&machine);
        let places = places(nodes);
        let ids: Vec<NodeId> = places.iter().map(|p| p.node).collect();
        let every = every(&ids, &clusters);
        let objective = |p: &NodePlacement| weighted_bandwidth(&channels, &clusters, p);
        let best = every.iter().map(objective).fold(0.0, f64::max);
        let found = search(&channels, &places, &clusters, &Options::default()).unwrap();
        prop_assert!(found.exact && found.all_good_known);
        prop_assert!((found.weighted - best).abs() <= 1e-6 * best);
        prop_assert!((objective(&found.best) - best).abs() <= 1e-6 * best);
        prop_assert_eq!(found.counts.possible as usize, every.len());
        let narrow = |p: &NodePlacement| NodePlacement {
            places: p.places.iter().filter(|p| p.len() > 1).cloned().collect(),
        };
        let mut good: Vec<_> = found.good().map(|(p, w)| (narrow(&sorted(&p)), w)).collect();
        for (placement, recomputed) in found.good() {
            prop_assert!((objective(&placement) - recomputed).abs() <= 1e-6 * best);
        }
        let before = good.len();
        good.sort_by(|a, b| a.0.places.cmp(&b.0.places));
        good.dedup_by(|a, b| a.0 == b.0);
        prop_assert_eq!(good.len(), before, "each once");
        for placement in every.iter().filter(|p| objective(p) >= 0.9 * best * (1.0 + 1e-6)) {
            let wide = narrow(&sorted(placement));
            prop_assert!(good.iter().any(|(p, _)| *p == wide), "{placement:?} is missing");
        }
        for (_, recomputed) in &good {
            prop_assert!(*recomputed >= 0.9 * best * (1.0 - 1e-6));
        }
        // The same as if there were too many placements to enumerate.
        let problem = Problem::new(&channels, &places, &clusters).unwrap();
        prop_assert!(best <= bound::of_all_placements(&problem) * (1.0 + 1e-9));
        let found = search::found(problem, false, &Options::default());
        prop_assert!((objective(&found.best) - found.weighted).abs() <= 1e-6 * best);
        prop_assert!((found.weighted - best).abs() <= 1e-6 * best, "{} of {best}", found.weighted);
        prop_assert!(found.upper_bound >= best * (1.0 - 1e-9));
    }

    #[test]
    fn no_sum_of_rates_exceeds_its_bound(
        nodes in 3usize..9,
        widths in proptest::collection::vec(1..40u32, 1..20),
        chords in proptest::collection::vec((0usize..8, 0usize..8), 0..14),
        flows in proptest::collection::vec((0u32..8, 0u32..8), 1..40),
        of in 1usize..20,
        weights in proptest::collection::vec(0.0f64..9.0, 1..5),
    ) {
        let machine = machine(nodes, &widths, &chords);
        let channels = Channels::of(&machine);
        let flow = |(r, m): &(u32, u32)| Flow { reader: NodeId(r % nodes as u32), memory: NodeId(m % nodes as u32) };
        let flows: Vec<Flow> = flows.iter().map(flow).filter(|f| f.reader != f.memory).collect();
        let rates = channels.max_min(&flows);
        let some = of.min(flows.len());
        let weighed = || flows[..some].iter().copied().zip(weights.iter().copied().cycle());
        let sum: f64 = rates.iter().zip(weighed()).map(|(r, (_, w))| r * w).sum();
        let bound = super::bound::Bound::new(&channels).of(weighed());
        prop_assert!(sum <= bound * (1.0 + 1e-6), "{sum} > {bound}");
    }

    #[test]
    fn of_the_good_ones_the_least_is_moved(
        nodes in 3usize..8,
        widths in proptest::collection::vec(prop_oneof![Just(8u32), Just(16), 1..40u32], 1..20),
        chords in proptest::collection::vec((0usize..8, 0usize..8), 0..14),
        mut sizes in sizes(),
        bytes in proptest::collection::vec(0u64..5, 8),
        order in Just((0..8u32).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        while sizes.iter().map(|s| s.0).sum::<usize>() > nodes {
            sizes.pop();
        }
        let machine = machine(nodes, &widths, &chords);
        let mut clusters = clusters(&sizes);
        let mut free = order.iter().copied().filter(|n| (*n as usize) < nodes).map(NodeId);
        for cluster in &mut clusters {
            cluster.at = free.by_ref().take(cluster.nodes).collect();
            cluster.resident = bytes.clone();
        }
        let channels = Channels::of(&machine);
        let places = places(nodes);
        let found = search(&channels, &places, &clusters, &Options::default()).unwrap();
        let (least, objective) = found.least_moved();
        let ids: Vec<NodeId> = places.iter().map(|p| p.node).collect();
        let good = every(&ids, &clusters).into_iter().filter(|p| {
            weighted_bandwidth(&channels, &clusters, p) >= found.good_enough() * (1.0 + 1e-6)
        });
        let fewest = good.map(|p| p.memory_to_move(&clusters)).min();
        prop_assert!(least.memory_to_move(&clusters) <= fewest.unwrap_or(u64::MAX));
        prop_assert!(objective >= found.good_enough() * (1.0 - 1e-6));
        let recomputed = weighted_bandwidth(&channels, &clusters, &least);
        prop_assert!((objective - recomputed).abs() <= 1e-6 * recomputed);
        let problem = Problem::new(&channels, &places, &clusters).unwrap();
        let many = search::found(problem, false, &Options::default());
        for arrangement in &many.kept {
            let (little, objective) = many.little_moved(arrangement);
            let recomputed = weighted_bandwidth(&channels, &clusters, &little);
            prop_assert!((objective - recomputed).abs() <= 1e-6 * recomputed);
            prop_assert!(objective >= many.good_enough() * (1.0 - 1e-6));
            let names: Vec<usize> = (0..arrangement.sets.len()).collect();
            let heaviest_first = node_assignment::placement(&many.problem, arrangement, &names);
            prop_assert!(little.memory_to_move(&clusters) <= heaviest_first.memory_to_move(&clusters));
        }
        for (cluster, to) in clusters.iter().zip(&least.places) {
            prop_assert_eq!(to.len(), cluster.nodes);
            for (at, to_here) in cluster.at.iter().zip(to) {
                prop_assert!(at == to_here || !to.contains(at), "who stays on a node stays what it is");
            }
        }
    }
}

/// Groups of nodes with wide links inside and a narrow ring around all; nodes are numbered alternately over the groups.
fn planted(groups: usize, size: usize) -> (Machine, Vec<Vec<NodeId>>) {
    let nodes = groups * size;
    let group = |n: usize| n % groups;
    let inside = (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b)));
    let inside: Vec<(usize, usize)> = inside.filter(|(a, b)| a != b && group(*a) == group(*b)).collect();
    let mut machine = machine(nodes, &[10], &inside);
    for link in &mut machine.links {
        if group(link.from.index()) == group(link.to.index()) {
            link.bandwidth = 100.0;
        }
    }
    let of = |g: usize| (0..size).map(|i| NodeId((i * groups + g) as u32)).collect();
    (machine, (0..groups).map(of).collect())
}

#[test]
fn partitions_that_machines_were_built_around_are_found() {
    for (groups, size) in [(4, 4), (8, 2), (5, 3), (8, 4), (16, 4), (12, 5), (32, 2)] {
        let (machine, places_of) = planted(groups, size);
        let channels = Channels::of(&machine);
        let sizes: Vec<(usize, f64)> = (0..groups).map(|g| (size, 10.0 + g as f64)).collect();
        let clusters = clusters(&sizes);
        let best = weighted_bandwidth(&channels, &clusters, &NodePlacement { places: places_of });
        let found = search(&channels, &places(groups * size), &clusters, &Options::default()).unwrap();
        assert!(
            found.weighted >= best * (1.0 - 1e-9),
            "{groups} of {size}: {} < {best}",
            found.weighted
        );
        let problem = Problem::new(&channels, &places(groups * size), &clusters).unwrap();
        assert!(bound::of_all_placements(&problem) >= best * (1.0 - 1e-9));
    }
}

#[test]
fn more_effort_never_finds_less_than_descent_from_many_starts() {
    for (seed, sizes) in [
        (1, &[(4, 1.0); 4][..]),
        (2, &[(5, 1.0), (3, 2.0), (3, 3.0), (2, 1.0)]),
    ] {
        let mut chance = SplitMix(seed);
        let chords: Vec<(usize, usize)> = (0..40).map(|_| (chance.below(16), chance.below(16))).collect();
        let machine = machine(16, &[8, 16, 11, 8], &chords);
        let (channels, clusters) = (Channels::of(&machine), clusters(sizes));
        let options = Options {
            effort: Some(3_000_000),
            ..Options::default()
        };
        let found = search(&channels, &places(16), &clusters, &options).unwrap();
        let theirs = (0..20)
            .map(|_| descended(&channels, &clusters, &mut chance))
            .fold(0.0, f64::max);
        assert!(
            found.weighted >= theirs * (1.0 - 1e-9),
            "{} < {theirs}",
            found.weighted
        );
        let problem = Problem::new(&channels, &places(16), &clusters).unwrap();
        assert!(bound::of_all_placements(&problem) >= found.weighted * (1.0 - 1e-9));
    }
}

/// First-improvement descent by exchanges of two of sixteen nodes, from a random start.
fn descended(channels: &Channels, clusters: &[Cluster], chance: &mut SplitMix) -> f64 {
    let mut order: Vec<NodeId> = (0..16).map(NodeId).collect();
    for i in 1..16 {
        order.swap(i, chance.below(i + 1));
    }
    let objective = |order: &[NodeId]| {
        let mut left = order.iter().copied();
        let places = clusters
            .iter()
            .map(|c| left.by_ref().take(c.nodes).collect())
            .collect();
        weighted_bandwidth(channels, clusters, &NodePlacement { places })
    };
    let mut best = objective(&order);
    loop {
        let before = best;
        for (a, b) in (0..16).flat_map(|a| (0..a).map(move |b| (a, b))) {
            order.swap(a, b);
            let now = objective(&order);
            if now > best * (1.0 + 1e-12) {
                best = now;
            } else {
                order.swap(a, b);
            }
        }
        if best == before {
            return best;
        }
    }
}

#[test]
fn on_machine_a_two_nodes_are_joined_by_a_wide_link_and_most_placements_are_never_computed() {
    let channels = Channels::of(&Machine::named("machine-a").unwrap());
    let clusters = clusters(&[(2, 9.0), (2, 10.0), (2, 11.0), (2, 12.0)]);
    let found = search(&channels, &places(8), &clusters, &Options::default()).unwrap();
    let bandwidth = cluster_bandwidth(&channels, &found.best);
    assert!(
        bandwidth.iter().all(|b| (b - 2.0 * 5598.0).abs() < 1.0),
        "{bandwidth:?}"
    );
    assert_eq!(found.counts.possible, 2520.0);
    assert!(found.counts.saved() > 0.99, "{:?}", found.counts);
    assert_eq!(found.good().count(), 24);
}

#[test]
fn weights_of_any_size_end_the_search() {
    let machine = machine(16, &[8, 16, 11, 9], &[(0, 5), (3, 9), (12, 2), (7, 14)]);
    let channels = Channels::of(&machine);
    let found = |scale: f64| {
        let clusters = clusters(&[(4, scale), (4, scale), (3, scale / 2.0), (3, scale)]);
        let places = places(16);
        search(&channels, &places, &clusters, &Options::default())
            .unwrap()
            .weighted
    };
    assert!((found(1e12) / 1e12 - found(1.0)).abs() < 1e-6 * found(1.0));
}

#[test]
fn memory_on_a_node_that_several_virtual_nodes_leave_counts_once() {
    let cluster = Cluster {
        nodes: 2,
        at: vec![NodeId(0); 2],
        on: [0, 0, 3].map(NodeId).to_vec(),
        resident: vec![100, 10, 1, 5],
        ..Cluster::default()
    };
    assert_eq!(cluster.bytes_leaving(&[1, 2].map(NodeId)), 105);
    assert_eq!(cluster.bytes_leaving(&[2, 0].map(NodeId)), 5);
}

#[test]
fn fixed_clusters_keep_their_nodes_and_their_share_of_links() {
    let channels = Channels::of(&Machine::named("machine-a").unwrap());
    let mut clusters = clusters(&[(2, 9.0), (3, 10.0), (1, 1.0)]);
    clusters[0].fixed = true;
    clusters[0].at = [2, 3].map(NodeId).to_vec();
    let found = search(&channels, &places(8), &clusters, &Options::default()).unwrap();
    assert_eq!(found.best.places[0], clusters[0].at);
    let recomputed = weighted_bandwidth(&channels, &clusters, &found.best);
    assert!((found.weighted - recomputed).abs() < 1e-6 * recomputed);
    let others = found.best.places[1].iter().chain(&found.best.places[2]);
    assert!(others.into_iter().all(|n| ![2, 3].contains(&n.0)));
}

#[test]
fn nodes_with_too_few_cpus_are_used_only_when_others_are_not_enough() {
    let channels = Channels::of(&Machine::named("machine-a").unwrap());
    let mut places = places(8);
    // Two of the best nodes have one CPU less.
    places[0].threads = 7;
    places[2].threads = 7;
    let used = |sizes: &[(usize, f64)]| {
        let mut clusters = clusters(sizes);
        clusters
            .iter_mut()
            .for_each(|c| c.threads = (0..8 * c.nodes as u32).collect());
        let found = search(&channels, &places, &clusters, &Options::default()).unwrap();
        let nodes = found.best.places.concat();
        nodes.iter().filter(|n| [0, 2].contains(&n.0)).count()
    };
    assert_eq!(used(&[(3, 1.0), (3, 1.0)]), 0);
    assert!(used(&[(3, 1.0), (2, 1.0), (2, 1.0)]) > 0);
}

#[test]
fn what_cannot_be_placed_is_one_line() {
    let line = |machine: &Machine, places: &[Place], sizes: &[(usize, f64)]| {
        let clusters = clusters(sizes);
        let error =
            search(&Channels::of(machine), places, &clusters, &Options::default()).map(|f| f.weighted);
        let text = error.unwrap_err().to_string();
        assert!(!text.contains('\n'));
        text
    };
    let mut four = machine(4, &[10], &[]);
    let many = line(&four, &places(4), &[(2, 1.0), (2, 1.0), (1, 1.0)]);
    assert!(
        many.starts_with("3 clusters of threads need 5 nodes, but only 4 are free"),
        "{many}"
    );
    let none = line(&four, &[], &[(2, 1.0)]);
    assert!(none.starts_with("no node is left for threads"), "{none}");
    let nan = line(&four, &places(4), &[(2, f64::NAN)]);
    assert!(nan.contains("weights must be 0 or more"), "{nan}");
    let huge = line(&four, &places(4), &[(2, 1e308)]);
    assert!(huge.ends_with("1e12 at most"), "{huge}");
    let new = line(&four, &places(5), &[(2, 1.0)]);
    assert!(new.starts_with("node 4 is none of the machine's 4"), "{new}");
    for keep in [f64::NAN, 1.1, -0.1] {
        let options = Options {
            keep,
            ..Options::default()
        };
        let clusters = clusters(&[(2, 1.0)]);
        let error = search(&Channels::of(&four), &places(4), &clusters, &options).unwrap_err();
        assert!(
            error.to_string().ends_with(&format!("0 to 1, not {keep}")),
            "{error}"
        );
    }
    four.routes[3][0] = Route::default();
    let cut = line(&four, &places(4), &[(2, 1.0)]);
    assert!(cut.starts_with("no links lead from node 0 to node 3"), "{cut}");
}
