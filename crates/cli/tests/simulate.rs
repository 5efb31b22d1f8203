//! `nodewise simulate` on a small profile: policies are ranked, compared with first-touch, and marked as estimates.

mod ran;
mod synthetic;

use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn simulate(profile: &Path, arguments: &[&str]) -> Output {
    ran::nodewise("simulate", profile, arguments)
}

fn json(profile: &Path, arguments: &[&str]) -> Value {
    ran::json("simulate", profile, arguments)
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
        &["--machine", "xeon-x7550", "--cpus", "2", "--affinity", "scatter"],
    );
    assert_eq!((on["threads"].as_u64(), on["cpus"].as_u64()), (Some(8), Some(2)));
    let locality = on["policies"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["policy"] == "locality")
        .unwrap();
    // All accesses to `grid` can be local, and half of those to `rhs`: in total more than half.
    assert!(locality["local_fraction"].as_f64().unwrap() > 0.5);
    let output = simulate(&profile, &["--machine", "xeon-x7550", "--cpus", "9"]);
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

/// Starts with round-robin placement, without limits on moves.
const FREE: [&str; 8] = [
    "--machine",
    "xeon-x7550",
    "--start",
    "round-robin",
    "--migrate-budget",
    "none",
    "--cooldown",
    "0",
];

fn policy<'a>(on: &'a Value, name: &str) -> &'a Value {
    let all = on["policies"].as_array().unwrap();
    all.iter().find(|p| p["policy"] == name).unwrap()
}

#[test]
fn online_policies_stand_beside_the_others_and_start_where_they_are_told() {
    let profile = synthetic::profile("simulate-moving");
    let found = json(
        &profile,
        &[
            &FREE[..],
            &["--policy", "locality,balance:dominant,balance:out-u"],
        ]
        .concat(),
    );
    assert_eq!(found["baseline"], "round-robin");
    assert_eq!(policy(&found, "round-robin")["speedup"], 1.0);
    let moving = policy(&found, "balance:dominant");
    assert!(moving["migrations"].as_u64().unwrap() > 0);
    assert_eq!(moving["incorrect"], 0);
    assert!(moving["migration_seconds"].as_f64().unwrap() > 0.0);
    for p in found["policies"].as_array().unwrap() {
        let moves = |s: &Value| s["migrations"].as_u64().unwrap();
        let slices = p["slices"].as_array().unwrap();
        assert_eq!(slices.iter().map(moves).sum::<u64>(), moves(p));
        assert_eq!(slices.len(), moving["slices"].as_array().unwrap().len());
    }
    let text = simulate(&profile, &[&FREE[..], &["--policy", "balance:dominant"]].concat());
    assert!(String::from_utf8(text.stdout).unwrap().contains("ping-pongs"));
}

#[test]
fn every_move_is_listed_where_it_is_asked_for() {
    let profile = synthetic::profile("simulate-moves");
    let asked = ["--policy", "balance:dominant,balance:out-u"];
    let found = json(&profile, &[&FREE[..], &asked, &["--moves"]].concat());
    for name in ["balance:dominant", "balance:out-u"] {
        let moving = policy(&found, name);
        let moves = moving["moves"].as_array().unwrap();
        assert_eq!(moves.len() as u64, moving["migrations"].as_u64().unwrap());
        let wrong = moves.iter().filter(|m| m["incorrect"] == true).count();
        assert_eq!(wrong as u64, moving["incorrect"].as_u64().unwrap());
        assert!(moves.iter().all(|m| m["from"] != m["to"]));
    }
    assert!(policy(&json(&profile, &[&FREE[..], &asked].concat()), "balance:dominant")["moves"].is_null());
}

#[test]
fn a_monitor_behind_caches_counts_lines() {
    let profile = synthetic::profile("simulate-counted");
    let moves = |more: &[&str]| {
        let asked = ["--policy", "balance:dominant", "--minimum-samples", "100"];
        let found = json(&profile, &[&FREE[..], &asked, more].concat());
        assert_eq!(found["parameters"]["traffic"], "lines");
        policy(&found, "balance:dominant")["migrations"].as_u64().unwrap()
    };
    let accesses = moves(&[]);
    assert_eq!(accesses, moves(&["--counted", "accesses"]));
    // `lhs` has 590 accesses to 64 lines a page: too few to judge it by.
    let lines = moves(&["--counted", "lines"]);
    assert!(0 < lines && lines < accesses, "{lines} of {accesses}");
}

#[test]
fn without_a_budget_nothing_moves_and_nothing_changes() {
    let profile = synthetic::profile("simulate-budget");
    let found = json(
        &profile,
        &[
            "--machine",
            "xeon-x7550",
            "--policy",
            "balance:dominant",
            "--migrate-budget",
            "0",
        ],
    );
    let (still, moving) = (policy(&found, "first-touch"), policy(&found, "balance:dominant"));
    assert_eq!(
        (still["seconds"].clone(), 0.into()),
        (moving["seconds"].clone(), moving["migrations"].clone())
    );
    assert!(moving["held_back"]["budget"].as_u64().unwrap() > 0);
}

