//! `weighted:readers` against the other placements, by the time model whose limits it is solved for.

mod common;

use common::*;
use nodewise_analysis::Histogram;
use nodewise_placement::policies::Nothing;
use nodewise_placement::{Context, Mapping, page_policies};
use nodewise_profile::{Access, FirstTouch, InMemory, Object, ObjectId, ObjectKind, PageNumber, Profile};
use nodewise_simulation::{Parameters, Range, simulate};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const PAGES: u32 = 200;
const THREADS: u32 = 16;
const OTHERS: &str = "first-touch,interleave,locality,balanced,mixed:0.9,weighted,node:0,node:3";

/// Two objects of as many pages, both first touched by thread 0.
fn profile() -> Profile {
    let object = |first: u64| Object {
        kind: ObjectKind::Heap,
        first_page: PageNumber(first),
        pages: PAGES.into(),
        bytes: u64::from(PAGES) << 12,
        ..Object::default()
    };
    let touch = |id: u32, page: u64| FirstTouch {
        page: PageNumber(page),
        len: PAGES,
        object: ObjectId(id),
        ..FirstTouch::default()
    };
    Profile {
        objects: vec![Object::default(), object(0), object(1000)],
        first_touches: vec![touch(1, 0), touch(2, 1000)],
        ..Profile::default()
    }
}

/// Thread t makes `lines[object][t % 8]` lines of each page of the object.
fn rows(lines: &[[u64; 8]; 2]) -> Vec<Access> {
    let mut all = Vec::new();
    for (object, first) in [(0, 0u64), (1, 1000)] {
        for page in 0..u64::from(PAGES) {
            let row = |thread: u32| Access {
                object: ObjectId(object as u32 + 1),
                ..read(thread, first + page, lines[object][(thread % 8) as usize])
            };
            all.extend((0..THREADS).map(row).filter(|r| r.lines > 0));
        }
    }
    all
}

/// Controllers of four nodes, the bandwidth of links, and the lines of each object by thread.
type Case = ([f64; 4], f64, [[u64; 8]; 2]);

/// The predicted time of `weighted:readers` over that of the fastest other placement.
fn over_the_best((controllers, link, lines): &Case) -> f64 {
    let mut machine = machine(4, 4, 10_000.0, *link);
    for (node, bandwidth) in machine.nodes.iter_mut().zip(controllers) {
        node.bandwidth = *bandwidth;
    }
    let (rows, profile, affinity) = (rows(lines), profile(), compact(&machine, THREADS as usize));
    let source = InMemory::new(rows);
    let histogram = Histogram::build(&source, THREADS as usize, 0).unwrap();
    let context = Context {
        profile: &profile,
        histogram: &histogram,
        affinity: &affinity,
        machine: &machine,
    };
    let policies = page_policies(&format!("{OTHERS},weighted:readers"), &machine, &Nothing).unwrap();
    let mappings: Vec<Mapping> = policies.iter().map(|p| p.place(&context)).collect();
    // Memory alone, as the program has it: no computing, no queueing.
    let parameters = Parameters {
        parallelism: Range::exactly(5.0),
        assumed_ns: Range::exactly(0.0),
        headroom: 1.0,
        ..exact()
    };
    let Ok(simulation) = simulate(&context, &mappings, &source, &parameters);
    let seconds: Vec<f64> = simulation.predictions.iter().map(|p| p.seconds.typical).collect();
    let (ours, others) = seconds.split_last().unwrap();
    ours / others.iter().copied().fold(f64::INFINITY, f64::min)
}

/// It is no law: shares are rounded to hundredths, a hundredth of the objective prefers local pages, and the simulator has
/// nodes share a resource fairly, where the linear program has them share it so that all are done at a time. On these
/// machines, which are the same in each run, another placement is faster by more than 5 % on fewer than one of a hundred.
#[test]
fn other_placements_are_hardly_ever_predicted_to_be_faster() {
    let mut runner = TestRunner::deterministic();
    let cases = (
        prop::array::uniform4(2_000.0..40_000.0),
        1_000.0..40_000.0,
        prop::array::uniform2(prop::array::uniform8(0u64..9)),
    );
    let mut ratios: Vec<f64> = (0..1000)
        .map(|_| cases.new_tree(&mut runner).unwrap().current())
        .filter(|case: &Case| case.2.iter().flatten().sum::<u64>() > 0)
        .map(|case| over_the_best(&case))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let slower = ratios.iter().filter(|r| **r > 1.05).count();
    assert!(100 * slower < ratios.len(), "{slower} of {}", ratios.len());
    let median = ratios[ratios.len() / 2];
    assert!(median < 1.0, "{median} of the best other's time in the median");
}
