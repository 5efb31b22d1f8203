//! What the search promises, against brute force.

use super::*;
use nodewise_machine::{Channels, Flow, Link, LinkId, Machine, Node, Route};
use proptest::prelude::*;

/// A connected machine of directed links of these widths: a ring both ways, and chords.
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

/// The fewest links from memory to reader.
fn route(links: &[Link], nodes: usize, memory: usize, reader: usize) -> Route {
    let mut ways: Vec<Option<Vec<LinkId>>> = vec![None; nodes];
    ways[memory] = Some(Vec::new());
    while ways[reader].is_none() {
        let mut next = ways.clone();
        for (i, link) in links.iter().enumerate() {
            if let (Some(way), None) = (&ways[link.from.index()], &next[link.to.index()]) {
                next[link.to.index()] = Some(way.iter().copied().chain([LinkId(i as u32)]).collect());
            }
        }
        ways = next;
    }
    let links_on = ways.swap_remove(reader).unwrap_or_default();
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

/// Every placement, nodes of a cluster ascending.
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

/// Sizes that fit on eight nodes.
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
        let worth = |p: &NodePlacement| weighted_bandwidth(&channels, &clusters, p);
        let best = every.iter().map(worth).fold(0.0, f64::max);
        let found = search(&channels, &places, &clusters, &Options::default()).unwrap();
        prop_assert!(found.exact && found.all_good_known);
        prop_assert!((found.weighted - best).abs() <= 1e-6 * best);
        prop_assert!((worth(&found.best) - best).abs() <= 1e-6 * best);
        prop_assert_eq!(found.counts.possible as usize, every.len());
        let narrow = |p: &NodePlacement| NodePlacement {
            places: p.places.iter().filter(|p| p.len() > 1).cloned().collect(),
        };
        let mut good: Vec<_> = found.good().map(|(p, w)| (narrow(&sorted(&p)), w)).collect();
        for (placement, told) in found.good() {
            prop_assert!((worth(&placement) - told).abs() <= 1e-6 * best);
        }
        let before = good.len();
        good.sort_by(|a, b| a.0.places.cmp(&b.0.places));
        good.dedup_by(|a, b| a.0 == b.0);
        prop_assert_eq!(good.len(), before, "each once");
        for placement in every.iter().filter(|p| worth(p) >= 0.9 * best * (1.0 + 1e-6)) {
            let wide = narrow(&sorted(placement));
            prop_assert!(good.iter().any(|(p, _)| *p == wide), "{placement:?} is missing");
        }
        for (_, told) in &good {
            prop_assert!(*told >= 0.9 * best * (1.0 - 1e-6));
        }
    }

    #[test]
    fn no_sum_of_rates_exceeds_its_bound(
        nodes in 3usize..9,
        widths in proptest::collection::vec(1..40u32, 1..20),
        chords in proptest::collection::vec((0usize..8, 0usize..8), 0..14),
        flows in proptest::collection::vec((0u32..8, 0u32..8), 1..40),
        of in 1usize..20,
    ) {
        let machine = machine(nodes, &widths, &chords);
        let channels = Channels::of(&machine);
        let flow = |(r, m): &(u32, u32)| Flow { reader: NodeId(r % nodes as u32), memory: NodeId(m % nodes as u32) };
        let flows: Vec<Flow> = flows.iter().map(flow).filter(|f| f.reader != f.memory).collect();
        let rates = channels.max_min(&flows);
        let some = of.min(flows.len());
        let sum: f64 = rates[..some].iter().sum();
        let bound = super::bound::Bound::new(&channels).of(flows[..some].iter().copied());
        prop_assert!(sum <= bound * (1.0 + 1e-6), "{sum} > {bound}");
    }
}
