//! AsymSched's Table 1: one application, two nodes, 16 placements that differ by bandwidth alone.

mod common;

use common::{compact, read};
use nodewise_analysis::{Affinity, Histogram};
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::{Context, Mapping};
use nodewise_profile::{Access, InMemory, ObjectId, Profile, RegionId, ThreadId};
use nodewise_simulation::{Parameters, Range, simulate};

/// Printed time in seconds, printed bandwidth in MB/s, node with the data, node that reads it (inferred, as the
/// table's column with it is missing).
const TABLE: [(f64, f64, u32, u32); 16] = [
    (148.0, 5598.0, 0, 1),
    (228.0, 2999.0, 0, 4),
    (228.0, 2973.0, 2, 0),
    (168.0, 4329.0, 0, 2),
    (340.0, 1915.0, 3, 0),
    (185.0, 3741.0, 0, 3),
    (340.0, 1903.0, 0, 7),
    (228.0, 2884.0, 7, 0),
    (185.0, 3748.0, 7, 3),
    (338.0, 1928.0, 3, 7),
    (338.0, 1891.0, 5, 1),
    (230.0, 2880.0, 1, 5),
    (167.0, 3748.0, 7, 2),
    (225.0, 3014.0, 2, 7),
    (230.0, 2959.0, 4, 1),
    (226.0, 2880.0, 1, 4),
];

/// The fit to the table's times: 28.2 s of work that does not depend on the link, and 589.6 GB transferred over it.
const WORK_S: f64 = 28.2;
const MOVED_GB: f64 = 589.6;
/// The test moves a millionth of that.
const SCALE: f64 = 1e-6;

/// Eight threads of node `reader` stream from node `data`; one thread then computes.
fn seconds(machine: &Machine, data: u32, reader: u32) -> f64 {
    let lines = (MOVED_GB * 1e9 * SCALE / 64.0 / 8.0) as u64;
    let mut rows: Vec<Access> = (0..8)
        .map(|t| Access {
            reads: 0,
            ..read(t, u64::from(t), lines)
        })
        .collect();
    let work = (WORK_S * SCALE * 1e9 / common::NS_PER_ACCESS) as u64;
    rows.push(Access {
        region: RegionId(2),
        thread: ThreadId(0),
        reads: work,
        lines: 0,
        ..read(0, 0, 0)
    });
    let histogram = Histogram {
        pages: (0..8).map(nodewise_profile::PageNumber).collect(),
        objects: vec![ObjectId(1); 8],
        offsets: vec![0; 9],
        threads: 8,
        ..Histogram::default()
    };
    let all = compact(machine, 64);
    let eight = reader as usize * 8..(reader as usize + 1) * 8;
    let affinity = Affinity {
        name: "one node".into(),
        cpus: all.cpus[eight.clone()].to_vec(),
        nodes: all.nodes[eight].to_vec(),
    };
    let profile = Profile::default();
    let context = Context {
        profile: &profile,
        histogram: &histogram,
        affinity: &affinity,
        machine,
    };
    let mapping = Mapping {
        policy: "node".into(),
        nodes: vec![NodeId(data); 8],
    };
    let streaming = Parameters {
        parallelism: Range::exactly(50.0),
        miss: Range::exactly(1.0),
        ..Parameters::default()
    };
    let simulation = simulate(&context, &[mapping], &InMemory::new(rows), &streaming).expect("in memory");
    simulation.baseline().seconds.typical / SCALE
}

#[test]
fn all_sixteen_bandwidths_are_met_within_three_percent() {
    let machine = Machine::named("machine-a").expect("shipped");
    for (_, printed, data, reader) in TABLE {
        let reached = MOVED_GB * 1e3 / (seconds(&machine, data, reader) - WORK_S);
        let error = (reached / printed - 1.0).abs();
        assert!(
            error < 0.03,
            "{data}-{reader}: {reached:.0} MB/s against {printed}"
        );
    }
}

#[test]
fn times_are_met_within_five_percent_on_average() {
    let machine = Machine::named("machine-a").expect("shipped");
    let error = |&(printed, _, data, reader): &(f64, f64, u32, u32)| {
        (seconds(&machine, data, reader) / printed - 1.0).abs()
    };
    let mean = TABLE.iter().map(error).sum::<f64>() / 16.0;
    assert!(mean < 0.05, "{mean}");
}
