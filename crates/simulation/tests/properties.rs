//! Properties that hold for any program on a symmetric machine.

mod common;

use common::*;
use nodewise_profile::{Access, RegionId, ThreadId};
use nodewise_simulation::{Parameters, Range};
use proptest::prelude::*;

const NODES: u32 = 4;

/// Up to 8 threads reading any of 40 pages.
fn rows() -> impl Strategy<Value = Vec<Access>> {
    prop::collection::vec((0u32..8, 0u64..40, 1u64..5000), 1..60)
        .prop_map(|cells| cells.into_iter().map(|(t, p, lines)| read(t, p, lines)).collect())
}

fn homes() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(0..NODES, 40)
}

fn seconds(
    controller: f64,
    link: f64,
    rows: &[Access],
    home: &dyn Fn(usize) -> u32,
    p: &Parameters,
) -> Range {
    predict(&machine(NODES, 2, controller, link), rows, 8, &[home], p)
        .baseline()
        .seconds
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // Halving one link alone may help under max-min fairness: a reader that is slowed down leaves a controller to one
    // that needs it more. Halving everything cannot.
    #[test]
    fn halving_bandwidth_is_never_faster(rows in rows(), home in homes(), controller in 1.0..20_000.0, link in 1.0..20_000.0) {
        let at = |c, l| seconds(c, l, &rows, &|i| home[i], &Parameters::default()).typical;
        prop_assert!(at(controller / 2.0, link / 2.0) >= at(controller, link) * (1.0 - 1e-4));
    }

    #[test]
    fn regions_make_the_run(rows in rows(), regions in prop::collection::vec(0u32..3, 60), home in homes()) {
        let rows: Vec<_> = rows.iter().zip(&regions).map(|(row, &r)| Access { region: RegionId(r), ..*row }).collect();
        let found = predict(&machine(NODES, 2, 900.0, 700.0), &rows, 8, &[&|i| home[i]], &Parameters::default());
        let p = found.baseline();
        let (seconds, lines) = p.regions.iter().fold((0.0, 0.0), |(s, l), r| (s + r.seconds.typical, l + r.lines));
        let expected: f64 = rows.iter().map(|r| (r.lines * u64::from(r.len)) as f64).sum();
        prop_assert!((seconds / p.seconds.typical - 1.0).abs() < 1e-9);
        prop_assert!((lines / expected - 1.0).abs() < 1e-9);
    }

    #[test]
    fn moving_a_private_page_home_is_never_slower_when_only_latency_counts(lines in prop::collection::vec(1u64..5000, 8), home in homes()) {
        let rows: Vec<_> = lines.iter().enumerate().map(|(t, &l)| read(t as u32, t as u64, l)).collect();
        let p = Parameters { queue_ns: Range::exactly(0.0), ..Parameters::default() };
        let owner = |page: usize| page as u32 / 2;
        let before = seconds(1e9, 1e9, &rows, &|i| home[i], &p);
        for moved in 0..8 {
            let after = seconds(1e9, 1e9, &rows, &|i| if i == moved { owner(i) } else { home[i] }, &p);
            prop_assert!(after.typical <= before.typical * (1.0 + 1e-9));
        }
    }

    #[test]
    fn renaming_nodes_of_a_symmetric_machine_changes_nothing(rows in rows(), home in homes(), turn in 1..NODES) {
        // Threads 2n and 2n+1 run on node n: rotating threads and pages together renames the nodes.
        let turned: Vec<_> = rows
            .iter()
            .map(|r| { let mut r = *r; r.thread.0 = (r.thread.0 + 2 * turn) % 8; r })
            .collect();
        let pages: std::collections::BTreeSet<_> = rows.iter().map(|r| r.page).collect();
        prop_assume!(!pages.is_empty());
        let a = seconds(3000.0, 1000.0, &rows, &|i| home[i], &Parameters::default());
        let b = seconds(3000.0, 1000.0, &turned, &|i| (home[i] + turn) % NODES, &Parameters::default());
        prop_assert!((a.typical - b.typical).abs() <= 1e-4 * a.typical);
    }

    #[test]
    fn a_run_costs_what_its_pages_cost(start in 0u64..300, len in 1u32..400, lines in 1u64..64, seed in any::<u64>()) {
        let home = |i: usize| ((seed >> (i % 61)) as u32) % NODES;
        let each: Vec<_> = (0..700).map(|p| read(0, p, 1)).chain((0..u64::from(len)).map(|p| read(1, start + p, lines))).collect();
        let mut run = each[..700].to_vec();
        run.push(Access { len, ..read(1, start, lines) });
        prop_assert_eq!(in_runs(&each, &home, 0), in_runs(&run, &home, 0));
    }

    #[test]
    fn huge_pages_count_each_base_page_once(start in 0u64..300, len in 1u32..400, lines in 1u64..64, seed in any::<u64>()) {
        let home = |i: usize| ((seed >> (i % 61)) as u32) % NODES;
        let each: Vec<_> = (0..700).map(|p| read(0, p, 1)).chain((0..u64::from(len)).map(|p| read(1, start + p, lines))).collect();
        let mut run = each[..700].to_vec();
        run.push(Access { len, ..read(1, start, lines) });
        prop_assert_eq!(in_runs(&each, &home, 3), in_runs(&run, &home, 3));
    }

    #[test]
    fn slower_cores_compute_longer_and_wait_as_before(rows in rows(), home in homes(), factor in 1.0..8.0) {
        // A single thread on bandwidth that is never full: its wait does not depend on the core's speed.
        let rows: Vec<_> = rows.iter().map(|row| Access { thread: ThreadId(0), ..*row }).collect();
        let with = |core_factor| {
            let core_factor = Range::exactly(core_factor);
            let p = Parameters { queue_ns: Range::exactly(0.0), core_factor, ..Parameters::default() };
            let found = predict(&machine(NODES, 2, 1e9, 1e9), &rows, 1, &[&|i| home[i]], &p);
            let p = found.baseline();
            (p.seconds.typical, p.seconds.typical * p.memory_share.typical)
        };
        let ((seconds, waiting), (slower, slower_waiting)) = (with(1.0), with(factor));
        prop_assert!((slower_waiting / waiting - 1.0).abs() < 1e-6);
        prop_assert!(((slower - slower_waiting) / (seconds - waiting) / factor - 1.0).abs() < 1e-6);
    }

    #[test]
    fn ranges_are_ordered(rows in rows(), home in homes()) {
        let simulation = predict(&machine(NODES, 2, 5000.0, 2000.0), &rows, 8, &[&|i| home[i], &|i| i as u32 % NODES], &Parameters::default());
        for p in &simulation.predictions {
            for r in [p.seconds, p.speedup, p.memory_share] {
                prop_assert!(r.min <= r.typical && r.typical <= r.max, "{:?}", r);
            }
            prop_assert!(p.controllers.iter().all(|c| c.utilization <= 1.0 + 1e-4));
            prop_assert!(p.links.iter().all(|l| l.utilization <= 1.0 + 1e-4));
        }
    }
}

