//! A small program on a real machine file: 16 threads on 4 nodes. The master thread touches everything first, as in a
//! program whose initialisation was never parallelised.

use nodewise_advise::advise;
use nodewise_analysis::{Affinity, Histogram, Samples, Timeline, Usage, first_touch_nodes};
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::{Context, Mapping};
use nodewise_profile::*;
use nodewise_report::{Findings, Report};
use nodewise_simulation::{Parameters, simulate};

const THREADS: u32 = 16;
const SLICES: u32 = 10;

/// Reads and writes of thread `t` to page `p` of an object of 16 pages a thread.
type Pattern = fn(p: u64, t: u32) -> (u64, u64);

/// Name, number of pages, and access pattern after initialisation, of each object.
const OBJECTS: [(&str, u64, Pattern); 3] = [
    ("grid", 2048, |p, t| {
        if p / 128 == u64::from(t) {
            (20_000, 5_000)
        } else {
            (0, 0)
        }
    }),
    ("rhs", 1024, |p, t| {
        if p / 4 % 16 == u64::from(t) {
            (9_000, 0)
        } else {
            (0, 0)
        }
    }),
    ("table<double>", 256, |_, _| (900, 0)),
];

fn frame(function: &str, line: u32) -> Frame {
    Frame {
        function: function.into(),
        file: "src/sor.c".into(),
        line,
    }
}

fn profile() -> (Profile, InMemory) {
    let meta = Meta {
        observer: Observer::Synthetic,
        command: ["./sor", "--init", "master"].map(String::from).to_vec(),
        wall_ns: 1_000_000_000,
        slicing: "100ms".into(),
        host_cpus: 16,
        host_nodes: 1,
        coverage: Coverage {
            samples: 1000,
            instrumented: 0.81,
            waiting: 0.12,
            missed: 0.02,
            kernel: 0.05,
            counting: Some(0.3),
            missed_modules: vec![("libm.so.6".into(), 0.02)],
        },
        exit_status: Some(0),
        ..Meta::default()
    };
    let threads = (0..THREADS).map(|t| Thread {
        openmp: Some(t),
        cpu_ns: 900_000_000,
        ..Thread::default()
    });
    let mut profile = Profile {
        meta,
        objects: vec![Object::default()],
        threads: threads.collect(),
        regions: vec![
            Region::default(),
            Region {
                kind: RegionKind::OpenMp,
                frame: frame("main", 88),
                schedule: None,
            },
        ],
        slices: (0..u64::from(SLICES))
            .map(|s| Slice {
                start_ns: s * 100_000_000,
                end_ns: (s + 1) * 100_000_000,
            })
            .collect(),
        sites: vec![
            Site::default(),
            Site {
                frames: vec![frame("main", 30)],
            },
            Site {
                frames: vec![frame("main", 34)],
            },
        ],
        ..Profile::default()
    };
    let mut rows = Vec::new();
    let mut page = PageNumber(0x7f00_0000);
    for (name, pages, pattern) in OBJECTS {
        let object = ObjectId::from_index(profile.objects.len());
        add(&mut profile, &mut rows, (object, name, page, pages), pattern);
        page = page.offset(pages);
    }
    (profile, InMemory::new(rows))
}

fn add(
    profile: &mut Profile,
    rows: &mut Vec<Access>,
    (object, name, page, pages): (ObjectId, &str, PageNumber, u64),
    pattern: Pattern,
) {
    profile.objects.push(Object {
        kind: ObjectKind::Heap,
        name: name.into(),
        site: SiteId(1),
        first_page: page,
        pages,
        bytes: pages * BASE_PAGE_SIZE,
        ..Object::default()
    });
    let len = pages as u32;
    profile.first_touches.push(FirstTouch {
        page,
        len,
        object,
        site: SiteId(2),
        ..FirstTouch::default()
    });
    let row = Access {
        object,
        page,
        len,
        writes: 512,
        lines: 64,
        ..Access::default()
    };
    rows.push(row);
    for slice in 1..SLICES {
        for (p, t) in (0..pages).flat_map(|p| (0..THREADS).map(move |t| (p, t))) {
            let (reads, writes) = pattern(p, t);
            if reads + writes > 0 {
                rows.push(Access {
                    slice: SliceId(slice),
                    region: RegionId(1),
                    page: page.offset(p),
                    len: 1,
                    thread: ThreadId(t),
                    reads,
                    writes,
                    lines: (reads + writes) / 8,
                    ..row
                });
            }
        }
    }
}

/// The node of the thread that uses each page most.
fn locality(histogram: &Histogram, affinity: &Affinity) -> Vec<NodeId> {
    let heaviest = |i| {
        histogram
            .page(i)
            .entries
            .iter()
            .max_by_key(|e| e.accesses())
            .unwrap()
            .thread
    };
    (0..histogram.len()).map(|i| affinity.node(heaviest(i))).collect()
}

