//! Scales the bandwidths that a machine's file marks as assumed, as no source states them.

use nodewise_machine::{Machine, Source};

/// Fields of a machine file that say how wide the ways between nodes are.
const WAYS: [&str; 3] = ["links", "bandwidth", "backplane"];
/// The field that marks what memory-side caches deliver.
const CACHES: &str = "nodes.cache";
/// The field by which a file states the widths of links whose wiring is assumed.
const WIDTHS: &str = "links.widths";

/// Which bandwidths are assumed: those of controllers, of memory-side caches, and of the ways between nodes.
fn assumed(machine: &Machine) -> (bool, bool, bool) {
    let is = |field: &str, assumed: bool| {
        machine
            .sources
            .iter()
            .any(|s| s.field == field && s.assumed == assumed)
    };
    let ways = WAYS.iter().any(|field| is(field, true)) && !is(WIDTHS, false);
    let caches = machine.has_memory_side_caches() && is(CACHES, true);
    (is("nodes.bandwidth", true), caches, ways)
}

/// Whether a machine has assumed bandwidths.
pub(crate) fn has_assumed_bandwidth(machine: &Machine) -> bool {
    let (controllers, caches, ways) = assumed(machine);
    controllers || caches || ways
}

/// The machine with its assumed bandwidths multiplied by `factor`; those that a source states stay.
#[must_use]
pub fn with_assumed_bandwidth(machine: &Machine, factor: f64) -> Machine {
    let (controllers, caches, ways) = assumed(machine);
    let mut scaled = machine.clone();
    if controllers {
        scaled.nodes.iter_mut().for_each(|n| n.bandwidth *= factor);
    }
    if caches {
        let all = scaled.nodes.iter_mut().filter_map(|n| n.cache.as_mut());
        all.for_each(|c| c.bandwidth *= factor);
    }
    if ways {
        scaled.links.iter_mut().for_each(|l| l.bandwidth *= factor);
        scaled.backplane = scaled.backplane.map(|b| b * factor);
        for (reader, routes) in scaled.routes.iter_mut().enumerate() {
            let others = routes
                .iter_mut()
                .enumerate()
                .filter(|(memory, _)| *memory != reader);
            others.for_each(|(_, route)| route.bandwidth *= factor);
        }
    }
    if factor != 1.0 && (controllers || caches || ways) {
        scaled.sources.push(Source {
            field: "bandwidth factor".into(),
            text: format!("assumed bandwidths multiplied by {factor}"),
            assumed: true,
        });
    }
    scaled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(name: &str) -> (Machine, Machine) {
        let machine = Machine::named(name).unwrap();
        let half = with_assumed_bandwidth(&machine, 0.5);
        (machine, half)
    }

    #[test]
    fn what_a_source_states_stays() {
        let (machine, half) = scaled("nehalem-2s"); // all stated by its paper
        assert_eq!(machine.nodes, half.nodes);
        assert_eq!(machine.links, half.links);
        assert!(!has_assumed_bandwidth(&machine));
        let (machine, half) = scaled("machine-a"); // Table 1 has the links' widths, but not the controllers'
        assert_eq!(machine.links, half.links);
        assert_eq!(machine.nodes[0].bandwidth, 2.0 * half.nodes[0].bandwidth);
        let (machine, half) = scaled("opteron-6386"); // neither
        assert_eq!(machine.links[0].bandwidth, 2.0 * half.links[0].bandwidth);
        assert_eq!(machine.nodes[0].bandwidth, 2.0 * half.nodes[0].bandwidth);
        assert!(has_assumed_bandwidth(&machine));
    }
}
