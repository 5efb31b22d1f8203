//! Measures rows per second through the simulator, for eight mappings on eight nodes at once.
//!
//! `RAYON_NUM_THREADS=1 cargo bench -p nodewise-simulation --bench rate -- [ROWS]` prints the number of rows per
//! second. There are 64 threads; each page is touched by four of them; a slice has a million rows.

use nodewise_analysis::{Affinity, Histogram};
use nodewise_machine::{CpuId, Machine, Node, NodeId, Route};
use nodewise_placement::{Context, Mapping};
use nodewise_profile::{Access, InMemory, ObjectId, PageNumber, Profile, RegionId, SliceId, ThreadId};
use nodewise_simulation::{Parameters, simulate};
use std::time::Instant;

const NODES: u32 = 8;
const THREADS: u32 = 64;
const POLICIES: u32 = 8;
const ROWS_PER_SLICE: u32 = 1_000_000;

fn machine() -> Machine {
    let node = |n: u32| Node {
        os_index: n,
        cpus: (n * 8..(n + 1) * 8).map(CpuId).collect(),
        memory: 1 << 36,
        bandwidth: 25_000.0,
        kind: None,
        socket: None,
        cache: None,
    };
    Machine {
        name: "rate".into(),
        title: String::new(),
        page_size: 4096,
        nodes: (0..NODES).map(node).collect(),
        latency_ns: (0..NODES)
            .map(|r| (0..NODES).map(|m| if r == m { 90.0 } else { 160.0 }).collect())
            .collect(),
        links: Vec::new(),
        routes: vec![
            vec![
                Route {
                    links: Vec::new(),
                    bandwidth: 10_000.0
                };
                NODES as usize
            ];
            NODES as usize
        ],
        hop_rules: Vec::new(),
        backplane: None,
        sources: Vec::new(),
    }
}

fn rows(count: u32) -> Vec<Access> {
    let pages = ROWS_PER_SLICE / 4;
    let row = |i: u32| Access {
        slice: SliceId(i / ROWS_PER_SLICE),
        region: RegionId(1 + i / (ROWS_PER_SLICE / 4) % 2),
        object: ObjectId(1),
        thread: ThreadId((i / 4 % pages / 61 + i % 4 * 16) % THREADS),
        page: PageNumber(u64::from(i / 4 % pages)),
        len: 1,
        reads: 512,
        writes: 64,
        lines: 64,
    };
    (0..count).map(row).collect()
}

fn main() {
    let count = std::env::args()
        .skip(1)
        .find(|a| a != "--bench") // without the argument that cargo bench adds
        .and_then(|n| n.parse().ok())
        .unwrap_or(20_000_000);
    let pages = (ROWS_PER_SLICE / 4) as usize;
    let histogram = Histogram {
        pages: (0..pages as u64).map(PageNumber).collect(),
        objects: vec![ObjectId(1); pages],
        offsets: vec![0; pages + 1],
        threads: THREADS as usize,
        ..Histogram::default()
    };
    let mapping = |p: u32| Mapping {
        policy: format!("policy {p}"),
        nodes: (0..pages as u32)
            .map(|i| NodeId(i / (1 + 600 * p) % NODES))
            .collect(),
    };
    let mappings: Vec<_> = (0..POLICIES).map(mapping).collect();
    let affinity = Affinity {
        name: "compact".into(),
        cpus: (0..THREADS).map(CpuId).collect(),
        nodes: (0..THREADS).map(|t| NodeId(t / 8)).collect(),
    };
    let (machine, profile) = (machine(), Profile::default());
    let context = Context {
        profile: &profile,
        histogram: &histogram,
        affinity: &affinity,
        machine: &machine,
    };
    let source = InMemory::new(rows(count));
    let start = Instant::now();
    let simulation = simulate(&context, &mappings, &source, &Parameters::default()).expect("in memory");
    let seconds = start.elapsed().as_secs_f64();
    assert!(simulation.baseline().seconds.typical > 0.0);
    println!("{:.0}", f64::from(count) / seconds);
}
