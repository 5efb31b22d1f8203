//! Scales a machine's remote latencies and bandwidths, for studies of values that papers do not state.

use nodewise_machine::{Machine, Source};

/// The mean remote over the mean local latency, seen from nodes with CPUs; 1 without remote memory.
#[must_use]
pub fn latency_ratio(machine: &Machine) -> f64 {
    let mean = |remote: bool| {
        let pairs = machine
            .cpu_nodes()
            .flat_map(|r| machine.node_ids().map(move |m| (r, m)));
        let (sum, count) = pairs
            .filter(|(r, m)| (r != m) == remote)
            .fold((0.0, 0.0), |(sum, count), (r, m)| {
                (sum + machine.latency(r, m), count + 1.0)
            });
        if count > 0.0 { sum / count } else { 0.0 }
    };
    match (mean(true), mean(false)) {
        (remote, local) if remote > 0.0 && local > 0.0 => remote / local,
        _ => 1.0,
    }
}

/// The machine with all remote latencies multiplied so that [`latency_ratio`] is `ratio`.
///
/// Links, routes and backplane carry less in inverse proportion: with the same number of lines in flight, a longer
/// latency means fewer lines per second (Little's law), so remote accesses become more expensive as a whole.
/// Controllers are unchanged.
#[must_use]
pub fn with_latency_ratio(machine: &Machine, ratio: f64) -> Machine {
    let factor = ratio / latency_ratio(machine);
    let mut far = machine.clone();
    for (reader, (latencies, routes)) in far.latency_ns.iter_mut().zip(&mut far.routes).enumerate() {
        for (memory, (latency, route)) in latencies.iter_mut().zip(routes).enumerate() {
            if reader != memory {
                *latency *= factor;
                route.bandwidth /= factor;
            }
        }
    }
    far.links.iter_mut().for_each(|l| l.bandwidth /= factor);
    far.backplane = far.backplane.map(|b| b / factor);
    far.sources.push(Source {
        field: "latency_ns".into(),
        text: format!(
            "remote memory set to {ratio} times the local latency; its bandwidth in inverse proportion"
        ),
        assumed: true,
    });
    far
}
