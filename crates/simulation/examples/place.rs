//! From accesses to a prediction, without files: `cargo run --release -p nodewise-simulation --example place [MACHINE]`.
//!
//! One thread initialises an array, as in a loop before a parallel region, and then all threads sweep their blocks of
//! it twenty times. Prints the predicted time under each page policy.

use nodewise_analysis::Histogram;
use nodewise_machine::Machine;
use nodewise_placement::policies::Nothing;
use nodewise_placement::{Context, page_policies, thread_policy};
use nodewise_profile::{
    Access, FirstTouch, InMemory, Object, ObjectId, ObjectKind, PageNumber, Profile, Slice, SliceId, Thread,
    ThreadId,
};
use nodewise_simulation::{Parameters, simulate};

const PAGES: u32 = 1 << 16;
const WORDS: u64 = 512;
const LINES: u64 = 64;
/// Initialisation, and twenty sweeps.
const SLICES: u32 = 21;

/// The array, its threads, and which thread touched it first: a profile without its accesses.
fn profile(threads: u32) -> Profile {
    let array = Object {
        kind: ObjectKind::Heap,
        name: "array".into(),
        pages: PAGES.into(),
        bytes: u64::from(PAGES) << 12,
        ..Object::default()
    };
    let by_thread_0 = FirstTouch {
        len: PAGES,
        object: ObjectId(1),
        ..FirstTouch::default()
    };
    Profile {
        objects: vec![Object::default(), array],
        threads: vec![Thread::default(); threads as usize],
        slices: vec![Slice::default(); SLICES as usize],
        first_touches: vec![by_thread_0],
        ..Profile::default()
    }
}

/// A row is a run of pages that a thread uses equally in a slice.
fn accesses(threads: u32) -> InMemory {
    let write = Access {
        object: ObjectId(1),
        len: PAGES,
        writes: WORDS,
        lines: LINES,
        ..Access::default()
    };
    let block = PAGES / threads;
    let read = |slice: u32, thread: u32| Access {
        slice: SliceId(slice),
        object: ObjectId(1),
        thread: ThreadId(thread),
        page: PageNumber(u64::from(thread * block)),
        len: block,
        reads: WORDS,
        lines: LINES,
        ..Access::default()
    };
    let reads = (1..SLICES).flat_map(|slice| (0..threads).map(move |thread| read(slice, thread)));
    InMemory::new([write].into_iter().chain(reads).collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1);
    let machine = Machine::load(name.as_deref().unwrap_or("opteron-6386"))?;
    let threads = machine.cpus().len() as u32;
    let (profile, accesses) = (profile(threads), accesses(threads));
    let histogram = Histogram::build(&accesses, threads as usize, 0)?;
    let affinity = thread_policy("compact", &profile, &histogram, &machine, &Nothing)?;
    let context = Context {
        profile: &profile,
        histogram: &histogram,
        affinity: &affinity,
        machine: &machine,
    };
    let policies = page_policies("first-touch,all", &machine, &Nothing)?;
    let mappings: Vec<_> = policies.iter().map(|policy| policy.place(&context)).collect();
    let simulation = simulate(&context, &mappings, &accesses, &Parameters::default())?;
    println!("{} threads on {}", threads, machine.title);
    for prediction in &simulation.predictions {
        println!(
            "{:<14} {:5.1} % local, {:.2} times as fast as first-touch",
            prediction.policy,
            100.0 * prediction.local_fraction,
            prediction.speedup.typical
        );
    }
    Ok(())
}
