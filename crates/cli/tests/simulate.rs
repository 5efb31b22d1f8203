//! `nodewise simulate` on a small profile: ranked, compared with first-touch, said to be estimates.

mod synthetic;

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn simulate(profile: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    command
        .arg("simulate")
        .arg(profile)
        .args(arguments)
        .output()
        .unwrap()
}

fn json(profile: &Path, arguments: &[&str]) -> Value {
    let output = simulate(profile, &[arguments, &["--json"]].concat());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

fn policies(on: &Value) -> Vec<&str> {
    let all = on["policies"].as_array().unwrap();
    all.iter().map(|p| p["policy"].as_str().unwrap()).collect()
}

#[test]
fn policies_come_fastest_first_with_first_touch_among_them() {
    let profile = synthetic::profile("simulate-ranked");
    let on = json(
        &profile,
        &[
            "--machine",
            "xeon-x7550",
            "--affinity",
            "scatter",
            "--policy",
            "locality,interleave",
        ],
    );
    assert_eq!(policies(&on).len(), 3);
    let seconds: Vec<f64> = on["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["seconds"].as_f64().unwrap())
        .collect();
    assert!(seconds.is_sorted(), "{seconds:?}");
    for p in on["policies"].as_array().unwrap() {
        let range = p["seconds_range"].as_array().unwrap();
        assert!(range[0].as_f64() <= p["seconds"].as_f64() && p["seconds"].as_f64() <= range[1].as_f64());
        if p["policy"] == "first-touch" {
            assert_eq!(p["speedup"], 1.0);
            assert_eq!(p["access_balance"], 0.0);
        }
    }
}

#[test]
fn several_machines_and_a_sweep_are_answered_at_once() {
    let profile = synthetic::profile("simulate-several");
    let all = json(
        &profile,
        &[
            "--machine",
            "itanium-9030,opteron-6386",
            "--policy",
            "mixed:0.8..0.84",
        ],
    );
    let names: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|on| on["machine"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["itanium-9030", "opteron-6386"]);
    assert_eq!(policies(&all[0]).len(), 1 + 5);
    let papers = json(&profile, &["--machine", "papers", "--policy", "first-touch"]);
    assert_eq!(papers.as_array().unwrap().len(), 9);
}

#[test]
fn fewer_cpus_are_shared_by_neighbouring_threads() {
    let profile = synthetic::profile("simulate-fewer");
    let on = json(
        &profile,
        &[
            "--machine",
            "xeon-x7550",
            "--threads",
            "2",
            "--affinity",
            "scatter",
        ],
    );
    assert_eq!((on["threads"].as_u64(), on["cpus"].as_u64()), (Some(8), Some(2)));
    let locality = on["policies"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["policy"] == "locality")
        .unwrap();
    // All blocks of `grid` can be at home, half the readers of `rhs`: more than half in all.
    assert!(locality["local_fraction"].as_f64().unwrap() > 0.5);
    let output = simulate(&profile, &["--machine", "xeon-x7550", "--threads", "9"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the profile has 8 threads"));
}

#[test]
fn accesses_to_mapped_objects_are_told_by_node_of_thread_and_page() {
    let profile = synthetic::profile("simulate-mapped");
    let on = json(&profile, &["--machine", "xeon-x7550", "--policy", "locality"]);
    for policy in on["policies"].as_array().unwrap() {
        // The profile has nothing but heap objects.
        for figure in ["local_fraction", "access_balance"] {
            assert_eq!(policy["mapped"][figure], policy[figure]);
        }
        let matrix = policy["mapped"]["accesses"].as_array().unwrap();
        let sum = |row: &Value| {
            row.as_array()
                .unwrap()
                .iter()
                .filter_map(Value::as_u64)
                .sum::<u64>()
        };
        assert_eq!(matrix.iter().map(sum).sum::<u64>(), on["calibration"]["accesses"]);
        if policy["policy"] == "first-touch" {
            assert!(matrix.iter().all(|row| sum(row) == row[0].as_u64().unwrap()));
        }
    }
}

#[test]
fn the_table_says_what_it_is() {
    let profile = synthetic::profile("simulate-table");
    let output = simulate(&profile, &["--machine", "opteron-6386"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "first-touch",
        "Estimates",
        "Calibrated by the CPU time",
        "Assumed about this machine",
        "mixed:0.9",
    ] {
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    }
}

#[test]
fn what_is_unknown_is_refused_in_one_line() {
    let profile = synthetic::profile("simulate-refused");
    for arguments in [
        ["--machine", "opteron-6387"],
        ["--policy", "locality2"],
        ["--affinity", "tight"],
    ] {
        let output = simulate(&profile, &arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), errors.lines().count()),
            (Some(2), 1),
            "{errors}"
        );
    }
}