#[test]
fn farther_memory_costs_remote_accesses_alone() {
    let profile = synthetic::profile("simulate-ratio");
    let seconds = |ratio: &str, name: &str| {
        let found = json(
            &profile,
            &[
                "--machine",
                "sci-cluster-4",
                "--policy",
                "node:0",
                "--latency-ratio",
                ratio,
            ],
        );
        policy(&found, name)["seconds"].as_f64().unwrap()
    };
    assert!(seconds("100", "node:0") > seconds("10", "node:0"));
}

#[test]
fn a_sweep_has_each_parameter_s_chosen_value_once_and_a_picture() {
    let profile = synthetic::profile("simulate-sweep");
    let file = profile.join("sweep.svg");
    let svg = [
        "--sweep",
        "balance:out-w:threshold=1.7",
        "--svg",
        file.to_str().unwrap(),
    ];
    let found = json(&profile, &[&FREE[..], &svg].concat());
    let points = found["points"].as_array().unwrap();
    for parameter in [
        "threshold",
        "window",
        "weight",
        "half-life",
        "interval",
        "cooldown",
    ] {
        let chosen = points
            .iter()
            .filter(|p| p["parameter"] == parameter && p["chosen"] == true);
        assert_eq!(chosen.count(), 1, "{parameter}");
    }
    let threshold = points
        .iter()
        .find(|p| p["parameter"] == "threshold" && p["chosen"] == true);
    assert_eq!(threshold.unwrap()["value"], "1.7");
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("<svg"));
    let again = simulate(&profile, &[&FREE[..], &svg].concat());
    assert_eq!(again.status.code(), Some(2), "nothing is overwritten unasked");
}

#[test]
fn what_cannot_be_drawn_or_replayed_is_refused_in_one_line() {
    let profile = synthetic::profile("simulate-undrawn");
    let file = profile.join("pages.svg");
    let file = file.to_str().unwrap();
    for (arguments, said) in [
        (
            &["--machine", "machine-a", "--policy", "replay"][..],
            "nothing to replay",
        ),
        (
            &["--machine", "machine-a", "--policy", "balance:out-v"],
            "unknown online policy",
        ),
        (
            &[
                "--machine",
                "machine-a",
                "--policy",
                "balance:out-u,balance:out-w",
                "--svg",
                file,
            ],
            "one policy",
        ),
        (
            &["--machine", "machine-a", "--policy", "locality", "--svg", file],
            "one policy",
        ),
        (
            &["--machine", "machine-a,sci-cluster-4", "--sweep", "out-u"],
            "one machine",
        ),
    ] {
        let output = simulate(&profile, arguments);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), errors.lines().count()),
            (Some(2), 1),
            "{errors}"
        );
        assert!(errors.contains(said), "{errors}");
    }
    assert!(!Path::new(file).exists());
}

#[test]
fn asym_puts_each_policy_on_the_nodes_it_is_fastest_on_and_says_what_that_is_worth() {
    let profile = synthetic::profile("simulate-asym");
    let arguments = ["--machine", "mai-opteron-8n", "--policy", "locality,interleave"];
    let on = json(
        &profile,
        &[&arguments[..], &["--cpus", "4", "--affinity", "asym"]].concat(),
    );
    let choice = &on["choice"];
    let nodes = choice["nodes"].as_u64().unwrap() as usize;
    assert_eq!(choice["threads"].as_array().unwrap().len(), nodes);
    assert_eq!(choice["complete"], true);
    for p in choice["policies"].as_array().unwrap() {
        let seconds = |key: &str| p[key]["seconds"].as_f64().unwrap();
        let mean = p["mean_seconds"].as_f64().unwrap();
        assert!(seconds("best") <= mean * (1.0 + 1e-9) && mean <= seconds("worst") * (1.0 + 1e-9));
        assert!(seconds("best") <= seconds("by_bandwidth") && seconds("by_bandwidth") <= seconds("worst"));
        let name = p["policy"].as_str().unwrap();
        let all = on["policies"].as_array().unwrap();
        let predicted = all.iter().find(|q| q["policy"] == name).unwrap();
        assert_eq!(predicted["nodes"], p["best"]["nodes"], "{name}");
        let again = predicted["seconds"].as_f64().unwrap();
        assert!((again - seconds("best")).abs() < 1e-6 * again, "{name}: {again}");
    }
    let text = simulate(
        &profile,
        &[&arguments[..], &["--cpus", "4", "--affinity", "asym"]].concat(),
    );
    assert!(String::from_utf8_lossy(&text.stdout).contains("4 threads need"));
}

