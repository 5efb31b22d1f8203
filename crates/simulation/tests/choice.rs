//! A program on virtual nodes costs the same as on the nodes that these are assigned to.

mod common;

use common::*;
use nodewise_analysis::Affinity;
use nodewise_control::Settings;
use nodewise_machine::{CpuId, Machine, NodeId};
use nodewise_placement::{Context, Mapping, VirtualNodes, migration_policy};
use nodewise_profile::{Access, InMemory, Meta, Profile, Region, RegionId, Slice, SliceId, Thread};
use nodewise_simulation::{
    AfterEnd, Moving, Parameters, Prediction, Program, Spread, at_once, program_phases, simulate,
    simulate_on, survey,
};
use proptest::prelude::*;
use std::convert::Infallible;

const THREADS: u32 = 6;

fn rows() -> impl Strategy<Value = Vec<Access>> {
    prop::collection::vec((0u32..THREADS, 0u64..30, 1u64..5000), 1..60)
        .prop_map(|cells| cells.into_iter().map(|(t, p, lines)| read(t, p, lines)).collect())
}

/// Two threads on each of three nodes; with the CPUs of the machine, if it is a real one.
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

/// Rows in slices, and pages that all start on the first node.
struct Sliced {
    rows: Vec<Access>,
    profile: Profile,
}

impl Sliced {
    fn new(cells: &[(u32, u32, u64, u64)], wall_ns: u64) -> Self {
        let row = |&(slice, t, page, lines)| Access {
            slice: SliceId(slice),
            region: RegionId(0),
            ..read(t, page, lines)
        };
        let mut rows: Vec<Access> = cells.iter().map(row).collect();
        rows.sort_by_key(|r| (r.slice, r.page, r.thread));
        let slices = u64::from(rows.last().map_or(0, |r| r.slice.0 + 1));
        let slice = |i| Slice {
            start_ns: i * wall_ns,
            end_ns: (i + 1) * wall_ns,
        };
        let thread = Thread {
            cpu_ns: 1_000_000,
            ..Thread::default()
        };
        let profile = Profile {
            meta: Meta {
                wall_ns: slices * wall_ns,
                host_cpus: 64,
                ..Meta::default()
            },
            threads: vec![thread; THREADS as usize],
            regions: vec![Region::default()],
            slices: (0..slices).map(slice).collect(),
            ..Profile::default()
        };
        Self { rows, profile }
    }

    /// Calls `f` with the context on three virtual nodes, the initial mapping, and the rows.
    fn on<T>(&self, machine: &Machine, f: impl FnOnce(&Context<'_>, &[Mapping], &InMemory) -> T) -> T {
        let nodes = [0, 1, 2].map(NodeId);
        let few = VirtualNodes::machine(machine, &nodes);
        let histogram = histogram(&self.rows, THREADS as usize);
        let context = Context {
            profile: &self.profile,
            histogram: &histogram,
            affinity: &affinity(&nodes, None),
            machine: &few,
        };
        let mappings = [mapping(&[0; 30], histogram.len(), &nodes)];
        f(&context, &mappings, &InMemory::new(self.rows.clone()))
    }
}

/// Moves each page to the node that uses it most, without delay.
fn dominant(few: &Machine) -> Moving {
    let unlimited = Settings {
        budget: f64::INFINITY,
        minimum_samples: 0,
        cooldown: 0,
        ..Settings::default()
    };
    let policy = migration_policy("balance:dominant", few).unwrap();
    Moving::new("balance:dominant", 0, policy, unlimited)
}

fn cells() -> impl Strategy<Value = Vec<(u32, u32, u64, u64)>> {
    prop::collection::vec((0u32..4, 0u32..THREADS, 0u64..30, 1u64..5000), 20..80)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_policy_that_moves_pages_pays_for_it_wherever_it_is_put(cells in cells()) {
        let machine = Machine::named("machine-a").unwrap();
        let sliced = Sliced::new(&cells, 1_000_000_000);
        let placements = [[0, 1, 2], [5, 1, 7]].map(|p| p.map(NodeId).to_vec());
        let parameters = Parameters::default();
        let (choice, predicted) = sliced.on(&machine, |context, mappings, rows| {
            let at = (&machine, &placements[..]);
            let moving = vec![dominant(context.machine)];
            let Ok::<_, Infallible>(choice) = survey(context, at, mappings, moving, rows, &parameters);
            let on = vec![placements[0].clone(); 2];
            let moving = vec![dominant(context.machine)];
            let Ok::<_, Infallible>(predicted) =
                simulate_on(context, (&machine, &on), mappings, moving, rows, &parameters);
            (choice, predicted)
        });
        for (choice, predicted) in choice.iter().zip(&predicted.predictions) {
            prop_assert_eq!(choice.slices_together, 1);
            let (found, expected) = (choice.seconds[0], predicted.seconds.typical);
            prop_assert!((found - expected).abs() <= 1e-9 * expected, "{} {found} {expected}", choice.policy);
        }
    }

    #[test]
    fn slices_taken_together_cost_what_one_slice_of_all_costs(cells in cells(), busy in 1u64..50_000_000) {
        let machine = Machine::named("machine-a").unwrap();
        let slices = 1 + u64::from(cells.iter().map(|c| c.0).max().unwrap_or(0));
        let one: Vec<_> = cells.iter().map(|&(_, t, page, lines)| (0, t, page, lines)).collect();
        let nodes = [3, 7, 2].map(NodeId).to_vec();
        let parameters = Parameters::default();
        let cost = |sliced: Sliced| sliced.on(&machine, |context, mappings, rows| {
            let on = (&machine, &[nodes.clone()][..]);
            let Ok::<_, Infallible>(program_phases) = program_phases(context, on, mappings, Vec::new(), 1, rows, &parameters);
            let run = [vec![Program { policy: 0, nodes: nodes.clone() }]];
            at_once(&machine, &[program_phases], &run, AfterEnd::Leave)[0][0].seconds
        });
        // So long that only one CPU ran at a time, however the time is divided.
        let long = 1_000_000_000 + busy;
        let (several, whole) = (cost(Sliced::new(&cells, long)), cost(Sliced::new(&one, slices * long)));
        prop_assert!((several - whole).abs() <= 1e-6 * whole, "{several} {whole}");
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
