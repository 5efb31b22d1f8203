//! Large allocations: they grow within the program's resource limits, and repeated ones get the same addresses.

use crate::emulated::plain;
use crate::support::{NODEWISE, Recorded, build, record, scratch, status, stderr};
use nodewise_profile::{Object, ObjectKind};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

fn assert_growth(output: &Output, what: &str) {
    assert_eq!(
        (status(output), output.stdout.as_slice()),
        (0, b"grown\n".as_slice()),
        "{what}: {}",
        stderr(output)
    );
}

/// Runs under a placement, on two pretended nodes; exit status 77 if the host does not permit that.
fn placed(folder: &Path, argument: &str) -> Output {
    let nodes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pretended/nodes");
    Command::new(nodes)
        .current_dir(folder)
        .args([
            "2",
            "--",
            NODEWISE,
            "run",
            "--policy",
            "interleave",
            "--",
            "./plain",
        ])
        .arg(argument)
        .output()
        .unwrap()
}

#[test]
fn growing_takes_what_is_added_and_a_failure_leaves_the_block() {
    let folder = scratch("resizes");
    build(
        &folder,
        "nodewise-cc",
        &["resizes.c"],
        "program",
        &["-fno-builtin"],
    );
    plain(&folder, "cc", "resizes.c", &["-O1"]);
    for limit in ["as", "data"] {
        let alone = Command::new("./plain")
            .current_dir(&folder)
            .arg(limit)
            .output()
            .unwrap();
        assert_growth(&alone, "alone");
        assert_growth(&record(&folder, &["--force"], &["./program", limit]), "recorded");
        let placed = placed(&folder, limit);
        if status(&placed) != 77 {
            assert_growth(&placed, "placed");
        }
    }
    // An emulator keeps its program's limits from itself.
    let emulated = record(&folder, &["--force", "--via", "emulate"], &["./plain"]);
    assert_growth(&emulated, "emulated");
}

