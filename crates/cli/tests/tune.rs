//! `nodewise tune` with a given profile and a shell as the program.

mod synthetic;

use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with the profile and a program of the same name as the profile's.
struct Case {
    folder: PathBuf,
    profile: PathBuf,
}

impl Case {
    fn new(name: &str, script: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let profile = synthetic::profile(&format!("{name}-profile"));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join("solve");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        Self { folder, profile }
    }

    fn tune(&self, arguments: &[&str]) -> Output {
        self.tune_with(arguments, &[])
    }

    /// Sets the arguments of the program.
    fn tune_with(&self, arguments: &[&str], own: &[&OsStr]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
        command
            .current_dir(&self.folder)
            .arg("tune")
            .arg("--profile")
            .arg(&self.profile);
        let command = command.args(arguments).args(["--", "./solve"]);
        command.args(own).output().unwrap()
    }

    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.tune(arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        errors.lines().last().unwrap_or_default().to_owned()
    }
}

#[test]
fn a_dry_run_shows_commands_and_runs_nothing() {
    let case = Case::new("tune-dry", "touch ran");
    let output = case.tune(&["--machine", "xeon-x7550", "--affinity", "scatter", "--dry-run"]);
    let text = String::from_utf8(output.stdout).unwrap();
    // Each policy has its own map, written by its own command line.
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let runs = || {
        lines
            .iter()
            .filter_map(|l| l.strip_prefix("nodewise run --policy map:"))
    };
    let maps: Vec<&str> = runs().filter_map(|l| l.strip_suffix(" -- ./solve")).collect();
    assert_eq!(maps.len(), 3, "{text}");
    for (i, map) in maps.iter().enumerate() {
        let made = |l: &&&str| l.starts_with("nodewise map ") && l.ends_with(&format!("-o {map}"));
        assert_eq!(lines.iter().filter(made).count(), 1, "{map}: {text}");
        assert!(!maps[..i].contains(map), "{text}");
    }
    assert!(
        text.contains("env 'OMP_PLACES={0}:4:8,{1}:4:8' OMP_PROC_BIND=close ./solve\n"),
        "{text}"
    );
    assert!(!case.folder.join("ran").exists());
}

#[test]
fn a_program_that_fails_stops_with_its_own_words() {
    let case = Case::new("tune-fails", "echo 'no such mesh' >&2; exit 3");
    assert!(case.refusal(&[]).contains("no such mesh"));
}

#[test]
fn a_program_that_prints_something_else_each_time_stops() {
    let case = Case::new("tune-differs", "date +%N");
    assert!(case.refusal(&[]).contains("--any-output"));
}

#[test]
fn a_profile_of_another_program_is_called_so() {
    let case = Case::new("tune-other", "true");
    std::fs::copy("/bin/echo", case.folder.join("solve")).unwrap();
    std::fs::rename(case.folder.join("solve"), case.folder.join("mesh")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    command
        .current_dir(&case.folder)
        .arg("tune")
        .arg("--profile")
        .arg(&case.profile);
    let output = command
        .args(["--runs", "1", "--json", "--", "./mesh"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.contains("of another program, solve, not mesh"), "{errors}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["comparable"], false);
}

#[test]
fn an_existing_map_is_not_overwritten() {
    let case = Case::new("tune-exists", "true");
    std::fs::write(case.folder.join("solve.map"), "mine").unwrap();
    assert!(case.refusal(&["-o", "solve.map"]).contains("solve.map"));
    let name = |text: &str| {
        text.lines()
            .find_map(|l| Some(l.split_once("map:")?.1.split(' ').next()?.to_owned()))
    };
    let planned = || {
        let output = case.tune(&["--machine", "xeon-x7550", "--candidates", "1", "--dry-run"]);
        name(&String::from_utf8(output.stdout).unwrap()).unwrap()
    };
    let first = planned();
    std::fs::write(case.folder.join(&first), "mine").unwrap();
    let second = planned();
    assert_eq!(second, first.replace(".map", "-2.map"), "the next free name");
}

#[test]
fn runs_are_measured_scored_and_concluded() {
    let case = Case::new("tune-runs", "");
    // Placement rules apply to programs, not to scripts.
    std::fs::copy("/bin/echo", case.folder.join("solve")).unwrap();
    let output = case.tune(&["--runs", "2", "--json"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["rounds"], 2);
    assert_eq!(found["baseline"]["seconds"].as_array().unwrap().len(), 2);
    let candidate = &found["candidates"][0];
    assert_eq!(candidate["seconds"].as_array().unwrap().len(), 2);
    assert!(candidate["measured"]["ratio"].as_f64().unwrap() > 0.0);
    assert!(found["baseline"]["predicted_seconds"].as_f64().unwrap() > 0.0);
    // Two rounds are too few to change anything, on one node or more.
    assert!(
        ["leave-alone", "too-few-runs"].contains(&found["conclusion"].as_str().unwrap()),
        "{found}"
    );
    assert_eq!(found["command"], "./solve");
}

#[test]
fn arguments_of_the_program_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt;
    let case = Case::new("tune-bytes", r#"printf %s "$1" >argument"#);
    let word = OsStr::from_bytes(b"caf\xe9");
    let options = [
        "--machine",
        "nehalem-2s",
        "--runs",
        "1",
        "--candidates",
        "0",
        "--any-output",
    ];
    let dry = case.tune_with(&["--machine", "xeon-x7550", "--dry-run"], &[word]);
    let text = String::from_utf8(dry.stdout).unwrap();
    assert!(text.contains(r"-- ./solve $'caf\xe9'"), "{text}");
    let output = case.tune_with(&options, &[word]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        std::fs::read(case.folder.join("argument")).unwrap(),
        word.as_bytes()
    );
}
