//! Tests `nodewise report` through its command line: errors, and written files.

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
fn two_profiles_are_compared_in_one_page_and_nowhere_else() {
    let [profile, other] = ["report-against", "report-against-other"].map(synthetic::profile);
    let (page, other) = (profile.join("both.html"), other.to_str().unwrap());
    assert_refused_usage(&report(&profile, &["--against", other]));
    let options = [
        "--machine",
        "xeon-x7550",
        "--force",
        "--html",
        page.to_str().unwrap(),
    ];
    let with = |against: &str| report(&profile, &[&options[..], &["--against", against]].concat());
    assert_refused(&with("/no/such/profile"), "/no/such/profile");
    assert!(!page.exists(), "nothing is half-written");
    assert!(with(other).status.success());
    let text = std::fs::read_to_string(&page).unwrap();
    let verdicts = text
        .split_once("<noscript>")
        .unwrap()
        .1
        .split_once("</noscript>")
        .unwrap()
        .0;
    assert_eq!(verdicts.matches("predicted time").count(), 2);
}

/// Expects exit status 2, with any message.
fn assert_refused_usage(output: &Output) {
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
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

/// The named figure of a policy in `report --json`.
fn figure(profile: &Path, arguments: &[&str], policy: &str, key: &str) -> serde_json::Value {
    let output = report(profile, &[arguments, &["--policy", policy, "--json"]].concat());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    if key == "next" {
        return found["verdict"]["next"].clone();
    }
    let policies = found["policies"].as_array().unwrap();
    policies.iter().find(|p| p["policy"] == policy).unwrap()[key].clone()
}

#[test]
fn the_next_command_makes_the_placement_that_was_reported() {
    let profile = synthetic::profile("report-next");
    let folder = profile.parent().unwrap().join("report-next-maps");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let options = [
        "--machine",
        "xeon-x7550",
        "--affinity",
        "scatter",
        "--page-size",
        "16K",
    ];
    let next = figure(&profile, &options, "locality", "next");
    let (map, run) = next
        .as_str()
        .expect("a placement pays")
        .split_once(" && ")
        .unwrap();
    assert_eq!(run, "nodewise run --policy map:app.map -- ./solve");
    let own = Path::new(env!("CARGO_BIN_EXE_nodewise"));
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", map])
        .current_dir(&folder)
        .env("PATH", own.parent().unwrap());
    let done = shell.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let policy = format!("map:{}", folder.join("app.map").display());
    for key in ["local_fraction", "access_balance", "page_balance"] {
        let reported = figure(&profile, &options, "locality", key);
        assert_eq!(figure(&profile, &options, &policy, key), reported, "{key}");
    }
    let again = figure(&profile, &options, &policy, "next");
    assert!(
        again.as_str().unwrap().starts_with("nodewise run --policy map:"),
        "{again}"
    );
}

#[test]
fn waiting_is_named_whichever_objects_are_described() {
    let profile = synthetic::waiting("report-waiting");
    for machine in ["xeon-x7550", "this"] {
        let output = report(&profile, &["--machine", machine]);
        let text = String::from_utf8_lossy(&output.stdout);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("of all accesses are to a few lines of 1 ") && words.contains("`flag`"),
            "{machine}: {text}"
        );
    }
    let output = report(&profile, &["--machine", "xeon-x7550", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let objects = json["objects"].as_array().unwrap();
    let flag = objects.iter().find(|o| o["name"] == "flag").unwrap();
    assert!(
        flag["advice"]
            .as_str()
            .unwrap()
            .starts_with("No placement follows")
            && flag["snippet"].is_null(),
        "{flag}"
    );
    assert_eq!(json["few_lines"][0]["object"], "flag");
}
