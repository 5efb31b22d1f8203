//! This crate's prediction of Table 1 of Lepers et al. (AsymSched): a program of 16 threads on two nodes that streams
//! through memory, all of which is on one of them.
//!
//! `cargo bench -p nodewise-simulation --bench two_nodes -- MACHINE` prints `master,other,seconds` for every ordered
//! pair of nodes. Only ratios of the times are meaningful.

#![forbid(unsafe_code)]

use nodewise_analysis::{Affinity, Histogram};
use nodewise_machine::{CpuId, Machine, NodeId};
use nodewise_placement::{Context, Mapping};
use nodewise_profile::{Access, InMemory, ObjectId, PageNumber, Profile, RegionId, SliceId, ThreadId};
use nodewise_simulation::{Parameters, simulate};

const THREADS: u32 = 16;
const PAGES: u32 = 1 << 16;

/// Each thread reads every line of its part of the pages, word by word.
fn rows() -> Vec<Access> {
    let part = PAGES / THREADS;
    let row = |t: u32| Access {
        slice: SliceId(0),
        region: RegionId(1),
        object: ObjectId(1),
        thread: ThreadId(t),
        page: PageNumber(u64::from(t * part)),
        len: part,
        reads: 512,
        writes: 0,
        lines: 64,
    };
    (0..THREADS).map(row).collect()
}

/// Half of the threads on each of two nodes; with fewer CPUs than threads, they share CPUs.
fn affinity(machine: &Machine, nodes: [NodeId; 2]) -> Affinity {
    let node = |t: u32| nodes[(t * 2 / THREADS) as usize];
    let cpu = |t: u32| {
        let cpus = &machine.nodes[node(t).index()].cpus;
        cpus[t as usize % cpus.len()]
    };
    Affinity {
        name: "two nodes".into(),
        cpus: (0..THREADS).map(cpu).collect::<Vec<CpuId>>(),
        nodes: (0..THREADS).map(node).collect(),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().skip(1).find(|a| a != "--bench"); // without the argument that cargo bench adds
    let machine = Machine::load(&name.unwrap_or("machine-a".into()))?;
    let (profile, source) = (Profile::default(), InMemory::new(rows()));
    let histogram = Histogram {
        pages: (0..u64::from(PAGES)).map(PageNumber).collect(),
        objects: vec![ObjectId(1); PAGES as usize],
        offsets: vec![0; PAGES as usize + 1],
        threads: THREADS as usize,
        ..Histogram::default()
    };
    println!("master,other,seconds");
    for master in machine.node_ids() {
        for other in machine.node_ids().filter(|n| *n != master) {
            let mapping = Mapping {
                policy: format!("node:{master}"),
                nodes: vec![master; PAGES as usize],
            };
            let affinity = affinity(&machine, [master, other]);
            let context = Context {
                profile: &profile,
                histogram: &histogram,
                affinity: &affinity,
                machine: &machine,
            };
            let found = simulate(&context, &[mapping], &source, &Parameters::default())?;
            println!("{master},{other},{}", found.baseline().seconds.typical);
        }
    }
    Ok(())
}
