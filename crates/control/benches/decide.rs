//! Measures how long each policy takes to decide over sampled pages, and the bytes that tracking one takes: `cargo
//! bench -p nodewise-control --bench decide -- [PAGES [POLICY…]]`.
//!
//! Prints first the bytes per page and the nanoseconds per sample. Then a line for each policy: its name, milliseconds
//! and moves with nearly all pages on wrong nodes, and the same after three intervals in which its moves were made.
//! Milliseconds are wall time and CPU time, each the least of eleven runs (which excludes disturbance by other
//! programs), and the median of CPU time. `RAYON_NUM_THREADS=1` uses one CPU only. There are four samples a page. Seven
//! of eight pages are used by one node each, in blocks; the others by random nodes. Pages are placed round-robin at
//! first.

use nodewise_analysis::random::mix;
use nodewise_control::{Controller, Settings, Tracker};
use nodewise_machine::{Machine, NodeId};
use nodewise_placement::{MIGRATION_POLICIES, Observed, migration_policy};
use nodewise_profile::PageNumber;
use std::time::Instant;

const BASE: u64 = 0x7f12_3456_7000 >> 12;
const NODES: u64 = 8;
const SAMPLES: u64 = 4;
const REPEATS: usize = 11;

/// The node that a sample of a page in this scan comes from.
fn user(page: u64, scan: u64, pages: u64) -> NodeId {
    let owner = page * NODES / pages;
    let chance = mix(page ^ scan << 48);
    let node = if page.is_multiple_of(8) {
        chance % NODES
    } else {
        owner
    };
    NodeId(node as u32)
}

/// Every page in each of `SAMPLES` scans in its own order.
fn sampled(pages: u64) -> Tracker {
    let mut tracker = Tracker::new(NODES as usize, 0, pages as usize);
    let bits = pages.next_power_of_two() - 1;
    for scan in 0..SAMPLES {
        let order = (0..=bits).map(|i| (i.wrapping_mul(0x9e37_79b1) ^ scan) & bits);
        for page in order.filter(|p| *p < pages) {
            tracker.add(PageNumber(BASE + page), user(page, scan, pages), 1);
        }
        for page in tracker.homeless() {
            tracker.set_home(page, NodeId((page.0 % NODES) as u32));
        }
        tracker.settle();
    }
    tracker
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench"); // added by cargo bench
    let pages = arguments
        .next()
        .map_or(1_000_000, |a| a.parse().expect("a number of pages"));
    let start = Instant::now();
    let tracker = sampled(pages);
    let sample_ns = start.elapsed().as_nanos() as f64 / (pages * SAMPLES) as f64;
    assert_eq!(tracker.len() as u64, pages);
    println!(
        "tracker {:.2} {sample_ns:.0}",
        tracker.bytes() as f64 / pages as f64
    );
    let machine = Machine::named("opteron-6386").expect("a shipped machine");
    assert_eq!(machine.node_count() as u64, NODES);
    let wanted: Vec<String> = arguments.collect();
    let all = wanted.is_empty();
    for kind in MIGRATION_POLICIES
        .iter()
        .filter(|k| k.is_complete() && (all || wanted.iter().any(|w| w == k.name)))
    {
        let (mut tracker, mut line) = (tracker.clone(), kind.name.to_owned());
        for turns in [0, 3] {
            for _ in 0..turns {
                for each in controller(kind.name, &machine).step(0, &tracker).moves {
                    tracker.set_home(each.page, each.to);
                    // The counts of a moved page restart.
                    let samples = (0..SAMPLES).map(|scan| user(each.page.0 - BASE, scan, pages));
                    samples.for_each(|node| tracker.add(each.page, node, 1));
                }
            }
            let (ms, cpu_ms, median, moves) = decided(kind.name, &machine, &tracker);
            line += &format!(" {ms:.1} {cpu_ms:.1} {median:.1} {moves}");
        }
        println!("{line}");
    }
}

fn controller(policy: &str, machine: &Machine) -> Controller {
    let policy = migration_policy(policy, machine).expect("the registry knows itself");
    let settings = Settings {
        budget: f64::INFINITY,
        ..Settings::default()
    };
    Controller::new(policy, settings)
}

/// Milliseconds of wall time, of CPU time of all threads, the median of the latter, and the number of moves.
fn decided(policy: &str, machine: &Machine, tracker: &Tracker) -> (f64, f64, f64, usize) {
    let once = |_| {
        let mut controller = controller(policy, machine);
        let (start, used) = (Instant::now(), cpu_ms());
        let decision = controller.step(0, tracker);
        (
            start.elapsed().as_secs_f64() * 1e3,
            cpu_ms() - used,
            decision.moves.len(),
        )
    };
    let all: Vec<_> = (0..REPEATS).map(once).collect();
    let mut cpu: Vec<f64> = all.iter().map(|a| a.1).collect();
    cpu.sort_by(f64::total_cmp);
    let least = all.iter().map(|a| a.0).fold(f64::INFINITY, f64::min);
    (least, cpu[0], cpu[REPEATS / 2], all[0].2)
}

/// CPU time of all threads by the scheduler's accounting, milliseconds.
fn cpu_ms() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").expect("a Linux kernel");
    let used = |thread: std::fs::DirEntry| {
        let books = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        books.split(' ').next()?.parse::<f64>().ok()
    };
    threads.flatten().filter_map(used).sum::<f64>() / 1e6
}
