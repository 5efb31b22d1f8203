//! A recording that ends before its program reports that.

use crate::emulated::plain;
use crate::support::{NODEWISE, Recorded, build, program, record, scratch, status, stderr};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn a_program_that_leaves_its_user_root_or_descriptors_is_said_to_be_recorded_in_part() {
    let folder = scratch("leaves");
    program(&folder, "leaves.c");
    let reasons = [("user", "written"), ("root", "written"), ("files", "open files")];
    for (what, reason) in reasons {
        let output = record(&folder, &["--force"], &["./program", what]);
        if status(&output) == 1 {
            eprintln!("skipped: leaving the {what} is not permitted");
            continue;
        }
        assert_eq!(
            (status(&output), output.stdout.as_slice()),
            (7, b"8191 4\n".as_slice()),
            "{what}: {}",
            stderr(&output)
        );
        let recorded = Recorded::read(&folder);
        assert_eq!(recorded.of("before").1, 8192, "{what}");
        let truncated = recorded.profile.meta.truncated.unwrap_or_default();
        assert!(truncated.contains(reason), "{what}: {truncated:?}");
        let manifest = std::fs::read_to_string(folder.join("profile/manifest.json")).unwrap();
        assert!(manifest.contains("\"complete\": false"), "{what}: {manifest}");
    }
}

/// A child process in which fork handlers do not run must not overwrite its parent's counts, and must not be omitted
/// without a message.
#[test]
fn a_child_made_by_clone_itself_is_said_and_costs_its_parent_nothing() {
    let folder = scratch("clones");
    program(&folder, "clones.c");
    plain(&folder, "cc", "clones.c", &["-O1"]);
    for (via, built) in [("instrument", "./program"), ("emulate", "./plain")] {
        for what in ["thread", "allocates", "writes"] {
            let output = record(&folder, &["--force", "--via", via], &[built, what]);
            assert_eq!(
                (status(&output), output.stdout.as_slice()),
                (7, b"3 1\n".as_slice()),
                "{via} {what}: {}",
                stderr(&output)
            );
            let recorded = Recorded::read(&folder);
            assert_eq!(recorded.of("later_block").1, 100_000, "{via} {what}");
            let parents = recorded.of("parents_block").1;
            let both = via == "instrument" && what == "writes"; // in pages that its parent had counted already
            assert!(
                parents == 100_000 || both && parents == 200_000,
                "{via} {what}: {parents}"
            );
            let truncated = recorded.profile.meta.truncated.unwrap_or_default();
            assert!(truncated.contains("clone(2)"), "{via} {what}: {truncated:?}");
        }
    }
}

/// A file size limit of the program does not apply to the recorder: no signal kills the program, and the counts until
/// then are kept.
#[test]
fn a_program_that_limits_its_files_is_recorded_up_to_there() {
    let folder = scratch("limits");
    program(&folder, "limits.c");
    plain(&folder, "cc", "limits.c", &["-O1"]);
    for (via, built) in [("instrument", "./program"), ("emulate", "./plain")] {
        for limit in ["0", "1024", "40000"] {
            let output = record(&folder, &["--force", "--via", via], &[built, limit]);
            assert_eq!(
                (status(&output), output.stdout.as_slice()),
                (7, b"ran 201\n".as_slice()),
                "{via} {limit}: {}",
                stderr(&output)
            );
            let stopped = stderr(&output).matches("recording stopped").count();
            assert_eq!(stopped, 1, "{via} {limit}: {}", stderr(&output));
            let truncated = Recorded::read(&folder).profile.meta.truncated;
            assert!(
                truncated.is_some_and(|why| why.contains("file size limit")),
                "{via} {limit}"
            );
        }
    }
}

/// A file size limit of the recorder is reported as an error in one line; the recorder is not killed by a signal.
#[test]
fn under_a_limit_on_file_sizes_commands_fail_with_a_line() {
    let folder = scratch("limited");
    program(&folder, "limits.c");
    let profile = record(&folder, &["--force"], &["./program", "40000"]);
    assert_eq!(status(&profile), 7, "{}", stderr(&profile));
    let map = "map profile --policy interleave --machine epyc-2s-nps4 -o x.map";
    for (command, expected) in [
        ("record -o limited -- ./program 0", 125),
        ("report profile --machine epyc-2s-nps4 --html x.html", 2),
        (map, 2),
    ] {
        let script = format!("ulimit -f 0; exec {NODEWISE} {command}");
        let output = Command::new("sh")
            .current_dir(&folder)
            .args(["-c", &script])
            .output()
            .unwrap();
        let errors = stderr(&output);
        assert_eq!(status(&output), expected, "{command}: {errors}");
        let last = errors.lines().last().unwrap_or_default();
        assert!(
            last.contains("File too large") || last.contains("file size limit"),
            "{command}: {errors}"
        );
    }
}

