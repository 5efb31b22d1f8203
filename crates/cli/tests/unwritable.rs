//! Commands whose standard error or standard output cannot be written (device full, closed, or no reader). They still
//! do their work, and their exit status is that of the program.

mod synthetic;

use std::fs::OpenOptions;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const NODEWISE: &str = env!("CARGO_BIN_EXE_nodewise");

fn scratch(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("unwritable")
        .join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Ways in which writing fails.
#[derive(Clone, Copy, Debug)]
enum To {
    Full,
    NoReader,
    Closed,
}

const ALL: [To; 3] = [To::Full, To::NoReader, To::Closed];

impl To {
    fn stdio(self) -> Stdio {
        match self {
            Self::Full => OpenOptions::new().write(true).open("/dev/full").unwrap().into(),
            Self::NoReader => {
                let (reader, writer) = std::io::pipe().unwrap();
                drop(reader);
                writer.into()
            }
            Self::Closed => Stdio::null(), // closed below, in the child
        }
    }

    /// The command; if the descriptor is to be closed, it is started by a shell that closes it.
    fn command(self, descriptor: u8, arguments: &[&str]) -> Command {
        let mut command = Command::new("/bin/sh");
        let close = match self {
            Self::Closed => format!("exec \"$@\" {descriptor}>&-"),
            _ => "exec \"$@\"".to_owned(),
        };
        command.args(["-c", &close, "sh", NODEWISE]).args(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match descriptor {
            1 => command.stdout(self.stdio()),
            _ => command.stderr(self.stdio()),
        };
        command
    }
}

/// Commands that print messages before, while or after a program runs.
#[test]
fn the_programs_status_is_passed_on_and_the_program_ran() {
    let folder = scratch("status");
    let ran = folder.join("ran");
    let script = format!("echo x >>{}; exit 42", ran.display());
    let many = ["--threads", "1000"]; // more than there are CPUs: a line before the program starts
    for to in ALL {
        for how in [
            &["run", "--policy", "interleave"][..],
            &["record", "--via", "instrument", many[0], many[1]],
            &["record", "--via", "emulate", many[0], many[1]],
            &["record", "--via", "faults"],
            &["balance"],
        ] {
            let _ = std::fs::remove_file(&ran);
            let profile = folder.join("profile").display().to_string();
            let mut arguments = how.to_vec();
            if how[0] == "record" {
                arguments.extend(["--force", "-o", &profile]);
            }
            arguments.extend(["--", "/bin/sh", "-c", &script]);
            let status = to.command(2, &arguments).current_dir(&folder).status().unwrap();
            let needs_rights = how.contains(&"faults") || how[0] == "balance";
            if needs_rights && status.code().is_some_and(|c| c == 125 || c == 2) && !ran.exists() {
                continue; // refused here, before anything ran
            }
            assert_eq!(status.code(), Some(42), "{to:?}: {how:?}");
            assert_eq!(std::fs::read_to_string(&ran).unwrap(), "x\n", "{to:?}: {how:?}");
        }
    }
}

/// A full or closed standard output is an error. A pipe that is no longer read is not, and no message is printed.
#[test]
fn documents_that_cannot_be_written_are_an_error_in_one_line() {
    let folder = scratch("documents");
    let profile = synthetic::profile("stdout-documents").display().to_string();
    std::fs::copy("/bin/echo", folder.join("solve")).unwrap();
    let machine = ["--machine", "nehalem-2s"];
    for how in [
        &["generate", "completions", "bash"][..],
        &["topo", machine[0], machine[1]],
        &["topo", machine[0], machine[1], "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["report", &profile, machine[0], machine[1]],
        &["report", &profile, machine[0], machine[1], "--json"],
        &["simulate", &profile, machine[0], machine[1]],
        &["simulate", &profile, machine[0], machine[1], "--json"],
        &[
            "map", &profile, machine[0], machine[1], "--policy", "locality", "-o", "-",
        ],
        &["top", "--once", &profile, machine[0], machine[1]],
        &[
            "tune",
            "--profile",
            &profile,
            machine[0],
            machine[1],
            "--dry-run",
            "--",
            "./solve",
        ],
        &["--help"],
        &["--version"],
        &["topo", "--help"],
        &["run", "--dry-run", "--policy", "interleave", "--", "true"],
    ] {
        for to in ALL {
            let output = to
                .command(1, how)
                .current_dir(&folder)
                .stderr(Stdio::piped())
                .output()
                .unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            let status = output.status.code();
            let why = match to {
                To::Full => "No space left on device",
                To::Closed => "it is closed",
                To::NoReader => {
                    // Exit status 1 is that of `doctor` with missing features, or of a refusal.
                    assert!(matches!(status, Some(0 | 1)), "{how:?}: {status:?}: {stderr}");
                    assert!(!stderr.contains("cannot write"), "{how:?}: {stderr}");
                    continue;
                }
            };
            assert_eq!(status, Some(2), "{to:?}: {how:?}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{to:?}: {how:?}: {stderr}");
            let line = format!("nodewise: cannot write to standard output: {why}");
            assert!(stderr.starts_with(&line), "{to:?}: {how:?}: {stderr}");
        }
    }
}

/// If the address cannot be printed, the served page could not be opened. If standard output is a pipe that is not
/// read, the address may be known otherwise.
#[test]
fn a_page_is_served_where_its_address_is_told() {
    let folder = scratch("served");
    let profile = synthetic::profile("stdout-served").display().to_string();
    let serve = ["serve", &profile, "--machine", "nehalem-2s"];
    for to in [To::Full, To::Closed] {
        let mut command = to.command(1, &serve);
        let output = command
            .current_dir(&folder)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{to:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{to:?}: {stderr}");
        assert!(
            stderr.starts_with("nodewise: cannot write to standard output"),
            "{stderr}"
        );
    }
    for (to, descriptor) in [
        (To::NoReader, 1),
        (To::NoReader, 2),
        (To::Full, 2),
        (To::Closed, 2),
    ] {
        let mut command = to.command(descriptor, &serve);
        let mut child = command.current_dir(&folder).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(500));
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(ended.is_none(), "{to:?} {descriptor}: {ended:?}");
    }
}

/// The exit status of a command is the usual one even if its messages cannot be written.
#[test]
fn the_status_is_the_same_where_standard_error_cannot_be_written() {
    let folder = scratch("errors");
    let profile = synthetic::profile("stderr-errors").display().to_string();
    std::fs::copy("/bin/echo", folder.join("solve")).unwrap();
    let process = std::process::id().to_string();
    let machine = ["--machine", "nehalem-2s"];
    let nowhere = folder.join("nowhere/solve.map").display().to_string();
    let tune = ["tune", "--profile", &profile, "--runs", "2"];
    for (how, status) in [
        ([&tune[..], &["--", "./solve"]].concat(), 0),
        ([&tune[..], &["-o", &nowhere, "--", "./solve"]].concat(), 2),
        ([&tune[..], &["--json", "--dry-run", "--", "./solve"]].concat(), 2),
        (
            vec!["migrate", "--from", "0", "--to", "0", "--dry-run", &process],
            2,
        ),
        (vec!["top", "--once", machine[0], machine[1], "/nonexistent"], 2),
        (vec!["top", machine[0], machine[1], &profile], 2),
        (vec!["serve", machine[0], machine[1], "/nonexistent"], 2),
    ] {
        for to in ALL {
            let mut command = to.command(2, &how);
            let ended = command.current_dir(&folder).status().unwrap();
            assert_eq!(ended.code(), Some(status), "{to:?}: {how:?}");
        }
    }
    assert!(!Path::new(&nowhere).exists());
}

/// `migrate --dry-run` prints a document, on a machine with more than one node.
#[test]
fn what_would_migrate_is_said_or_it_is_an_error() {
    let folder = scratch("migrate");
    let process = std::process::id().to_string();
    let single = !Path::new("/sys/devices/system/node/node1").exists();
    for to in [To::Full, To::Closed] {
        let how = ["migrate", "--from", "0", "--to", "1", "--dry-run", &process];
        let mut command = to.command(1, &how);
        let output = command
            .current_dir(&folder)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{to:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{to:?}: {stderr}");
        let why = match single {
            true => "this machine has one node",
            false => "cannot write to standard output",
        };
        assert!(stderr.contains(why), "{to:?}: {stderr}");
    }
}

/// Output to a file, or to `/dev/null`, is written even if standard output fails.
#[test]
fn only_what_is_meant_for_standard_output_misses_it() {
    let folder = scratch("files");
    let profile = synthetic::profile("stdout-files").display().to_string();
    let map = [
        "map",
        &profile,
        "--machine",
        "nehalem-2s",
        "--policy",
        "locality",
        "-o",
        "map.json",
    ];
    let status = To::Closed.command(1, &map).current_dir(&folder).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(folder.join("map.json").exists());
    for how in [">/dev/null", "1<>/dev/null"] {
        let status = Command::new("/bin/sh")
            .args(["-c", &format!("exec \"$0\" --version {how}"), NODEWISE])
            .status();
        assert_eq!(status.unwrap().code(), Some(0), "{how}");
    }
}

/// Errors in a command line are reported without its control characters, and with limited length.
#[test]
fn hostile_arguments_are_not_echoed_as_they_are() {
    let long = "x".repeat(100_000);
    for (argument, least) in [
        ("\x1b]0;title\x07\x1b[31m", "\\u{1b}"),
        (long.as_str(), "characters]"),
    ] {
        for arguments in [
            &["report", argument][..],
            &["topo", "--machine", argument],
            &["run", "--policy", argument, "--", "true"],
            &[argument],
        ] {
            let output = Command::new(NODEWISE)
                .args(arguments)
                .arg0("nodewise")
                .output()
                .unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success());
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
            assert!(
                stderr.len() < 10_000 && !stderr.contains('\x1b') && !stderr.contains('\x07'),
                "{stderr}"
            );
            // clap leaves escape sequences out of the name of a command that does not exist.
            assert!(
                arguments.len() == 1 || stderr.contains(least),
                "{arguments:?}: {stderr}"
            );
        }
    }
}
