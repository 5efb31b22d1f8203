//! Recovers hidden links from bandwidths alone: machines with known wiring are "measured" through max-min fairness,
//! with and without noise.

use nodewise_machine::inference::{BottleneckKind, Estimate, Inferred, Survey, Verdict, survey};
use nodewise_machine::{Channels, Flow, Link, LinkId, Machine, NodeId};
use proptest::prelude::*;
use std::cell::Cell;

/// Numbers that look random, from a seed (`xorshift64*`).
struct Random(u64);

impl Random {
    fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        (self.unit() * end as f64) as usize
    }

    /// A random factor with mean 1 and this standard deviation (a sum of uniform numbers).
    fn about_one(&mut self, deviation: f64) -> f64 {
        1.0 + deviation * ((0..12).map(|_| self.unit()).sum::<f64>() - 6.0)
    }
}

fn flows(machine: &Machine) -> Vec<Flow> {
    let pairs = machine
        .cpu_nodes()
        .flat_map(|r| machine.node_ids().map(move |m| (r, m)));
    pairs
        .filter(|(r, m)| r != m)
        .map(|(reader, memory)| Flow { reader, memory })
        .collect()
}

/// Measures like hardware: each value is the median of nine runs, each with a relative error of about `noise`.
struct Rig {
    machine: Machine,
    channels: Channels,
    noise: f64,
    runs: Cell<usize>,
}

impl Rig {
    fn new(machine: Machine, noise: f64) -> Self {
        let channels = Channels::of(&machine);
        Self {
            machine,
            channels,
            noise,
            runs: Cell::new(0),
        }
    }

    fn measure(&self, flows: &[Flow], random: &mut Random) -> Vec<Estimate> {
        let noisy = |rate: &f64| {
            let samples: Vec<f64> = (0..9).map(|_| rate * random.about_one(self.noise)).collect();
            Estimate::of(&samples).unwrap()
        };
        self.runs.set(self.runs.get() + 1);
        self.channels.max_min(flows).iter().map(noisy).collect()
    }

    fn survey(&self, seed: u64) -> Survey {
        let mut random = Random::of(seed);
        let alone: Vec<(Flow, Estimate)> = flows(&self.machine)
            .into_iter()
            .map(|f| (f, self.measure(&[f], &mut random)[0]))
            .collect();
        self.runs.set(0);
        survey(&alone, |_| true, |flows| Some(self.measure(flows, &mut random)))
    }

    /// Whether two flows visibly share a bottleneck, as [`Verdict::Sharing`] should say.
    fn share(&self, a: Flow, b: Flow) -> bool {
        let [x, y] = [a, b].map(|f| self.channels.max_min(&[f])[0]);
        let together: f64 = self.channels.max_min(&[a, b]).iter().sum();
        x + y - together > 0.05 * x.min(y)
    }
}

/// The machine after its links were removed and inferred again.
fn inferred(rig: &Rig, survey: &Survey) -> Machine {
    let local: Vec<Option<f64>> = rig.machine.nodes.iter().map(|n| Some(n.bandwidth)).collect();
    let mut machine = rig.machine.clone();
    machine.backplane = None;
    Inferred::of(survey, &local).apply(&mut machine);
    machine.validate().unwrap();
    // Written to a file and read back, the machine is the same.
    Machine::parse(&machine.to_toml(), "written").unwrap()
}

/// Precision and recall of the pairs that the survey says share a bottleneck.
fn precision_and_recall(rig: &Rig, survey: &Survey) -> (f64, f64) {
    let flows = survey.flows();
    let (mut both, mut predicted_count, mut real) = (0, 0, 0);
    for j in 0..flows.len() {
        for i in 0..j {
            let (actual, predicted) = (
                rig.share(flows[i], flows[j]),
                matches!(survey.verdict(i, j), Verdict::Sharing(_)),
            );
            both += usize::from(actual && predicted);
            predicted_count += usize::from(predicted);
            real += usize::from(actual);
        }
    }
    let of = |all: usize| if all == 0 { 1.0 } else { both as f64 / all as f64 };
    (of(predicted_count), of(real))
}

