//! Measures the search for nodes: `cargo bench -p nodewise-placement --bench asym -- saved|time|planted|rival
//! [SECONDS]`.
//!
//! `saved`: number of placements on machine A, how many had their bandwidth computed, and milliseconds. `time`: median
//! milliseconds of a decision by nodes, threads and kind of machine, including the forming of clusters. `planted`:
//! machines whose best placement is known because they were built around it. `rival`: our decision, and one with forty
//! times its effort, against first-improvement descent from random starts for this many seconds. Fields are separated
//! by tabs.

use nodewise_analysis::{Entry, Histogram, SharingMatrix};
use nodewise_machine::{Channels, Machine, NodeId};
use nodewise_placement::asym::{
    Bandwidth, Cluster, NodePlacement, Options, Place, SearchResult, ThreadTraffic, clusters_from_sharing,
    search, weighted_bandwidth,
};
use nodewise_placement::formulas::SplitMix;
use nodewise_profile::{ObjectId, PageNumber, ThreadId};
use std::fmt::Write;
use std::time::{Duration, Instant};

struct Random(SplitMix);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        (self.0.word() % n as u64) as usize
    }

    fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            all.swap(i, self.below(i + 1));
        }
        all
    }
}

/// An effort, per pair of nodes, of forty times that of a decision.
const LONGER: usize = 20_000;

/// A machine with these directed links, and routes with the fewest links.
fn machine(nodes: usize, links: &[(usize, usize, f64)]) -> Machine {
    let mut text = "name = \"made-up\"\ntitle = \"made up\"\npage_size = \"4K\"\nnodes = [\n".to_owned();
    for n in 0..nodes {
        let (first, last) = (16 * n, 16 * n + 15);
        _ = writeln!(
            text,
            "{{ cpus = \"{first}-{last}\", memory = \"1G\", bandwidth = 1e6 }},"
        );
    }
    let row = format!("[{}],\n", vec!["100"; nodes].join(", "));
    _ = write!(text, "]\nlatency_ns = [\n{}]\nlinks = [\n", row.repeat(nodes));
    for (from, to, width) in links {
        _ = writeln!(text, "{{ from = {from}, to = {to}, bandwidth = {width:.1} }},");
    }
    Machine::parse(&(text + "]\n"), "made up").expect("a connected machine")
}

/// A ring in both directions with chords, whose widths are those of HyperTransport links.
fn random(nodes: usize, chance: &mut Random) -> Machine {
    let ring = (0..nodes).map(|n| (n, (n + 1) % nodes));
    let mut ends: Vec<(usize, usize)> = ring.collect();
    ends.extend((0..3 * nodes / 2).map(|_| (chance.below(nodes), chance.below(nodes))));
    let mut links = Vec::new();
    for (a, b) in ends {
        for (a, b) in [(a, b), (b, a)] {
            if a != b && links.iter().all(|(x, y, _)| (a, b) != (*x, *y)) {
                links.push((a, b, [2990.0, 2990.0, 4329.0, 5598.0][chance.below(4)]));
            }
        }
    }
    machine(nodes, &links)
}

/// Groups of nodes of these sizes with wide links inside, joined by a narrow ring through all nodes; and each group's
/// nodes.
fn planted(sizes: &[usize], chance: &mut Random) -> (Machine, Vec<Vec<NodeId>>) {
    let nodes: usize = sizes.iter().sum();
    let order = chance.shuffled(nodes);
    let mut left = &order[..];
    let mut links = Vec::new();
    let mut groups = Vec::new();
    for size in sizes {
        let (group, rest) = left.split_at(*size);
        left = rest;
        let pairs = group
            .iter()
            .flat_map(|a| group.iter().map(move |b| (*a, *b, 10_000.0)));
        links.extend(pairs.filter(|(a, b, _)| a != b));
        groups.push(group.iter().map(|n| NodeId(*n as u32)).collect());
    }
    for (a, b) in chance.shuffled(nodes).iter().zip(chance.shuffled(nodes).iter()) {
        for (a, b) in [(*a, *b), (*b, *a)] {
            if a != b && links.iter().all(|(x, y, _)| (a, b) != (*x, *y)) {
                links.push((a, b, 1000.0));
            }
        }
    }
    for n in 0..nodes {
        let next = (n + 1) % nodes;
        for (a, b) in [(n, next), (next, n)] {
            if links.iter().all(|(x, y, _)| (a, b) != (*x, *y)) {
                links.push((a, b, 1000.0));
            }
        }
    }
    (machine(nodes, &links), groups)
}

fn places(machine: &Machine) -> Vec<Place> {
    let place = |node: NodeId| Place {
        node,
        threads: machine.nodes[node.index()].cpus.len(),
    };
    machine.cpu_nodes().map(place).collect()
}

