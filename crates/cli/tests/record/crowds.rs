//! Many threads and limited memory for their counters: all accesses are counted, or the profile says that some are not.

use crate::emulated::plain;
use crate::support::{NODEWISE, Recorded, program, record, scratch, status, stderr};
use std::path::Path;
use std::process::Command;

/// How many threads have at least `writes` writes.
fn writers(recorded: &Recorded, writes: u64) -> usize {
    let mut by_thread = vec![0; recorded.profile.threads.len()];
    for row in &recorded.rows {
        by_thread[row.thread.index()] += u64::from(row.len) * row.writes;
    }
    by_thread.iter().filter(|&&w| w >= writes).count()
}

#[test]
fn four_thousand_threads_at_once_are_counted_with_256_descriptors() {
    let folder = scratch("together");
    program(&folder, "crowd.c");
    let script = format!("ulimit -n 256 && exec {NODEWISE} record -o profile -- ./program together 4096");
    let output = Command::new("/bin/bash")
        .current_dir(&folder)
        .args(["-c", &script])
        .output()
        .unwrap();
    assert_eq!(
        (status(&output), output.stdout.as_slice()),
        (5, b"8386560\n".as_slice()),
        "{}",
        stderr(&output)
    );
    let recorded = Recorded::read(&folder);
    assert_eq!(writers(&recorded, 64), 4096);
    assert_eq!(recorded.profile.threads.len(), 4097);
    assert_eq!(recorded.profile.meta.truncated, None);
}

#[test]
fn threads_that_follow_one_another_use_the_same_memory_and_files() {
    let folder = scratch("apart");
    program(&folder, "crowd.c");
    // Room for a few hundred threads' counters.
    let script = "ulimit -v 60000 && exec ./program apart 3000";
    let output = record(&folder, &["--via", "instrument"], &["/bin/bash", "-c", script]);
    assert_eq!(
        (status(&output), output.stdout.as_slice()),
        (5, b"4498500\n".as_slice()),
        "{}",
        stderr(&output)
    );
    let recorded = Recorded::read(&folder);
    assert_eq!(recorded.profile.meta.truncated, None, "{}", stderr(&output));
    assert_eq!(writers(&recorded, 64), 3000);
    // Pages of their own, some 16 each, would cost more time than all else of counting.
    let stderr = stderr(&output);
    let faults = stderr.lines().find_map(|l| l.strip_prefix("faults "));
    let faults: u64 = faults.unwrap_or_default().parse().unwrap();
    assert!(faults < 8 * 3000, "{faults} page faults of 3000 threads");
}

/// The nightly test uses a hundred thousand threads.
#[test]
fn ten_thousand_short_threads_are_all_in_the_profile() {
    let folder = scratch("short");
    program(&folder, "crowd.c");
    let threads: usize = match std::env::var_os("NODEWISE_NIGHTLY") {
        Some(_) => 100_000,
        None => 10_000,
    };
    let number = threads.to_string();
    let output = record(
        &folder,
        &["--via", "instrument"],
        &["./program", "apart", &number],
    );
    let sum = format!("{}\n", threads * (threads - 1) / 2);
    assert_eq!(
        (status(&output), output.stdout.as_slice()),
        (5, sum.as_bytes()),
        "{}",
        stderr(&output)
    );
    let recorded = Recorded::read(&folder);
    assert_eq!(recorded.profile.meta.truncated, None, "{}", stderr(&output));
    assert_eq!(recorded.profile.threads.len(), threads + 1);
    // They did the same: each has the same counts.
    let mut counts = vec![(0, 0); threads + 1];
    for row in &recorded.rows {
        let (reads, writes) = &mut counts[row.thread.index()];
        *reads += u64::from(row.len) * row.reads;
        *writes += u64::from(row.len) * row.writes;
    }
    assert!(counts[1].1 >= 64, "{:?}", counts[1]);
    let others: Vec<_> = (1..=threads).filter(|&t| counts[t] != counts[1]).collect();
    assert!(others.is_empty(), "{} others: {:?}", others.len(), others.first());
}

/// nodewise beside plugins that have room for 256 threads.
fn with_few_vcpus(folder: &Path) -> std::path::PathBuf {
    let library = folder.join("lib");
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime");
    let made = Command::new("make")
        .args(["-s", "-C"])
        .arg(runtime)
        .arg(format!("BUILD_DIR={}", library.display()))
        .arg("CFLAGS=-O1 -DNW_VCPUS=256u")
        .args(
            [
                "libnodewise-emulate-1.so",
                "libnodewise-emulate-2.so",
                "libnodewise-rt.so",
            ]
            .map(|l| library.join(l)),
        )
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    let nodewise = folder.join("nodewise");
    std::fs::copy(NODEWISE, &nodewise).unwrap();
    nodewise
}

#[test]
fn an_emulated_program_with_too_many_threads_runs_to_its_end() {
    let folder = scratch("few-vcpus");
    let nodewise = with_few_vcpus(&folder);
    for flags in [&["-O1", "-pthread"][..], &["-O1", "-pthread", "-static"]] {
        plain(&folder, "cc", "relay.c", flags);
        for (threads, truncated) in [("200", false), ("400", true)] {
            let _ = std::fs::remove_dir_all(folder.join("profile"));
            let output = Command::new(&nodewise)
                .current_dir(&folder)
                .args([
                    "record", "--via", "emulate", "--force", "-o", "profile", "--", "./plain", threads,
                ])
                .output()
                .unwrap();
            assert_eq!(
                (status(&output), output.stdout.as_slice()),
                (5, b"left 0, failed 0\n".as_slice()),
                "{flags:?} {threads}: {}",
                stderr(&output)
            );
            let why = Recorded::read(&folder).profile.meta.truncated.unwrap_or_default();
            assert_eq!(why.contains("more threads at a time"), truncated, "{why}");
            assert_eq!(why.is_empty(), !truncated, "{why}");
            let lines = stderr(&output).matches("recording stopped: more threads").count();
            assert_eq!(lines, usize::from(truncated), "{}", stderr(&output));
        }
    }
}