/// KiB of address space of a program of this many threads.
fn room(output: &Output) -> u64 {
    assert_eq!(status(output), 0, "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).trim().parse().unwrap()
}

#[test]
fn counting_takes_as_little_address_space_as_is_said() {
    let folder = scratch("room");
    build(&folder, "nodewise-cc", &["room.c"], "program", &["-pthread"]);
    plain(&folder, "cc", "room.c", &["-O1", "-pthread"]);
    for threads in [1, 200] {
        let number = threads.to_string();
        // libc's arenas are 64 MiB each, and how many there are is a matter of time.
        let alone = Command::new("./plain")
            .current_dir(&folder)
            .env("MALLOC_ARENA_MAX", "1")
            .arg(&number)
            .output()
            .unwrap();
        let words = ["env", "MALLOC_ARENA_MAX=1", "./program", &number];
        let recorded = record(&folder, &["--force", "--via", "instrument"], &words);
        let (alone, recorded) = (room(&alone), room(&recorded));
        // docs/reliability.md says 8 MiB and 0.25 MiB a thread.
        let stated = (8 << 10) + threads * 256;
        assert!(
            recorded <= alone + stated,
            "{threads} threads: {alone} KiB become {recorded}"
        );
    }
}

const LARGE: u64 = 200;
const SMALL: u64 = LARGE / 4;

/// Bytes of raw files at the end of a recorded run of this many steps, and the profile.
fn steps(folder: &Path, arguments: &[&str], program: &str, steps: u64) -> (u64, Recorded) {
    let script = format!("{program} {steps} >/dev/null && du -sB1 \"$NODEWISE_RAW\" | cut -f1");
    let command = ["sh", "-c", &script];
    let output = record(folder, &[arguments, &["--force"]].concat(), &command);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let raw = String::from_utf8(output.stdout).unwrap();
    (raw.trim().parse().unwrap(), Recorded::read(folder))
}

/// The heap's objects with their accesses: name, pages, repeats, reads, writes.
fn heap(recorded: &Recorded) -> Vec<(String, u64, u32, u64, u64)> {
    let objects = recorded.profile.objects.iter().enumerate();
    let heap = objects.filter(|(_, o)| o.kind == ObjectKind::Heap && o.pages >= SMALL);
    let mut all: Vec<_> = heap
        .map(|(i, o): (usize, &Object)| {
            let (reads, writes) = recorded.counts(|a| a.object.index() == i);
            (o.name.clone(), o.pages, o.repeats, reads, writes)
        })
        .collect();
    all.sort();
    all
}

/// Checks that the counts are exactly those that the program's source implies for this many steps.
fn check(recorded: &Recorded, steps: u64) {
    let found = heap(recorded);
    let of = |name: &str, pages: u64| {
        let one = |o: &&(String, u64, u32, u64, u64)| o.0.starts_with(name) && o.1 == pages;
        found
            .iter()
            .filter(one)
            .map(|o| (o.2, o.3, o.4))
            .collect::<Vec<_>>()
    };
    let again = u32::try_from(steps).unwrap() - 1;
    // A step reads an eighth of what it writes to the large one, and then one word.
    assert_eq!(
        of("field", LARGE),
        [(again, steps * (SMALL * 64 + 1), steps * LARGE * 64)],
        "{found:?}"
    );
    assert_eq!(
        of("flux", SMALL),
        [(again, steps, steps * SMALL * 64)],
        "{found:?}"
    );
    // `a` begins small and needs larger addresses in the second step; `b` begins large.
    let swept = SMALL * 8;
    assert_eq!(of("", SMALL).len() + of("", LARGE).len(), 5, "{found:?}");
    let others: BTreeSet<_> = found
        .iter()
        .filter(|o| !o.0.starts_with('f'))
        .map(|o| (o.1, o.2, o.3, o.4))
        .collect();
    let expected = [
        (SMALL, 0, 1, swept),
        (LARGE, again - 1, steps - 1, (steps - 1) * swept),
        (LARGE, again, steps, steps * swept),
    ];
    assert_eq!(others, BTreeSet::from(expected), "{found:?}");
}

/// Rules of a map that places everything.
fn rules(folder: &Path) -> usize {
    let map = Command::new(NODEWISE)
        .current_dir(folder)
        .args([
            "map",
            "profile",
            "--machine",
            "nehalem-2s",
            "--policy",
            "interleave",
            "-o",
            "steps.map",
            "--force",
        ])
        .output()
        .unwrap();
    assert!(map.status.success(), "{}", stderr(&map));
    let text = std::fs::read_to_string(folder.join("steps.map")).unwrap();
    text.matches("[[rule]]").count()
}

/// A file of raw counters grows by so much.
const PIECE: u64 = 64 << 10;

#[test]
fn arrays_of_every_step_are_one_object_counted_exactly() {
    let folder = scratch("steps");
    build(&folder, "nodewise-cc", &["steps.c"], "program", &["-fno-builtin"]);
    let (raw, few) = steps(&folder, &["--via", "instrument"], "./program", 25);
    check(&few, 25);
    let few_rules = rules(&folder);
    let (raw_of_more, more) = steps(&folder, &["--via", "instrument"], "./program", 100);
    check(&more, 100);
    assert!(
        raw_of_more <= raw + PIECE,
        "{raw} bytes of raw files become {raw_of_more}"
    );
    assert_eq!(more.profile.objects.len(), few.profile.objects.len());
    let touched = |r: &Recorded| {
        r.profile
            .first_touches
            .iter()
            .map(|t| u64::from(t.len))
            .sum::<u64>()
    };
    assert!(touched(&more) <= touched(&few) + 2); // the stack is as it likes
    // One each for `field`, `flux`, `a` and `b`, and one for both that `allocate` returned.
    assert!(few_rules.max(rules(&folder)) <= 5);
}

#[test]
fn memory_that_others_can_map_has_the_names_that_rules_give_it() {
    let folder = scratch("shares");
    build(&folder, "nodewise-cc", &["shares.c"], "program", &[]);
    let object = format!("nodewise-test-{}", std::process::id());
    let output = record(&folder, &[], &["./program", &format!("/{object}")]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let recorded = Recorded::read(&folder);
    let of = |name: &str| {
        let found = recorded
            .profile
            .objects
            .iter()
            .position(|o| o.name.ends_with(name));
        let index = found.unwrap_or_else(|| panic!("{name}: {:?}", recorded.profile.objects));
        recorded.counts(|a| a.object.index() == index)
    };
    // Shared anonymous memory is named after the variable that it is assigned to.
    for name in [&format!("shm:{object}"), "memfd:ram", "memory", "/weights"] {
        assert_eq!(of(name), (0, 64), "{name}");
    }
    let report = Command::new(NODEWISE)
        .args(["report", "--json", "--machine", "nehalem-2s"])
        .arg(folder.join("profile"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(
        text.contains(&format!("shm:{object}")) && text.contains("memfd:ram"),
        "{text}"
    );
}

#[test]
fn threads_count_small_allocations_without_writing_to_shared_memory() {
    const THREADS: u64 = 4;
    let folder = scratch("pool");
    build(&folder, "nodewise-cc", &["pool.c"], "program", &["-fno-builtin"]);
    let output = record(&folder, &[], &["./program", &THREADS.to_string()]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let shared: u64 = text
        .trim()
        .strip_prefix("shared ")
        .unwrap_or(&text)
        .parse()
        .unwrap();
    // What the runtime's own libraries allocate before a thread's first access.
    assert!(shared < 100, "{shared} of {} allocations", 20_000 * THREADS);
    let recorded = Recorded::read(&folder);
    let mut sites = recorded.profile.objects.iter().flat_map(|o| &o.parts);
    let all = sites.find(|(_, bytes)| *bytes == 20_000 * 100 * THREADS);
    assert!(all.is_some(), "{:?}", recorded.profile.objects);
}

/// Arrays of threads that exist for one step: the objects, and the total number of allocations.
fn with_short_threads(folder: &Path, way: &str, program: &str, steps: u64) -> usize {
    const WORDS: u64 = 1 << 17;
    let output = record(folder, &["--via", way, "--force"], &[program, &steps.to_string()]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let recorded = Recorded::read(folder);
    let is_array = |o: &Object| o.kind == ObjectKind::Heap && o.pages == WORDS * 8 / 4096;
    let arrays: Vec<_> = recorded.profile.objects.iter().filter(|o| is_array(o)).collect();
    let all: u64 = arrays.iter().map(|o| 1 + u64::from(o.repeats)).sum();
    assert_eq!(all, 2 * steps);
    let counted = recorded.counts(|a| is_array(&recorded.profile.objects[a.object.index()]));
    assert_eq!(counted, (all * WORDS / 64, all * WORDS));
    arrays.len()
}

/// A thread's counters ("lane") are released only after the thread can be joined, so there may be a few more lanes than
/// running threads.
const LANES: usize = 16;

#[test]
fn arrays_of_threads_of_one_step_are_no_more_than_one_steps() {
    let folder = scratch("short-threads");
    build(
        &folder,
        "nodewise-cc",
        &["short_threads.c"],
        "program",
        &["-pthread"],
    );
    let objects = with_short_threads(&folder, "instrument", "./program", 100);
    assert!(objects <= LANES, "{objects} objects");
}

#[test]
fn arrays_of_emulated_threads_of_one_step_are_no_more_than_one_steps() {
    let folder = scratch("emulated-short-threads");
    plain(&folder, "cc", "short_threads.c", &["-O1", "-pthread"]);
    let objects = with_short_threads(&folder, "emulate", "./plain", 60);
    assert!(objects <= LANES, "{objects} objects");
}

/// What the program maps in each of this many steps: name, pages, reads and writes of each mapping, and all pages.
fn mappings(folder: &Path, steps: u64) -> (BTreeSet<(String, u64, u64, u64)>, u64) {
    let command = ["./plain", &steps.to_string()];
    let output = record(folder, &["--via", "emulate", "--force"], &command);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let recorded = Recorded::read(folder);
    let objects = recorded.profile.objects.iter().enumerate();
    let found: Vec<_> = objects
        .filter(|(_, o)| matches!(o.kind, ObjectKind::Mapping | ObjectKind::File) && o.pages >= SMALL)
        .map(|(i, o)| {
            let (reads, writes) = recorded.counts(|a| a.object.index() == i);
            let name = Path::new(&o.name).file_name().unwrap().to_string_lossy();
            (name.into_owned(), o.pages, reads, writes)
        })
        .collect();
    let touched = recorded.profile.first_touches.iter();
    let pages = touched.map(|t| u64::from(t.len)).sum();
    let set: BTreeSet<_> = found.iter().cloned().collect();
    assert_eq!(set.len(), found.len(), "{found:?}");
    (set, pages)
}

#[test]
fn emulated_mappings_of_every_step_are_one_object_each() {
    let folder = scratch("emulated-maps");
    plain(&folder, "cc", "maps.c", &["-O1"]);
    let counted = |steps: u64| {
        let of = |name: &str, pages, reads, writes| (name.to_owned(), pages, steps * reads, steps * writes);
        let each = |name, reads, writes| of(name, LARGE, reads, writes);
        BTreeSet::from([
            each("first", 0, LARGE),
            each("second", 0, 2 * LARGE),
            each("third", 0, 3 * LARGE),
            of("fourth", LARGE + 2, 0, 4 * LARGE),
            each("odd", LARGE, 0),
            each("even", 2 * LARGE, 0),
        ])
    };
    let (few, few_pages) = mappings(&folder, 5);
    assert_eq!(few, counted(5));
    let (more, more_pages) = mappings(&folder, 50);
    assert_eq!(more, counted(50));
    assert!(
        more_pages <= few_pages + 2, // the stack is as it likes
        "{few_pages} pages become {more_pages}"
    );
}
