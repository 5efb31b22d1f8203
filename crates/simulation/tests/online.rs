//! Programs whose threads are moved while they run: without moves they cost the same as otherwise, and with moves they
//! end on the nodes that AsymSched's rule selects.

mod common;

use common::*;
use nodewise_analysis::Affinity;
use nodewise_control::{Settings, asym};
use nodewise_machine::{Channels, CpuId, Machine, NodeId};
use nodewise_placement::asym::{NodePlacement, cluster_bandwidth};
use nodewise_placement::{Context, Mapping, VirtualNodes, migration_policy};
use nodewise_profile::{Access, FirstTouch, InMemory, PageNumber, Profile, Slice, SliceId};
use nodewise_simulation::online::{Limits, Moves, Online, RunOutcome, Timeline};
use nodewise_simulation::{Places, simulate};

const THREADS: u32 = 6;
/// Lines of a run; with eight times as many accesses of 0.5 ns this takes about a second.
const LINES: u64 = 10_000_000;

/// Machine A with two CPUs a node, so that six threads need three.
fn two_cpus_a_node() -> Machine {
    let mut machine = Machine::named("machine-a").unwrap();
    machine.nodes.iter_mut().for_each(|n| n.cpus.truncate(2));
    machine
}

/// Two threads on each of three virtual nodes.
fn affinity() -> Affinity {
    Affinity {
        name: String::new(),
        cpus: (0..THREADS).map(CpuId).collect(),
        nodes: (0..THREADS).map(|t| NodeId(t / 2)).collect(),
    }
}

/// Each thread reads a page of its own, and `shared` of its lines from a page on virtual node 0.
fn rows(shared: f64) -> Vec<Access> {
    let part = |share: f64| (LINES as f64 * share) as u64;
    let mut rows: Vec<Access> = (0..THREADS)
        .map(|t| read(t, u64::from(t), part(1.0 - shared)))
        .collect();
    rows.extend((0..THREADS).map(|t| read(t, 6, part(shared))));
    rows.retain(|r| r.lines > 0);
    rows
}

struct Setup<'a> {
    rows: &'a [Access],
    profile: &'a Profile,
    places: Vec<Places>,
    moves: Moves,
    seconds_per_gb: f64,
}

