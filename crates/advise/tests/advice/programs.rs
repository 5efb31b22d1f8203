//! Small programs, and helpers that return the advice on them.

use nodewise_advise::{Advice, Matched, ReportOptions, advise};
use nodewise_analysis::{Affinity, Histogram, Sampled, Samples, Usage, compact_order, first_touch_nodes};
use nodewise_machine::{CpuId, Machine, NodeId};
use nodewise_placement::{Context, Mapping};
use nodewise_profile::{
    Access, FirstTouch, Frame, InMemory, Meta, Object, ObjectId, ObjectKind, PageNumber, Profile, Region,
    RegionId, RegionKind, Site, SiteId, SliceId, Thread, ThreadId,
};
use nodewise_simulation::{Parameters, Prediction, Range, Simulation, simulate};

pub const THREADS: u32 = 64;
pub const PAGES: u32 = 64 * 16;

pub fn frame(function: &str, file: &str, line: u32) -> Frame {
    Frame {
        function: function.into(),
        file: file.into(),
        line,
    }
}

/// One heap object `rhs` of 1,024 pages, first touched by thread `toucher(page)` in init.c:30, and then used in
/// solve.c:88 by the threads `users(page)`.
pub fn program(
    toucher: impl Fn(u32) -> u32,
    users: impl Fn(u32) -> Vec<u32>,
    lines: u64,
    reads: u64,
) -> (Profile, InMemory) {
    let base = 1 << 20;
    let object = Object {
        kind: ObjectKind::Heap,
        name: "rhs".into(),
        site: SiteId(1),
        first_page: PageNumber(base),
        pages: u64::from(PAGES),
        bytes: u64::from(PAGES) * 4096,
        ..Object::default()
    };
    let thread = |t| Thread {
        openmp: Some(t),
        ..Thread::default()
    };
    let touch = |p| FirstTouch {
        page: PageNumber(base + u64::from(p)),
        len: 1,
        object: ObjectId(1),
        thread: ThreadId(toucher(p)),
        site: SiteId(2),
        ..FirstTouch::default()
    };
    let profile = Profile {
        meta: Meta {
            command: vec!["./solve".into()],
            ..Meta::default()
        },
        objects: vec![Object::default(), object],
        threads: (0..THREADS).map(thread).collect(),
        regions: vec![
            Region::default(),
            Region {
                kind: RegionKind::OpenMp,
                frame: frame("solve", "src/solve.c", 88),
                schedule: None,
            },
        ],
        slices: vec![Default::default()],
        sites: vec![
            Site::default(),
            Site {
                frames: vec![frame("main", "init.c", 20)],
            },
            Site {
                frames: vec![frame("fill", "src/init.c", 30)],
            },
        ],
        first_touches: (0..PAGES).map(touch).collect(),
        ..Profile::default()
    };
    let row = |region, page: u32, thread, reads, writes, lines| Access {
        slice: SliceId(0),
        region: RegionId(region),
        object: ObjectId(1),
        thread: ThreadId(thread),
        page: PageNumber(base + u64::from(page)),
        len: 1,
        reads,
        writes,
        lines,
    };
    let init = (0..PAGES).map(|p| row(0, p, toucher(p), 0, 512, 64));
    let solve = (0..PAGES).flat_map(|p| users(p).into_iter().map(move |t| row(1, p, t, reads, 0, lines)));
    (profile, InMemory::new(init.chain(solve).collect()))
}

pub fn advice(machine: &str, program: &(Profile, InMemory)) -> Advice {
    bound_advice(machine, compact_order, program)
}

/// The advice if the compute time per access is known, so that the verdict is decided.
pub fn bound_advice(
    machine: &str,
    order: fn(&Machine) -> Vec<CpuId>,
    program: &(Profile, InMemory),
) -> Advice {
    let known = Parameters {
        assumed_ns: Range::exactly(0.5),
        ..Parameters::default()
    };
    ordered_advice(machine, order, program, &known)
}

