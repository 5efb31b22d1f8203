//! Cases whose time has a closed form.

mod common;

use common::*;
use nodewise_machine::{MemoryCache, NodeId, Route};
use nodewise_profile::{
    Access, Meta, Observer, Profile, Region, RegionId, RegionKind, Slice, SliceId, Thread,
};
use nodewise_simulation::{Parameters, Range, Simulation, Varied};

const WIDE: f64 = 1e9; // MB/s, wide enough never to be the limit

#[test]
fn one_node_costs_compute_and_local_latency() {
    let rows = private_reads(2, 10, 64);
    let simulation = predict(&machine(1, 2, WIDE, WIDE), &rows, 2, &[&|_| 0], &exact());
    let lines = 10.0 * 64.0;
    let prediction = simulation.baseline();
    assert_close(
        prediction.seconds.typical * 1e9,
        lines * LOCAL_NS + lines * 8.0 * NS_PER_ACCESS,
    );
    assert_eq!(prediction.local_fraction, 1.0);
    assert_close(prediction.latency_ns, LOCAL_NS);
}

#[test]
fn all_remote_costs_remote_latency() {
    let rows = private_reads(2, 10, 64);
    let simulation = predict(
        &machine(2, 1, WIDE, WIDE),
        &rows,
        2,
        &[&|i| 1 - i as u32 / 10, &|i| i as u32 / 10],
        &exact(),
    );
    let lines = 10.0 * 64.0;
    let compute = lines * 8.0 * NS_PER_ACCESS;
    let [remote, local] = [&simulation.predictions[0], &simulation.predictions[1]];
    assert_close(remote.seconds.typical * 1e9, lines * REMOTE_NS + compute);
    assert_close(
        local.speedup.typical,
        (lines * REMOTE_NS + compute) / (lines * LOCAL_NS + compute),
    );
    assert_eq!((remote.local_fraction, local.local_fraction), (0.0, 1.0));
}

#[test]
fn a_memory_side_cache_hits_by_what_a_policy_puts_on_its_node() {
    let rows = private_reads(2, 10, 64);
    let mut cached = machine(2, 1, WIDE, WIDE);
    for node in &mut cached.nodes {
        node.cache = Some(MemoryCache {
            memory: 10 * 4096,
            bandwidth: WIDE,
            latency_ns: if node.os_index == 0 {
                vec![50.0, 150.0]
            } else {
                vec![150.0, 50.0]
            },
        });
    }
    let known = Parameters {
        assumed_ns: Range::exactly(NS_PER_ACCESS),
        ..exact()
    };
    let simulation = predict(&cached, &rows, 2, &[&|_| 0, &|i| i as u32 / 10], &known);
    let [one, own] = [&simulation.predictions[0], &simulation.predictions[1]];
    let lines = 10.0 * 64.0;
    let ns = |hits: f64, further: f64| {
        lines * (further + 50.0 + (1.0 - hits) * LOCAL_NS) + lines * 8.0 * NS_PER_ACCESS
    };
    let e = (-1.0f64).exp();
    // Ten pages for ten places: all hit, or those that share none by chance, in any order or in sweeps.
    assert_close(own.seconds.min * 1e9, ns(1.0, 0.0));
    assert_close(own.seconds.typical * 1e9, ns(1.0 - e, 0.0));
    assert_close(own.seconds.max * 1e9, ns(e, 0.0));
    // Twenty, half of them from the other node, whose thread takes longest.
    let further = REMOTE_NS - LOCAL_NS;
    assert_close(one.seconds.min * 1e9, ns(0.5, further));
    assert_close(one.seconds.typical * 1e9, ns((1.0 - e * e) / 2.0, further));
    // Swept, in consecutive places: each page finds the other one there.
    assert_close(one.seconds.max * 1e9, ns(0.0, further));
    assert_close(own.cache_hits.unwrap(), 1.0 - e);
    assert_close(one.cache_hits.unwrap(), (1.0 - e * e) / 2.0);
    let varied = simulation.scenarios.iter().map(|s| s.varied);
    assert_eq!(varied.filter(|v| *v == Varied::CacheConflicts).count(), 2);
}