/// Controllers' bytes with all 700 pages in the histogram at the given page size.
fn in_runs(rows: &[Access], home: &dyn Fn(usize) -> u32, shift: u32) -> Vec<f64> {
    use nodewise_machine::NodeId;
    use nodewise_placement::{Context, Mapping};
    let pages: Vec<_> = (0..700u64.div_ceil(1 << shift))
        .map(|p| nodewise_profile::PageNumber(p << shift))
        .collect();
    let histogram = nodewise_analysis::Histogram {
        shift,
        objects: vec![Default::default(); pages.len()],
        offsets: vec![0; pages.len() + 1],
        pages,
        entries: vec![],
        threads: 2,
    };
    let m = machine(NODES, 2, 1e9, 1e9);
    let (profile, affinity) = (Default::default(), compact(&m, 2));
    let context = Context {
        profile: &profile,
        histogram: &histogram,
        affinity: &affinity,
        machine: &m,
    };
    let mapping = Mapping {
        policy: String::new(),
        nodes: (0..histogram.len()).map(|i| NodeId(home(i))).collect(),
    };
    let source = nodewise_profile::InMemory::new(rows.to_vec());
    let simulation = nodewise_simulation::simulate(&context, &[mapping], &source, &exact()).unwrap();
    simulation
        .baseline()
        .controllers
        .iter()
        .map(|c| c.bytes)
        .collect()
}