pub fn advice_with(machine: &str, program: &(Profile, InMemory), parameters: &Parameters) -> Advice {
    ordered_advice(machine, compact_order, program, parameters)
}

pub fn ordered_advice(
    machine: &str,
    order: fn(&Machine) -> Vec<CpuId>,
    program: &(Profile, InMemory),
    parameters: &Parameters,
) -> Advice {
    any_advice(machine, order, program, parameters, None)
}

/// The advice if accesses are samples, of which `samples` samples of each page are known.
pub fn sampled_advice(machine: &str, program: &(Profile, InMemory), samples: u64) -> Advice {
    let pages = u64::from(PAGES);
    let known = Sampled {
        samples: samples * pages,
        pages,
        judged: pages,
        ..Sampled::default()
    };
    let samples = Samples {
        program: known,
        objects: [(ObjectId(1), known)].into(),
    };
    any_advice(
        machine,
        compact_order,
        program,
        &Parameters::default(),
        Some(samples),
    )
}

fn any_advice(
    machine: &str,
    order: fn(&Machine) -> Vec<CpuId>,
    program: &(Profile, InMemory),
    parameters: &Parameters,
    samples: Option<Samples>,
) -> Advice {
    simulated(
        machine,
        order,
        program,
        parameters,
        |context, simulation, mappings| {
            let (profile, accesses) = program;
            let usage = Usage::of(accesses, profile, context.histogram).expect("in memory");
            let matched =
                Matched::predict(context, &usage, simulation, mappings, accesses).expect("in memory");
            let (first_touch, options) = (&mappings[0], report_options());
            advise(
                context,
                simulation,
                first_touch,
                &usage,
                matched.as_ref(),
                &options,
                samples,
            )
        },
    )
}

/// The speed-up of a policy over first-touch in the typical scenario.
pub fn speedup(machine: &str, program: &(Profile, InMemory), parameters: &Parameters, policy: &str) -> f64 {
    simulated(machine, compact_order, program, parameters, |_, simulation, _| {
        let of = |p: &&Prediction| p.policy == policy;
        simulation
            .predictions
            .iter()
            .find(of)
            .expect("simulated")
            .speedup
            .typical
    })
}

fn simulated<T>(
    machine: &str,
    order: fn(&Machine) -> Vec<CpuId>,
    (profile, accesses): &(Profile, InMemory),
    parameters: &Parameters,
    then: impl FnOnce(&Context<'_>, &Simulation, &[Mapping]) -> T,
) -> T {
    let machine = Machine::named(machine).expect("shipped");
    let histogram = Histogram::build(accesses, THREADS as usize, 0).expect("in memory");
    let affinity = Affinity::of_cpus("compact", profile, &machine, &order(&machine));
    let nodes = machine.node_count();
    let context = Context {
        profile,
        histogram: &histogram,
        affinity: &affinity,
        machine: &machine,
    };
    let map = |policy: &str, nodes| Mapping {
        policy: policy.into(),
        nodes,
    };
    let pages = histogram.pages.len() as u32;
    let local = (0..pages)
        .map(|p| affinity.node(ThreadId(p % PAGES / 16)))
        .collect();
    let mappings = [
        map(
            "first-touch",
            first_touch_nodes(profile, &histogram, &affinity, nodes),
        ),
        map(
            "interleave",
            (0..pages).map(|p| NodeId(p % nodes as u32)).collect(),
        ),
        map("locality", local),
    ];
    let simulation = simulate(&context, &mappings, accesses, parameters).expect("in memory");
    then(&context, &simulation, &mappings)
}

pub fn report_options() -> ReportOptions {
    ReportOptions {
        profile: "a profile".into(),
        machine: "my.toml".into(),
        plain: None,
        map: "app.map".into(),
    }
}

pub fn owner(page: u32) -> Vec<u32> {
    vec![page / 16]
}
