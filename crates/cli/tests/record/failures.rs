//! What goes wrong is said in one line, and nothing is lost.

use crate::support::{NODEWISE, Recorded, program, said, scratch, signal, status};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

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
    refused(&["record"], 125, "<CMD>");
    refused(&["record", "--slice", "0", "--", "./program"], 125, "--slice");
    refused(&["record", "--pid", "1"], 125, "--pid");
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