/// Calls `found` with the program on its virtual nodes, the initial mapping, and the accesses.
fn program<T>(
    machine: &Machine,
    setup: &Setup<'_>,
    found: impl FnOnce(&Context<'_>, Mapping, &InMemory) -> T,
) -> T {
    let histogram = histogram(setup.rows, THREADS as usize);
    let context = Context {
        profile: setup.profile,
        histogram: &histogram,
        affinity: &affinity(),
        machine: &VirtualNodes::machine(machine, &setup.places[0][0]),
    };
    let start = Mapping {
        policy: "first-touch".into(),
        nodes: histogram.pages.iter().map(|p| home(*p)).collect(),
    };
    found(&context, start, &InMemory::new(setup.rows.to_vec()))
}

/// The runs, and how often the program was repeated.
fn runs(machine: &Machine, setup: &Setup<'_>) -> (Vec<RunOutcome>, f64) {
    let timeline = program(machine, setup, |context, start, accesses| {
        let seconds = setup.profile.slices.len().max(1) as f64;
        Timeline::read(context, &start, (seconds, 1.0), accesses, &exact()).expect("in memory")
    });
    let policy = || migration_policy("carrefour", machine).expect("known");
    let limits = Limits {
        period_s: 1.0,
        least_s: 10.0,
        seconds_per_gb: setup.seconds_per_gb,
        least_rate: 0.0,
        threads: asym::Settings::default(),
        pages: Settings {
            budget: f64::INFINITY,
            ..Settings::default()
        },
        policy: &policy,
    };
    let timelines = [timeline];
    let online = Online::new(machine, &timelines, &setup.places, &limits);
    (
        online.runs(&setup.places, setup.moves, &limits),
        online.repeated()[0],
    )
}

fn home(page: PageNumber) -> NodeId {
    match page.0 {
        6 => NodeId(0),
        own => NodeId(own as u32 / 2),
    }
}

fn places(nodes: &[[u32; 3]]) -> Vec<Places> {
    nodes.iter().map(|on| vec![on.map(NodeId).to_vec()]).collect()
}

fn bandwidth(machine: &Machine, nodes: &[u32]) -> f64 {
    let placement = NodePlacement {
        places: vec![nodes.iter().copied().map(NodeId).collect()],
    };
    cluster_bandwidth(&Channels::of(machine), &placement)[0]
}

#[test]
fn what_never_moves_costs_what_it_costs_once_as_often_as_it_is_repeated() {
    let machine = two_cpus_a_node();
    let rows = rows(0.3);
    let setup = Setup {
        rows: &rows,
        profile: &Profile::default(),
        places: places(&[[3, 0, 7]]),
        moves: Moves::Nothing,
        seconds_per_gb: 0.3,
    };
    let (found, repeated) = runs(&machine, &setup);
    let once = program(&machine, &setup, |context, start, accesses| {
        simulate(context, &[start], accesses, &exact()).unwrap()
    });
    // No link is shared here, so leaving links out of the small machine changes nothing.
    assert_close(
        found[0].programs[0].seconds,
        repeated * once.baseline().seconds.typical,
    );
    assert!(found[0].programs[0].seconds >= 10.0);
    assert_eq!(found[0].programs[0].nodes, [0, 3, 7]);
}

/// Four equal slices, of which the first and the last touch new pages.
#[test]
fn only_the_longest_stretch_without_new_pages_is_repeated() {
    let machine = two_cpus_a_node();
    let slices = [0, 1, 2, 3].map(SliceId);
    let rows: Vec<Access> = slices
        .iter()
        .flat_map(|&slice| rows(0.3).into_iter().map(move |row| Access { slice, ..row }))
        .collect();
    let touch = |slice| FirstTouch {
        len: 3,
        slice,
        ..FirstTouch::default()
    };
    let profile = Profile {
        slices: slices.map(|_| Slice::default()).to_vec(),
        first_touches: vec![touch(slices[0]), touch(slices[3])],
        ..Profile::default()
    };
    let setup = Setup {
        rows: &rows,
        profile: &profile,
        places: places(&[[3, 0, 7]]),
        moves: Moves::Nothing,
        seconds_per_gb: 0.3,
    };
    let (found, repeated) = runs(&machine, &setup);
    let four = program(&machine, &setup, |context, start, accesses| {
        simulate(context, &[start], accesses, &exact()).unwrap()
    });
    let one = four.baseline().seconds.typical / 4.0;
    assert!(repeated > 1.0);
    assert_close(found[0].programs[0].seconds, (2.0 * repeated + 2.0) * one);
}

#[test]
fn threads_that_share_data_end_on_nodes_of_nearly_the_highest_bandwidth_from_anywhere() {
    let machine = two_cpus_a_node();
    let rows = rows(0.5);
    let setup = Setup {
        rows: &rows,
        profile: &Profile::default(),
        places: places(&[[1, 4, 5], [4, 5, 7], [2, 6, 7], [5, 6, 7]]),
        moves: Moves::ThreadsAndPages,
        seconds_per_gb: 0.3,
    };
    let (found, _) = runs(&machine, &setup);
    let best = bandwidth(&machine, &[2, 6, 7]);
    for outcome in &found {
        let program = &outcome.programs[0];
        assert!(bandwidth(&machine, &program.nodes) >= 0.9 * best, "{program:?}");
        assert!(outcome.evaluated < 0.33 * outcome.placements, "{outcome:?}");
    }
    assert_eq!(found[2].programs[0].threads_moved, 0);
    assert!(found[0].programs[0].threads_moved >= 2);
}

#[test]
fn threads_that_share_nothing_stay() {
    let machine = two_cpus_a_node();
    let rows = rows(0.0);
    let setup = Setup {
        rows: &rows,
        profile: &Profile::default(),
        places: places(&[[1, 4, 5], [0, 3, 6]]),
        moves: Moves::ThreadsAndPages,
        seconds_per_gb: 0.3,
    };
    let (found, _) = runs(&machine, &setup);
    assert!(
        found
            .iter()
            .all(|o| o.programs[0].threads_moved == 0 && o.programs[0].moving_s == 0.0),
        "{found:?}"
    );
}

#[test]
fn moving_pages_takes_what_its_price_says() {
    let machine = two_cpus_a_node();
    let rows = rows(0.5);
    let at = |seconds_per_gb| {
        let setup = Setup {
            rows: &rows,
            profile: &Profile::default(),
            places: places(&[[1, 4, 5]]),
            moves: Moves::ThreadsAndPages,
            seconds_per_gb,
        };
        runs(&machine, &setup).0[0].programs[0].clone()
    };
    let (cheap, dear) = (at(0.3), at(3.0));
    let price =
        |o: &nodewise_simulation::online::ProgramOutcome| o.moving_s / (o.dynamic_bytes + o.full_bytes) * 1e9;
    assert!(cheap.dynamic_bytes + cheap.full_bytes > 0.0, "{cheap:?}");
    assert_close(price(&cheap), 0.3);
    assert_close(price(&dear), 3.0);
}
