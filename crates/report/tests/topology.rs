//! The picture of a machine.

use nodewise_machine::Machine;
use nodewise_report::topology_svg;

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
