//! `--via emulate` gives plain programs the same counts as instrumentation.

use crate::support::{NODEWISE, Recorded, build, library, record, scratch, status, stderr};
use nodewise_profile::{ObjectKind, Observer, RegionKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const EMULATE: &[&str] = &["--via", "emulate"];

/// A plain program of `programs/` or of `workloads/`.
pub fn plain(folder: &Path, compiler: &str, source: &str, flags: &[&str]) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/programs");
    let output = folder.join("plain");
    let built = Command::new(compiler)
        .current_dir(folder)
        .args(["-g", "-o"])
        .arg(&output)
        .arg(tests.join(source))
        .args(flags)
        .output()
        .unwrap();
    assert!(
        built.status.success(),
        "{}",
        String::from_utf8_lossy(&built.stderr)
    );
    output
}

fn emulated(folder: &Path, command: &[&str]) -> (Recorded, Output) {
    let output = record(folder, &[EMULATE, &["--force"]].concat(), command);
    assert!(folder.join("profile").exists(), "{}", stderr(&output));
    (Recorded::read(folder), output)
}

/// Reads and writes of each page of heap objects and large variables by each thread, pages counted
/// from the object's first.
pub fn cells(recorded: &Recorded) -> BTreeMap<(String, u32, u64), (u64, u64)> {
    let mut cells = BTreeMap::new();
    for row in &recorded.rows {
        let object = &recorded.profile.objects[row.object.index()];
        let mapped =
            object.kind == ObjectKind::Heap || object.kind == ObjectKind::Static && object.bytes >= 64 << 10;
        for i in (0..u64::from(row.len)).filter(|_| mapped) {
            let key = (
                object.name.clone(),
                row.thread.0,
                row.page.0 + i - object.first_page.0,
            );
            let cell: &mut (u64, u64) = cells.entry(key).or_default();
            *cell = (cell.0 + row.reads, cell.1 + row.writes);
        }
    }
    cells
}

