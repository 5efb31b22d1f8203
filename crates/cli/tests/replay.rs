//! A recorded session from end to end: its moves are reported, and the simulator repeats them.

mod synthetic;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use synthetic::MOVED;

/// A machine of four nodes, over which eight threads are distributed.
const MACHINE: [&str; 4] = ["--machine", "xeon-x7550", "--affinity", "scatter"];

fn nodewise(command: &str, profile: &Path, arguments: &[&str]) -> Output {
    bare(command, profile, &[&MACHINE, arguments].concat())
}

fn bare(command: &str, profile: &Path, arguments: &[&str]) -> Output {
    let mut nodewise = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    nodewise
        .arg(command)
        .arg(profile)
        .args(arguments)
        .output()
        .unwrap()
}

fn json(command: &str, profile: &Path, arguments: &[&str]) -> Value {
    let output = nodewise(command, profile, &[arguments, &["--json"]].concat());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn policy<'a>(simulated: &'a Value, name: &str) -> &'a Value {
    let all = simulated["policies"].as_array().unwrap();
    all.iter().find(|p| p["policy"] == name).unwrap()
}

#[test]
fn a_session_is_replayed_move_by_move_from_where_its_pages_were() {
    let profile = synthetic::balanced("replay-session");
    let simulated = json("simulate", &profile, &["--policy", "replay,locality"]);
    let [replay, first_touch, locality] =
        ["replay", "first-touch", "locality"].map(|name| policy(&simulated, name));
    assert_eq!(replay["migrations"], MOVED.0 + MOVED.1);
    assert_eq!(replay["ping_pongs"], MOVED.1 / 2);
    assert_eq!(replay["multiple"], 0);
    let local = |p: &Value| p["local_fraction"].as_f64().unwrap();
    assert!(local(replay) > local(first_touch) + 0.05, "{replay}");
    // Before the moves, all pages are where the master touched them; after them, `grid` is where it is used.
    let local = |p: &Value, slice: usize| p["slices"][slice]["local_fraction"].as_f64().unwrap();
    assert!((local(replay, 1) - local(first_touch, 1)).abs() < 1e-9);
    assert!(
        (local(replay, 3) - local(locality, 3)).abs() < 1e-3 && local(replay, 3) > local(replay, 1) + 0.05
    );
    let slices = replay["slices"].as_array().unwrap();
    let moved: Vec<&Value> = slices.iter().map(|s| &s["migrations"]).collect();
    assert_eq!(moved, [0, MOVED.0 + MOVED.1 / 2, MOVED.1 / 2, 0]);
}

#[test]
fn the_report_counts_what_the_replay_moves() {
    let profile = synthetic::balanced("replay-report");
    let report = json("report", &profile, &[]);
    let moves = &report["moves"];
    assert_eq!(
        (&moves["ours"], &moves["kernel"]),
        (&MOVED.0.into(), &MOVED.1.into())
    );
    assert_eq!(moves["kernel_counted"], MOVED.1);
    assert_eq!(
        (&moves["ping_pongs"], &moves["incorrect"]),
        (&(MOVED.1 / 2).into(), &0.into())
    );
    assert_eq!(moves["objects"][0]["name"], "grid");
    assert_eq!(moves["held_back"][0]["cause"], "budget");
    let rows = report["migrations"].as_array().unwrap();
    let pages: u64 = rows.iter().map(|m| m["pages"].as_u64().unwrap()).sum();
    assert_eq!(pages, MOVED.0 + MOVED.1);
    let text = String::from_utf8(nodewise("report", &profile, &[]).stdout).unwrap();
    assert!(
        text.contains("by out-w-local:threshold=2") && text.contains("16 by kernel"),
        "{text}"
    );
}