#[test]
fn a_saturated_controller_takes_bytes_over_bandwidth() {
    // 8 threads on 4 nodes, all data behind one controller of 1 GB/s: 1 byte a nanosecond.
    let rows = private_reads(8, 50, 64);
    let mut p = exact();
    p.parallelism = nodewise_simulation::Range::exactly(50.0);
    let simulation = predict(&machine(4, 2, 1000.0, WIDE), &rows, 8, &[&|_| 0], &p);
    let bytes = 8.0 * 50.0 * 64.0 * 64.0;
    assert_close(simulation.baseline().seconds.typical * 1e9, bytes);
    assert_close(simulation.baseline().controllers[0].utilization, 1.0);
    assert_eq!(simulation.baseline().controllers[1].bytes, 0.0);
    assert_eq!(simulation.baseline().access_balance, 0.0);
}

#[test]
fn a_line_behind_a_full_controller_takes_as_long_as_its_cpu_waits_for_it() {
    let rows = private_reads(8, 50, 64);
    let mut p = exact();
    p.parallelism = nodewise_simulation::Range::exactly(50.0);
    let simulation = predict(&machine(4, 2, 1000.0, WIDE), &rows, 8, &[&|_| 0], &p);
    let lines = 50.0 * 64.0;
    let waiting = 8.0 * lines * 64.0 - lines * 8.0 * NS_PER_ACCESS;
    assert_close(simulation.baseline().latency_ns, waiting * 50.0 / lines);
}

#[test]
fn a_full_link_makes_the_lines_that_cross_it_slow_and_no_others() {
    // Two threads on each node; node 1 reads over a link of 1 GB/s, node 0 reads locally.
    let rows = private_reads(4, 50, 64);
    let mut p = exact();
    p.parallelism = nodewise_simulation::Range::exactly(50.0);
    let simulation = predict(&machine(2, 2, WIDE, 1000.0), &rows, 4, &[&|_| 0], &p);
    let lines = 50.0 * 64.0;
    let waiting = 2.0 * lines * 64.0 - lines * 8.0 * NS_PER_ACCESS;
    let remote = waiting * 50.0 / lines;
    assert_close(simulation.baseline().latency_ns, 0.5 * (LOCAL_NS + remote));
}

#[test]
fn dirty_lines_cross_the_controller_twice() {
    let mut rows = private_reads(1, 50, 64);
    rows.iter_mut().for_each(|r| (r.writes, r.reads) = (r.reads, 0));
    let simulation = predict(&machine(1, 1, 10.0, WIDE), &rows, 1, &[&|_| 0], &exact());
    assert_close(
        simulation.baseline().seconds.typical * 1e9,
        2.0 * 50.0 * 64.0 * 64.0 / 0.01,
    );
}

#[test]
fn a_backplane_carries_all_remote_traffic_and_no_local_one() {
    let rows = private_reads(4, 50, 64);
    let mut m = machine(4, 1, WIDE, WIDE);
    m.backplane = Some(100.0);
    let home = |i: usize| i as u32 / 50;
    let simulation = predict(&m, &rows, 4, &[&|i| (home(i) + 1) % 4, &home], &exact());
    let bytes = 4.0 * 50.0 * 64.0 * 64.0;
    assert_close(simulation.predictions[0].seconds.typical * 1e9, bytes / 0.1);
    let lines = 50.0 * 64.0;
    assert_close(
        simulation.predictions[1].seconds.typical * 1e9,
        lines * (LOCAL_NS + 8.0 * NS_PER_ACCESS),
    );
}

#[test]
fn a_narrow_direction_of_a_link_is_felt_by_its_readers_alone() {
    // Node 1 reads from node 0 over a link of 10 MB/s; the other direction is wide.
    let mut m = machine(2, 1, WIDE, WIDE);
    let narrow = m.links.iter().position(|l| l.from == NodeId(0)).unwrap();
    m.links[narrow].bandwidth = 10.0;
    let from_0 = predict(&m, &[read(1, 7, 64)], 2, &[&|_| 0], &exact());
    let from_1 = predict(&m, &[read(0, 7, 64)], 2, &[&|_| 1], &exact());
    assert_close(from_0.baseline().seconds.typical * 1e9, 64.0 * 64.0 / 0.01);
    assert_close(
        from_1.baseline().seconds.typical * 1e9,
        64.0 * (REMOTE_NS + 8.0 * NS_PER_ACCESS),
    );
    assert_close(from_0.baseline().links[narrow].utilization, 1.0);
}

