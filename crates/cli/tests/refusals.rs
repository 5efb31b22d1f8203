//! Errors in a command line: one line with the remedy, and the command's exit status.

mod synthetic;

use std::process::{Command, Output, Stdio};

fn nodewise(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    command
        .args(line.split(' '))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Status and standard error.
fn refused(line: &str) -> (Option<i32>, String) {
    let output = nodewise(line);
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_status_and_the_line_are_those_of_the_command_meant() {
    for (line, status, expected) in [
        ("rec --foo", 125, "see nodewise record --help"),
        ("ru --foo -- true", 125, "see nodewise run --help"),
        (
            "balance --polcy -- true",
            125,
            "'--policy'; see nodewise balance --help",
        ),
        (
            "bal --polcy x --pid 1",
            2,
            "'--policy'; see nodewise balance --help",
        ),
        ("re --foo", 2, "see nodewise --help"),
        (
            "run --policy interlave -- true",
            125,
            "`interlave` (did you mean interleave?)",
        ),
        (
            "run --bind compct -- true",
            125,
            "`compct` (did you mean compact?)",
        ),
        (
            "lab --machine nehalem-2s --under interlave -- true",
            125,
            "interlave (did you mean interleave?)",
        ),
        ("check --duration 2x", 2, "`2x` is no time"),
        ("check --duration 2h", 2, "from 0 to 60m"),
        ("check --threshold 120", 2, "no share"),
        ("simulate --plain-cpu 0 x", 2, "no time"),
    ] {
        let (code, error) = refused(line);
        assert_eq!(
            (code, error.lines().count()),
            (Some(status), 1),
            "{line}: {error}"
        );
        assert!(error.contains(expected), "{line}: {error}");
    }
}

#[test]
fn old_names_work_with_shortened_commands_and_say_the_new_one() {
    let profile = synthetic::profile("refusals-renamed").display().to_string();
    let line = format!("simulat {profile} --machine machine-a --polic locality --threads 4,scatter --rest 3");
    let output = nodewise(&line);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    for new in ["--cpus 4 --affinity scatter", "--cooldown 3"] {
        assert!(stderr.contains(&format!("is written {new} now")), "{stderr}");
    }
}

/// Only where the kernel's setting cannot be reached: with it, this would set it.
#[test]
fn a_scan_period_that_cannot_be_set_is_said_by_its_option() {
    if std::path::Path::new("/sys/kernel/debug/sched").exists() {
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    command.args(["balance", "--scan-period", "1s", "--", "true"]);
    let output = command.env("NODEWISE_PRETEND_NODES", "2").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{stderr}");
    let last = stderr.lines().last().unwrap();
    assert!(
        last.starts_with("nodewise: --scan-period: the scan period cannot be set: "),
        "{stderr}"
    );
}

#[test]
fn help_points_to_where_things_are() {
    let help = String::from_utf8(nodewise("simulate --help").stdout).unwrap();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
    assert!(
        at("--migrate-budget") < at("and each of the limits above"),
        "{help}"
    );
}

#[test]
fn names_are_shortened() {
    for line in [
        "run --dry-run --policy inter --bind sca -- true",
        "run --dry-run --policy Round-Robin -- true",
    ] {
        let output = nodewise(line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {stderr}");
    }
    let profile = synthetic::profile("refusals-names").display().to_string();
    let simulate = format!("simulate {profile} --machine nehalem-2s --affinity");
    let [short, full] = ["sca", "scatter"].map(|name| nodewise(&format!("{simulate} {name}")).stdout);
    assert_eq!(short, full);
    let (status, stderr) = refused(&format!("{simulate} scater"));
    assert_eq!(status, Some(2));
    assert!(stderr.contains("`scater` (did you mean scatter?)"), "{stderr}");
}

#[test]
fn times_and_shares_have_units_or_are_plain_numbers() {
    let own = std::process::id();
    for options in ["--duration 10ms --threshold 0%", "--seconds 0 --threshold 0"] {
        let output = nodewise(&format!("check {options} --pid {own}"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{options}: {stderr}");
    }
    let profile = synthetic::profile("refusals-times").display().to_string();
    let simulate = format!("simulate {profile} --machine nehalem-2s --json --plain-cpu");
    let [plain, unit] = ["0.5", "500ms"].map(|time| nodewise(&format!("{simulate} {time}")).stdout);
    assert!(!plain.is_empty());
    assert_eq!(plain, unit);
    for (time, why) in [
        ("90", "the recorded run itself took"),
        ("1us", "is it the time of the same work?"),
    ] {
        let (status, stderr) = refused(&format!("{simulate} {time}"));
        assert_eq!(status, Some(2));
        assert!(stderr.contains(why) && stderr.lines().count() == 1, "{stderr}");
    }
}
