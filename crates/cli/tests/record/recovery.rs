//! An interrupted recording can be recovered to a profile; files that cannot be read are reported, and not removed.

use crate::support::{NODEWISE, Recorded, program, scratch, signal, slices, status, stderr, wait_for};
use nodewise_profile::AccessSource;
use nodewise_store::Reader;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn recover(folder: &Path) -> Output {
    let mut command = Command::new(NODEWISE);
    command
        .current_dir(folder)
        .args(["record", "--recover", "profile"]);
    command.output().unwrap()
}

/// The folder of the raw files of the one process image.
fn image(folder: &Path) -> PathBuf {
    let images = std::fs::read_dir(folder.join("profile/raw")).unwrap().flatten();
    images.map(|e| e.path()).find(|p| p.is_dir()).unwrap()
}

/// Kills a recorder while its program, which has allocated memory, waits. Returns the folder of the raw files of the
/// process image.
fn interrupted(folder: &Path) -> PathBuf {
    program(folder, "grows.c");
    let mut recorder = Command::new(NODEWISE)
        .current_dir(folder)
        .args(["record", "-o", "profile", "--", "./program", "3", "pause"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = [0; 7];
    std::io::Read::read_exact(recorder.stdout.as_mut().unwrap(), &mut text).unwrap();
    let image = image(folder);
    recorder.kill().unwrap();
    assert_eq!(recorder.wait().unwrap().signal(), Some(9));
    image
}

fn pid(image: &Path) -> u32 {
    let name = image.file_name().unwrap().to_string_lossy().into_owned();
    name.split('-').next().unwrap().parse().unwrap()
}

/// Kills the recorder as above, and its program too.
fn killed(folder: &Path) -> PathBuf {
    let image = interrupted(folder);
    signal(pid(&image), "KILL");
    image
}

#[test]
fn an_interrupted_recording_is_recovered() {
    let folder = scratch("recover");
    killed(&folder);
    let output = recover(&folder);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(!stderr(&output).contains("not complete"), "{}", stderr(&output));
    let recorded = Recorded::read(&folder);
    assert_eq!(recorded.of("all"), (1, 3 * 2048));
    let why = recorded.profile.meta.truncated;
    assert_eq!(why.as_deref(), Some("the recorder was interrupted"));
    assert_eq!(recorded.profile.meta.command, ["./program", "3", "pause"]);
    assert!(!folder.join("profile/raw").exists());
    assert_eq!(status(&recover(&folder)), 2);
}

/// A recording is readable while it goes on, slice by slice, and so it stays if the recorder is killed.
#[test]
fn slices_can_be_read_before_the_recording_ends() {
    let folder = scratch("recover-live");
    program(&folder, "grows.c");
    let mut recorder = Command::new(NODEWISE)
        .current_dir(&folder)
        .args([
            "record",
            "--slice",
            "50ms",
            "-o",
            "profile",
            "--",
            "./program",
            "3",
            "pause",
        ])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let slices = || slices(&folder.join("profile"));
    let written = || {
        let mut sum = 0;
        let read = Reader::open(&folder.join("profile")).and_then(|r| {
            r.visit(&mut |rows| sum += rows.iter().map(|r| r.writes * u64::from(r.len)).sum::<u64>())
        });
        read.map_or(0, |()| sum)
    };
    wait_for("what the program wrote", || slices() > 1 && written() > 0);
    let report = || {
        let mut report = Command::new(NODEWISE);
        let output = report
            .current_dir(&folder)
            .args(["report", "profile", "--machine", "nehalem-2s"])
            .output()
            .unwrap();
        assert_eq!(status(&output), 0, "{}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(report().contains("the recording goes on"));
    let before = (slices(), written());
    wait_for("another slice", || slices() > before.0);
    let image = image(&folder);
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    signal(pid(&image), "KILL");
    assert!(slices() > before.0 && written() >= before.1);
    assert!(report().contains("or its recorder was stopped"));
    assert_eq!(status(&recover(&folder)), 0);
    assert_eq!(Recorded::read(&folder).of("all"), (1, 3 * 2048));
}

#[test]
fn nothing_is_recovered_while_the_program_counts() {
    let folder = scratch("recover-running");
    let image = interrupted(&folder);
    let pid = pid(&image);
    let output = recover(&folder);
    let left = (
        image.join("events").exists(),
        folder.join("profile.recovered").exists(),
    );
    signal(pid, "KILL");
    assert_eq!(status(&output), 2, "{}", stderr(&output));
    let named = format!("in process {pid} (program)");
    assert!(
        stderr(&output).contains(&named) && stderr(&output).lines().count() == 1,
        "{}",
        stderr(&output)
    );
    assert_eq!(left, (true, false));
    let output = recover(&folder);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert_eq!(Recorded::read(&folder).of("all"), (1, 3 * 2048));
}

/// After a kill, the last line of a log may be incomplete; no counts are lost.
#[test]
fn a_line_that_was_being_written_is_no_damage() {
    let folder = scratch("recover-cut-line");
    let image = killed(&folder);
    let log = std::fs::OpenOptions::new()
        .append(true)
        .open(image.join("events"));
    std::io::Write::write_all(&mut log.unwrap(), b"heap 7f00").unwrap();
    let output = recover(&folder);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(!stderr(&output).contains("not complete") && !folder.join("profile/raw").exists());
    assert_eq!(Recorded::read(&folder).of("all"), (1, 3 * 2048));
}

/// Each kind of damage: its description in the message, and a function that damages the folder of a process image.
type Damage = (&'static str, fn(&Path));

fn rewrite(file: &Path, change: impl FnOnce(String) -> String) {
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, change(text)).unwrap();
}

fn shorten(file: &Path, to: impl FnOnce(u64) -> u64) {
    let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    file.set_len(to(file.metadata().unwrap().len())).unwrap();
}

const DAMAGES: &[Damage] = &[
    ("event log", |image| {
        let log = std::fs::OpenOptions::new()
            .write(true)
            .open(image.join("events"))
            .unwrap();
        log.write_all_at(&[b'#'; 100], 20).unwrap();
    }),
    ("makes no sense", |image| {
        rewrite(&image.join("events"), |text| {
            text.replacen("counters ", "counter? ", 1)
        });
    }),
    ("event logs lack", |image| {
        shorten(&image.join("events"), |bytes| bytes / 2);
    }),
    ("event logs lack", |image| {
        rewrite(&image.join("events"), |text| {
            let kept = text.lines().filter(|l| !l.starts_with("heap "));
            kept.map(|l| format!("{l}\n")).collect()
        });
    }),
    ("no log gives to a thread", |image| {
        rewrite(&image.join("events"), |text| {
            let kept = text.lines().filter(|l| !l.starts_with("counters "));
            kept.map(|l| format!("{l}\n")).collect()
        });
    }),
    ("no log gives to a thread", |image| {
        std::fs::remove_file(image.join("events")).unwrap();
    }),
    ("missing, cut or overwritten", |image| {
        shorten(&image.join("thread-0"), |bytes| bytes / 2);
    }),
    ("missing, cut or overwritten", |image| {
        shorten(&image.join("thread-0"), |bytes| bytes - 4096);
    }),
    ("missing, cut or overwritten", |image| {
        shorten(&image.join("thread-0"), |_| 0);
    }),
    ("missing, cut or overwritten", |image| {
        std::fs::remove_file(image.join("thread-0")).unwrap();
    }),
    ("missing, cut or overwritten", |image| {
        shorten(&image.join("pool"), |bytes| bytes / 2);
    }),
    ("event logs lack", |image| std::fs::remove_dir_all(image).unwrap()),
    ("control page", |image| {
        std::fs::remove_file(image.with_file_name("control")).unwrap();
    }),
];

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

#[test]
fn what_was_damaged_is_said_and_kept() {
    let folder = scratch("recover-damages");
    let image = killed(&folder);
    let whole = folder.join("whole");
    copy(&folder.join("profile"), &whole);
    let profile = folder.join("profile");
    for (index, (what, damage)) in DAMAGES.iter().enumerate() {
        std::fs::remove_dir_all(&profile).unwrap();
        copy(&whole, &profile);
        damage(&image);
        for again in 0..2 {
            let output = recover(&folder);
            let case = format!("{index}, {again}: {what}: {}", stderr(&output));
            assert_eq!(status(&output), 0, "{case}");
            let lines = stderr(&output)
                .lines()
                .filter(|l| l.contains("not complete"))
                .count();
            assert_eq!(lines, 1, "{case}");
            let why = Recorded::read(&folder).profile.meta.truncated.unwrap_or_default();
            assert!(why.contains(what), "{case}: {why}");
            assert!(!nodewise_store::Reader::ended(&profile).unwrap() || !why.is_empty());
            assert!(profile.join("raw").is_dir(), "{case}: the raw files are gone");
            let manifest = std::fs::read_to_string(profile.join("manifest.json")).unwrap();
            assert!(
                manifest.replace(' ', "").contains("\"complete\":false"),
                "{case}: {manifest}"
            );
        }
    }
}

/// Raw files with impossible counts: an attempt to recover them must not destroy them.
#[test]
fn a_recovery_that_makes_no_readable_profile_keeps_what_it_read() {
    let folder = scratch("recover-damaged");
    let thread = killed(&folder).join("thread-0");
    // Rows are checked when they are read: counts whose sum overflows are refused there.
    let mut bytes = std::fs::read(&thread).unwrap();
    let counters = 4096 + 1024 * 32;
    for counter in bytes[counters..].chunks_exact_mut(32).take(4) {
        counter[8..16].copy_from_slice(&(u64::MAX / 2).to_le_bytes());
        counter[16..24].copy_from_slice(&(u64::MAX / 2).to_le_bytes());
    }
    std::fs::write(&thread, bytes).unwrap();
    for _ in 0..2 {
        let output = recover(&folder);
        assert_eq!(status(&output), 2, "{}", stderr(&output));
        assert!(
            stderr(&output).contains("no readable profile") && stderr(&output).lines().count() == 1,
            "{}",
            stderr(&output)
        );
        assert!(thread.exists(), "the raw files are gone");
    }
    let left = std::fs::read_dir(&folder).unwrap().flatten();
    let left: Vec<_> = left.map(|e| e.file_name()).collect();
    assert!(
        !left.iter().any(|n| n.to_string_lossy().contains("recovered")),
        "{left:?}"
    );
}