pub fn report() -> Report {
    let (profile, accesses) = profile();
    of(&profile, &accesses)
}

/// The report of the same program with page migration: blocks of the grid moved to the nodes that use them, one moved
/// back and forth again; the kernel moved a part of the table.
#[allow(dead_code, reason = "not every test shows moves")]
pub fn balanced() -> Report {
    let (mut profile, accesses) = profile();
    balance(&mut profile);
    of(&profile, &accesses)
}

/// The report of the same program, sampled by hint faults.
#[allow(dead_code, reason = "not every test shows samples")]
pub fn sampled() -> Report {
    sampled_at_least(4)
}

/// As [`sampled`], with the number of samples from which on a page is evaluated.
#[allow(dead_code, reason = "not every test shows samples")]
pub fn sampled_at_least(minimum_samples: u32) -> Report {
    let (mut profile, accesses) = profile();
    balance(&mut profile);
    profile.meta.observer = Observer::Faults;
    profile.meta.sampling = Some(Sampling {
        samples: 40_000,
        first_touches: 3328,
        lost: 3,
        period: 2,
        budget: 0.02,
        cost: 0.017,
        sample_ns: 900.0,
        minimum_samples,
        seconds: 1.0,
        ..Sampling::default()
    });
    of(&profile, &accesses)
}

fn balance(profile: &mut Profile) {
    let (grid, table) = (ObjectId(1), ObjectId(3));
    let moved = |slice: u32, object: ObjectId, page: u64, (from, to)| Migration {
        time_ns: u64::from(slice) * 100_000_000 + 50_000_000,
        slice: SliceId(slice),
        page: profile.objects[object.index()].first_page.offset(page),
        len: 128,
        object,
        from,
        to,
        by: "out-w:threshold=2".into(),
        to_count: 24.0,
        home_count: None,
        count_threshold: 2.5,
    };
    let mut moves: Vec<Migration> = (4..16)
        .map(|b| moved(1 + b as u32 % 3, grid, b * 128, (0, b as u16 / 4)))
        .collect();
    moves.push(moved(5, grid, 15 * 128, (3, 0)));
    moves.push(moved(7, grid, 15 * 128, (0, 3)));
    moves.push(Migration {
        by: Migration::KERNEL.into(),
        to_count: 0.0,
        count_threshold: 0.0,
        ..moved(6, table, 0, (0, 2))
    });
    moves.sort_by_key(|m| m.time_ns);
    profile.migrations = moves;
    profile.meta.held_back = vec![("budget".into(), 300)];
    profile.meta.kernel_migrations = Some(131);
}

fn of(profile: &Profile, accesses: &InMemory) -> Report {
    let machine = Machine::named("xeon-x7550").unwrap();
    let affinity = four_a_node(&machine);
    let Ok(histogram) = Histogram::build(accesses, THREADS as usize, 0);
    let nodes = machine.node_count();
    let mapping = |policy: &str, nodes| Mapping {
        policy: policy.into(),
        nodes,
    };
    let mappings = [
        mapping(
            "first-touch",
            first_touch_nodes(profile, &histogram, &affinity, nodes),
        ),
        mapping(
            "interleave",
            (0..histogram.len()).map(|i| NodeId((i % nodes) as u32)).collect(),
        ),
        mapping("locality", locality(&histogram, &affinity)),
    ];
    let context = Context {
        profile,
        histogram: &histogram,
        affinity: &affinity,
        machine: &machine,
    };
    let Ok(simulation) = simulate(&context, &mappings, accesses, &Parameters::default());
    let Ok(usage) = Usage::of(accesses, profile, &histogram);
    let Ok(samples) = Samples::of(accesses, profile, &histogram, &affinity, nodes);
    let advice = advise(
        &context,
        &simulation,
        &mappings[0],
        &usage,
        None,
        &Default::default(),
        samples,
    );
    let Ok(timeline) = Timeline::of(
        accesses,
        profile,
        &histogram,
        &affinity,
        &mappings[0].nodes,
        nodes,
    );
    Report::new(&Findings {
        context: &context,
        mappings: &mappings,
        simulation: &simulation,
        moving: None,
        copies: &[],
        advice: &advice,
        timeline: &timeline,
    })
}

fn four_a_node(machine: &Machine) -> Affinity {
    Affinity {
        name: "compact".into(),
        cpus: (0..THREADS as usize)
            .map(|t| machine.nodes[t / 4].cpus[t % 4])
            .collect(),
        nodes: (0..THREADS).map(|t| NodeId(t / 4)).collect(),
    }
}