#[test]
fn where_threads_were_seen_is_where_they_are() {
    let profile = synthetic::balanced("replay-recorded");
    let report = |machine, policies| {
        let output = bare(
            "report",
            &profile,
            &["--json", "--machine", machine, "--policy", policies],
        );
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let here = report("xeon-x7550", "first-touch");
    assert_eq!(here["affinity"]["name"], "recorded");
    assert_eq!(
        here["affinity"]["thread_nodes"],
        serde_json::json!([0, 1, 2, 3, 0, 1, 2, 3])
    );
    let simulated = json("simulate", &profile, &["--policy", "replay"]);
    let [moved, left] =
        ["replay", "first-touch"].map(|p| policy(&simulated, p)["local_fraction"].as_f64().unwrap());
    assert!((here["moves"]["local_fraction"].as_f64().unwrap() - moved).abs() < 1e-9);
    let sentence = |report: &Value| report["verdict"]["sentence"].as_str().unwrap().to_owned();
    let text = sentence(&here);
    assert!(
        text.starts_with("As its pages moved") && text.contains("under first-touch: "),
        "{text}"
    );
    // The share of accesses is reported as an interval around the share of samples.
    for (range, share) in [
        (&here["moves"]["local_range"], moved),
        (&policy(&here, "first-touch")["local_range"], left),
    ] {
        let [low, high] = [0, 1].map(|end| range[end].as_f64().unwrap());
        assert!(low < share && share < high || share == high, "{share} of {range}");
    }
    // If a static placement achieves more, it is recommended instead of page migration.
    let text = sentence(&report("xeon-x7550", "locality"));
    assert!(
        text.starts_with("By samples") && text.contains("locality"),
        "{text}"
    );
    // Another machine has no such nodes.
    let other_machine = report("machine-a", "first-touch");
    assert_eq!(other_machine["affinity"]["name"], "sharing-aware");
    assert!(other_machine["moves"]["local_fraction"].is_null());
}

#[test]
fn samples_are_never_said_to_be_times() {
    let profile = synthetic::balanced("replay-sampled");
    let report = json("report", &profile, &["--policy", "all"]);
    assert_eq!(report["program"]["exact"], false);
    for policy in report["policies"].as_array().unwrap() {
        assert!(
            policy["seconds"].is_null() && policy["speedup"].is_null(),
            "{policy}"
        );
    }
    let simulated = nodewise("simulate", &profile, &["--policy", "locality"]);
    let text = String::from_utf8(simulated.stdout).unwrap();
    assert!(text.contains("samples"), "{text}");
}

#[test]
fn the_moves_of_a_simulated_policy_are_shown_as_recorded_ones_are() {
    let profile = synthetic::profile("replay-simulated");
    let policies = ["--policy", "balance:dominant"];
    let report = json("report", &profile, &policies);
    let simulated = json("simulate", &profile, &[&policies[..], &["--moves"]].concat());
    let (moves, moving) = (&report["moves"], policy(&simulated, "balance:dominant"));
    assert_eq!(moves["simulated"], "balance:dominant");
    for (ours, theirs) in [
        ("ours", "migrations"),
        ("local_fraction", "local_fraction"),
        ("ping_pongs", "ping_pongs"),
        ("incorrect", "incorrect"),
    ] {
        assert_eq!(moves[ours], moving[theirs], "{ours}");
    }
    let [shown, listed] = [&report["migrations"], &moving["moves"]].map(|m| m.as_array().unwrap());
    assert!(!shown.is_empty() && shown.len() == listed.len());
    for (a, b) in shown.iter().zip(listed) {
        assert_eq!((&a["from"], &a["to"]), (&b["from"], &b["to"]));
    }
    // Advice contains only placements that `run` can enforce, with or without recorded moves.
    let plain = json("report", &profile, &[]);
    assert_eq!(
        (&report["verdict"], &report["policies"]),
        (&plain["verdict"], &plain["policies"])
    );
    let text = String::from_utf8(nodewise("report", &profile, &policies).stdout).unwrap();
    assert!(
        text.contains("Simulated under balance:dominant") && !text.contains("while it ran"),
        "{text}"
    );
}

#[test]
fn moves_are_shown_of_one_policy_or_as_they_were() {
    let refused = |profile: &Path, policies: &str, part: &str| {
        let output = nodewise("report", profile, &["--policy", policies]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(
            message.contains(part) && message.lines().count() == 1,
            "{message}"
        );
    };
    let nothing_moved = synthetic::profile("replay-one-policy");
    refused(
        &nothing_moved,
        "balance:out-u,balance:in-w",
        "the moves of one policy",
    );
    refused(&nothing_moved, "balance:nonsense", "unknown online policy");
    refused(&nothing_moved, "replay", "without asking");
    let moved = synthetic::balanced("replay-both");
    let output = nodewise(
        "report",
        &moved,
        &["--json", "--policy", "balance:out-u,locality"],
    );
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        shown["moves"],
        json("report", &moved, &["--policy", "locality"])["moves"]
    );
    let note = String::from_utf8_lossy(&output.stderr);
    assert!(
        note.contains("while this was recorded") && note.lines().count() == 1,
        "{note}"
    );
    let top = nodewise("top", &nothing_moved, &["--once", "--policy", "balance:out-u"]);
    assert_eq!(top.status.code(), Some(2), "top shows no simulated moves");
}

#[test]
fn a_report_shows_the_moves_that_simulate_counts_within_the_same_limits() {
    let profile = synthetic::profile("replay-limits");
    let moves = |limits: &[&str]| {
        let options = [&["--policy", "balance:dominant"], limits].concat();
        let shown = json("report", &profile, &options)["moves"]["ours"].as_u64();
        let simulated = json("simulate", &profile, &options);
        assert_eq!(
            shown,
            policy(&simulated, "balance:dominant")["migrations"].as_u64()
        );
        shown.unwrap()
    };
    let papers = moves(&[
        "--migrate-budget",
        "none",
        "--cooldown",
        "0",
        "--minimum-samples",
        "1",
    ]);
    let tight = moves(&["--minimum-samples", "4000000000"]);
    assert!(tight == 0 && papers > 0, "{tight} and {papers}");
}

#[test]
fn pages_of_any_size_are_counted_in_base_pages() {
    let profile = synthetic::profile("replay-huge");
    let options = ["--page-size", "2M", "--policy", "balance:dominant"];
    let moves = &json("report", &profile, &options)["moves"];
    let simulated = json("simulate", &profile, &options);
    let moving = policy(&simulated, "balance:dominant");
    let count = |of: &Value, key: &str| of[key].as_u64().unwrap();
    assert_eq!(count(moves, "ours"), 512 * count(moving, "migrations"));
    let held = moves["held_back"].as_array().unwrap().iter();
    assert_eq!(held.map(|h| count(h, "pages")).sum::<u64>() % 512, 0);
}

#[test]
fn where_nothing_was_moved_there_is_nothing_to_replay() {
    let profile = synthetic::profile("replay-nothing");
    let output = nodewise("simulate", &profile, &["--policy", "replay"]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("nothing to replay") && message.lines().count() == 1,
        "{message}"
    );
    assert!(json("report", &profile, &[])["moves"].is_null());
}
