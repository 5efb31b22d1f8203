//! Writes a profile that is the same each time, for tests and figures of the page:
//! `cargo run --release -p nodewise-store --example synthetic KIND FOLDER [PAGES [THREADS]]`.
//!
//! `solver` two grids dealt in blocks, which change hands at half time, a right hand side that all read, a table
//! that is gathered from, a workspace each; `moved` the same as samples, with pages that moved, some to and fro;
//! `hostile` the same under names that want to be HTML; `truncated` cut short; `large` runs of pages with four threads
//! each; `page` one page and one thread; `empty` nothing.

use nodewise_profile::*;
use nodewise_store::Writer;
use std::path::Path;

const BASE: u64 = 1 << 20;
const SLICES: u64 = 24;
const SLICE_NS: u64 = 100_000_000;
/// Parts of the pages of each object, of sixteen.
const OBJECTS: [(&str, u64); 5] = [("u", 6), ("v", 6), ("rhs", 2), ("table", 1), ("work", 1)];
const EVIL: &str = "</script><img src=x onerror=\"document.title='owned'\">{{title}}\u{202e}";

struct Shape {
    pages: u64,
    threads: u64,
    names: Vec<String>,
    /// What every name begins with, to see whether it is escaped.
    prefix: &'static str,
    sampled: bool,
}

impl Shape {
    fn new(kind: &str, pages: u64, threads: u64) -> Self {
        let prefix = if kind == "hostile" { EVIL } else { "" };
        Self {
            pages,
            threads,
            names: OBJECTS
                .iter()
                .map(|(name, _)| format!("{prefix}{name}"))
                .collect(),
            prefix,
            sampled: kind == "moved",
        }
    }

    /// First page and pages of an object; none lies next to another.
    fn extent(&self, object: usize) -> (u64, u64) {
        let before: u64 = OBJECTS[..object].iter().map(|o| o.1).sum();
        let pages = (OBJECTS[object].1 * self.pages / 16).max(1);
        (BASE + before * self.pages / 16 + 64 * object as u64, pages)
    }

    fn tables(&self) -> Profile {
        let frame = |line| Frame {
            function: format!("{}main", self.prefix),
            file: format!("{}solver.c", self.prefix),
            line,
        };
        let site = |line| Site {
            frames: vec![frame(line)],
        };
        let region = |line| Region {
            kind: RegionKind::OpenMp,
            frame: frame(line),
            schedule: None,
        };
        Profile {
            meta: self.meta(),
            objects: self.objects(),
            threads: (0..self.threads).map(|t| self.thread(t)).collect(),
            regions: vec![Region::default(), region(88), region(99)],
            sites: std::iter::once(Site::default())
                .chain((30..35).map(site))
                .collect(),
            first_touches: self.first_touches(),
            ..Profile::default()
        }
    }

    fn meta(&self) -> Meta {
        Meta {
            observer: if self.sampled {
                Observer::Faults
            } else {
                Observer::Synthetic
            },
            sampling: self.sampled.then(sampling),
            command: vec![format!("./{}solver", self.prefix), "--synthetic".into()],
            wall_ns: SLICES * SLICE_NS,
            // Recording cost 1.6 times: known, so that verdicts are given.
            plain_wall_ns: Some(SLICES * SLICE_NS * 5 / 8),
            slicing: "100ms".into(),
            host_cpus: 64,
            host_nodes: 8,
            host_model: "none: these figures were made up".into(),
            coverage: Coverage {
                samples: 1000,
                instrumented: 0.95,
                missed: 0.05,
                missed_modules: vec![("libm.so.6".into(), 0.05)],
                ..Coverage::default()
            },
            exit_status: Some(0),
            version: "0".into(),
            ..Meta::default()
        }
    }

    /// Samples know which node a thread was on.
    fn thread(&self, t: u64) -> Thread {
        Thread {
            tid: 1000 + t as u32,
            openmp: Some(t as u32),
            cpu_ns: SLICES * SLICE_NS * 9 / 10,
            node: self.sampled.then_some((t * 8 / self.threads) as u16),
            ..Thread::default()
        }
    }

    fn objects(&self) -> Vec<Object> {
        let object = |o: usize| {
            let (first, pages) = self.extent(o);
            Object {
                kind: ObjectKind::Heap,
                name: self.names[o].clone(),
                site: SiteId(o as u32 + 1),
                first_page: PageNumber(first),
                pages,
                bytes: pages * BASE_PAGE_SIZE,
                ..Object::default()
            }
        };
        std::iter::once(Object::default())
            .chain((0..OBJECTS.len()).map(object))
            .collect()
    }

    /// The master touches all but the workspace.
    fn first_touches(&self) -> Vec<FirstTouch> {
        let touch = |object: usize, (page, len): (u64, u64), thread: u64| FirstTouch {
            page: PageNumber(page),
            len: len as u32,
            object: ObjectId(object as u32 + 1),
            thread: ThreadId(thread as u32),
            site: SiteId(object as u32 + 1),
            ..FirstTouch::default()
        };
        let mut all: Vec<_> = (0..4).map(|o| touch(o, self.extent(o), 0)).collect();
        let (first, pages) = self.extent(4);
        for t in 0..self.threads {
            let (begin, end) = (t * pages / self.threads, (t + 1) * pages / self.threads);
            if end > begin {
                all.push(touch(4, (first + begin, end - begin), t));
            }
        }
        all
    }

