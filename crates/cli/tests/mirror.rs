//! `mirror` and `instances`: copies of what is only read, or of the whole program, compared by `simulate` and `report`, refused where
//! placements are asked for.

mod ran;
mod synthetic;

use ran::{json, nodewise};
use serde_json::Value;
use std::path::Path;

fn refusal(command: &str, profile: &Path, arguments: &[&str]) -> String {
    let output = nodewise(command, profile, arguments);
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn copies_make_reads_local_and_cost_memory_on_each_node() {
    let profile = synthetic::profile("simulate-mirror");
    let on = |policy: &str| {
        let machine = [
            "--machine",
            "xeon-x7550",
            "--affinity",
            "scatter",
            "--policy",
            policy,
        ];
        let on = json("simulate", &profile, &machine);
        let found = on["policies"]
            .as_array()
            .unwrap()
            .iter()
            .find(|p| p["policy"] == policy);
        found.unwrap().clone()
    };
    // Of the three arrays all threads read `rhs`, which only the first slice writes.
    let copied = on("mirror");
    let copies = &copied["copies"];
    assert_eq!(copies["objects"][0]["name"], "rhs");
    assert_eq!(copies["objects"].as_array().unwrap().len(), 1);
    assert_eq!(copies["bytes"], 4 * 512 * 4096);
    assert_eq!(copies["nodes"], serde_json::json!([0, 1, 2, 3]));
    assert_eq!(copies["objects"][0]["after_slice"], 0);
    // Six of eight threads are not on the node of `rhs`; of `grid` and `lhs` nothing changes.
    let remote = |p: &Value| {
        let mapped = p["mapped"]["accesses"].as_array().unwrap();
        let row = |(i, row): (usize, &Value)| {
            let row: Vec<u64> = row
                .as_array()
                .unwrap()
                .iter()
                .map(|c| c.as_u64().unwrap())
                .collect();
            row.iter().sum::<u64>() - row[i]
        };
        mapped.iter().enumerate().map(row).sum::<u64>()
    };
    let reads_of_rhs_elsewhere = 6 * 512 * 50_000;
    assert_eq!(
        remote(&on("first-touch")) - remote(&copied),
        reads_of_rhs_elsewhere
    );
    let two = on("mirror:r*@0+2");
    assert_eq!(two["copies"]["bytes"], 2 * 512 * 4096);
    assert_eq!(
        remote(&two) - remote(&copied),
        4 * 512 * 50_000,
        "of the threads on nodes 1 and 3"
    );
}

#[test]
fn objects_that_copies_do_not_suit_are_named() {
    let profile = synthetic::profile("simulate-mirror-refused");
    let said = |policy: &str| {
        refusal(
            "simulate",
            &profile,
            &["--machine", "xeon-x7550", "--policy", policy],
        )
    };
    assert!(
        said("mirror:grid")
            .contains("mirror:grid: grid is written in slice 1 (the last is 1) and not read after")
    );
    assert!(
        said("mirror:x").contains("no array or file is called `x`")
            && said("mirror:x").contains("copies suit rhs")
    );
    assert!(said("mirror@7").contains("nodes with memory are 0-3 on xeon-x7550"));
}

#[test]
fn a_report_shows_copies_that_gain_more_than_every_placement() {
    let profile = synthetic::profile("report-mirror");
    let on = ["--machine", "xeon-x7550", "--affinity", "scatter"];
    let report = json("report", &profile, &on);
    let [copies, instances] = &report["copies"].as_array().unwrap()[..] else {
        panic!("copies, and what they compete with: {}", report["copies"]);
    };
    let typical = |key: &str| copies["copies"][key][1].as_f64().unwrap();
    let (gain, best) = (typical("speedup_once_filled"), typical("best_placement_speedup"));
    assert!(gain > 1.03 * best, "{gain} over {best}");
    let even = copies["copies"]["seconds"].as_f64().unwrap() / (1.0 / best - 1.0 / gain);
    assert!((typical("break_even_seconds") / even - 1.0).abs() < 1e-9);
    let sentence = copies["copies"]["sentence"].as_str().unwrap();
    assert!(
        sentence.starts_with(
            "mirror: a copy of rhs (2 MiB, last store in slice 0) on each of the nodes 0-3: up to 8 MiB more memory"
        ),
        "{sentence}"
    );
    // An instance a node makes the accesses to the other arrays local, too, and takes their memory on each node.
    assert_eq!(
        (&instances["policy"], &instances["local_fraction"]),
        (&"instances".into(), &1.0.into())
    );
    let of = |copies: &Value, key: &str| copies["copies"][key].as_u64().unwrap();
    assert!(of(instances, "bytes_a_node") > of(copies, "bytes_a_node"));
    assert_eq!(of(instances, "bytes"), 4 * of(instances, "bytes_a_node"));
    let together = instances["speedup"].as_f64().unwrap();
    let copied = copies["speedup"].as_f64().unwrap();
    assert!(together >= copied, "{together} and {copied}");
    let sentence = instances["copies"]["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("a piece takes") && sentence.contains("numactl -N NODE -m NODE"),
        "{sentence}"
    );
    // On one node there is nothing to gain, and what was sampled is not known to be only read.
    let alone = json("report", &profile, &["--machine", "this"]);
    assert_eq!(alone["copies"], serde_json::json!([]));
    let sampled = synthetic::balanced("report-mirror-sampled");
    assert_eq!(json("report", &sampled, &on)["copies"], serde_json::json!([]));
    let said = refusal(
        "report",
        &sampled,
        &["--machine", "xeon-x7550", "--policy", "mirror"],
    );
    assert!(
        said.contains("samples, which tell neither what nothing writes"),
        "{said}"
    );
}

#[test]
fn where_a_placement_is_asked_for_copies_are_refused_with_what_makes_them() {
    let profile = synthetic::profile("map-mirror");
    let map = profile.with_extension("map");
    let words = [
        "--machine",
        "xeon-x7550",
        "--policy",
        "mirror",
        "-o",
        map.to_str().unwrap(),
    ];
    let said = refusal("map", &profile, &words);
    assert!(said.contains("nw_replicate of libnodewise"), "{said}");
    assert!(!map.exists());
    for other in [&["--affinity", "asym"][..], &["--move-threads"]] {
        let said = refusal(
            "simulate",
            &profile,
            &[&["--machine", "machine-a", "--policy", "mirror"], other].concat(),
        );
        assert!(said.contains("copies are not predicted with"), "{said}");
    }
}
