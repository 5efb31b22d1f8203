//! Several programs at once: each program's time depends on what the others leave it.

mod common;

use common::*;
use nodewise_analysis::Affinity;
use nodewise_machine::{CpuId, Machine, NodeId};
use nodewise_placement::{Context, Mapping, VirtualNodes};
use nodewise_profile::{Access, InMemory, Profile, SliceId};
use nodewise_simulation::{
    AfterEnd, Parameters, Program, ProgramPhases, ProgramPrediction, Range, at_once, program_phases, survey,
};
use proptest::prelude::*;
use std::convert::Infallible;

/// Two threads on each of two nodes, and pages on the nodes `homes`.
struct Recorded {
    rows: Vec<Access>,
    profile: Profile,
    homes: Vec<u32>,
}

impl Recorded {
    fn new(rows: Vec<Access>, homes: &[u32]) -> Self {
        let slices = rows.last().map_or(0, |r| r.slice.0 + 1);
        let profile = Profile {
            slices: vec![nodewise_profile::Slice::default(); slices as usize],
            ..Profile::default()
        };
        Self {
            rows,
            profile,
            homes: homes.to_vec(),
        }
    }

    fn with<T>(&self, machine: &Machine, f: impl FnOnce(&Context<'_>, &[Mapping]) -> T) -> T {
        let few = VirtualNodes::machine(machine, &[NodeId(0), NodeId(1)]);
        let histogram = histogram(&self.rows, 4);
        let affinity = Affinity {
            name: String::new(),
            cpus: (0..4).map(CpuId).collect(),
            nodes: [0, 0, 1, 1].map(NodeId).to_vec(),
        };
        let nodes = (0..histogram.len()).map(|p| NodeId(self.homes[p]));
        let mappings = [Mapping {
            policy: "by-hand".into(),
            nodes: nodes.collect(),
        }];
        let context = Context {
            profile: &self.profile,
            histogram: &histogram,
            affinity: &affinity,
            machine: &few,
        };
        f(&context, &mappings)
    }

    fn program_phases(&self, machine: &Machine, parameters: &Parameters) -> ProgramPhases {
        self.with(machine, |context, mappings| {
            let on = [vec![NodeId(0), NodeId(1)]];
            let rows = InMemory::new(self.rows.clone());
            let Ok::<_, Infallible>(program_phases) = program_phases(
                context,
                (machine, &on),
                mappings,
                Vec::new(),
                1000,
                &rows,
                parameters,
            );
            program_phases
        })
    }
}

/// Every thread reads `lines` lines of one page on node 0 in each of this many slices.
fn from_the_master(lines: u64, slices: u32) -> Recorded {
    let row = |slice, t| Access {
        slice: SliceId(slice),
        ..read(t, u64::from(t), lines)
    };
    let rows = (0..slices).flat_map(|s| (0..4).map(move |t| row(s, t)));
    Recorded::new(rows.collect(), &[0; 4])
}

fn on(nodes: [u32; 2]) -> Program {
    Program {
        policy: 0,
        nodes: nodes.map(NodeId).to_vec(),
    }
}

/// Only link bandwidth matters, not latency: a hundred lines are in flight.
fn narrow() -> (Machine, Parameters) {
    let machine = machine(4, 2, 1e6, 1000.0);
    let parameters = Parameters {
        parallelism: Range::exactly(100.0),
        ..exact()
    };
    (machine, parameters)
}

fn seconds(machine: &Machine, courses: &[ProgramPhases], run: Vec<Program>, after_end: AfterEnd) -> Vec<f64> {
    let found: Vec<Vec<ProgramPrediction>> = at_once(machine, courses, &[run], after_end);
    found[0].iter().map(|o| o.seconds).collect()
}

#[test]
fn who_meets_nobody_is_as_fast_as_alone() {
    let (machine, parameters) = narrow();
    let program = || from_the_master(50_000, 3).program_phases(&machine, &parameters);
    let alone = seconds(&machine, &[program()], vec![on([0, 1])], AfterEnd::Leave);
    let both = seconds(
        &machine,
        &[program(), program()],
        vec![on([0, 1]), on([2, 3])],
        AfterEnd::Repeat,
    );
    assert!(
        both.iter().all(|s| (s - alone[0]).abs() < 1e-9 * alone[0]),
        "{both:?} {alone:?}"
    );
}

#[test]
fn who_shares_a_full_link_takes_twice_as_long_and_the_longer_one_has_it_alone_later() {
    let (machine, parameters) = narrow();
    let program = |slices| from_the_master(50_000, slices).program_phases(&machine, &parameters);
    let courses = [program(2), program(6)];
    let one = seconds(&machine, &courses[..1], vec![on([0, 1])], AfterEnd::Leave)[0];
    let run = || vec![on([0, 1]), on([0, 1])];
    let gone = seconds(&machine, &courses, run(), AfterEnd::Leave);
    assert_close(gone[0], 2.0 * one);
    // Two slices under contention take four times the time of one, then four slices alone.
    assert_close(gone[1], 4.0 * one);
    let again = seconds(&machine, &courses, run(), AfterEnd::Repeat);
    assert_close(again[0], 2.0 * one);
    assert_close(again[1], 6.0 * one);
}

#[test]
fn who_needs_little_of_a_link_keeps_it() {
    let (machine, parameters) = narrow();
    let courses = [(40u64, 40_000u64), (50_000, 0)].map(|(lines, compute)| {
        let mut recorded = from_the_master(lines, 1);
        recorded.rows.iter_mut().for_each(|r| r.reads += compute * 8);
        recorded.program_phases(&machine, &parameters)
    });
    let alone = seconds(&machine, &courses[..1], vec![on([0, 1])], AfterEnd::Leave)[0];
    let both = seconds(&machine, &courses, vec![on([0, 1]), on([0, 1])], AfterEnd::Repeat);
    assert_close(both[0], alone);
    let other = seconds(&machine, &courses[1..], vec![on([0, 1])], AfterEnd::Leave)[0];
    assert!(both[1] > other && both[1] < 1.1 * other, "{both:?} {other}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn one_program_costs_what_a_survey_says_and_company_makes_nobody_faster(
        cells in prop::collection::vec((0u32..3, 0u32..4, 0u64..20, 1u64..50_000), 1..60),
        homes in prop::collection::vec(0u32..2, 20),
    ) {
        let machine = Machine::named("machine-a").unwrap();
        let parameters = Parameters::default();
        let mut rows: Vec<Access> = cells
            .into_iter()
            .map(|(slice, t, page, lines)| Access { slice: SliceId(slice), ..read(t, page, lines) })
            .collect();
        rows.sort_by_key(|r| (r.slice, r.page, r.thread));
        let recorded = Recorded::new(rows, &homes);
        let placements = [[0, 1], [3, 7], [5, 2]].map(|p| p.map(NodeId).to_vec());
        let choice = recorded.with(&machine, |context, mappings| {
            let rows = InMemory::new(recorded.rows.clone());
            let Ok::<_, Infallible>(found) =
                survey(context, (&machine, &placements), mappings, Vec::new(), &rows, &parameters);
            found
        });
        let courses = [(); 2].map(|()| recorded.program_phases(&machine, &parameters));
        let runs = [[0, 1], [3, 7], [5, 2]].map(|p| vec![on(p)]);
        let alone = at_once(&machine, &courses[..1], &runs, AfterEnd::Leave);
        for (i, found) in alone.iter().enumerate() {
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs();
            prop_assert!(close(found[0].seconds, choice[0].seconds[i]));
            prop_assert!(close(found[0].latency_ns, choice[0].latency_ns[i]));
        }
        let both = at_once(&machine, &courses, &[vec![on([3, 7]), on([2, 0])]], AfterEnd::Repeat);
        prop_assert!(both[0][0].seconds >= alone[1][0].seconds * (1.0 - 1e-6));
    }
}
