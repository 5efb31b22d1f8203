//! `nodewise record` on real programs: what is counted, and that programs never notice.

mod recording;

use nodewise_profile::{ObjectKind, RegionKind};
use recording::{NODEWISE, Recorded, build, program, record, said, scratch, status};
use std::os::unix::process::ExitStatusExt;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn however_a_program_ends_its_accesses_output_and_status_are_kept() {
    let folder = scratch("ends");
    let path = program(&folder, "ends.c");
    let statuses = [
        ("", 7),
        ("segv", 139),
        ("_exit", 5),
        ("abort", 134),
        ("kill", 137),
        ("term", 143),
    ];
    for (how, expected) in statuses {
        let output = record(&folder, &["--force"], &["./program", how]);
        assert_eq!(status(&output), expected, "{how}: {}", said(&output));
        assert_eq!(output.stdout, b"data 99999\n", "{how}");
        let recorded = Recorded::read(&folder);
        assert_eq!(recorded.of("data"), (1, 100_000), "{how}");
        assert_eq!(recorded.profile.meta.exit_status, Some(expected), "{how}");
        assert_eq!(recorded.profile.meta.truncated, None, "{how}");
        assert!(!folder.join("profile/raw").exists(), "{how}: raw files are left");
    }
    // Without a recorder the program runs as usual and writes nothing.
    let plain = Command::new(&path).current_dir(&folder).output().unwrap();
    assert_eq!(
        (plain.status.code(), plain.stdout.as_slice()),
        (Some(7), b"data 99999\n".as_slice())
    );
    assert!(plain.stderr.is_empty());
}

