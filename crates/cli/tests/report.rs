//! `nodewise report` as a user meets it: what it refuses, what it writes.

mod synthetic;

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn report(profile: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    command
        .arg("report")
        .arg(profile)
        .args(arguments)
        .output()
        .unwrap()
}

/// Exit status 2 and one line that contains `part`.
fn assert_refused(output: &Output, part: &str) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains(part) && message.lines().count() == 1,
        "{message}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn a_page_is_never_overwritten_unless_forced() {
    let profile = synthetic::profile("report-force");
    let page = profile.join("report.html");
    let file = page.to_str().unwrap();
    std::fs::write(&page, "mine").unwrap();
    let arguments = ["--machine", "xeon-x7550", "--html", file];
    assert_refused(&report(&profile, &arguments), "--force");
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "mine");
    let forced = report(&profile, &[&arguments[..], &["--force"]].concat());
    assert!(forced.status.success());
    assert!(
        std::fs::read_to_string(&page)
            .unwrap()
            .starts_with("<!doctype html>")
    );
    assert!(!profile.join("report.html.partial").exists());
}

#[test]
fn what_does_not_exist_is_refused_in_one_line() {
    let profile = synthetic::profile("report-refused");
    assert_refused(&report(&profile, &["--machine", "no-such"]), "no-such");
    assert_refused(&report(&profile, &["--policy", "no-such"]), "no-such");
    assert_refused(&report(&profile, &["--affinity", "no-such"]), "no-such");
    assert_refused(&report(&profile.join("nowhere"), &[]), "nowhere");
    assert_refused(
        &report(&profile, &["--html", "/no/such/folder/report.html"]),
        "/no/such/folder",
    );
}

#[test]
fn first_touch_is_the_baseline_whatever_is_asked_for() {
    let profile = synthetic::profile("report-baseline");
    let output = report(
        &profile,
        &[
            "--machine",
            "xeon-x7550",
            "--policy",
            "interleave,mixed:0.8",
            "--json",
        ],
    );
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let policies = json["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["policy"].as_str().unwrap());
    assert_eq!(
        policies.collect::<Vec<_>>(),
        ["first-touch", "interleave", "mixed:0.8"]
    );
    assert_eq!(json["policies"][0]["speedup"], 1.0);
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let profile = synthetic::profile("report-pipe");
    let mut child = Command::new(env!("CARGO_BIN_EXE_nodewise"))
        .arg("report")
        .arg(&profile)
        .arg("--json")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn no_escape_sequence_reaches_a_pipe() {
    let profile = synthetic::profile("report-plain");
    assert!(!report(&profile, &[]).stdout.contains(&0x1b));
}
