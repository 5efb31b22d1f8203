//! Errors of a recording are reported in one line, and no counts are lost.

use crate::support::{NODEWISE, Recorded, build, program, record, scratch, slices, status, stderr, wait_for};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Mounts a disk of this many KiB; `None` if mounting is not permitted.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: PathBuf, kib: u32) -> Option<Self> {
        std::fs::create_dir(&at).unwrap();
        let mounted = Self::ask(&at, &format!("size={kib}k"));
        if !mounted {
            eprintln!("skipped: mounting a small disk is not permitted");
        }
        mounted.then_some(Self(at))
    }

    fn ask(at: &Path, options: &str) -> bool {
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "none"])
            .arg(at)
            .output();
        mount.is_ok_and(|m| m.status.success())
    }

    fn grow(&self, kib: u32) {
        assert!(Self::ask(&self.0, &format!("remount,size={kib}k")));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        Command::new("umount").arg(&self.0).status().unwrap();
    }
}

/// Why the profile on the disk is not complete.
fn cut_short(disk: &Disk, profile: &str) -> Option<String> {
    let reader = nodewise_store::Reader::open(&disk.0.join(profile)).unwrap();
    reader.profile().meta.truncated.clone()
}

fn nodewise(folder: &Path, words: &[&str]) -> Output {
    Command::new(NODEWISE)
        .current_dir(folder)
        .args(words)
        .output()
        .unwrap()
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_program() {
    let folder = scratch("full");
    program(&folder, "grows.c");
    let Some(disk) = Disk::mount(folder.join("small"), 512) else {
        return;
    };
    let output = nodewise(
        &folder,
        &["record", "-o", "small/profile", "--", "./program", "200"],
    );
    assert_eq!(
        (status(&output), output.stdout.as_slice()),
        (0, b"grown 1\n".as_slice()),
        "{}",
        stderr(&output)
    );
    let lines = stderr(&output)
        .lines()
        .filter(|l| l.contains("recording stopped"))
        .count();
    assert_eq!(lines, 1, "{}", stderr(&output));
    assert!(cut_short(&disk, "profile").is_some_and(|why| why.contains("full")));
}

#[test]
fn a_disk_too_full_for_the_profile_keeps_what_was_counted() {
    let folder = scratch("fuller");
    program(&folder, "grows.c");
    let Some(disk) = Disk::mount(folder.join("small"), 64) else {
        return;
    };
    let name = "small/the profile";
    let words = ["record", "-o", name, "--", "./program", "200"];
    let output = nodewise(&folder, &words);
    assert_eq!(
        (status(&output), output.stdout.as_slice()),
        (125, b"grown 1\n".as_slice()),
        "{}",
        stderr(&output)
    );
    let remedy = "nodewise record --recover 'small/the profile'";
    assert!(
        stderr(&output).trim_end().ends_with(remedy),
        "{}",
        stderr(&output)
    );
    let report = nodewise(&folder, &["report", name]);
    assert_eq!(status(&report), 2);
    assert!(
        stderr(&report).trim_end().ends_with(remedy),
        "{}",
        stderr(&report)
    );

    disk.grow(4096);
    let recovered = nodewise(&folder, &["record", "--recover", name]);
    assert_eq!(status(&recovered), 0, "{}", stderr(&recovered));
    assert!(cut_short(&disk, "the profile").is_some_and(|why| why.contains("full")));
}

/// A program that asks for slices does not wait for a recorder that can write no more of them.
#[test]
fn a_checkpoint_that_finds_no_room_does_not_stop_the_program() {
    let folder = scratch("full-checkpoint");
    build(&folder, "nodewise-cc", &["timed.c"], "program", &["-DSTENCIL"]);
    let Some(disk) = Disk::mount(folder.join("small"), 2048) else {
        return;
    };
    std::fs::write(folder.join("input"), "2000\n").unwrap();
    let mut recorder = Command::new(NODEWISE);
    recorder.current_dir(&folder).args([
        "record",
        "--slice",
        "accesses:1000000",
        "-o",
        "small/profile",
        "--",
        "./program",
    ]);
    recorder.stdin(std::fs::File::open(folder.join("input")).unwrap());
    let mut recorder = recorder
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("a slice", || slices(&folder.join("small/profile")) > 1);
    let _ = std::fs::write(folder.join("small/filler"), vec![1; 4 << 20]);
    wait_for("the program's end", || recorder.try_wait().unwrap().is_some());
    let output = recorder.wait_with_output().unwrap();
    assert!(output.stdout.starts_with(b"1 lines, "), "{}", stderr(&output));
    assert!(stderr(&output).contains("No space left"), "{}", stderr(&output));
    std::fs::remove_file(folder.join("small/filler")).unwrap();
    let recovered = nodewise(&folder, &["record", "--recover", "small/profile"]);
    assert_eq!(status(&recovered), 0, "{}", stderr(&recovered));
    assert!(cut_short(&disk, "profile").is_some());
}

/// The error line is written to the program's standard error only if the program has not replaced that descriptor.
#[test]
fn a_recording_that_stops_writes_into_no_file_of_the_programs() {
    let folder = scratch("stops");
    program(&folder, "stops.c");
    for (descriptor, lines) in [("as-it-is", 1), ("file", 0), ("gone", 0), ("unread", 0)] {
        let output = record(&folder, &["--force"], &["./program", descriptor]);
        assert_eq!(status(&output), 7, "{descriptor}: {}", stderr(&output));
        assert_eq!(output.stdout, b"ran 1\n", "{descriptor}");
        let stopped = stderr(&output)
            .lines()
            .filter(|l| l.contains("recording stopped"))
            .count();
        assert_eq!(stopped, lines, "{descriptor}: {}", stderr(&output));
        let truncated = Recorded::read(&folder).profile.meta.truncated;
        assert!(
            truncated.is_some_and(|why| why.contains("file size limit")),
            "{descriptor}"
        );
    }
    assert_eq!(std::fs::read(folder.join("data")).unwrap(), b"precious");
}

/// `--force` replaces the folder of a recording that could not write its manifest, but no other folder.
#[test]
fn force_replaces_what_a_failed_recording_left() {
    let folder = scratch("force-failed");
    program(&folder, "ends.c");
    let record = |profile: &str| {
        Command::new(NODEWISE)
            .current_dir(&folder)
            .args(["record", "--force", "-o", profile, "--", "./program"])
            .output()
            .unwrap()
    };
    for (name, file) in [("partial", "manifest.json.partial"), ("raw-only", "raw/control")] {
        let left = folder.join(name).join(file);
        std::fs::create_dir_all(left.parent().unwrap()).unwrap();
        std::fs::write(&left, "").unwrap();
        let output = record(name);
        assert!(!stderr(&output).contains("stays"), "{}", stderr(&output));
        assert!(folder.join(name).join("manifest.json").exists() && !left.exists());
    }
    for file in ["results.parquet", "raw/photo"] {
        let other = folder.join("other").join(file);
        std::fs::create_dir_all(other.parent().unwrap()).unwrap();
        std::fs::write(&other, "data").unwrap();
        let output = record("other");
        assert_eq!(status(&output), 125);
        assert!(
            stderr(&output).contains("no profile and stays") && other.exists(),
            "{}",
            stderr(&output)
        );
        std::fs::remove_dir_all(folder.join("other")).unwrap();
    }
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
        assert_eq!(status(&output), expected, "{arguments:?}: {}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        assert!(stderr(&output).contains(word), "{}", stderr(&output));
    };
    refused(&["record"], 125, "<CMD>");
    refused(&["record", "--slice", "0", "--", "./program"], 125, "--slice");
    refused(&["record", "--via", "emulate", "--pid", "1"], 125, "--pid");
    refused(&["run", "--polcy", "x", "--", "./plain"], 125, "--polcy");
    refused(&["report", "--nonsense"], 2, "--nonsense");
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
