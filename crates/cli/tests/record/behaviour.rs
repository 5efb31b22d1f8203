//! Recording does not change the behaviour of programs, and accesses are counted however a program ends.

use crate::emulated::plain;
use crate::support::{NODEWISE, Recorded, build, program, record, scratch, signal, status, stderr, wait_for};
use nodewise_profile::{Object, ObjectKind};
use std::path::Path;
use std::process::{Command, Stdio};

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
        assert_eq!(status(&output), expected, "{how}: {}", stderr(&output));
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
        stderr(&output)
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
    assert_eq!(output.stdout, b"3 4\n3 3999999\n", "{}", stderr(&output));
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
    assert_eq!(output.stdout, b"39999\n", "{}", stderr(&output));
    let recorded = Recorded::read(&folder);
    assert_eq!(recorded.of("inside"), (1, 40_000));
    let (site, touched) = recorded.sites("inside");
    assert_eq!(site, "library_fill library.c:4 < main opens.c:12");
    assert_eq!(touched, ["library_fill library.c:6"]);
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
        assert_eq!(output.stdout, b"39999\n", "{library}: {}", stderr(&output));
        assert_eq!(Recorded::read(&folder).of("inside"), (1, 40_000), "{library}");
    }
}

#[test]
fn threads_that_come_and_go_are_all_counted() {
    let folder = scratch("threads");
    program(&folder, "threads.c");
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(output.stdout, b"299\n", "{}", stderr(&output));
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
        stderr(&output)
    );
    let recorded = Recorded::read(&folder);
    assert_eq!(recorded.of("jumped"), (1, 25_000));
    assert!(recorded.of("beside").1 > 0);
}

#[test]
fn a_signal_may_come_while_its_thread_is_made_known() {
    let folder = scratch("interrupted");
    program(&folder, "interrupted.c");
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(
        (status(&output), output.stdout.as_slice()),
        (0, b"1023 interrupted\n".as_slice()),
        "{}",
        stderr(&output)
    );
    assert_eq!(Recorded::read(&folder).of("swept"), (1, 400 * 1024));
}

/// A program that just fits its stacks when it runs plain.
fn small_stacks(folder: &Path, way: &str, program: &Path) {
    let library = folder.join("opened.so").display().to_string();
    let made = Command::new("cc")
        .args(["-shared", "-fPIC", "-x", "c", "/dev/null", "-o", &library])
        .status();
    assert!(made.unwrap().success());
    let expected = (42, b"handled 5, bad 0\n".as_slice());
    let plain = Command::new(program).arg(&library).output().unwrap();
    assert_eq!((status(&plain), plain.stdout.as_slice()), expected, "plain");
    let output = record(
        folder,
        &["--via", way],
        &[&program.display().to_string(), &library],
    );
    assert_eq!(
        (status(&output), output.stdout.as_slice()),
        expected,
        "{}",
        stderr(&output)
    );
    let recorded = Recorded::read(folder);
    assert!(recorded.profile.meta.truncated.is_none());
    let blocks = |o: &Object| o.kind == ObjectKind::Heap && o.pages == 128;
    assert!(recorded.profile.objects.iter().any(blocks));
}

#[test]
fn small_stacks_have_room_for_what_counts() {
    let folder = scratch("cramped");
    let path = build(&folder, "nodewise-cc", &["cramped.c"], "program", &["-pthread"]);
    small_stacks(&folder, "instrument", &path);
}

#[test]
fn small_stacks_have_room_for_what_logs_for_the_emulator() {
    let folder = scratch("emulated-cramped");
    let path = plain(&folder, "cc", "cramped.c", &["-O1", "-pthread"]);
    small_stacks(&folder, "emulate", &path);
}

#[test]
fn exceptions_leave_loops_with_the_right_counts() {
    let folder = scratch("throws");
    build(&folder, "nodewise-cxx", &["throws.cpp"], "program", &[]);
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(output.stdout, b"3\n", "{}", stderr(&output));
    let recorded = Recorded::read(&folder);
    let site = recorded.sites("cells").0;
    assert!(site.contains("main throws.cpp:14"), "{site}");
    let (reads, writes) = recorded.of("cells");
    assert_eq!(reads, 120_001);
    assert!((120_001..=170_000).contains(&writes), "{writes}"); // the constructor's by word or by vector
    let (_, touched) = recorded.sites("cells");
    assert_eq!(touched, ["main throws.cpp:14"]);
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
        stderr(&output)
    );
}
