//! Files that are not machines are refused in one line that says where and what.

use nodewise_machine::Machine;
use proptest::prelude::*;

const GOOD: &str = r#"
name = "two"
title = "two nodes"
latency_ns = [[100, 200], [200, 100]]
nodes = [{ cpus = "0-1", memory = "1G", bandwidth = 1000 }, { cpus = "2-3", memory = "1G", bandwidth = 1000 }]
links = [{ between = [0, 1], bandwidth = 500 }]
"#;

fn refused(from: &str, to: &str, because: &str) {
    let text = GOOD.replacen(from, to, 1);
    assert_ne!(text, GOOD, "{from} is not in the file");
    let error = Machine::parse(&text, "two.toml").expect_err(because).to_string();
    assert!(
        error.starts_with("two.toml: ") && !error.contains('\n'),
        "{error}"
    );
    assert!(error.contains(because), "{error:?} lacks {because:?}");
}

#[test]
fn the_good_file_is_read() {
    let machine = Machine::parse(GOOD, "two.toml").unwrap();
    assert_eq!(
        machine
            .route(nodewise_machine::NodeId(0), nodewise_machine::NodeId(1))
            .bandwidth,
        500.0
    );
    assert_eq!(machine.numa_factor(), 2.0);
}

#[test]
fn contradictions_are_refused_with_their_place() {
    refused("\"2-3\"", "\"1-3\"", "CPU 1 is on node 0 and on node 1");
    refused("[200, 100]]", "[200]]", "latency_ns must be 2 rows of 2");
    refused(
        "[200, 100]]",
        "[200, 0]]",
        "latency_ns is 0; figures must be positive",
    );
    refused("[200, 100]]", "[200, nan]]", "latency_ns is NaN");
    for bad in ["-500", "0", "nan", "inf"] {
        refused("500", bad, "links[0]: a link's bandwidth is ");
        refused(
            "bandwidth = 1000",
            &format!("bandwidth = {bad}"),
            "a node's bandwidth is ",
        );
        let route = format!("routes = [{{ from = 0, to = 1, bandwidth = {bad} }}]\ntitle");
        refused("title", &route, "routes[0]: a route's bandwidth is ");
    }
    refused("between = [0, 1]", "between = [0, 2]", "links[0]: its ends");
    refused(
        "between = [0, 1]",
        "from = 0, to = 1",
        "no links lead from node 1 to node 0, directly or over others: add one",
    );
    refused("between = [0, 1]", "from = 0", "give `from` and `to`");
    refused("\"0-1\"", "\"x\"", "nodes[0]: CPU list \"x\"");
    refused("\"1G\"", "\"lots\"", "nodes[0]: memory \"lots\"");
    refused(", bandwidth = 1000", "", "nodes[0]: needs a bandwidth");
    refused("title", "titel", "line 3: unknown field");
    refused("name = \"two\"", "name = two", "line 2");
    refused(
        "links = [{ between = [0, 1], bandwidth = 500 }]",
        "",
        "needs `links` or a `bandwidth` matrix",
    );
    refused("title", "page_size = \"5K\"\ntitle", "page_size");
    refused(
        "title",
        "routes = [{ from = 0, to = 1, via = [9] }]\ntitle",
        "routes[0]: no link leads from node 0 to node 9: add it, or go another way",
    );
    refused(
        "title",
        "routes = [{ from = 0, to = 2 }]\ntitle",
        "routes[0]: must lead between",
    );
    refused(
        "title",
        "routes = [{ from = 0, to = 1, via = [1] }]\ntitle",
        "routes[0]: passes a node twice",
    );
    refused(
        "title",
        "routes = [{ from = 0, to = 1 }, { from = 0, to = 1 }]\ntitle",
        "routes[1]: from 0 to 1 is given twice",
    );
    refused(
        "title",
        "routes = [{ from = 0, to = 1, links = [1] }]\ntitle",
        "routes[0]: link 1 does not lead from node 0 to node 1",
    );
    refused(
        "title",
        "routes = [{ from = 0, to = 1, links = [2] }]\ntitle",
        "routes[0]: there is no link 2: they are numbered from 0 to 1",
    );
    refused(
        "memory = \"1G\"",
        "os_index = 1, memory = \"1G\"",
        "node 0 and node 1 are both the kernel's node 1",
    );
    for absurd in ["1e-320", "1e308"] {
        refused("500", absurd, "links[0]: a link's bandwidth is 1e");
    }
    refused(
        "title",
        "routes = [{ from = 0, to = 1, links = [0, 0] }]\ntitle",
        "the route from node 0 to node 1: crosses a link twice",
    );
    refused(
        "title",
        "routes = [{ from = 0, to = 1, bandwidth = 510 }]\ntitle",
        "the route from node 0 to node 1: its bandwidth of 510 is more than the 500 that get through its links",
    );
    refused(
        "title",
        "bandwidth = [[1000, 500], [600, 1000]]\ntitle",
        "the route from node 0 to node 1: its bandwidth of 600",
    );
    refused(
        "title",
        "backplane = 400\nbandwidth = [[1000, 500], [500, 1000]]\ntitle",
        "its bandwidth of 500 is more than the 400",
    );
}