#[test]
fn every_kind_of_access_counts_as_often_as_it_is_made() {
    let folder = scratch("emulated-exact");
    plain(&folder, "cc", "exact.c", &["-O1", "-pthread"]);
    let (recorded, output) = emulated(&folder, &["./plain"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let ours = |o: &&nodewise_profile::Object| o.name.starts_with("libnodewise");
    let found = recorded.profile.objects.iter().find(ours);
    assert_eq!(found, None, "our own library's data is not the program's");
    let known = |o: &&nodewise_profile::Object| o.kind == ObjectKind::Static && o.bytes == 8192;
    let objects: Vec<_> = recorded.profile.objects.iter().filter(known).collect();
    assert_eq!(objects.len(), 33);
    for object in objects {
        let expected = match object.name.as_str() {
            // Again by two threads at once.
            "atomic_add8" | "exchange16" => (2000, 2000),
            "add8" | "exchange4" => (1000, 1000),
            // Repeated string instructions count words.
            "filled" => (0, 13_000),
            "filled_by_words" => (0, 100_000),
            "copied_from" => (101, 0),
            "copied_to" => (0, 101),
            name if name.starts_with("load") || name == "pushed" => (1000, 0),
            name if name.starts_with("store") || name == "popped" => (0, 1000),
            name => panic!("{name} is not expected"),
        };
        assert_eq!(recorded.of(&object.name), expected, "{}", object.name);
        let pages = recorded
            .rows
            .iter()
            .filter(|r| recorded.profile.objects[r.object.index()].name == object.name);
        assert!(
            pages.clone().all(|r| r.page == object.first_page && r.len == 1),
            "{} counts on the page of its first byte",
            object.name
        );
    }
}

/// Compares the emulated plain program with the instrumented one: the counts of mapped objects by page and thread that
/// differ, and the number of all counts.
fn differences(workload: &str, arguments: &[&str]) -> (u64, u64) {
    let folder = scratch(&format!("emulated-{workload}"));
    let source = format!("../../../../../workloads/{workload}.c");
    let [include, library] = library();
    let flags = ["-O2", "-std=c11", "-fopenmp", &include, &library, "-lm"];
    let clang = ["clang-19", "clang-20", "clang-21", "clang"];
    let clang = clang
        .iter()
        .find(|c| Command::new(c).arg("--version").output().is_ok());
    plain(&folder, clang.expect("clang"), &source, &flags);
    build(&folder, "nodewise-cc", &[&source], "program", &flags);
    let threads = ["--threads", "2", "--force"];
    let run = |via: &[&str], program| {
        let output = record(
            &folder,
            &[&threads, via].concat(),
            &[&[program], arguments].concat(),
        );
        assert_eq!(status(&output), 0, "{}", stderr(&output));
        Recorded::read(&folder)
    };
    let (ours, theirs) = (run(EMULATE, "./plain"), run(&[], "./program"));
    assert_eq!(ours.profile.meta.observer, Observer::Emulate);
    let regions = |r: &Recorded| {
        let omp = r.profile.regions.iter().filter(|r| r.kind == RegionKind::OpenMp);
        let mut regions: Vec<_> = omp.map(|r| (r.frame.function.clone(), r.frame.line)).collect();
        regions.sort();
        regions
    };
    assert_eq!(regions(&ours), regions(&theirs), "{workload}: regions");
    let (ours, theirs) = (cells(&ours), cells(&theirs));
    let all = theirs.values().map(|c| c.0 + c.1).sum();
    let none = (0, 0);
    let keys: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let differ = keys.into_iter().map(|k| {
        let (a, b) = (ours.get(k).unwrap_or(&none), theirs.get(k).unwrap_or(&none));
        a.0.abs_diff(b.0) + a.1.abs_diff(b.1)
    });
    (differ.sum(), all)
}

#[test]
fn an_emulated_program_counts_as_its_instrumented_build_page_by_page() {
    for (workload, size, least) in [
        ("sor", "128", 100_000),
        ("adi", "32", 400_000),
        ("fft3d", "16", 50_000),
        ("shift", "100000", 200_000),
    ] {
        let (differ, all) = differences(workload, &["--size", size, "--iterations", "2"]);
        assert!(all > least, "{workload}: {all}");
        assert_eq!(differ, 0, "{workload}: of {all}");
    }
}

#[test]
fn only_what_the_c_library_copies_counts_otherwise() {
    // memcpy moves the first and the last bytes by vectors: fewer accesses than words.
    let (differ, all) = differences("cg", &["--size", "20000", "--iterations", "2"]);
    assert!(all > 5_000_000 && differ <= 64, "{differ} of {all}");
}

#[test]
fn threads_and_forked_children_are_told_apart() {
    let folder = scratch("emulated-forks");
    plain(&folder, "cc", "forks.c", &["-O1", "-pthread"]);
    let (ours, output) = emulated(&folder, &["./plain"]);
    let plain_status = Command::new(folder.join("plain"))
        .current_dir(&folder)
        .status()
        .unwrap();
    assert_eq!(Some(status(&output)), plain_status.code());
    build(&folder, "nodewise-cc", &["forks.c"], "program", &["-pthread"]);
    record(&folder, &["--force"], &["./program"]);
    let theirs = Recorded::read(&folder);
    let (ours, theirs) = (cells(&ours), cells(&theirs));
    // Threads have other numbers: the emulator sees some that the instrumented program does not.
    let totals = |cells: &BTreeMap<(String, u32, u64), (u64, u64)>| {
        let mut objects: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
        for ((name, ..), count) in cells {
            objects.entry(name.clone()).or_default().push(*count);
        }
        objects.values_mut().for_each(|counts| counts.sort_unstable());
        objects
    };
    assert_eq!(totals(&ours), totals(&theirs));
}

#[test]
fn a_static_program_counts_alone_its_threads_and_children_apart() {
    for flags in [["-static", "-O1", "-pthread"], ["-static-pie", "-O1", "-pthread"]] {
        let folder = scratch("emulated-alone");
        plain(&folder, "cc", "alone.c", &flags);
        // Started by another program, and directly.
        for command in [&["./plain"][..], &["sh", "-c", "./plain; exit $?"]] {
            let (recorded, output) = emulated(&folder, command);
            assert_eq!(status(&output), 5, "{}", stderr(&output));
            assert!(!stderr(&output).contains("not counted"), "{}", stderr(&output));
            let cells = cells(&recorded);
            let of = |thread: u32| {
                let own = cells.iter().filter(|(k, _)| k.0 == "counted" && k.1 == thread);
                own.map(|(_, c)| *c).collect::<Vec<_>>()
            };
            let known = recorded.profile.threads.len() as u32;
            let mut seen: Vec<_> = (0..known).map(of).filter(|c| !c.is_empty()).collect();
            seen.sort_unstable();
            let pages = |each: (u64, u64)| vec![each; 64];
            assert_eq!(
                seen,
                [pages((0, 512)), pages((512, 0)), pages((512, 0))],
                "{flags:?}"
            );
            block_is_a_mapping(&recorded);
        }
    }
}

#[test]
fn other_ways_to_start_threads_and_programs_count_too() {
    let folder = scratch("emulated-starts");
    plain(&folder, "cc", "exact.c", &["-O1", "-pthread"]);
    std::fs::rename(folder.join("plain"), folder.join("exact")).unwrap();
    plain(&folder, "cc", "starts.c", &["-O1", "-pthread"]);
    let (recorded, output) = emulated(&folder, &["./plain", "./exact"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(!stderr(&output).contains("not counted"), "{}", stderr(&output));
    assert_eq!(recorded.of("counted"), (1000, 0));
    assert_eq!(recorded.of("load8"), (1000, 0));
    let threads = &recorded.profile.threads;
    assert!(threads.iter().any(|t| t.start.function == "reads"), "{threads:?}");
}

/// All pages but the first and the last, in which malloc keeps its own words.
fn block_is_a_mapping(recorded: &Recorded) {
    let objects = &recorded.profile.objects;
    let block = objects
        .iter()
        .position(|o| o.kind == ObjectKind::Mapping && o.bytes == (64 + 1) * 4096)
        .expect("the block");
    let first = objects[block].first_page.0;
    let within = |page| page > first && page < first + 64;
    let rows = recorded.rows.iter().filter(|r| r.object.index() == block);
    let (reads, writes) = rows.fold((0, 0), |sum, row| {
        let pages = (0..u64::from(row.len)).filter(|i| within(row.page.0 + i)).count() as u64;
        (sum.0 + pages * row.reads, sum.1 + pages * row.writes)
    });
    assert_eq!((reads, writes), (63 * 512, 63 * 512));
    let process = objects[block].first_page.process();
    let stacks = objects
        .iter()
        .filter(|o| o.kind == ObjectKind::Stack && o.first_page.process() == process);
    assert_eq!(stacks.count(), 2, "one a thread");
}

#[test]
fn the_first_stack_claims_nothing_of_its_neighbours() {
    let folder = scratch("emulated-neighbours");
    plain(&folder, "gcc", "neighbours.c", &["-O1", "-fPIE", "-pie"]);
    let (recorded, _) = emulated(&folder, &["./plain"]);
    let pages = |object: usize| {
        let rows = recorded.rows.iter().filter(|r| r.object.index() == object);
        rows.map(|r| u64::from(r.len)).sum::<u64>()
    };
    let of = |kind: ObjectKind| {
        let objects = recorded.profile.objects.iter().enumerate();
        objects
            .filter(|(_, o)| o.kind == kind)
            .map(|(i, _)| pages(i))
            .sum::<u64>()
    };
    assert!(of(ObjectKind::Arena) >= 50_000 * 32 / 4096);
    assert!(of(ObjectKind::Stack) < 32);
    let objects = &recorded.profile.objects;
    let data = objects.iter().position(|o| o.name == "data").unwrap();
    assert!(pages(data) >= 196, "{}", pages(data));
}

#[test]
fn scripts_and_what_they_start_are_emulated_and_the_rest_is_named() {
    let folder = scratch("emulated-script");
    plain(&folder, "cc", "exact.c", &["-O1", "-pthread"]);
    let copied = Command::new("sh")
        .current_dir(&folder)
        .args(["-c", "cp plain privileged && chmod u+s privileged"])
        .status();
    assert!(copied.unwrap().success());
    let script = folder.join("script");
    std::fs::write(
        &script,
        "#!/bin/sh -e\n./plain\nenv -i ./plain\n./privileged\nexit $1\n",
    )
    .unwrap();
    assert!(
        Command::new("chmod")
            .arg("+x")
            .arg(&script)
            .status()
            .unwrap()
            .success()
    );
    let (recorded, output) = emulated(&folder, &["./script", "7"]);
    assert_eq!(status(&output), 7, "{}", stderr(&output));
    assert_eq!(
        recorded.of("load8"),
        (2000, 0),
        "both, one without its environment"
    );
    assert!(
        stderr(&output).contains("not counted") && stderr(&output).contains("./privileged"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn slices_by_accesses_end_where_they_should() {
    let folder = scratch("emulated-slices");
    plain(&folder, "cc", "exact.c", &["-O1", "-pthread"]);
    let output = record(
        &folder,
        &[EMULATE, &["--slice", "accesses:20000"]].concat(),
        &["./plain"],
    );
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let recorded = Recorded::read(&folder);
    let (reads, writes) = recorded.counts(|_| true);
    let expected = ((reads + writes) / 20_000) as usize;
    let slices = recorded.profile.slices.len();
    assert!(
        slices.abs_diff(expected) <= 1 && expected > 5,
        "{slices} slices, {expected} expected"
    );
}

#[test]
fn its_end_is_the_programs_own() {
    let folder = scratch("emulated-ends");
    for (shell, expected) in [("exit 3", 3), ("kill -SEGV $$", 139), ("kill -KILL $$", 137)] {
        let (_, output) = emulated(&folder, &["sh", "-c", shell]);
        assert_eq!(status(&output), expected, "{shell}: {}", stderr(&output));
    }
}

#[test]
fn what_cannot_be_emulated_is_refused_in_one_line() {
    let folder = scratch("emulated-refused");
    let wide = folder.join("wide.c");
    std::fs::write(
        &wide,
        "double x[512]; void wide(double *a) { for (int i = 0; i < 512; i++) a[i] = a[i] * 3 + 1; }\n\
         int main(void) { wide(x); return 0; }",
    )
    .unwrap();
    let cc = |output: &str, flags: &[&str]| {
        let mut cc = Command::new("cc");
        cc.current_dir(&folder)
            .args(["-O3", "-fno-inline", "wide.c", "-o", output])
            .args(flags);
        assert!(cc.status().unwrap().success());
    };
    cc("avx512", &["-mavx512f", "-mprefer-vector-width=512"]);
    cc("plain", &[]);
    build(&folder, "nodewise-cc", &["ends.c"], "counting", &[]);
    let refused = |arguments: &[&str], command: &str, qemu: &str, expected: i32, word: &str| {
        let mut record = Command::new(NODEWISE);
        record
            .current_dir(&folder)
            .args(["record", "--via", "emulate", "-o", "profile"]);
        record.args(arguments).arg("--").arg(command);
        if !qemu.is_empty() {
            record.env("NODEWISE_QEMU_USER", qemu);
        }
        let output = record.output().unwrap();
        assert_eq!(status(&output), expected, "{}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
        assert!(!folder.join("profile").exists());
    };
    refused(&[], "./avx512", "", 126, "AVX-512 (wide)");
    refused(&[], "./counting", "", 126, "--via instrument");
    refused(&[], "./missing", "", 127, "missing");
    refused(&["--slice", "region"], "./plain", "", 125, "--via instrument");
    refused(&[], "./plain", "/bin/true", 125, "no QEMU");
    refused(&[], "./plain", "/nonexistent/qemu", 127, "/nonexistent/qemu");
}