#[test]
fn several_programs_at_once_get_nodes_of_their_own_on_every_placement() {
    let (one, two) = (
        synthetic::profile("simulate-beside"),
        synthetic::profile("simulate-besides"),
    );
    let other = two.to_str().unwrap();
    let asked = [
        other,
        "--machine",
        "mai-opteron-8n",
        "--policy",
        "locality",
        "--threads",
        "4,asym",
    ];
    let on = json(&one, &asked);
    assert_eq!(
        (on["placements"].as_f64(), on["complete"].as_bool()),
        (Some(420.0), Some(true))
    );
    let again = json(&one, &[&asked[..], &["--restart"]].concat());
    for (policy, repeated) in on["policies"]
        .as_array()
        .unwrap()
        .iter()
        .zip(again["policies"].as_array().unwrap())
    {
        let speed = |key: &str| policy[key]["speed"].as_f64().unwrap();
        assert!(speed("best") >= speed("by_bandwidth") && speed("by_bandwidth") >= speed("worst"));
        for key in ["best", "worst", "by_bandwidth"] {
            let nodes: Vec<u64> = policy[key]["nodes"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|n| n.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()))
                .collect();
            let distinct: std::collections::BTreeSet<_> = nodes.iter().collect();
            assert_eq!((nodes.len(), distinct.len()), (4, 4), "{key}");
        }
        for (at, own) in policy["programs"].as_array().unwrap().iter().enumerate() {
            let least = own["best"]["seconds"].as_f64().unwrap();
            let chosen = policy["by_bandwidth"]["seconds"][at].as_f64().unwrap();
            let often = repeated["programs"][at]["best"]["seconds"].as_f64().unwrap();
            assert!(
                least > 0.0 && least <= chosen && least <= often * 1.001,
                "{least} {chosen} {often}"
            );
        }
    }
    let text = simulate(&one, &asked);
    let text = String::from_utf8_lossy(&text.stdout);
    assert!(
        text.contains("2 programs at once, on 2 + 2 of 8 nodes; all 420 placements"),
        "{text}"
    );
}

#[test]
fn programs_that_do_not_fit_or_are_not_placed_are_refused_in_one_line() {
    let (one, two) = (
        synthetic::profile("simulate-unfit"),
        synthetic::profile("simulate-unfits"),
    );
    let other = two.to_str().unwrap();
    for (arguments, said) in [
        (&["--machine", "itanium-9030"][..], "the programs need"),
        (
            &["--machine", "machine-a", "--affinity", "scatter"],
            "--affinity asym",
        ),
        (
            &["--machine", "machine-a", "--cpus", "4,4,4", "--affinity", "asym"],
            "3 numbers for 2 programs",
        ),
        (
            &["--machine", "machine-a", "--svg", "a.svg"],
            "--svg is about one program",
        ),
        (
            &["--machine", "machine-a", "--plain-cpu", "1"],
            "--plain-cpu is about one program",
        ),
    ] {
        let output = simulate(&one, &[&[other], arguments].concat());
        let errors = String::from_utf8(output.stderr).unwrap();
        let found = (output.status.code(), errors.lines().count(), output.stdout.len());
        assert_eq!(found, (Some(2), 1, 0), "{errors}");
        assert!(errors.contains(said), "{errors}");
    }
    assert_eq!(simulate(&one, &["--restart"]).status.code(), Some(2));
}

#[test]
fn a_picture_of_a_program_on_few_nodes_names_those() {
    let profile = synthetic::profile("simulate-drawn-asym");
    let file = profile.join("few.svg");
    let policy = [
        "--machine",
        "mai-opteron-8n",
        "--policy",
        "balance:dominant",
        "--threads",
        "4,asym",
    ];
    let drawn = simulate(
        &profile,
        &[&policy[..], &["--svg", file.to_str().unwrap()]].concat(),
    );
    assert!(
        drawn.status.success(),
        "{}",
        String::from_utf8_lossy(&drawn.stderr)
    );
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(
        svg.contains("node 7"),
        "all nodes of the machine are in the legend"
    );
}

#[test]
fn a_number_of_threads_a_policy_or_both_are_taken() {
    let profile = synthetic::profile("simulate-threads");
    let affinity = |threads: &str| {
        json(&profile, &["--machine", "xeon-x7550", "--threads", threads])["affinity"].clone()
    };
    assert_eq!(affinity("hwloc:numa:1"), "hwloc:numa:1");
    assert_eq!(affinity("2,likwid:M0:0-1"), "likwid:M0:0-1");
    let refused = simulate(
        &profile,
        &["--machine", "xeon-x7550", "--affinity", "likwid:S0:0"],
    );
    let line = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && line.trim_end().lines().count() == 1 && line.contains("M0 to M3"),
        "{line}"
    );
}
