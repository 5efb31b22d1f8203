//! A small synthetic profile on disk: eight threads, two large arrays and a small one, first touched by the master.

use nodewise_profile::*;
use nodewise_store::Writer;
use std::path::{Path, PathBuf};

const THREADS: u32 = 8;
const PAGES: u32 = 512;
/// Number of rows of `lhs`, each eight pages long.
const FEW: u32 = 128;

fn frame(line: u32) -> Frame {
    Frame {
        function: "main".into(),
        file: "solve.c".into(),
        line,
    }
}

fn tables() -> Profile {
    let object = |name: &str, first: u64, pages: u32| Object {
        kind: ObjectKind::Heap,
        name: name.into(),
        site: SiteId(if name == "lhs" { 3 } else { 1 }),
        sequence: u32::from(name == "rhs"),
        first_page: PageNumber(first),
        pages: pages.into(),
        bytes: u64::from(pages) * BASE_PAGE_SIZE,
        ..Object::default()
    };
    let touch = |object: u32, first: u64, len: u32| FirstTouch {
        page: PageNumber(first),
        len,
        object: ObjectId(object),
        site: SiteId(2),
        ..FirstTouch::default()
    };
    Profile {
        meta: Meta {
            observer: Observer::Synthetic,
            command: vec!["./solve".into()],
            wall_ns: 200_000_000,
            // The cost of recording is known (a factor of 1.6), so that verdicts are given.
            plain_wall_ns: Some(125_000_000),
            slicing: "100ms".into(),
            host_cpus: 8,
            host_nodes: 1,
            host_model: "a CPU".into(),
            coverage: Coverage {
                samples: 100,
                instrumented: 0.9,
                missed: 0.1,
                missed_modules: vec![("libm.so.6".into(), 0.1)],
                ..Coverage::default()
            },
            exit_status: Some(0),
            version: "0".into(),
            ..Meta::default()
        },
        objects: vec![
            Object::default(),
            object("grid", 4096, PAGES),
            object("rhs", 8192, PAGES),
            object("lhs", 16384, FEW),
        ],
        threads: (0..THREADS)
            .map(|t| Thread {
                openmp: Some(t),
                cpu_ns: 150_000_000,
                ..Thread::default()
            })
            .collect(),
        regions: vec![
            Region::default(),
            Region {
                kind: RegionKind::OpenMp,
                frame: frame(88),
                schedule: Some(Schedule::Dynamic),
            },
            Region {
                kind: RegionKind::OpenMp,
                frame: frame(99),
                schedule: Some(Schedule::Static),
            },
        ],
        slices: Vec::new(),
        sites: vec![
            Site::default(),
            Site {
                frames: vec![frame(30)],
            },
            Site {
                frames: vec![frame(34)],
            },
            Site {
                frames: vec![frame(32)],
            },
        ],
        first_touches: vec![touch(1, 4096, PAGES), touch(2, 8192, PAGES), touch(3, 16384, FEW)],
        // The loop with the dynamic schedule, where it asks for work.
        tickets: [0, 1]
            .map(|t| CounterUse {
                site: SiteId(2),
                thread: ThreadId(t),
                again: true,
            })
            .into(),
        ..Profile::default()
    }
}

/// `grid` is divided into one block for each thread; all threads read all of `rhs`; one loop distributes the rows of
/// `lhs` over threads, another one its columns.
fn solve() -> Vec<Access> {
    let block = PAGES / THREADS;
    let row = Access {
        region: RegionId(1),
        reads: 50_000,
        writes: 9_000,
        lines: 6_400,
        ..Access::default()
    };
    let of_thread = |t: u32| {
        let page = PageNumber(4096 + u64::from(t * block));
        [
            Access {
                object: ObjectId(1),
                thread: ThreadId(t),
                page,
                len: block,
                ..row
            },
            Access {
                object: ObjectId(2),
                thread: ThreadId(t),
                page: PageNumber(8192),
                len: PAGES,
                writes: 0,
                ..row
            },
        ]
    };
    let lhs = |region, page: u32, thread| Access {
        object: ObjectId(3),
        region: RegionId(region),
        thread: ThreadId(thread),
        page: PageNumber(16384 + u64::from(page)),
        len: 1,
        reads: 500,
        writes: 90,
        lines: 64,
        ..row
    };
    let both = |page| [lhs(1, page, page * THREADS / FEW), lhs(2, page, page % THREADS)];
    let large = (0..THREADS).flat_map(of_thread);
    large.chain((0..FEW).flat_map(both)).collect()
}

/// Writes the profile to a new folder for the test.
pub fn profile(name: &str) -> PathBuf {
    write(name, tables(), 1, &[])
}

