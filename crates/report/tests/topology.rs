//! The picture of a machine.

use nodewise_machine::{Channels, Flow, Machine};
use nodewise_report::{links_svg, topology_svg};

fn svg(name: &str) -> String {
    topology_svg(&Machine::named(name).unwrap_or_else(|e| panic!("{e}")))
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn every_shipped_machine_is_drawn_whole() {
    for name in Machine::names() {
        let (machine, svg) = (Machine::named(name).unwrap(), svg(name));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{name}");
        assert_eq!(count(&svg, "<g>"), count(&svg, "</g>"), "{name}");
        let nodes = count(&svg, "<rect class=\"node\"") + count(&svg, "<rect class=\"far\"");
        assert_eq!(nodes, machine.node_count(), "{name}");
        let cells = machine.cpu_nodes().count() * machine.node_count();
        assert_eq!(count(&svg, "<rect class=\"cell\""), cells, "{name}");
        assert!(!svg.contains("NaN") && !svg.contains("inf,"), "{name}");
    }
}

#[test]
fn one_way_links_have_an_arrow_and_equal_directions_one_line() {
    let machine_a = svg("machine-a");
    assert_eq!(count(&machine_a, "one way"), 4, "7 to 3, 1 to 5, 2 to 7, 4 to 1");
    assert!(count(&machine_a, "<polygon") > 4);
    assert_eq!(count(&svg("xeon-x7550"), "<polygon"), 0);
    assert_eq!(count(&svg("xeon-x7550"), "<line"), 6);
}

#[test]
fn sockets_that_share_links_are_boxes_and_backplanes_a_hub() {
    assert_eq!(count(&svg("epyc-2s-nps4"), "<rect class=\"socket\""), 2);
    assert_eq!(count(&svg("mai-itanium2-fss"), "<line"), 4);
    assert!(svg("mai-itanium2-fss").contains("backplane"));
}

#[test]
fn text_from_a_machine_file_is_escaped() {
    let mut machine = Machine::named("nehalem-2s").unwrap();
    machine.title = "<script>alert('&')</script>".to_owned();
    assert!(!topology_svg(&machine).contains("<script>"));
}

#[test]
fn load_is_colour_and_a_busy_direction_is_an_arrow_with_its_figure() {
    let machine = Machine::named("machine-a").unwrap();
    let flows = Flow::parse_list("0>3,4-5", 8).unwrap();
    let channels = Channels::of(&machine);
    let load = channels.loads(&flows, &channels.max_min(&flows));
    let svg = links_svg(&machine, Some(&load));
    assert_eq!(
        count(&svg, "<line class=\"link full\"") - 1,
        2,
        "4 and 5 both ways, and the legend"
    );
    assert_eq!(count(&svg, "<line class=\"link most\"") - 1, 1, "0 to 2");
    assert_eq!(count(&svg, "<line class=\"link much\"") - 1, 1, "2 to 3");
    assert_eq!(count(&svg, "class=\"tag"), 4);
    assert!(svg.contains("node 0 to node 2: 4.33 GB/s, of which 3.74 GB/s are used"));
    let plain = links_svg(&machine, None);
    assert!(count(&plain, "class=\"link idle\"") == 0 && count(&plain, "class=\"tag") == 0);
}

#[test]
fn a_backplane_shows_its_load_and_its_ports_theirs() {
    let mut machine = Machine::named("mai-itanium2-fss").unwrap();
    machine.backplane = Some(12_000.0);
    let flows = Flow::parse_list("0>1,0>2,3>1", 4).unwrap();
    let channels = Channels::of(&machine);
    let mut load = channels.loads(&flows, &channels.max_min(&flows));
    load.drain(machine.links.len()..load.len() - 1);
    let svg = links_svg(&machine, Some(&load));
    assert!(svg.contains(">12.0 of 12.0 GB/s<"), "{svg}");
    assert_eq!(count(&svg, "<rect class=\"link full\""), 1, "the hub");
    assert_eq!(
        count(&svg, "<line class=\"link much\"") - 1,
        4,
        "4 of 6.40 GB/s on every port"
    );
    assert!(svg.contains("node 0 and backplane: 6.40 GB/s each way; sends 8.00 GB/s, receives 0.00 GB/s"));
    let plain = links_svg(&machine, None);
    assert!(plain.contains("12.0 GB/s in all") && count(&plain, "class=\"link full") == 0);
}

#[test]
fn nodes_of_machine_a_stand_so_that_few_links_cross() {
    let centre = |svg: &str, node: usize| {
        let card = svg.split(&format!("<g><title>node {node}: CPUs")).nth(1).unwrap();
        let text = card.split("<text").nth(1).unwrap();
        let number = |key: &str| {
            let from = text.split(&format!("{key}=\"")).nth(1).unwrap();
            from.split('"').next().unwrap().parse::<f64>().unwrap()
        };
        (number("x"), number("y"))
    };
    let (svg, machine) = (svg("machine-a"), Machine::named("machine-a").unwrap());
    let turn =
        |a: (f64, f64), b: (f64, f64), c: (f64, f64)| (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0);
    let mut lines: Vec<_> = machine
        .links
        .iter()
        .map(|l| (l.from.min(l.to), l.from.max(l.to)))
        .collect();
    lines.sort_unstable();
    lines.dedup();
    let ends: Vec<_> = lines
        .iter()
        .map(|(a, b)| (centre(&svg, a.index()), centre(&svg, b.index())))
        .collect();
    let cross =
        |(a, b), (c, d)| turn(a, b, c) * turn(a, b, d) < -1e-6 && turn(c, d, a) * turn(c, d, b) < -1e-6;
    let crossings = (0..ends.len())
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .filter(|(i, j)| cross(ends[*i], ends[*j]));
    assert_eq!(
        crossings.count(),
        3,
        "of 20 lines; in a circle they would cross 19 times at least"
    );
}