/// Clusters of these sizes; with unequal weights if `unequal`.
fn clusters(sizes: &[usize], unequal: bool) -> Vec<Cluster> {
    let cluster = |(i, nodes): (usize, &usize)| Cluster {
        application: i as u32,
        nodes: *nodes,
        weight: if unequal { 10.0 + i as f64 } else { 1.0 },
        ..Cluster::default()
    };
    sizes.iter().enumerate().map(cluster).collect()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn timed<'a>(
    channels: &'a Channels,
    places: &[Place],
    clusters: &'a [Cluster],
    repeats: usize,
) -> (f64, SearchResult<'a>) {
    let once = || {
        let start = Instant::now();
        let found = search(channels, places, clusters, &Options::default()).expect("it fits");
        std::hint::black_box(found.least_moved());
        (start.elapsed().as_secs_f64() * 1e3, found)
    };
    let (times, mut found): (Vec<f64>, Vec<SearchResult<'a>>) = (0..repeats).map(|_| once()).unzip();
    (median(times), found.remove(0))
}

fn saved() {
    let machine = Machine::named("machine-a").expect("a shipped machine");
    let (channels, places) = (Channels::of(&machine), places(&machine));
    let all: &[&[usize]] = &[
        &[2],
        &[3],
        &[5],
        &[2, 2],
        &[2, 2, 2, 2],
        &[3, 3],
        &[3, 3, 2],
        &[5, 3],
        &[5, 2],
        &[3, 2, 2],
    ];
    for sizes in all {
        for unequal in [false, true] {
            if sizes.len() == 1 && unequal {
                continue;
            }
            let clusters = clusters(sizes, unequal);
            let (ms, found) = timed(&channels, &places, &clusters, 101);
            let name = sizes.iter().map(usize::to_string).collect::<Vec<_>>().join("+");
            let counts = found.counts;
            let weights = if unequal { "unequal" } else { "equal" };
            let nodes: usize = sizes.iter().sum();
            let orders: f64 = (0..nodes).map(|n| (8 - n) as f64).product();
            println!(
                "{name}\t{weights}\t{}\t{}\t{:.4}\t{:.4}\t{ms:.4}\t{}",
                counts.possible,
                counts.evaluated,
                counts.saved(),
                1.0 - counts.evaluated / orders,
                found.good().count(),
            );
        }
    }
}

/// Threads in groups of this size, each of which shares a page.
fn sharing(threads: usize, group: usize) -> SharingMatrix {
    let entry = |thread: usize| Entry {
        reads: 10,
        thread: ThreadId::from_index(thread),
        ..Entry::default()
    };
    let pages = threads.div_ceil(group);
    let ends = (0..=pages).map(|p| (p * group).min(threads) as u64);
    SharingMatrix::of(&Histogram {
        pages: (0..pages as u64).map(PageNumber).collect(),
        objects: vec![ObjectId(0); pages],
        offsets: ends.collect(),
        entries: (0..threads).map(entry).collect(),
        threads,
        shift: 0,
    })
}

fn time() {
    let mut chance = Random(SplitMix(7));
    for (nodes, threads, group) in [
        (8usize, 64usize, 24usize),
        (8, 64, 16),
        (8, 128, 32),
        (16, 256, 32),
        (16, 256, 80),
        (64, 1000, 32),
        (64, 1000, 80),
        (64, 1000, 500),
    ] {
        for kind in ["random", "equal", "planted"] {
            let machine = match kind {
                "random" => random(nodes, &mut chance),
                "equal" => equal(nodes),
                _ => planted(&vec![4; nodes / 4], &mut chance).0,
            };
            let (channels, places) = (Channels::of(&machine), places(&machine));
            let per_node = threads.div_ceil(nodes);
            let places: Vec<Place> = places
                .iter()
                .map(|p| Place {
                    threads: per_node,
                    ..*p
                })
                .collect();
            let matrix = sharing(threads, group);
            let traffic = |thread: usize| ThreadTraffic {
                application: 0,
                thread: thread as u32,
                remote: 1e6 * (1 + thread / group) as f64,
            };
            let traffic: Vec<ThreadTraffic> = (0..threads).map(traffic).collect();
            let form = || clusters_from_sharing(&matrix, &traffic, &places).expect("they fit");
            let start = Instant::now();
            let clusters = form();
            let packing = start.elapsed().as_secs_f64() * 1e3;
            let (ms, found) = timed(&channels, &places, &clusters, if nodes < 64 { 15 } else { 5 });
            println!(
                "{nodes}\t{threads}\t{}\t{kind}\t{:.3}\t{}\t{:.4}\t{}",
                clusters.len(),
                ms + packing,
                found.exact,
                found.gap(),
                found.counts.evaluated,
            );
        }
    }
}

fn equal(nodes: usize) -> Machine {
    let pairs = (0..nodes).flat_map(|a| (0..nodes).map(move |b| (a, b, 5598.0)));
    machine(nodes, &pairs.filter(|(a, b, _)| a != b).collect::<Vec<_>>())
}

fn planted_all() {
    let mut chance = Random(SplitMix(3));
    for (nodes, size) in [
        (16, 2),
        (16, 4),
        (16, 5),
        (32, 4),
        (32, 3),
        (48, 6),
        (64, 4),
        (64, 5),
        (64, 8),
        (64, 2),
    ] {
        for nth in 0..3 {
            let sizes = vec![size; nodes / size];
            let (machine, groups) = planted(&sizes, &mut chance);
            let channels = Channels::of(&machine);
            let (places, clusters) = (places(&machine), clusters(&sizes, nth > 0));
            let best = weighted_bandwidth(&channels, &clusters, &NodePlacement { places: groups });
            let (ms, found) = timed(&channels, &places, &clusters, 1);
            let share = found.weighted / best;
            println!(
                "{}\t{size}\t{share:.4}\t{ms:.2}\t{}\t{:.4}",
                machine.node_count(),
                found.exact,
                found.gap()
            );
        }
    }
}

/// First-improvement descent by exchanges of nodes, from random starts, until time is up.
fn rival(channels: &Channels, places: &[Place], clusters: &[Cluster], time: Duration) -> (f64, usize) {
    let (start, mut chance) = (Instant::now(), Random(SplitMix(99)));
    let mut bandwidth = Bandwidth::new(channels);
    let (mut best, mut starts) = (0.0, 0);
    while start.elapsed() < time {
        let mut order: Vec<NodeId> = chance
            .shuffled(places.len())
            .iter()
            .map(|i| places[*i].node)
            .collect();
        let mut objective = |order: &[NodeId]| {
            let mut left = order;
            let nodes = clusters.iter().map(|c| {
                let (mine, rest) = left.split_at(c.nodes);
                left = rest;
                mine
            });
            let got = bandwidth.of(nodes);
            clusters.iter().zip(got).map(|(c, b)| c.weight * b).sum::<f64>()
        };
        let (mut now, mut better) = (objective(&order), true);
        while better && start.elapsed() < time {
            better = false;
            for a in 0..order.len() {
                for b in a + 1..order.len() {
                    order.swap(a, b);
                    let then = objective(&order);
                    if then > now * (1.0 + 1e-12) {
                        (now, better) = (then, true);
                    } else {
                        order.swap(a, b);
                    }
                }
            }
        }
        starts += 1;
        best = f64::max(best, now);
    }
    (best, starts)
}

fn rivals(seconds: f64) {
    let mut chance = Random(SplitMix(11));
    let cases: [(usize, &[usize]); 6] = [
        (16, &[5, 3, 3, 2, 2]),
        (16, &[4; 4]),
        (32, &[4; 8]),
        (64, &[5; 12]),
        (64, &[16, 12, 8, 8, 4, 4, 2, 2, 2]),
        (64, &[20, 20]),
    ];
    for (nodes, sizes) in cases {
        let machine = random(nodes, &mut chance);
        let channels = Channels::of(&machine);
        let (places, clusters) = (places(&machine), clusters(sizes, true));
        let (ms, found) = timed(&channels, &places, &clusters, 3);
        let (theirs, starts) = rival(&channels, &places, &clusters, Duration::from_secs_f64(seconds));
        let name = sizes.iter().map(usize::to_string).collect::<Vec<_>>().join("+");
        let options = Options {
            effort: Some(LONGER * nodes * nodes),
            ..Options::default()
        };
        let start = Instant::now();
        let longer = search(&channels, &places, &clusters, &options).expect("it fits");
        let longer_ms = start.elapsed().as_secs_f64() * 1e3;
        let over = |found: &SearchResult<'_>| found.weighted / theirs;
        println!(
            "{nodes}\t{name}\t{ms:.2}\t{:.4}\t{longer_ms:.0}\t{:.4}\t{starts}\t{:.4}",
            over(&found),
            over(&longer),
            longer.gap(),
        );
    }
}

fn main() {
    let given = std::env::args().skip(1).filter(|a| a != "--bench"); // without the argument that cargo bench adds
    let arguments: Vec<String> = given.collect();
    let seconds = arguments.get(1).map_or(1.0, |a| a.parse().expect("seconds"));
    match arguments.first().map(String::as_str) {
        Some("saved") => saved(),
        Some("time") => time(),
        Some("planted") => planted_all(),
        Some("rival") => rivals(seconds),
        _ => panic!("saved, time, planted or rival"),
    }
}
