//! Compares the shipped machines with the tables that they come from.

use nodewise_machine::{Channels, Machine, NodeId};
use std::collections::BTreeSet;

fn table(name: &str) -> Vec<Vec<String>> {
    let path = format!("{}/tests/data/{name}.csv", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    text.lines()
        .skip(1)
        .map(|line| line.split(',').map(str::to_owned).collect())
        .collect()
}

/// `(reader, memory, figure)` of every filled cell.
fn cells(name: &str) -> Vec<(usize, usize, f64)> {
    let rows = table(name).into_iter().enumerate();
    rows.flat_map(|(reader, row)| {
        let row = row.into_iter().skip(1).enumerate();
        row.filter_map(move |(memory, cell)| Some((reader, memory, cell.parse().ok()?)))
    })
    .collect()
}

fn node(index: usize) -> NodeId {
    NodeId(index as u32)
}

fn load(name: &str) -> Machine {
    Machine::named(name).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_shipped_file_is_a_machine_of_its_own_name() {
    for name in Machine::names() {
        let machine = load(name);
        assert_eq!(machine.name, name);
        assert!(!machine.title.is_empty());
        machine.validate().unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    assert_eq!(load("opteron-6272"), load("machine-a"));
}

#[test]
fn every_figure_states_its_source_or_that_it_is_assumed() {
    for name in Machine::names() {
        let machine = load(name);
        let stated: BTreeSet<&str> = machine
            .sources
            .iter()
            .map(|s| s.field.split('.').next().unwrap())
            .collect();
        for field in ["nodes", "page_size", "latency_ns", "links"] {
            assert!(
                stated.contains(field),
                "{name}: nothing says where {field} comes from"
            );
        }
        let bandwidth = |s: &nodewise_machine::Source| s.field.contains("bandwidth");
        assert!(
            machine.sources.iter().any(bandwidth),
            "{name}: bandwidths without source"
        );
        assert!(
            machine.backplane.is_none() || stated.contains("backplane"),
            "{name}: backplane"
        );
        assert!(
            machine.sources.iter().all(|s| s.text.len() > 10),
            "{name}: an empty source"
        );
    }
}

#[test]
fn dieners_machines_have_the_papers_nodes_threads_and_numa_factors() {
    let names = [
        ("Itanium", "itanium-9030"),
        ("Xeon", "xeon-x7550"),
        ("Opteron", "opteron-6386"),
    ];
    for row in table("diener-machines") {
        let (_, name) = names.iter().find(|(start, _)| row[0].starts_with(start)).unwrap();
        let machine = load(name);
        assert_eq!(machine.node_count().to_string(), row[1], "{name}");
        assert_eq!(machine.cpus().len().to_string(), row[2], "{name}");
        assert!(
            (machine.numa_factor() - row[3].parse::<f64>().unwrap()).abs() < 1e-9,
            "{name}"
        );
    }
    assert_eq!(load("itanium-9030").page_size, 16 << 10);
}

#[test]
fn other_papers_numa_factors_hold() {
    let close = |name: &str, factor: f64| assert!((load(name).numa_factor() - factor).abs() < 1e-9, "{name}");
    close("mai-itanium2-fss", 2.5);
    close("mai-opteron-8n", 1.5);
    close("nehalem-2s", 90.0 / 50.0);
    close("sci-cluster-4", 30.0);
}

#[test]
fn machine_a_has_the_models_links_routes_and_bandwidths() {
    let machine = load("machine-a");
    let links = table("machine-a-links");
    assert_eq!(machine.links.len(), links.len());
    for row in links {
        let matches =
            |l: &&nodewise_machine::Link| l.from.to_string() == row[0] && l.to.to_string() == row[1];
        assert_eq!(
            machine.links.iter().find(matches).unwrap().bandwidth.to_string(),
            row[2]
        );
    }
    for row in table("machine-a-routes") {
        let (memory, reader) = (node(row[0].parse().unwrap()), node(row[1].parse().unwrap()));
        let mut path = vec![memory];
        path.extend(machine.via(reader, memory));
        path.push(reader);
        let path: Vec<String> = path.iter().map(ToString::to_string).collect();
        assert_eq!(path.join("-"), row[2]);
        assert_eq!(machine.route(reader, memory).links.len().to_string(), row[3]);
    }
    for (reader, memory, figure) in cells("machine-a-bandwidth") {
        let rule = machine.route(node(reader), node(memory)).bandwidth;
        assert!(
            (rule / figure - 1.0).abs() < 0.0015,
            "{memory} to {reader}: {rule} against {figure}"
        );
    }
}

#[test]
fn machine_as_bandwidths_follow_from_links_and_hop_rules_alone() {
    let text = load("machine-a").to_toml();
    assert!(
        text.contains("[[hop_rules]]") && !text.contains("\nbandwidth = [["),
        "{text}"
    );
    let plain: String = text.split("[[hop_rules]]").next().unwrap().to_owned();
    let unruled = Machine::parse(&plain, "machine-a").unwrap();
    assert_eq!(
        unruled.route(node(7), node(0)).bandwidth,
        2990.0,
        "the narrower link, without a rule"
    );
}

#[test]
fn machine_a_reproduces_table_1_of_asymsched_within_about_one_percent() {
    let machine = load("machine-a");
    for row in table("asymsched-table1") {
        let (master, other) = (node(row[5].parse().unwrap()), node(row[6].parse().unwrap()));
        let measured: f64 = row[4].parse().unwrap();
        let model = machine.route(other, master).bandwidth;
        assert!(
            (model / measured - 1.0).abs() < 0.011,
            "{master} to {other}: {model} against {measured}"
        );
    }
}

#[test]
fn machine_b_is_machine_a_with_two_links_both_ways() {
    let (a, b) = (load("machine-a"), load("machine-b"));
    let pairs = || (0..8).flat_map(|m| (0..8).map(move |r| (m, r)));
    let changed = |&(m, r): &(usize, usize)| a.via(node(r), node(m)) != b.via(node(r), node(m));
    assert_eq!(pairs().filter(changed).collect::<Vec<_>>(), [(1, 4), (7, 2)]);
    for (memory, reader) in [(1, 4), (7, 2)] {
        assert!(b.via(node(reader), node(memory)).is_empty());
        assert!(b.latency(node(reader), node(memory)) < a.latency(node(reader), node(memory)));
    }
    assert_eq!((b.cpus().len(), b.links.len()), (48, a.links.len() + 2));
}

#[test]
fn two_hops_over_16_then_8_bits_get_less_than_the_narrower_link() {
    let machine = load("machine-a");
    let route = machine.route(node(3), node(0));
    assert_eq!(
        (route.links.len(), route.bandwidth.round()),
        (2, 3744.0),
        "0-2-3 is 16/8 then 16 bits"
    );
    let route = machine.route(node(7), node(0));
    let narrowest = route
        .links
        .iter()
        .map(|l| machine.links[l.0 as usize].bandwidth)
        .fold(f64::MAX, f64::min);
    assert!((route.bandwidth / narrowest - 0.64).abs() < 0.005);
}

#[test]
fn measured_machines_have_the_published_cells() {
    for name in ["2s-skx-class", "xeon8269cy-2s-snc2", "xeon6980p-2s-snc3"] {
        let machine = load(name);
        for (reader, memory, figure) in cells(&format!("{name}-lat-ns")) {
            assert_eq!(machine.latency(node(reader), node(memory)), figure, "{name}");
        }
        for (reader, memory, figure) in cells(&format!("{name}-bw-MBps")) {
            assert_eq!(
                machine.route(node(reader), node(memory)).bandwidth,
                figure,
                "{name}"
            );
            assert!(
                reader != memory || machine.nodes[memory].bandwidth == figure,
                "{name}"
            );
        }
    }
    let machine = load("epyc-1s-nps4");
    for (reader, memory, figure) in cells("epyc-1s-nps4-lat-ns") {
        assert_eq!(machine.latency(node(reader), node(memory)), figure);
    }
}

#[test]
fn latencies_order_as_published_distances_do() {
    for (name, slit) in [
        ("epyc-2s-nps4", "slit-epyc-2s-nps4"),
        ("xeonmax-2s-snc4-flat", "slit-xeonmax-2s-snc4-flat"),
    ] {
        let machine = load(name);
        let cells = cells(slit);
        assert_eq!(cells.len(), machine.node_count() * machine.node_count());
        for reader in machine.cpu_nodes() {
            let row: Vec<_> = cells.iter().filter(|c| c.0 == reader.index()).collect();
            for a in &row {
                // HBM and DDR have different local latencies, so only memories of the same kind are compared.
                let kind = |m: usize| machine.nodes[m].cpus.is_empty();
                for b in row.iter().filter(|b| kind(b.1) == kind(a.1) && a.2 < b.2) {
                    assert!(
                        machine.latency(reader, node(a.1)) < machine.latency(reader, node(b.1)),
                        "{name}"
                    );
                }
            }
        }
    }
}

#[test]
fn sockets_share_the_links_between_them() {
    let machine = load("epyc-2s-nps4");
    let across = |reader, memory| machine.route(node(reader), node(memory)).links.clone();
    assert_eq!(across(4, 0), across(7, 3));
    assert_ne!(across(4, 0), across(0, 4), "directions do not share");
    let ends = machine.link_ends(across(4, 0)[0]);
    assert_eq!(ends, ((0..4).map(node).collect(), (4..8).map(node).collect()));
}

#[test]
fn a_shipped_machine_survives_writing_and_reading() {
    for name in Machine::names() {
        let machine = load(name);
        let again = Machine::parse(&machine.to_toml(), name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(again, machine);
    }
}

#[test]
fn a_route_over_links_that_no_chain_of_nodes_names_survives_writing_and_reading() {
    let text = r#"
        name = "odd"
        title = "1 reads 0 over a link that 3 and 2 share, and over the narrower of two of its own"
        latency_ns = [[1, 2, 2, 2], [2, 1, 2, 2], [2, 2, 1, 2], [2, 2, 2, 1]]
        nodes = [
            { cpus = "0", memory = "1G", bandwidth = 90 }, { cpus = "1", memory = "1G", bandwidth = 90 },
            { cpus = "2", memory = "1G", bandwidth = 90 }, { cpus = "3", memory = "1G", bandwidth = 90 },
        ]
        links = [
            { among = [0, 1, 2, 3], bandwidth = 50 },
            { from = 0, to = 1, bandwidth = 40 },
            { from = 2, to = 3, bandwidth = 30 },
        ]
        routes = [{ from = 0, to = 1, links = [12, 13] }, { from = 2, to = 3, links = [8, 13] }]
    "#;
    let machine = Machine::parse(text, "odd").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(machine.route(node(1), node(0)).bandwidth, 30.0);
    let again =
        Machine::parse(&machine.to_toml(), "again").unwrap_or_else(|e| panic!("{e}\n{}", machine.to_toml()));
    assert_eq!(again, machine);
    assert_eq!(Channels::of(&again), Channels::of(&machine));
    let refused = |links: &str| {
        let text = text.replace("links = [12, 13]", links);
        Machine::parse(&text, "odd").unwrap_err().to_string()
    };
    assert!(
        refused("links = [14]").contains("routes[0]: there is no link 14: they are numbered from 0 to 13")
    );
    assert!(refused("links = []").contains("routes[0]: crosses no link"));
    assert!(refused("via = [2], links = [12]").contains("routes[0]: give `via` or `links`, not both"));
}