#[test]
fn a_narrow_backplane_is_all_that_a_route_has() {
    let narrow = GOOD.replacen("title", "backplane = 300\ntitle", 1);
    let machine = Machine::parse(&narrow, "two.toml").unwrap();
    assert_eq!(
        (machine.routes[0][1].bandwidth, machine.routes[0][0].bandwidth),
        (300.0, 1000.0)
    );
    assert_eq!(
        Machine::parse(&machine.to_toml(), "again").unwrap().routes,
        machine.routes
    );
    assert!(!machine.to_toml().contains("bandwidth = [["));
}

#[test]
fn hop_rules_speak_once_of_classes_that_are_there() {
    let rule = |from: &str, to: &str, factor: &str| {
        format!("hop_rules = [{{ from = '{from}', to = '{to}', factor = {factor} }}]\ntitle")
    };
    refused(
        "title",
        &rule("16bit", "8bit", "0.64"),
        "hop_rules[0]: no link is of class \"16bit\"; none has a class",
    );
    let classed = |rules: &str| {
        let text = GOOD.replacen("title", rules, 1).replacen(
            "bandwidth = 500",
            "class = '8bit', bandwidth = 500",
            1,
        );
        Machine::parse(&text, "two.toml").map_err(|e| e.to_string())
    };
    let because = |rules: &str| classed(rules).unwrap_err();
    assert!(
        because(&rule("16bit", "8bit", "0.64")).contains("no link is of class \"16bit\"; there are: 8bit")
    );
    for bad in ["0", "-1", "1.01", "nan"] {
        assert!(because(&rule("8bit", "8bit", bad)).contains("hop_rules[0]: factor is "));
    }
    let twice = "hop_rules = [{ from = '8bit', to = '8bit', factor = 1 }, { from = '8bit', to = '8bit', factor = 0.5 }]\ntitle";
    assert!(because(twice).contains("hop_rules[1]: \"8bit\" then \"8bit\" is given twice"));
    assert_eq!(
        classed(&rule("8bit", "8bit", "0.5")).unwrap().hop_rules[0].factor,
        0.5
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_damaged_file_is_refused_or_read_but_never_panics(at in 0..GOOD.len(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = GOOD.as_bytes().to_vec();
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let text = String::from_utf8_lossy(&bytes);
        if let Err(error) = Machine::parse(&text, "two.toml") {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn machines_of_any_size_are_complete(nodes in 1usize..70, cpus in 1u32..4) {
        let list = |n: usize| format!("{}-{}", n as u32 * cpus, n as u32 * cpus + cpus - 1);
        let entries: Vec<String> =
            (0..nodes).map(|n| format!("{{ cpus = \"{}\", memory = \"1G\", bandwidth = 10 }}", list(n))).collect();
        let rows = vec![vec![1.0; nodes]; nodes];
        let text = format!(
            "name = 'n'\ntitle = ''\nnodes = [{}]\nlatency_ns = {rows:?}\nbandwidth = {rows:?}",
            entries.join(", "),
        );
        let machine = Machine::parse(&text, "n").unwrap();
        prop_assert_eq!(machine.cpus().len(), nodes * cpus as usize);
        prop_assert_eq!(machine.links.len(), nodes * (nodes - 1));
        for (reader, row) in machine.routes.iter().enumerate() {
            for (memory, route) in row.iter().enumerate() {
                prop_assert_eq!(route.links.len(), usize::from(reader != memory));
            }
        }
    }
}