/// Relative errors of the inferred machine's bandwidths for sets of flows that were not measured: mean and largest.
fn errors(rig: &Rig, machine: &Machine, distinct: bool, seed: u64) -> (f64, f64) {
    let (all, found, mut random) = (flows(&rig.machine), Channels::of(machine), Random::of(seed));
    let mut errors: Vec<f64> = Vec::new();
    for _ in 0..300 {
        let size = 2 + random.below(10);
        let mut set: Vec<Flow> = Vec::new();
        for _ in 0..size {
            let flow = all[random.below(all.len())];
            if !distinct
                || set
                    .iter()
                    .all(|f| f.reader != flow.reader && f.memory != flow.memory)
            {
                set.push(flow);
            }
        }
        set.sort_unstable();
        set.dedup();
        let real = rig.channels.max_min(&set);
        let error = |(r, f): (&f64, &f64)| (r - f).abs() / r;
        errors.extend(real.iter().zip(&found.max_min(&set)).map(error));
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    (mean, errors.iter().copied().fold(0.0, f64::max))
}

fn synthetic(nodes: usize, links: &str) -> Machine {
    let row = |r: usize| {
        (0..nodes)
            .map(|m| if r == m { "90" } else { "150" })
            .collect::<Vec<_>>()
            .join(", ")
    };
    let latency: Vec<String> = (0..nodes).map(|r| format!("[{}]", row(r))).collect();
    let list: Vec<String> = (0..nodes)
        .map(|n| {
            format!(
                "{{ cpus = \"{}-{}\", memory = \"4G\", bandwidth = 40000 }}",
                2 * n,
                2 * n + 1
            )
        })
        .collect();
    let text = format!(
        "name = \"t\"\ntitle = \"t\"\nlatency_ns = [{}]\nnodes = [{}]\n{links}\n",
        latency.join(", "),
        list.join(", ")
    );
    Machine::parse(&text, "test").unwrap()
}

fn ring(nodes: usize, both_ways: bool) -> Machine {
    let kind = if both_ways {
        ("between = [", "]")
    } else {
        ("from = ", "")
    };
    let entry = |n: usize| match both_ways {
        true => format!(
            "{{ {}{n}, {}{}, bandwidth = 10000 }}",
            kind.0,
            (n + 1) % nodes,
            kind.1
        ),
        false => format!("{{ from = {n}, to = {}, bandwidth = 10000 }}", (n + 1) % nodes),
    };
    let links: Vec<String> = (0..nodes).map(entry).collect();
    synthetic(nodes, &format!("links = [{}]", links.join(", ")))
}

fn star() -> Machine {
    let links: Vec<String> = (1..6)
        .map(|n| format!("{{ between = [0, {n}], bandwidth = {}000 }}", 4 + n))
        .collect();
    synthetic(6, &format!("links = [{}]", links.join(", ")))
}

/// Machines whose links can all be filled by pairs or crowds.
fn identifiable() -> Vec<(&'static str, Machine)> {
    let named = |name: &'static str| (name, Machine::named(name).unwrap());
    vec![
        named("machine-a"),
        named("nehalem-2s"),
        named("westmere-4s"),
        named("epyc-2s-nps4"),
        named("epyc-1s-nps4"),
        named("2s-skx-class"),
        named("xeon8269cy-2s-snc2"),
        ("ring both ways", ring(8, true)),
        ("ring one way", ring(5, false)),
        ("star", star()),
        (
            "crossbar",
            synthetic(6, "links = [{ among = [0, 1, 2, 3, 4, 5], bandwidth = 9000 }]"),
        ),
        (
            "backplane",
            synthetic(
                5,
                "backplane = 12000\nlinks = [{ among = [0, 1, 2, 3, 4], bandwidth = 9000 }]",
            ),
        ),
        (
            "wide backplane",
            synthetic(
                8,
                "backplane = 30000\nlinks = [{ among = [0, 1, 2, 3, 4, 5, 6, 7], bandwidth = 9000 }]",
            ),
        ),
    ]
}

#[test]
fn without_noise_sharing_links_and_unseen_sets_are_found_exactly() {
    for (name, machine) in identifiable() {
        let rig = Rig::new(machine, 0.0);
        let survey = rig.survey(1);
        assert_eq!(precision_and_recall(&rig, &survey), (1.0, 1.0), "{name}");
        assert_eq!(survey.pairs().1, 0, "{name}: pairs left");
        let found = inferred(&rig, &survey);
        for distinct in [true, false] {
            let (_, largest) = errors(&rig, &found, distinct, 2);
            assert!(largest < 1e-6, "{name}: {largest}");
        }
    }
}

#[test]
fn with_one_percent_of_noise_unseen_sets_are_predicted_within_two() {
    for (name, machine) in identifiable() {
        let rig = Rig::new(machine, 0.01);
        for seed in 1..6 {
            let survey = rig.survey(seed);
            assert_eq!(precision_and_recall(&rig, &survey), (1.0, 1.0), "{name}");
            let (mean, largest) = errors(&rig, &inferred(&rig, &survey), false, seed);
            assert!(
                mean < 0.005 && largest < 0.02,
                "{name}: mean {mean}, largest {largest}"
            );
        }
    }
}

#[test]
fn with_four_percent_of_noise_one_pair_in_a_hundred_is_mistaken_at_most() {
    for (name, machine) in identifiable() {
        let rig = Rig::new(machine, 0.04);
        for seed in 1..6 {
            let survey = rig.survey(seed);
            let flows = survey.flows();
            let pairs = (0..flows.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
            let sharing = |i, j| matches!(survey.verdict(i, j), Verdict::Sharing(_));
            let mistaken = pairs
                .filter(|(i, j)| sharing(*i, *j) != rig.share(flows[*i], flows[*j]))
                .count();
            assert!(mistaken * 100 <= survey.pairs().0, "{name}: {mistaken}");
            let (mean, _) = errors(&rig, &inferred(&rig, &survey), false, seed);
            assert!(mean < 0.02, "{name}: {mean}");
        }
    }
}

#[test]
fn machine_a_has_its_links_and_two_hop_routes_again() {
    let rig = Rig::new(Machine::named("machine-a").unwrap(), 0.01);
    let found = inferred(&rig, &rig.survey(7));
    assert_eq!(found.links.len(), rig.machine.links.len());
    for flow in flows(&rig.machine) {
        let (reader, memory) = (flow.reader, flow.memory);
        assert_eq!(
            found.via(reader, memory),
            rig.machine.via(reader, memory),
            "{memory} to {reader}"
        );
    }
    for link in &rig.machine.links {
        let same = found
            .links
            .iter()
            .find(|l| (l.from, l.to) == (link.from, link.to))
            .unwrap();
        assert!(
            (same.bandwidth - link.bandwidth).abs() < 0.02 * link.bandwidth,
            "{link:?} {same:?}"
        );
    }
}

#[test]
fn groups_save_most_measurements_where_little_is_shared() {
    let runs = |name: &str| {
        let rig = Rig::new(Machine::named(name).unwrap(), 0.01);
        let pairs = rig.survey(1).pairs().0;
        (rig.runs.get(), pairs)
    };
    let (runs, pairs) = runs("machine-a");
    assert!(pairs == 1540 && runs < 500, "{runs} of {pairs}");
}

#[test]
fn a_link_that_nothing_fills_is_invisible() {
    // Four nodes that read 85 MB/s each over a ring of 400 MB/s.
    let rig = Rig::new(Machine::named("sci-cluster-4").unwrap(), 0.0);
    let found = Inferred::of(&rig.survey(1), &[]);
    assert!(found.bottlenecks.is_empty());
}

#[test]
fn controllers_are_told_from_links_by_the_local_bandwidth() {
    // Node 0's memory delivers 10,000 to each reader; the links carry 9,000 each.
    let text = "links = [{ from = 0, to = [1, 2, 3], bandwidth = 10000 }, { among = [1, 2, 3], bandwidth = 9000 }, \
                { from = [1, 2, 3], to = 0, bandwidth = 9000 }]";
    let rig = Rig::new(synthetic(4, text), 0.0);
    let survey = rig.survey(1);
    let kinds = |local: f64| {
        let found = Inferred::of(&survey, &[Some(local), None, None, None]);
        found
            .bottlenecks
            .into_iter()
            .map(|b| b.1)
            .collect::<Vec<BottleneckKind>>()
    };
    assert!(kinds(10_500.0).contains(&BottleneckKind::Controller(NodeId(0))));
    let nodes = |all: &[u32]| all.iter().copied().map(NodeId).collect();
    let link = BottleneckKind::Link {
        from: nodes(&[0]),
        to: nodes(&[1, 2, 3]),
    };
    assert!(kinds(30_000.0).contains(&link));
    // What all flows to one reader share is the reader's intake if it reads no faster from its own memory.
    assert!(kinds(9_500.0).contains(&BottleneckKind::Intake(NodeId(0))));
}

#[test]
fn when_time_is_up_what_is_known_stands() {
    let rig = Rig::new(Machine::named("machine-a").unwrap(), 0.0);
    let mut random = Random::of(1);
    let alone: Vec<(Flow, Estimate)> = flows(&rig.machine)
        .into_iter()
        .map(|f| (f, rig.measure(&[f], &mut random)[0]))
        .collect();
    let mut left = 60;
    let survey = survey(
        &alone,
        |_| false,
        |flows| {
            left -= 1;
            (left >= 0).then(|| rig.measure(flows, &mut random))
        },
    );
    let (pairs, unknown) = survey.pairs();
    assert!(0 < unknown && unknown < pairs, "{unknown} of {pairs}");
    inferred(&rig, &survey);
}

/// An estimate whose interval extends by this share on either side.
fn unsteady(median: f64, share: f64) -> Estimate {
    Estimate {
        median,
        low: median * (1.0 - share),
        high: median * (1.0 + share),
        samples: 9,
    }
}

#[test]
fn what_is_too_unsteady_to_tell_is_not_called_apart() {
    // Four nodes with a link for every pair, so that no flows share a bottleneck.
    let machine = synthetic(4, "links = [{ among = [0, 1, 2, 3], bandwidth = 9000 }]");
    let rig = Rig::new(machine, 0.0);
    let known = |share: f64| {
        let alone: Vec<(Flow, Estimate)> = flows(&rig.machine)
            .into_iter()
            .map(|f| (f, unsteady(9000.0, share)))
            .collect();
        let mut runs = 0;
        let survey = survey(
            &alone,
            |_| true,
            |flows| {
                runs += 1;
                Some(flows.iter().map(|_| unsteady(9000.0, share)).collect())
            },
        );
        let (pairs, unknown) = survey.pairs();
        assert!(
            runs < 4 * pairs,
            "{runs} runs for {pairs} pairs: nothing is asked for ever"
        );
        (pairs - unknown, survey.unclear(), survey.unseen())
    };
    let (all, unclear, unseen) = known(0.01);
    assert_eq!((all, unclear, unseen), (66, 0, 0.05));
    let (all, unclear, unseen) = known(0.05);
    assert_eq!((all, unclear), (66, 0));
    assert!((unseen - 1.5 * 0.05 * 2f64.sqrt()).abs() < 1e-9, "said: {unseen}");
    assert_eq!(known(0.2), (0, 66, 0.05), "a fifth could hide anything");
}

#[test]
fn a_flow_that_stands_still_shares_nothing_it_is_not_known() {
    let machine = synthetic(3, "links = [{ among = [0, 1, 2], bandwidth = 9000 }]");
    let alone: Vec<(Flow, Estimate)> = flows(&machine)
        .into_iter()
        .map(|f| (f, Estimate::exact(9000.0)))
        .collect();
    let still = |flows: &[Flow]| Some(vec![Estimate::exact(0.0); flows.len()]);
    let survey = survey(&alone, |_| true, still);
    assert_eq!(survey.pairs(), (15, 15));
    assert!(Inferred::of(&survey, &[]).bottlenecks.is_empty());
}

#[test]
fn what_was_not_measured_still_shares_its_links() {
    // The routes from 0 and 1 to 2 and 3 share one link.
    let text = "links = [{ among = [0, 1], bandwidth = 9000 }, { among = [2, 3], bandwidth = 9000 }, \
                { between = [[0, 1], [2, 3]], bandwidth = 7000 }]";
    let rig = Rig::new(synthetic(4, text), 0.0);
    let measured: Vec<(Flow, Estimate)> = flows(&rig.machine)
        .into_iter()
        .filter(|f| f.memory.0 > 1)
        .map(|f| (f, rig.measure(&[f], &mut Random::of(1))[0]))
        .collect();
    let survey = survey(
        &measured,
        |_| true,
        |flows| Some(rig.measure(flows, &mut Random::of(1))),
    );
    let mut found = rig.machine.clone();
    Inferred::of(&survey, &[]).apply(&mut found);
    found.validate().unwrap();
    let set = Flow::parse_list("0>2,1>3", 4).unwrap();
    assert_eq!(rig.channels.max_min(&set), [3500.0, 3500.0]);
    assert_eq!(Channels::of(&found).max_min(&set), [3500.0, 3500.0]);
}

#[test]
fn three_flows_that_fill_a_link_are_no_further_bottleneck() {
    // Data from 1 to 0 (6,000), 0 to 4 (4,000) and 3 to 1 (2,000) all cross the link from 3 to 4 (10,000), which no two
    // of them fill. Pairs of other flows have already shown that link.
    let widths = [
        (0, 1, 2000),
        (0, 2, 4000),
        (1, 2, 6000),
        (2, 3, 10_000),
        (3, 4, 10_000),
        (4, 0, 10_000),
    ];
    let links = widths.map(|(from, to, mbs)| format!("{{ from = {from}, to = {to}, bandwidth = {mbs} }}"));
    let rig = Rig::new(synthetic(5, &format!("links = [{}]", links.join(", "))), 0.0);
    let survey = rig.survey(1);
    assert_eq!(Inferred::of(&survey, &[]).bottlenecks.len(), widths.len());
    let (_, largest) = errors(&rig, &inferred(&rig, &survey), false, 1);
    assert!(largest < 1e-6, "{largest}");
    let noisy = Rig::new(rig.machine.clone(), 0.01);
    for seed in 1..20 {
        let found = Inferred::of(&noisy.survey(seed), &[]).bottlenecks;
        assert_eq!(found.len(), widths.len(), "seed {seed}: {found:?}");
    }
}

#[test]
fn a_link_is_found_behind_a_wider_one_that_its_flows_would_fill_as_well() {
    // A flow of 10,000 shows the link that all four cross. The other three, of 4,000 each, also cross one of 8,500,
    // which no two of them fill. All three together would fill the first link, too.
    let mut machine = synthetic(
        8,
        "links = [{ among = [0, 1, 2, 3, 4, 5, 6, 7], bandwidth = 50000 }]",
    );
    let first = machine.links.len() as u32;
    machine.links.extend([10_000.0, 8500.0].map(|bandwidth| Link {
        from: NodeId(0),
        to: NodeId(4),
        bandwidth,
        class: None,
    }));
    let widths = [4000.0, 4000.0, 4000.0, 10_000.0];
    let all: Vec<(Flow, Estimate)> = (0..4)
        .map(|n| {
            let [reader, memory] = [NodeId(n + 4), NodeId(n)];
            let route = &mut machine.routes[reader.index()][memory.index()];
            route.bandwidth = widths[n as usize];
            route.links = [LinkId(first), LinkId(first + 1)][..if n < 3 { 2 } else { 1 }].to_vec();
            (Flow { reader, memory }, Estimate::exact(route.bandwidth))
        })
        .collect();
    let rig = Rig::new(machine, 0.0);
    let survey = survey(
        &all,
        |_| true,
        |flows| Some(rig.measure(flows, &mut Random::of(1))),
    );
    let found = Inferred::of(&survey, &[]).bottlenecks;
    let mut found: Vec<(f64, Vec<usize>)> = found.into_iter().map(|(b, _)| (b.capacity, b.flows)).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert_eq!(found, [(8500.0, vec![0, 1, 2]), (10_000.0, vec![0, 1, 2, 3])]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_graphs_are_found_again(seed in any::<u64>(), nodes in 3usize..9, density in 0.2f64..0.9) {
        let mut random = Random::of(seed);
        let mut links: Vec<String> = Vec::new();
        for from in 0..nodes {
            for to in (0..nodes).filter(|to| *to != from) {
                // The ring keeps the graph connected.
                if to == (from + 1) % nodes || random.unit() < density {
                    links.push(format!("{{ from = {from}, to = {to}, bandwidth = {} }}", 2000 + random.below(9) * 1000));
                }
            }
        }
        let rig = Rig::new(synthetic(nodes, &format!("links = [{}]", links.join(", "))), 0.0);
        let survey = rig.survey(seed);
        prop_assert_eq!(precision_and_recall(&rig, &survey), (1.0, 1.0));
        let (_, largest) = errors(&rig, &inferred(&rig, &survey), false, seed);
        prop_assert!(largest < 1e-6, "largest {}", largest);
    }

    #[test]
    fn whatever_is_measured_makes_a_machine_that_a_file_gives_back(seed in any::<u64>(), nodes in 2usize..6) {
        let machine = synthetic(nodes, &format!("links = [{{ among = {:?}, bandwidth = 9000 }}]", (0..nodes).collect::<Vec<_>>()));
        let mut random = Random::of(seed);
        let mut any = |flows: &[Flow]| -> Vec<Estimate> {
            flows.iter().map(|_| Estimate::exact(100.0 + random.unit() * 900.0)).collect()
        };
        let alone: Vec<(Flow, Estimate)> = flows(&machine).into_iter().map(|f| (f, any(&[f])[0])).collect();
        let survey = survey(&alone, |_| true, |flows| Some(any(flows)));
        let mut found = machine.clone();
        Inferred::of(&survey, &[Some(800.0), None]).apply(&mut found);
        prop_assert!(found.validate().is_ok());
        let read = Machine::parse(&found.to_toml(), "written").unwrap();
        let (written, reread) = (Channels::of(&found), Channels::of(&read));
        let all = flows(&machine);
        for _ in 0..20 {
            let set: Vec<Flow> = (0..5).map(|_| all[random.below(all.len())]).collect();
            for (a, b) in written.max_min(&set).iter().zip(reread.max_min(&set)) {
                prop_assert!((a - b).abs() < 1e-6 * a, "{set:?}: {a} {b}");
            }
        }
    }
}
