//! Scales how much longer remote memory takes than a node's own, where a machine's file marks latencies as assumed.

use nodewise_machine::{Machine, Source};

/// The field that marks all latencies of a machine; those of a part of them, as `latency_ns.rest`, follow from measured ones.
const FIELD: &str = "latency_ns";

/// Whether no source states the machine's latencies.
pub(crate) fn has_assumed_latency(machine: &Machine) -> bool {
    machine.nodes.len() > 1 && machine.sources.iter().any(|s| s.field == FIELD && s.assumed)
}

/// The machine with what other nodes' memory takes longer than a node's own multiplied by `factor`, if its latencies are
/// assumed. Local latencies and all bandwidths stay: a latency that is long for want of bandwidth is the business of
/// [`crate::with_assumed_bandwidth`].
#[must_use]
pub fn with_assumed_latency(machine: &Machine, factor: f64) -> Machine {
    let mut scaled = machine.clone();
    if factor == 1.0 || !has_assumed_latency(machine) {
        return scaled;
    }
    for (reader, row) in scaled.latency_ns.iter_mut().enumerate() {
        let own = row[reader];
        row.iter_mut()
            .filter(|l| **l > own)
            .for_each(|l| *l = own + factor * (*l - own));
    }
    scaled.sources.push(Source {
        field: "latency factor".into(),
        text: format!("what remote memory takes longer than a node's own multiplied by {factor}"),
        assumed: true,
    });
    scaled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_assumed_is_scaled_and_what_a_source_states_stays() {
        let machine = Machine::named("epyc-2s-nps4").unwrap();
        let nearer = with_assumed_latency(&machine, 0.5);
        assert_eq!(nearer.latency_ns[0][0], 105.0);
        assert_eq!(nearer.latency_ns[0][1], 111.0); // 117
        assert_eq!(nearer.latency_ns[0][4], 157.5); // 210
        assert_eq!((machine.nodes, machine.links), (nearer.nodes, nearer.links));
        let stated = Machine::named("nehalem-2s").unwrap();
        assert_eq!(with_assumed_latency(&stated, 2.0).latency_ns, stated.latency_ns);
    }
}
