//! Machines and profiles small enough to compute by hand.
#![allow(dead_code)] // each test binary uses its part

use nodewise_analysis::{Affinity, Entry, Histogram};
use nodewise_machine::{CpuId, Link, LinkId, Machine, Node, NodeId, Route};
use nodewise_placement::{Context, Mapping};
use nodewise_profile::{Access, InMemory, ObjectId, PageNumber, Profile, RegionId, SliceId, ThreadId};
use nodewise_simulation::{Parameters, Range, Simulation, simulate};

pub const LOCAL_NS: f64 = 100.0;
pub const REMOTE_NS: f64 = 200.0;

/// `nodes` nodes of `cpus` CPUs, all pairs linked both ways.
pub fn machine(nodes: u32, cpus: u32, controller: f64, link: f64) -> Machine {
    let pairs: Vec<(u32, u32)> = (0..nodes)
        .flat_map(|a| (0..nodes).map(move |b| (a, b)))
        .filter(|p| p.0 != p.1)
        .collect();
    let link_of = |from, to| {
        pairs
            .iter()
            .position(|&p| p == (from, to))
            .map(|i| LinkId(i as u32))
    };
    let route = |reader, memory| match link_of(memory, reader) {
        Some(id) => Route {
            links: vec![id],
            bandwidth: link,
        },
        None => Route {
            links: vec![],
            bandwidth: controller,
        },
    };
    let square = |cell: &dyn Fn(u32, u32) -> f64| {
        (0..nodes)
            .map(|r| (0..nodes).map(|m| cell(r, m)).collect())
            .collect()
    };
    Machine {
        name: "by-hand".into(),
        title: String::new(),
        page_size: 4096,
        nodes: (0..nodes)
            .map(|n| Node {
                os_index: n,
                cpus: (n * cpus..(n + 1) * cpus).map(CpuId).collect(),
                memory: 1 << 30,
                bandwidth: controller,
                kind: None,
                socket: None,
                cache: None,
            })
            .collect(),
        latency_ns: square(&|r, m| if r == m { LOCAL_NS } else { REMOTE_NS }),
        links: pairs
            .iter()
            .map(|&(from, to)| Link {
                from: NodeId(from),
                to: NodeId(to),
                bandwidth: link,
                class: None,
            })
            .collect(),
        routes: (0..nodes)
            .map(|r| (0..nodes).map(|m| route(r, m)).collect())
            .collect(),
        hop_rules: Vec::new(),
        backplane: None,
        sources: vec![],
    }
}

/// Thread i on CPU i.
pub fn compact(machine: &Machine, threads: usize) -> Affinity {
    let cpus = machine.cpus();
    Affinity {
        name: "compact".into(),
        cpus: cpus.iter().take(threads).map(|c| c.0).collect(),
        nodes: cpus.iter().take(threads).map(|c| c.1).collect(),
    }
}

/// Thread t reads pages of its own: `lines` lines from each of `pages` pages.
pub fn private_reads(threads: u32, pages: u64, lines: u64) -> Vec<Access> {
    (0..threads)
        .flat_map(|t| (0..pages).map(move |p| read(t, u64::from(t) * pages + p, lines)))
        .collect()
}

pub fn read(thread: u32, page: u64, lines: u64) -> Access {
    Access {
        slice: SliceId(0),
        region: RegionId(1),
        object: ObjectId(1),
        thread: ThreadId(thread),
        page: PageNumber(page),
        len: 1,
        reads: lines * 8,
        writes: 0,
        lines,
    }
}

/// The histogram of rows whose runs are one page long.
pub fn histogram(rows: &[Access], threads: usize) -> Histogram {
    let mut cells = std::collections::BTreeMap::<(PageNumber, ThreadId), Entry>::new();
    for row in rows {
        assert_eq!(row.len, 1);
        let cell = cells.entry((row.page, row.thread)).or_insert(Entry {
            thread: row.thread,
            ..Entry::default()
        });
        cell.reads += row.reads;
        cell.writes += row.writes;
        cell.lines += row.lines as u32;
    }
    let mut histogram = Histogram {
        threads,
        ..Histogram::default()
    };
    for ((page, _), entry) in cells {
        if histogram.pages.last() != Some(&page) {
            histogram.pages.push(page);
            histogram.objects.push(ObjectId(1));
            histogram.offsets.push(histogram.entries.len() as u64);
        }
        histogram.entries.push(entry);
    }
    histogram.offsets.push(histogram.entries.len() as u64);
    histogram
}

/// No uncertainty, one miss at a time, no queueing, and every line reaches memory.
pub fn exact() -> Parameters {
    Parameters {
        parallelism: Range::exactly(1.0),
        miss: Range::exactly(1.0),
        queue_ns: Range::exactly(0.0),
        ..Parameters::default()
    }
}

/// A profile without times: compute time is the nominal 0.5 ns per access.
pub const NS_PER_ACCESS: f64 = 0.5;

pub fn predict(
    machine: &Machine,
    rows: &[Access],
    threads: usize,
    maps: &[&dyn Fn(usize) -> u32],
    p: &Parameters,
) -> Simulation {
    predict_profile(&Profile::default(), machine, rows, threads, maps, p)
}

/// As [`predict`], with times: threads, slices and the host of a profile.
pub fn predict_profile(
    profile: &Profile,
    machine: &Machine,
    rows: &[Access],
    threads: usize,
    maps: &[&dyn Fn(usize) -> u32],
    p: &Parameters,
) -> Simulation {
    let histogram = histogram(rows, threads);
    let affinity = compact(machine, threads);
    let context = Context {
        profile,
        histogram: &histogram,
        affinity: &affinity,
        machine,
    };
    let mappings: Vec<Mapping> = maps
        .iter()
        .map(|f| Mapping {
            policy: "by-hand".into(),
            nodes: (0..histogram.len()).map(|i| NodeId(f(i))).collect(),
        })
        .collect();
    simulate(&context, &mappings, &InMemory::new(rows.to_vec()), p).expect("in memory")
}

pub fn assert_close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-3 * b.abs(), "{a} is not {b}");
}
