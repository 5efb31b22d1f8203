//! Time and memory of histogram, metrics and all policies on synthetic profiles of 64 threads,
//! each page touched by four: `cargo bench -p nodewise-placement --bench scale -- [PAGES…]`.

use nodewise_analysis::{
    Affinity, Histogram, SharingMatrix, Timeline, compact_order, first_touch_nodes, measure,
};
use nodewise_machine::Machine;
use nodewise_placement::{Context, page_policies, policies::Nothing};
use nodewise_profile::{
    Access, AccessSource, FirstTouch, Object, ObjectId, ObjectKind, PageNumber, Profile, Slice, Thread,
    ThreadId,
};
use std::convert::Infallible;
use std::time::{Duration, Instant};

const THREADS: u64 = 64;
const OBJECTS: u64 = 100;
const SHARERS: u64 = 4;
const BASE: u64 = 1 << 20;

/// Rows generated as they are read: each page belongs to one thread's block and is read by three more threads.
struct Synthetic {
    pages: u64,
}

impl AccessSource for Synthetic {
    type Error = Infallible;

    fn visit(&self, visit: &mut dyn FnMut(&[Access])) -> Result<(), Infallible> {
        let mut batch = Vec::with_capacity(1 << 14);
        for page in 0..self.pages {
            let owner = page * THREADS / self.pages;
            let spread = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            for sharer in 0..SHARERS {
                batch.push(Access {
                    object: ObjectId((page * OBJECTS / self.pages) as u32),
                    thread: ThreadId(((owner + sharer * (1 + spread % 20)) % THREADS) as u32),
                    page: PageNumber(BASE + page),
                    len: 1,
                    reads: if sharer == 0 { 100 } else { spread % 60 },
                    writes: 10,
                    lines: 64,
                    ..Access::default()
                });
            }
            if batch.len() + SHARERS as usize > batch.capacity() {
                visit(&batch);
                batch.clear();
            }
        }
        visit(&batch);
        Ok(())
    }
}

fn tables(pages: u64) -> Profile {
    let bounds = |o: u64| (o * pages).div_ceil(OBJECTS);
    let object = |o| Object {
        kind: ObjectKind::Heap,
        first_page: PageNumber(BASE + bounds(o)),
        pages: bounds(o + 1) - bounds(o),
        ..Object::default()
    };
    let objects: Vec<Object> = (0..OBJECTS).map(object).collect();
    let touch = |(o, object): (usize, &Object)| FirstTouch {
        page: object.first_page,
        len: object.pages as u32,
        object: ObjectId::from_index(o),
        ..FirstTouch::default()
    };
    Profile {
        first_touches: objects.iter().enumerate().map(touch).collect(),
        threads: (0..THREADS)
            .map(|t| Thread {
                openmp: Some(t as u32),
                ..Thread::default()
            })
            .collect(),
        slices: vec![Slice::default()],
        objects,
        ..Profile::default()
    }
}

struct Times {
    histogram: Duration,
    metrics: Duration,
    policies: Duration,
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn run(pages: u64, machine: &Machine) -> Times {
    let (profile, source) = (tables(pages), Synthetic { pages });
    let affinity = Affinity::of_cpus("compact", &profile, machine, &compact_order(machine));
    let nodes = machine.node_count();
    let (Ok(whole), histogram) = timed(|| Histogram::build(&source, THREADS as usize, 0));
    assert_eq!(whole.len() as u64, pages);
    let ((), metrics) = timed(|| {
        let homes = first_touch_nodes(&profile, &whole, &affinity, nodes);
        let sharing = SharingMatrix::of(&whole);
        assert!(sharing.between(ThreadId(0), ThreadId(1)) > 0);
        let measured = measure(&profile, &whole, &affinity, &homes, nodes);
        assert!(measured.program.application_exclusivity() > 0.25);
        let Ok(timeline) = Timeline::of(&source, &profile, &whole, &affinity, &homes, nodes);
        assert_eq!(timeline.slices[0].metrics, measured.program);
    });
    let context = Context {
        profile: &profile,
        histogram: &whole,
        affinity: &affinity,
        machine,
    };
    let ((), policies) = timed(|| {
        for policy in page_policies("all", machine, &Nothing).expect("the registry knows itself") {
            let homes = policy.place(&context).nodes;
            let m = measure(&profile, &whole, &affinity, &homes, nodes).program;
            assert!(m.local_fraction() <= m.application_exclusivity());
        }
    });
    Times {
        histogram,
        metrics,
        policies,
    }
}

/// Peak resident memory of this process, MiB.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .unwrap_or("0");
    line.split_whitespace()
        .next()
        .and_then(|k| k.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1024.0
}

fn main() {
    let sizes: Vec<u64> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench") // the argument that cargo bench adds
        .map(|a| a.parse().expect("a number of pages"))
        .collect();
    let sizes = if sizes.is_empty() {
        vec![100_000, 1_000_000, 10_000_000]
    } else {
        sizes
    };
    let machine = Machine::named("xeon-x7550").expect("a shipped machine");
    println!(
        "{:>10}  {:>9}  {:>7}  {:>8}  {:>7}  {:>7}  {:>8}",
        "pages", "histogram", "metrics", "policies", "total", "ns/page", "peak MiB"
    );
    for pages in sizes {
        let t = run(pages, &machine);
        let total = (t.histogram + t.metrics + t.policies).as_secs_f64();
        println!(
            "{pages:>10}  {:>7.2} s  {:>5.2} s  {:>6.2} s  {total:>5.2} s  {:>7.0}  {:>8.0}",
            t.histogram.as_secs_f64(),
            t.metrics.as_secs_f64(),
            t.policies.as_secs_f64(),
            1e9 * total / pages as f64,
            peak(),
        );
    }
}
