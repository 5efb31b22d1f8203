//! Scales how much longer remote memory takes than a node's own, where a machine's file marks latencies as assumed.

use nodewise_machine::{Machine, Source};

/// The field that marks all latencies of a machine, and fields by which a source states what is remote: the factor on local
/// latency, or the latency across sockets or of a kind of memory. Marks of a part of them alone, as `latency_ns.rest`, follow
/// from measured ones.
const FIELD: &str = "latency_ns";
const STATED: [&str; 3] = ["latency_ns.factor", "latency_ns.across", "latency_ns.ddr"];

/// Whether no source states how much longer the machine's remote memory takes than local.
pub(crate) fn has_assumed_latency(machine: &Machine) -> bool {
    let states = |s: &Source| !s.assumed && STATED.contains(&s.field.as_str());
    machine.nodes.len() > 1
        && machine.sources.iter().any(|s| s.field == FIELD && s.assumed)
        && !machine.sources.iter().any(states)
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
        // Of the last two a source states the remote latency, or its factor on the local one.
        for name in ["nehalem-2s", "genoa-2s-nps4", "opteron-6386"] {
            let stated = Machine::named(name).unwrap();
            assert_eq!(with_assumed_latency(&stated, 2.0).latency_ns, stated.latency_ns);
        }
    }
}