#[test]
fn what_outlives_the_command_is_said_to_be_recorded_in_part() {
    let folder = scratch("outlives");
    program(&folder, "outlives.c");
    let script = "./program & while ! [ -e ready ]; do sleep 0.05; done; exit 3";
    for (end, cut_short) in [("exit 3", true), ("wait; exit 3", false)] {
        let script = script.replace("exit 3", end);
        let _ = std::fs::remove_file(folder.join("ready"));
        let options = ["--force", "--via", "instrument"];
        let output = record(&folder, &options, &["sh", "-c", &script]);
        assert_eq!(status(&output), 3, "{end}: {}", stderr(&output));
        let recorded = Recorded::read(&folder);
        assert_eq!(recorded.of("block").1, 10_000, "{end}");
        let truncated = recorded.profile.meta.truncated;
        assert_eq!(truncated.is_some(), cut_short, "{end}: {truncated:?}");
        let lines = stderr(&output).matches("1 process still ran").count();
        assert_eq!(lines, usize::from(cut_short), "{end}: {}", stderr(&output));
    }
}

/// Copies programs and their libraries to folders that all users may read, so that a user other than root can run them.
fn open_to_all(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("nodewise-{test}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(
        Path::new(NODEWISE).with_file_name("lib/libnodewise-rt.so"),
        folder.join("libnodewise-rt.so"),
    )
    .unwrap();
    folder
}

/// Records a program that starts another one; returns whether the recording reports that the other one is missing.
fn handing(folder: &Path, way: &str, program: &str) -> Option<(Recorded, String)> {
    let output = record(folder, &["--force"], &["./spawns_program", way, program]);
    if status(&output) == 126 || status(&output) == 124 {
        eprintln!("skipped: {way} is not permitted");
        return None;
    }
    let wanted = if program == "/bin/true" { 0 } else { 3 };
    assert_eq!(status(&output), wanted, "{way} {program}: {}", stderr(&output));
    Some((Recorded::read(folder), stderr(&output)))
}

#[test]
fn a_program_started_as_another_user_is_said_to_be_missing() {
    let folder = open_to_all("spawns");
    let libraries = ["-Wl,--disable-new-dtags", "-Wl,-rpath,$ORIGIN"];
    build(
        &folder,
        "nodewise-cc",
        &["spawns_program.c"],
        "spawns_program",
        &libraries,
    );
    build(&folder, "nodewise-cc", &["handed.c"], "handed", &libraries);
    for (way, reason) in [
        ("user", "cannot write the profile"),
        ("effective", "cannot write the profile"),
        ("cleared", "without NODEWISE_RAW"),
    ] {
        let Some((recorded, stderr)) = handing(&folder, way, "./handed") else {
            continue;
        };
        assert_eq!(
            (recorded.of("before").1, recorded.of("handed").1),
            (512, 0),
            "{way}"
        );
        let truncated = recorded.profile.meta.truncated.unwrap_or_default();
        assert!(truncated.contains(reason), "{way}: {truncated:?}");
        assert!(stderr.contains(reason), "{way}: {stderr}");
        if way != "cleared" {
            assert!(
                stderr.contains("not recorded: this user may not write"),
                "{stderr}"
            );
        }
    }
    // A program without counters is not missing from the recording, nor is one that can still count.
    for (way, program) in [
        ("user", "/bin/true"),
        ("cleared", "/bin/true"),
        ("plain", "./handed"),
        ("kept", "./handed"),
        ("spawned", "./handed"),
    ] {
        let Some((recorded, stderr)) = handing(&folder, way, program) else {
            continue;
        };
        let counted = if program == "/bin/true" { 0 } else { 1024 };
        assert_eq!(recorded.of("handed").1, counted, "{way} {program}");
        assert_eq!(recorded.profile.meta.truncated, None, "{way} {program}");
        assert!(!stderr.contains("not recorded"), "{stderr}");
    }
    fs::remove_dir_all(&folder).unwrap();
}
