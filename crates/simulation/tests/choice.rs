//! A program on virtual nodes costs, wherever these are put, what it costs there.

mod common;

use common::*;
use nodewise_analysis::Affinity;
use nodewise_machine::{CpuId, Machine, NodeId};
use nodewise_placement::{Context, Mapping, VirtualNodes};
use nodewise_profile::{Access, InMemory, Profile};
use nodewise_simulation::{Parameters, Prediction, Spread, simulate, simulate_on, survey};
use proptest::prelude::*;
use std::convert::Infallible;

const THREADS: u32 = 6;

fn rows() -> impl Strategy<Value = Vec<Access>> {
    prop::collection::vec((0u32..THREADS, 0u64..30, 1u64..5000), 1..60)
        .prop_map(|cells| cells.into_iter().map(|(t, p, lines)| read(t, p, lines)).collect())
}

/// Two threads on each of three nodes; CPUs of the machine where it is real.
fn affinity(nodes: &[NodeId], machine: Option<&Machine>) -> Affinity {
    let on = |t: u32| nodes[t as usize / 2];
    let cpu = |t: u32| machine.map_or(CpuId(t), |m| m.nodes[on(t).index()].cpus[t as usize % 2]);
    Affinity {
        name: String::new(),
        cpus: (0..THREADS).map(cpu).collect(),
        nodes: (0..THREADS).map(on).collect(),
    }
}

fn mapping(homes: &[u32], pages: usize, nodes: &[NodeId]) -> Mapping {
    Mapping {
        policy: "drawn".into(),
        nodes: (0..pages).map(|p| nodes[homes[p] as usize]).collect(),
    }
}

fn really(machine: &Machine, rows: &[Access], homes: &[u32], nodes: &[NodeId]) -> Prediction {
    let (profile, histogram) = (Profile::default(), histogram(rows, THREADS as usize));
    let (affinity, mapping) = (
        affinity(nodes, Some(machine)),
        mapping(homes, histogram.len(), nodes),
    );
    let context = Context {
        profile: &profile,
        histogram: &histogram,
        affinity: &affinity,
        machine,
    };
    let done: Result<_, Infallible> = simulate(
        &context,
        &[mapping],
        &InMemory::new(rows.to_vec()),
        &Parameters::default(),
    );
    done.unwrap().baseline().clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn virtual_nodes_cost_what_the_nodes_they_are_put_on_cost(
        rows in rows(),
        homes in prop::collection::vec(0u32..3, 30),
        draw in 0u64..1000,
    ) {
        let machine = Machine::named("machine-a").unwrap();
        let (profile, histogram) = (Profile::default(), histogram(&rows, THREADS as usize));
        let all: Vec<NodeId> = machine.node_ids().collect();
        let threads = VirtualNodes { of: vec![0, 0, 1, 1, 2, 2], sizes: vec![2; 3] };
        let placements: Vec<_> = (draw..draw + 4).filter_map(|d| threads.drawn(&machine, &all, d)).collect();
        let few = VirtualNodes::machine(&machine, &placements[0]);
        let virtual_nodes = [0, 1, 2].map(NodeId);
        let affinity = affinity(&virtual_nodes, None);
        let context = Context { profile: &profile, histogram: &histogram, affinity: &affinity, machine: &few };
        let same = vec![mapping(&homes, histogram.len(), &virtual_nodes); placements.len()];
        let (accesses, parameters) = (InMemory::new(rows.clone()), Parameters::default());
        let at = (&machine, placements.as_slice());
        let Ok::<_, Infallible>(on) = simulate_on(&context, at, &same, Vec::new(), &accesses, &parameters);
        let Ok::<_, Infallible>(choice) = survey(&context, at, &same[..1], Vec::new(), &accesses, &parameters);
        for (i, nodes) in placements.iter().enumerate() {
            let (found, expected) = (&on.predictions[i], really(&machine, &rows, &homes, nodes));
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs();
            prop_assert!(close(found.seconds.typical, expected.seconds.typical));
            prop_assert!(close(found.seconds.max, expected.seconds.max));
            prop_assert!(close(found.latency_ns, expected.latency_ns));
            prop_assert!(close(choice[0].seconds[i], expected.seconds.typical));
            prop_assert!(close(choice[0].latency_ns[i], expected.latency_ns));
            prop_assert_eq!(&found.mapped, &expected.mapped);
            prop_assert_eq!(&found.nodes, nodes);
            for (a, b) in found.links.iter().zip(&expected.links) {
                prop_assert!(close(a.bytes, b.bytes) && close(a.utilization, b.utilization));
            }
        }
    }
}

#[test]
fn a_spread_has_its_ends_where_they_are() {
    let spread = Spread::of(&[3.0, 1.0, 5.0, 1.0]);
    assert_eq!(
        (spread.least, spread.most, spread.mean),
        ((1, 1.0), (2, 5.0), 2.5)
    );
    assert!((spread.deviation - 2.75f64.sqrt()).abs() < 1e-12);
}