    /// What happens in a slice.
    fn slice(&self, slice: u64) -> Vec<Access> {
        let row = |object: usize, thread: u64, page: u64, len: u64, reads: u64, writes: u64| Access {
            region: RegionId(1 + (object % 2) as u32),
            object: ObjectId(object as u32 + 1),
            thread: ThreadId((thread % self.threads) as u32),
            page: PageNumber(page),
            len: len as u32,
            // Enough that memory is what the run waits for.
            reads: 40 * reads,
            writes: 40 * writes,
            lines: 40 * 64.min(reads + writes),
            ..Access::default()
        };
        let turned = if slice < SLICES / 2 { 0 } else { self.threads / 2 };
        let mut rows = Vec::new();
        for t in 0..self.threads {
            let dealt = |(first, pages): (u64, u64)| {
                let (begin, end) = (t * pages / self.threads, (t + 1) * pages / self.threads);
                (first + begin, end - begin)
            };
            for object in [0, 1, 4] {
                let (first, pages) = dealt(self.extent(object));
                let who = if object == 4 { t } else { t + turned };
                if pages > 0 {
                    rows.push(row(object, who, first, pages, 600 + 40 * t, 200 * object as u64));
                }
            }
            let (first, pages) = self.extent(2);
            rows.push(row(2, t, first, pages, 150, 0));
            let (first, pages) = self.extent(3);
            let gathered = (0..pages).filter(|p| (p * 7 + t * 13 + slice).is_multiple_of(3));
            rows.extend(gathered.map(|p| row(3, t, first + p, 1, 20 + (p * 31 + t) % 50, 0)));
        }
        rows
    }

    /// Runs of sixteen pages, each of one thread and read by three more.
    fn runs(&self, slice: u64) -> Vec<Access> {
        let mut rows = Vec::new();
        for o in 0..OBJECTS.len() {
            let (first, pages) = self.extent(o);
            for run in (0..pages).step_by(16).filter(|run| (run / 16) % SLICES == slice) {
                let owner = run * self.threads / pages;
                let spread = run.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                rows.extend((0..4).map(|sharer| Access {
                    region: RegionId(1),
                    object: ObjectId(o as u32 + 1),
                    thread: ThreadId(((owner + sharer * (1 + spread % 20)) % self.threads) as u32),
                    page: PageNumber(first + run),
                    len: 16.min(pages - run) as u32,
                    reads: if sharer == 0 { 100 } else { spread % 60 },
                    writes: 10,
                    lines: 64,
                    ..Access::default()
                }));
            }
        }
        rows
    }

    /// Pages of `u` went to who used them; the last of them to and fro.
    fn migrations(&self) -> Vec<Migration> {
        let (first, pages) = self.extent(0);
        let step = (pages / 32).max(1);
        let mut all = Vec::new();
        for (i, page) in (0..pages).step_by(step as usize).enumerate() {
            let len = step.min(pages - page);
            let to = (page * 8 / pages) as u16;
            let home = [0, to, 7 - to, to];
            let moves = if i % 8 == 7 { 3 } else { 1 };
            for m in 0..moves {
                let slice = 2 + i as u64 / 3 + 4 * m as u64;
                if home[m] == home[m + 1] {
                    continue;
                }
                all.push(Migration {
                    time_ns: SLICE_NS * slice,
                    slice: SliceId(slice as u32),
                    object: ObjectId(1),
                    page: PageNumber(first + page),
                    len: len as u32,
                    from: home[m],
                    to: home[m + 1],
                    by: if i % 5 == 4 { "kernel" } else { "dominant" }.into(),
                    to_count: 40.0 + i as f64,
                    home_count: (i % 5 != 4).then_some(3.0),
                    count_threshold: 12.0,
                });
            }
        }
        all.sort_by_key(|m| (m.time_ns, m.page));
        all
    }
}

fn sampling() -> Sampling {
    Sampling {
        samples: 100_000,
        period: 1,
        budget: 0.01,
        cost: 0.004,
        sample_ns: 1500.0,
        minimum_samples: 5,
        writes: true,
        seconds: (SLICES * SLICE_NS) as f64 * 1e-9,
        ..Sampling::default()
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, folder, numbers @ ..] = &arguments[..] else {
        panic!("synthetic KIND FOLDER [PAGES [THREADS]]");
    };
    let number = |i: usize, or: u64| numbers.get(i).map_or(or, |n| n.parse().unwrap());
    let (pages, threads) = if kind == "page" {
        (1, 1)
    } else {
        (number(0, 4096), number(1, 16))
    };
    let shape = Shape::new(kind, pages, threads);
    let mut profile = shape.tables();
    let mut writer = Writer::create(Path::new(folder), &profile.meta, true).unwrap();
    for s in 0..SLICES {
        let slice = Slice {
            start_ns: s * SLICE_NS,
            end_ns: (s + 1) * SLICE_NS,
        };
        let rows = match kind.as_str() {
            "empty" => Vec::new(),
            "page" => shape.slice(s).drain(..1).collect(),
            "large" => shape.runs(s),
            _ => shape.slice(s),
        };
        writer.slice(slice, &rows).unwrap();
    }
    match kind.as_str() {
        "truncated" => profile.meta.truncated = Some("the recorder was killed".into()),
        "moved" => {
            profile.migrations = shape.migrations();
            profile.meta.held_back = vec![("budget".into(), 120), ("few-samples".into(), 40)];
        }
        _ => {}
    }
    writer.finish(&profile).unwrap();
}