#[test]
fn standard_input_and_arguments_reach_the_program() {
    let folder = scratch("input");
    program(&folder, "ends.c");
    let script = "read line; echo \"got $line $1\"; exec ./program";
    let mut child = Command::new(NODEWISE)
        .current_dir(&folder)
        .args([
            "record",
            "-o",
            "profile",
            "--via",
            "instrument",
            "--",
            "/bin/sh",
            "-c",
            script,
            "sh",
            "--force",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"a line\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"got a line --force\ndata 99999\n");
    assert_eq!(Recorded::read(&folder).of("data"), (1, 100_000));
}

#[test]
fn signals_for_the_recorder_reach_the_program() {
    let folder = scratch("term");
    program(&folder, "grows.c");
    let arguments = [
        "record",
        "-o",
        "profile",
        "--slice",
        "50ms",
        "--",
        "./program",
        "1",
        "pause",
    ];
    let mut child = Command::new(NODEWISE)
        .current_dir(&folder)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the program's output", || {
        let mut text = [0; 5];
        std::io::Read::read(child.stdout.as_mut().unwrap(), &mut text).is_ok_and(|n| n > 0)
    });
    signal(child.id(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(Recorded::read(&folder).of("all"), (1, 2048));
}

#[test]
fn a_forked_child_counts_for_itself() {
    let folder = scratch("forks");
    program(&folder, "forks.c");
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(
        (status(&output), output.stdout.as_slice()),
        (0, b"11 4 1\n".as_slice()),
        "{}",
        said(&output)
    );
    let recorded = Recorded::read(&folder);
    let by_process = |name: &str, process: u16| {
        let object = |a: &nodewise_profile::Access| &recorded.profile.objects[a.object.index()];
        recorded.counts(|a| a.page.process() == process && object(a).name == name)
    };
    assert_eq!(by_process("shared", 0), (2, 60_000));
    assert_eq!(by_process("shared", 1), (0, 20_000));
    assert_eq!(by_process("fresh", 2), (1, 30_000));
    assert_eq!(recorded.profile.threads.len(), 3);
}

#[test]
fn spawning_closing_files_and_moving_about_disturb_nothing() {
    let folder = scratch("spawns");
    program(&folder, "spawns.c");
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(output.stdout, b"3 4\n3 3999999\n", "{}", said(&output));
    assert_eq!(Recorded::read(&folder).of("late"), (1, 4_000_000));
}

#[test]
fn a_library_opened_late_is_known_by_its_lines() {
    let folder = scratch("opens");
    program(&folder, "opens.c");
    build(
        &folder,
        "nodewise-cc",
        &["library.c"],
        "library.so",
        &["-shared", "-fPIC"],
    );
    let output = record(&folder, &[], &["./program", "./library.so"]);
    assert_eq!(output.stdout, b"39999\n", "{}", said(&output));
    let recorded = Recorded::read(&folder);
    assert_eq!(recorded.of("inside"), (1, 40_000));
    let (site, touched) = recorded.sites("inside");
    assert_eq!(site, "library_fill library.c:5 < main opens.c:13");
    assert_eq!(touched, ["library_fill library.c:7"]);
}

#[test]
fn archives_and_linked_libraries_are_counted() {
    let folder = scratch("links");
    build(&folder, "nodewise-cc", &["library.c"], "library.o", &["-c"]);
    let archived = Command::new("ar")
        .current_dir(&folder)
        .args(["rcs", "liba.a", "library.o"])
        .status();
    assert!(archived.unwrap().success());
    build(
        &folder,
        "nodewise-cc",
        &["library.c"],
        "libshared.so",
        &["-shared", "-fPIC"],
    );
    for library in ["-la", "-lshared"] {
        build(
            &folder,
            "nodewise-cc",
            &["links.c"],
            "program",
            &["-L.", library, "-Wl,-rpath,$ORIGIN"],
        );
        let output = record(&folder, &["--force"], &["./program"]);
        assert_eq!(output.stdout, b"39999\n", "{library}: {}", said(&output));
        assert_eq!(Recorded::read(&folder).of("inside"), (1, 40_000), "{library}");
    }
}

#[test]
fn threads_that_come_and_go_are_all_counted() {
    let folder = scratch("threads");
    program(&folder, "threads.c");
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(output.stdout, b"299\n", "{}", said(&output));
    let recorded = Recorded::read(&folder);
    assert_eq!(recorded.profile.threads.len(), 301);
    for thread in 1..=300 {
        let writes = recorded.counts(|a| a.thread.0 == thread).1;
        assert_eq!(writes, 1025, "thread {thread}");
    }
    let start = &recorded.profile.threads[300].start;
    assert_eq!(
        (start.function.as_str(), start.file_name()),
        ("work", "threads.c")
    );
    assert!(recorded.names(ObjectKind::Tls).contains(&"mine"));
}

#[test]
fn signal_handlers_and_longjmp_lose_no_more_than_is_said() {
    let folder = scratch("signals");
    program(&folder, "signals.c");
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(
        (status(&output), output.stdout.as_slice()),
        (0, b"24999\n".as_slice()),
        "{}",
        said(&output)
    );
    let recorded = Recorded::read(&folder);
    assert_eq!(recorded.of("jumped"), (1, 25_000));
    assert!(recorded.of("beside").1 > 0);
}

#[test]
fn exceptions_leave_loops_with_the_right_counts() {
    let folder = scratch("throws");
    build(&folder, "nodewise-cxx", &["throws.cpp"], "program", &[]);
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(output.stdout, b"3\n", "{}", said(&output));
    let recorded = Recorded::read(&folder);
    let site = recorded.sites("cells").0;
    assert!(site.contains("main throws.cpp:16"), "{site}");
    let (reads, writes) = recorded.of("cells");
    assert_eq!(reads, 120_001);
    assert!((120_001..=170_000).contains(&writes), "{writes}"); // the constructor's by word or by vector
    let (_, touched) = recorded.sites("cells");
    assert_eq!(touched, ["main throws.cpp:16"]);
}

#[test]
fn objects_have_the_programmers_names_and_lines() {
    let folder = scratch("objects");
    program(&folder, "objects.c");
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(status(&output), 0, "{}", said(&output));
    let recorded = Recorded::read(&folder);
    assert_eq!(recorded.names(ObjectKind::Heap), ["rhs", "field", "rhs"]);
    assert_eq!(recorded.sites("rhs").0, "main objects.c:32");
    assert_eq!(
        recorded.sites("rhs").1,
        ["initialise objects.c:23 < main objects.c:34"]
    );
    assert_eq!(
        recorded.sites("field").0,
        "checked_malloc objects.c:14 < main objects.c:33"
    );
    assert_eq!(recorded.sites("field").1, ["initialise objects.c:26"]);
    assert_eq!(recorded.sites("table").1, ["main objects.c:37"]);
    assert!(recorded.names(ObjectKind::Static).contains(&"table"));
    assert_eq!(recorded.names(ObjectKind::Mapping), ["mapped"]);
    assert!(recorded.names(ObjectKind::File)[0].ends_with("/program"));
    assert_eq!(recorded.of("mapped"), (0, 2048));
    let arena = recorded
        .profile
        .objects
        .iter()
        .find(|o| o.kind == ObjectKind::Arena)
        .unwrap();
    let (site, bytes) = arena.parts[0];
    assert_eq!(
        recorded.profile.sites[site.index()].to_string(),
        "main objects.c:47"
    );
    assert_eq!(bytes, 80_000);
}

#[test]
fn pages_belong_to_one_object_and_are_first_touched_once() {
    let folder = scratch("pages");
    program(&folder, "objects.c");
    record(&folder, &["--slice", "region"], &["./program"]);
    let recorded = Recorded::read(&folder);
    let mut owners = std::collections::BTreeMap::new();
    for row in &recorded.rows {
        for page in row.page.0..row.page.0 + u64::from(row.len) {
            assert_eq!(
                *owners.entry(page).or_insert(row.object),
                row.object,
                "page {page:#x}"
            );
        }
    }
    let mut touched = std::collections::BTreeMap::new();
    for touch in &recorded.profile.first_touches {
        for page in touch.page.0..touch.page.0 + u64::from(touch.len) {
            assert!(touched.insert(page, touch.object).is_none(), "page {page:#x}");
        }
    }
    assert_eq!(owners, touched);
}

#[test]
fn regions_have_their_function_and_line_and_cut_slices() {
    let folder = scratch("regions");
    program(&folder, "teams.c");
    let output = record(&folder, &["--slice", "region", "--threads", "3"], &["./program"]);
    assert_eq!(output.stdout, b"0.999\n", "{}", said(&output));
    let recorded = Recorded::read(&folder);
    let regions: Vec<String> = recorded
        .profile
        .regions
        .iter()
        .map(|r| r.frame.to_string())
        .collect();
    assert_eq!(regions, ["", "main teams.c:11", "main teams.c:14"]);
    assert_eq!(recorded.profile.regions[1].kind, RegionKind::OpenMp);
    assert_eq!(recorded.profile.slices.len(), 21); // and what follows the last region
    for slice in 0..20 {
        let (reads, writes) =
            recorded.counts(|a| a.slice.0 == slice && recorded.profile.objects[a.object.index()].name == "a");
        let expected = (1 << 15) - u64::from(slice % 2);
        assert_eq!((reads, writes), (expected, expected), "slice {slice}");
    }
    let numbers: Vec<_> = recorded.profile.threads.iter().map(|t| t.openmp).collect();
    assert_eq!(numbers, [Some(0), Some(1), Some(2)]);
}

#[test]
fn slices_by_accesses_are_even() {
    let folder = scratch("accesses");
    program(&folder, "grows.c");
    let output = record(&folder, &["--slice", "accesses:10000"], &["./program", "50"]);
    assert_eq!(status(&output), 0, "{}", said(&output));
    let recorded = Recorded::read(&folder);
    assert_eq!(recorded.of("all"), (1, 50 * 2048));
    let slices = recorded.profile.slices.len();
    assert!((10..=12).contains(&slices), "{slices}");
    for slice in 0..slices as u32 - 2 {
        let (reads, writes) = recorded.counts(|a| a.slice.0 == slice);
        assert!(
            (9_000..=11_000).contains(&(reads + writes)),
            "{slice}: {}",
            reads + writes
        );
    }
}

#[test]
fn waiting_threads_do_not_drown_the_program() {
    let folder = scratch("waiting");
    program(&folder, "teams.c");
    let mut counts = Vec::new();
    for policy in ["active", "passive"] {
        let output = Command::new(NODEWISE)
            .current_dir(&folder)
            .env("OMP_WAIT_POLICY", policy)
            .args([
                "record",
                "--force",
                "--threads",
                "4",
                "-o",
                "profile",
                "--",
                "./program",
            ])
            .output()
            .unwrap();
        assert_eq!(output.stdout, b"0.999\n", "{}", said(&output));
        counts.push(Recorded::read(&folder).of("a"));
    }
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn the_malloc_family_keeps_its_contracts() {
    let folder = scratch("heap");
    build(&folder, "nodewise-cc", &["heap.c"], "program", &["-fno-builtin"]);
    assert!(Command::new(folder.join("program")).status().unwrap().success());
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(
        (status(&output), output.stdout.as_slice()),
        (0, b"kept\n".as_slice()),
        "{}",
        said(&output)
    );
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_program() {
    let folder = scratch("full");
    program(&folder, "grows.c");
    let small = folder.join("small");
    std::fs::create_dir(&small).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=512k", "none"])
        .arg(&small)
        .output();
    if !mounted.is_ok_and(|m| m.status.success()) {
        eprintln!("skipped: mounting a small disk is not permitted");
        return;
    }
    let output = Command::new(NODEWISE)
        .current_dir(&folder)
        .args(["record", "-o", "small/profile", "--", "./program", "200"])
        .output()
        .unwrap();
    let truncated =
        nodewise_store::Reader::open(&small.join("profile")).map(|r| r.profile().meta.truncated.clone());
    Command::new("umount").arg(&small).status().unwrap();
    assert_eq!(
        (status(&output), output.stdout.as_slice()),
        (0, b"grown 1\n".as_slice()),
        "{}",
        said(&output)
    );
    let lines = said(&output)
        .lines()
        .filter(|l| l.contains("recording stopped"))
        .count();
    assert_eq!(lines, 1, "{}", said(&output));
    assert!(truncated.unwrap().is_some_and(|why| why.contains("full")));
}

#[test]
fn an_interrupted_recording_is_recovered() {
    let folder = scratch("recover");
    program(&folder, "grows.c");
    let arguments = ["record", "-o", "profile", "--", "./program", "3", "pause"];
    let mut recorder = Command::new(NODEWISE)
        .current_dir(&folder)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = [0; 7];
    std::io::Read::read_exact(recorder.stdout.as_mut().unwrap(), &mut text).unwrap();
    let raw = folder.join("profile/raw");
    let image = std::fs::read_dir(&raw)
        .unwrap()
        .flatten()
        .find(|e| e.path().is_dir())
        .unwrap()
        .file_name();
    recorder.kill().unwrap();
    assert_eq!(recorder.wait().unwrap().signal(), Some(9));
    signal(
        image
            .to_string_lossy()
            .split('-')
            .next()
            .unwrap()
            .parse()
            .unwrap(),
        "KILL",
    );

    let output = Command::new(NODEWISE)
        .current_dir(&folder)
        .args(["record", "--recover", "profile"])
        .output()
        .unwrap();
    assert_eq!(status(&output), 0, "{}", said(&output));
    let recorded = Recorded::read(&folder);
    assert_eq!(recorded.of("all"), (1, 3 * 2048));
    assert!(recorded.profile.meta.truncated.is_some());
    assert_eq!(recorded.profile.meta.command, ["./program", "3", "pause"]);
    let again = Command::new(NODEWISE)
        .current_dir(&folder)
        .args(["record", "--recover", "profile"])
        .output()
        .unwrap();
    assert_eq!(status(&again), 2);
}

#[test]
fn what_cannot_be_recorded_is_refused_in_one_line() {
    let folder = scratch("refused");
    program(&folder, "ends.c");
    let plain = folder.join("plain.c");
    std::fs::write(&plain, "int main(void) { return 0; }").unwrap();
    for (name, flags) in [("plain", [].as_slice()), ("static", ["-static"].as_slice())] {
        let built = Command::new("cc")
            .current_dir(&folder)
            .args(flags)
            .args(["-o", name, "plain.c"])
            .status();
        assert!(built.unwrap().success());
    }
    std::fs::create_dir(folder.join("precious")).unwrap();
    std::fs::write(folder.join("precious/file"), "data").unwrap();
    let refused = |arguments: &[&str], expected: i32, word: &str| {
        let output = Command::new(NODEWISE)
            .current_dir(&folder)
            .args(arguments)
            .output()
            .unwrap();
        assert_eq!(status(&output), expected, "{arguments:?}: {}", said(&output));
        assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
        assert!(said(&output).contains(word), "{}", said(&output));
    };
    refused(&["record", "--", "./plain"], 125, "nodewise-cc");
    refused(&["record", "--", "./static"], 125, "static");
    refused(&["record", "--", "./missing"], 127, "missing");
    refused(&["record", "--", "./plain.c"], 126, "not executable");
    refused(&["record", "-o", "precious", "--", "./program"], 125, "precious");
    refused(
        &["record", "-o", "precious", "--force", "--", "./program"],
        125,
        "precious",
    );
    refused(
        &["record", "-o", "/proc/profile", "--", "./program"],
        125,
        "/proc/profile",
    );
    assert_eq!(std::fs::read(folder.join("precious/file")).unwrap(), b"data");
    let listed: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        .collect();
    assert!(
        !listed
            .iter()
            .any(|n| n.to_string_lossy().contains("nodewise-profile")),
        "{listed:?}"
    );
}

#[test]
fn profiles_are_numbered_and_the_summary_says_what_matters() {
    let folder = scratch("summary");
    program(&folder, "teams.c");
    for number in 1..=2 {
        let output = Command::new(NODEWISE)
            .current_dir(&folder)
            .args(["record", "--", "./program"])
            .output()
            .unwrap();
        let said = said(&output);
        assert!(
            folder
                .join(format!("nodewise-profile-{number}/manifest.json"))
                .exists()
        );
        for part in [
            "accesses",
            "pages",
            "object",
            "coverage",
            &format!("report nodewise-profile-{number}"),
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

#[test]
fn code_that_is_not_instrumented_is_named() {
    let folder = scratch("coverage");
    std::fs::write(
        folder.join("spin.c"),
        "double spin(long n) { volatile double s = 0; for (long i = 0; i < n; i++) s += i; return s; }",
    )
    .unwrap();
    let built = Command::new("cc")
        .current_dir(&folder)
        .args(["-shared", "-fPIC", "-o", "libspin.so", "spin.c"])
        .status();
    assert!(built.unwrap().success());
    std::fs::write(
        folder.join("main.c"),
        "#include <stdlib.h>\ndouble spin(long); double a[100000];\n\
         int main(void) { for (int r = 0; r < 2000; r++) for (int i = 0; i < 100000; i++) a[i] += i;\n\
         return spin(200000000) + a[9] < 0; }",
    )
    .unwrap();
    let main = folder.join("main.c");
    build(
        &folder,
        "nodewise-cc",
        &[main.to_str().unwrap()],
        "program",
        &["-L.", "-lspin", "-Wl,-rpath,$ORIGIN"],
    );
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(status(&output), 0);
    if said(&output).contains("not permitted") {
        eprintln!("skipped: sampling is not permitted here");
        return;
    }
    let coverage = Recorded::read(&folder).profile.meta.coverage;
    let total = coverage.instrumented + coverage.waiting + coverage.missed + coverage.kernel;
    assert!((total - 1.0).abs() < 1e-9);
    assert_eq!(coverage.missed_modules[0].0, "libspin.so");
    assert!(
        coverage.instrumented > 0.0 && said(&output).contains("libspin.so"),
        "{}",
        said(&output)
    );
}

/// Waits for something another process does; fails after a minute.
fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "waited in vain for {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(pid: u32, name: &str) {
    let script = format!("kill -{name} {pid}");
    assert!(
        Command::new("/bin/sh")
            .args(["-c", &script])
            .status()
            .unwrap()
            .success()
    );
}