/// The same profile, with a further loop in which threads wait for a flag.
#[allow(dead_code, reason = "not every test waits")]
pub fn waiting(name: &str) -> PathBuf {
    let mut tables = tables();
    let page = PageNumber(20000);
    tables.objects.push(Object {
        kind: ObjectKind::Heap,
        name: "flag".into(),
        site: SiteId(1),
        sequence: 2,
        first_page: page,
        pages: 1,
        bytes: 64,
        ..Object::default()
    });
    tables.first_touches.push(FirstTouch {
        page,
        len: 1,
        object: ObjectId(4),
        site: SiteId(2),
        ..FirstTouch::default()
    });
    let wait = |t| Access {
        object: ObjectId(4),
        region: RegionId(1),
        thread: ThreadId(t),
        page,
        len: 1,
        reads: 4_000_000,
        lines: 1,
        ..Access::default()
    };
    let waits: Vec<Access> = (0..THREADS).map(wait).collect();
    write(name, tables, 1, &waits)
}

/// The same profile, with a row of this many pages, most of which belong to no object.
#[allow(dead_code, reason = "not every test has rows that cannot be")]
pub fn beyond(name: &str, length: u32) -> PathBuf {
    let row = Access {
        object: ObjectId(1),
        page: PageNumber(4096),
        len: length,
        reads: 1,
        ..Access::default()
    };
    write(name, tables(), 1, &[row])
}

/// Pages of `grid` that policies moved, and of `rhs` that the kernel moved there and back.
#[allow(dead_code, reason = "not every test moves pages")]
pub const MOVED: (u64, u64) = ((PAGES - PAGES / 4) as u64, 16);

/// The same program as a live session records it, by samples. After the first sweep the blocks of `grid` move to the
/// nodes of their threads, which are distributed over four nodes; the kernel moves eight pages of `rhs` to another node
/// and, a sweep later, back.
#[allow(dead_code, reason = "not every test moves pages")]
pub fn balanced(name: &str) -> PathBuf {
    let mut tables = tables();
    let block = PAGES / THREADS;
    let moved = |slice: u32, object, page, len, (from, to)| Migration {
        time_ns: u64::from(slice) * 100_000_000 + 99_000_000,
        slice: SliceId(slice),
        page: PageNumber(page),
        len,
        object: ObjectId(object),
        from,
        to,
        by: Migration::KERNEL.into(),
        ..Migration::default()
    };
    let by_us = |t: u32| Migration {
        by: "out-w-local:threshold=2".into(),
        to_count: 12.0,
        home_count: Some(1.0),
        count_threshold: 2.0,
        ..moved(1, 1, 4096 + u64::from(t * block), block, (0, t as u16 % 4))
    };
    tables.migrations = (0..THREADS).filter(|t| t % 4 != 0).map(by_us).collect();
    tables.migrations.push(moved(1, 2, 8192, 8, (0, 1)));
    tables.migrations.push(moved(2, 2, 8192, 8, (1, 0)));
    for (t, thread) in tables.threads.iter_mut().enumerate() {
        (thread.tid, thread.node) = (100 + t as u32, Some(t as u16 % 4));
    }
    tables.meta.host_nodes = 4;
    tables.meta.observer = Observer::Faults;
    tables.meta.held_back = vec![("budget".into(), 7)];
    tables.meta.kernel_migrations = Some(MOVED.1);
    tables.meta.sampling = Some(Sampling {
        samples: 5000,
        period: 1,
        minimum_samples: 2,
        seconds: 0.3,
        ..Sampling::default()
    });
    write(name, tables, 3, &[])
}

/// The slices: the master touches everything, then `sweeps` sweeps follow, each with further rows.
fn write(name: &str, mut tables: Profile, sweeps: u64, besides: &[Access]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    let mut writer = Writer::create(&folder, &tables.meta, false).unwrap();
    let slice = |n: u64| Slice {
        start_ns: n * 100_000_000,
        end_ns: (n + 1) * 100_000_000,
    };
    let first = Access {
        writes: 512,
        lines: 64,
        ..Access::default()
    };
    let touches = [(1, 4096, PAGES), (2, 8192, PAGES), (3, 16384, FEW)].map(|(o, p, len)| Access {
        object: ObjectId(o),
        page: PageNumber(p),
        len,
        ..first
    });
    writer.slice(slice(0), &touches).unwrap();
    for sweep in 1..=sweeps {
        let mut rows = solve();
        rows.extend_from_slice(besides);
        writer.slice(slice(sweep), &rows).unwrap();
    }
    tables.slices = (0..=sweeps).map(slice).collect();
    writer.finish(&tables).unwrap();
    folder
}