#[test]
fn a_route_narrower_than_its_links_is_the_limit() {
    let mut m = machine(2, 1, WIDE, 100.0);
    let links = m.routes[1][0].links.clone();
    m.routes[1][0] = Route {
        links,
        bandwidth: 64.0,
    };
    let simulation = predict(&m, &[read(1, 7, 640)], 2, &[&|_| 0], &exact());
    assert_close(simulation.baseline().seconds.typical * 1e9, 640.0 * 64.0 / 0.064);
}

#[test]
fn latency_rises_with_load_as_the_formula_says() {
    let rows = private_reads(1, 50, 64);
    let mut p = exact();
    p.queue_ns = nodewise_simulation::Range::exactly(40.0);
    let bandwidth = 2000.0;
    let simulation = predict(&machine(1, 1, bandwidth, WIDE), &rows, 1, &[&|_| 0], &p);
    let baseline = simulation.baseline();
    let lines = 50.0 * 64.0;
    let load = lines * 64.0 / (baseline.seconds.typical * 1e9) / (bandwidth * 1e-3 * p.headroom);
    let latency = LOCAL_NS + 40.0 * load / (2.0 * (1.0 - load));
    assert!(load > 0.1, "the case is about load: {load}");
    assert_close(baseline.latency_ns, latency);
    assert_close(
        baseline.seconds.typical * 1e9,
        lines * (latency + 8.0 * NS_PER_ACCESS),
    );
}

#[test]
fn regions_and_slices_follow_one_another_and_threads_run_side_by_side() {
    let (m, lines) = (machine(1, 2, WIDE, WIDE), 64.0);
    let once = lines * (LOCAL_NS + 8.0 * NS_PER_ACCESS);
    let (a, b) = (read(0, 1, 64), read(1, 2, 64));
    let mut later = b;
    later.slice = SliceId(1);
    let mut elsewhere = b;
    elsewhere.region = RegionId(2);
    let time = |rows: &[_]| {
        predict(&m, rows, 2, &[&|_| 0], &exact())
            .baseline()
            .seconds
            .typical
            * 1e9
    };
    assert_close(time(&[a, b]), once);
    assert_close(time(&[a, later]), 2.0 * once);
    assert_close(time(&[a, elsewhere]), 2.0 * once);
}

#[test]
fn compute_bound_programs_are_called_so() {
    let mut rows = private_reads(2, 10, 1);
    rows.iter_mut().for_each(|r| r.reads = 1_000_000);
    let simulation = predict(
        &machine(2, 1, WIDE, WIDE),
        &rows,
        2,
        &[&|_| 0, &|i| i as u32 / 10],
        &Parameters::default(),
    );
    assert!(!simulation.is_memory_bound());
    let [first, second] = [&simulation.predictions[0], &simulation.predictions[1]];
    assert!((second.speedup.max - 1.0).abs() < 0.01, "{:?}", second.speedup);
    assert_eq!(first.speedup.typical, 1.0);
}

/// A profile of one slice, whose `threads` took a millisecond of CPU each, on a host of 16 CPUs.
fn timed(threads: u32, wall_ns: u64, kind: RegionKind) -> Profile {
    let thread = Thread {
        cpu_ns: 1_000_000,
        ..Thread::default()
    };
    let region = |kind| Region {
        kind,
        ..Region::default()
    };
    Profile {
        meta: Meta {
            wall_ns,
            host_cpus: 16,
            ..Meta::default()
        },
        threads: vec![thread; threads as usize],
        regions: vec![region(RegionKind::Serial), region(kind)],
        slices: vec![Slice {
            start_ns: 0,
            end_ns: wall_ns,
        }],
        ..Profile::default()
    }
}

fn on_one_node(profile: &Profile, rows: &[Access]) -> Simulation {
    let mut p = exact();
    p.recording_cost = Some(Range::exactly(1.0));
    let threads = profile.threads.len();
    let one_node = machine(1, 8, WIDE, WIDE);
    predict_profile(profile, &one_node, rows, threads, &[&|_| 0], &p)
}

fn seconds(profile: &Profile, rows: &[Access]) -> f64 {
    on_one_node(profile, rows).baseline().seconds.typical
}

#[test]
fn threads_one_after_another_cost_what_one_thread_does() {
    let rows = private_reads(8, 10, 64);
    let alone: Vec<_> = rows
        .iter()
        .map(|r| Access {
            thread: Default::default(),
            ..*r
        })
        .collect();
    let mut one = timed(1, 8_000_000, RegionKind::Serial);
    one.threads[0].cpu_ns = 8_000_000;
    let one = seconds(&one, &alone);
    assert_close(seconds(&timed(8, 8_000_000, RegionKind::Serial), &rows), one);
    // Two at a time; then all; and a team, for which wall time does not matter.
    assert_close(
        seconds(&timed(8, 4_000_000, RegionKind::Serial), &rows),
        one / 2.0,
    );
    assert_close(
        seconds(&timed(8, 1_000_000, RegionKind::Serial), &rows),
        one / 8.0,
    );
    assert_close(
        seconds(&timed(8, 8_000_000, RegionKind::OpenMp), &rows),
        one / 8.0,
    );
}

#[test]
fn a_limit_on_concurrency_is_told_where_it_binds() {
    let rows = private_reads(8, 10, 64);
    let limit = |wall, kind| on_one_node(&timed(8, wall, kind), &rows).side_by_side;
    assert_close(limit(8_000_000, RegionKind::Serial).unwrap(), 1.0);
    assert_close(limit(4_000_000, RegionKind::Serial).unwrap(), 2.0);
    assert_eq!(limit(1_000_000, RegionKind::Serial), None, "all eight at a time");
    assert_eq!(limit(8_000_000, RegionKind::OpenMp), None, "a team");
}

#[test]
fn a_saturated_host_says_nothing_about_concurrency() {
    let rows = private_reads(8, 10, 64);
    let mut small = timed(8, 4_000_000, RegionKind::Serial);
    small.meta.host_cpus = 2;
    let wide = timed(8, 1_000_000, RegionKind::Serial);
    assert_close(seconds(&small, &rows), seconds(&wide, &rows));
}

#[test]
fn threads_that_others_may_have_kept_waiting_may_all_run_at_a_time() {
    let rows = private_reads(8, 10, 64);
    let mut profile = timed(8, 4_000_000_000, RegionKind::Serial);
    profile.threads.iter_mut().for_each(|t| t.cpu_ns = 1_000_000_000);
    let mut times = |others| {
        profile.meta.others = others;
        let simulation = on_one_node(&profile, &rows);
        let varied = |v| simulation.scenarios.iter().position(|s| s.varied == v);
        let baseline = simulation.baseline();
        let unlimited = varied(Varied::Concurrency).map(|s| baseline.by_scenario[s].seconds);
        (baseline.seconds.typical, unlimited)
    };
    let (two_at_a_time, unlimited) = times(Some(0.3));
    assert_close(two_at_a_time, 4.0 * unlimited.unwrap());
    assert_eq!(times(None), (two_at_a_time, unlimited), "what is not known");
    assert_eq!(times(Some(0.001)), (two_at_a_time, None), "an undisturbed run");
}

#[test]
fn an_emulator_s_own_time_says_what_runs_at_a_time() {
    let rows = private_reads(8, 10, 64);
    let mut profile = timed(8, 4_000_000_000, RegionKind::Serial);
    profile.meta.observer = Observer::Emulate;
    profile.threads.iter_mut().for_each(|t| t.cpu_ns = 0);
    let mut limit = |cpu_ns| {
        profile.meta.cpu_ns = cpu_ns;
        on_one_node(&profile, &rows).side_by_side
    };
    assert_eq!(limit(None), None, "unknown");
    assert_eq!(limit(Some(60_000_000_000)), None, "all at a time");
    assert_close(limit(Some(8_000_000_000)).unwrap(), 2.0);
}

#[test]
fn a_gain_that_bandwidth_makes_is_not_known_exactly() {
    let rows = private_reads(8, 50, 64);
    let m = machine(4, 2, 10.0, WIDE);
    let spread = |i: usize| i as u32 % 4;
    let simulation = predict(&m, &rows, 8, &[&|_| 0, &spread], &Parameters::default());
    let speedup = simulation.predictions[1].speedup;
    assert_close(speedup.typical, 4.0);
    assert!(
        1.0 < speedup.min && speedup.min < 3.9 && speedup.max > 4.1,
        "{speedup:?}"
    );
    assert_eq!(simulation.baseline().speedup, Range::exactly(1.0));
}
