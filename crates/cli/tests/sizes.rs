//! `nodewise simulate --sweep hot:NODES`: the time by the size of the fast memory; and machines in their firmware's modes.

mod ran;
mod synthetic;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

fn simulate(profile: &Path, arguments: &[&str]) -> Output {
    ran::nodewise("simulate", profile, arguments)
}

fn json(profile: &Path, arguments: &[&str]) -> Value {
    ran::json("simulate", profile, arguments)
}

/// A socket with so much memory, and an expander.
fn machine(profile: &Path, memory: &str) -> PathBuf {
    let file = profile.with_extension(format!("{memory}.toml"));
    let text = format!(
        "name = 'small'\ntitle = 'a socket and an expander'\nlatency_ns = [[100, 300], [300, 300]]\n\
         nodes = [ {{ cpus = '0-63', memory = '{memory}', bandwidth = 80000, kind = 'dram' }},\n\
         {{ memory = '64G', bandwidth = 20000, kind = 'cxl' }} ]\n\
         links = [ {{ between = [0, 1], bandwidth = 20000 }} ]\n"
    );
    std::fs::write(&file, text).unwrap();
    file
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn what_may_lie_elsewhere_is_the_most_that_a_point_allows() {
    let profile = synthetic::profile("sizes");
    let machine = machine(&profile, "64G");
    let machine = machine.to_str().unwrap();
    for policy in ["hot:0", "hot:dram", "hot-objects:0"] {
        let found = json(
            &profile,
            &["--machine", machine, "--sweep", policy, "--may-lose", "20%"],
        );
        let points = found["points"].as_array().unwrap();
        let used = number(&found["used_bytes"]);
        assert!(points.len() > 5);
        assert_eq!(number(&points[0]["fast_bytes"]), 0.0);
        assert_eq!(number(&points[points.len() - 1]["fast_bytes"]), used);
        for p in points {
            assert_eq!(number(&p["fast_bytes"]) + number(&p["elsewhere_bytes"]), used);
            let [least, typical, most] = [0, 1, 2].map(|i| number(&p["loss"][i]));
            assert!(least <= typical && typical <= most, "{p}");
        }
        let allowed = |end: usize| {
            let holds = points.iter().filter(|p| number(&p["loss"][end]) <= 0.2);
            holds.map(|p| number(&p["elsewhere_bytes"])).fold(0.0, f64::max)
        };
        assert_eq!(number(&found["may_leave_bytes"]), allowed(1), "{policy}");
        assert_eq!(number(&found["may_leave_at_worst_bytes"]), allowed(2), "{policy}");
        let elsewhere: f64 = found["objects"]
            .as_array()
            .unwrap()
            .iter()
            .map(|o| number(&o["elsewhere_bytes"]))
            .sum();
        assert_eq!(
            elsewhere,
            allowed(1),
            "{policy}: the objects are those of the answer"
        );
        let whole = &points[points.len() - 1];
        assert_eq!([0, 1, 2].map(|i| number(&whole["loss"][i])), [0.0; 3]);
        assert_eq!(number(&whole["fast_share"]), 1.0);
    }
}

#[test]
fn a_point_of_the_sweep_is_what_the_policy_alone_is_predicted_to_take() {
    let profile = synthetic::profile("sizes-alone");
    let machine = machine(&profile, "64G");
    let machine = machine.to_str().unwrap();
    let found = json(&profile, &["--machine", machine, "--sweep", "hot:0"]);
    let point = &found["points"][4];
    let size = number(&point["fast_bytes"]) as u64 / 1024;
    let list = format!("hot:0@{size}K,fill:0@{size}K,hot:0");
    let alone = json(&profile, &["--machine", machine, "--policy", &list]);
    let seconds = |policy: &str| {
        let all = alone["policies"].as_array().unwrap();
        number(&all.iter().find(|p| p["policy"] == policy).unwrap()["seconds"])
    };
    let [hot, fill] = ["hot", "fill"].map(|name| seconds(&format!("{name}:0@{size}K")));
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs().max(1e-9);
    assert!(close(number(&point["seconds"][1]), hot));
    assert!(close(
        number(&point["filled_loss"]),
        fill / seconds("hot:0") - 1.0
    ));
}

#[test]
fn the_table_says_how_much_each_kind_of_memory_moves() {
    let profile = synthetic::profile("sizes-kinds");
    let two = machine(&profile, "64G");
    let list = "hot:0@1M,fill:0@1M,hot:0";
    let arguments = ["--machine", two.to_str().unwrap(), "--policy", list];
    let found = json(&profile, &arguments);
    let served = |policy: &str| {
        let all = found["policies"].as_array().unwrap();
        let kinds = &all.iter().find(|p| p["policy"] == policy).unwrap()["served_by_kind"];
        ["dram", "cxl"].map(|kind| number(&kinds[kind]))
    };
    for policy in list.split(',') {
        let [dram, cxl] = served(policy);
        assert!((dram + cxl - 1.0).abs() < 1e-9, "{policy}: {dram} and {cxl}");
    }
    assert_eq!(served("hot:0"), [1.0, 0.0], "all of it is in the sockets' memory");
    assert!(
        served("hot:0@1M")[0] > served("fill:0@1M")[0],
        "what is used most is there"
    );
    let text = String::from_utf8(simulate(&profile, &arguments).stdout).unwrap();
    let head: Vec<&str> = text
        .lines()
        .find(|l| l.contains("speed-up"))
        .unwrap()
        .split_whitespace()
        .collect();
    let at = head.iter().position(|word| *word == "local").unwrap();
    assert_eq!(head[at + 1..at + 3], ["dram", "cxl"]);
    let one = json(&profile, &["--machine", "xeon-x7550"]);
    assert!(
        one["policies"][0].get("served_by_kind").is_none(),
        "one kind says nothing"
    );
}

#[test]
fn what_does_not_fit_is_said_and_losses_are_over_what_does() {
    let profile = synthetic::profile("sizes-small");
    let file = machine(&profile, "1M");
    let arguments = ["--machine", file.to_str().unwrap(), "--sweep", "hot:0"];
    let found = json(&profile, &arguments);
    assert_eq!(number(&found["whole_bytes"]), f64::from(1 << 20));
    let text = String::from_utf8(simulate(&profile, &arguments).stdout).unwrap();
    assert!(
        text.contains(" must, as 0 has 1 MiB, and losses are over that."),
        "{text}"
    );
    let first = simulate(
        &profile,
        &["--machine", file.to_str().unwrap(), "--policy", "first-touch"],
    );
    let said = String::from_utf8(first.stderr).unwrap();
    assert!(
        said.contains("small has too little memory") && said.contains(" more on node 0 than its 1 MiB"),
        "{said}"
    );
}

#[test]
fn the_picture_is_written_and_what_cannot_be_sized_is_refused_in_one_line() {
    let profile = synthetic::profile("sizes-refused");
    let file = machine(&profile, "64G");
    let file = file.to_str().unwrap();
    let svg = profile.with_extension("svg");
    let drawn = simulate(
        &profile,
        &[
            "--machine",
            file,
            "--sweep",
            "hot:0",
            "--force",
            "--svg",
            svg.to_str().unwrap(),
        ],
    );
    assert!(drawn.status.success());
    assert!(std::fs::read_to_string(&svg).unwrap().contains("hot:0 on small"));
    for (arguments, expected) in [
        (&["--sweep", "hot"][..], "name the nodes to fill first"),
        (&["--sweep", "hot:0-1"], "these are all nodes of small"),
        (
            &["--sweep", "hot:0@4M"],
            "its size is what is varied; write hot:0",
        ),
        (
            &["--sweep", "fill:0"],
            "a policy that moves pages (balance:out-w), hot:NODES",
        ),
        (&["--sweep", "hot:0", "--start", "fill:0"], "leave out --start"),
        (
            &["--sweep", "hot:0", "--affinity", "asym"],
            "--affinity asym chooses the nodes",
        ),
        (
            &["--policy", "hot:0", "--affinity", "asym"],
            "--affinity asym chooses the nodes",
        ),
        (&["--policy", "hot:0", "--may-lose", "5%"], "--sweep hot:NODES"),
        (&["--sweep", "hot:0", "--may-lose", "5"], "such as 5% or 0.05"),
        (&["--sweep", "hot:0", "--may-lose", "-1%"], "such as 5% or 0.05"),
    ] {
        let output = simulate(&profile, &[&["--machine", file][..], arguments].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(
            said.contains(expected) && said.trim_end().lines().count() == 1,
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn a_policy_of_both_kinds_is_swept_as_one_that_moves_pages() {
    let profile = synthetic::profile("sizes-mixed");
    let found = json(&profile, &["--machine", "opteron-6386", "--sweep", "mixed"]);
    assert_eq!(found["policy"], "balance:mixed");
}

#[test]
fn a_machine_in_several_modes_ends_with_a_line_a_mode() {
    let profile = synthetic::profile("sizes-modes");
    let output = simulate(
        &profile,
        &[
            "--machine",
            "epyc-2s-nps4,nps=1,2,4",
            "--policy",
            "locality,random",
        ],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text
        .lines()
        .filter(|l| l.starts_with("epyc-2s-nps4:nps=") && !l.contains(": "))
        .collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines.iter().all(|l| !l.contains("random")));
    let all = json(
        &profile,
        &["--machine", "epyc-2s-nps4,nps=1,4", "--policy", "locality"],
    );
    let names: Vec<&str> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["machine"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["epyc-2s-nps4:nps=1", "epyc-2s-nps4:nps=4"]);
    for (machine, expected) in [
        ("epyc-2s-nps4:nps=3", "a divisor of 4"),
        ("epyc-2s-nps4:nps=x", "`x` is no number of nodes a socket"),
        ("epyc-2s-nps4:hbm=cache", "no node of HBM"),
        ("xeonmax-2s-snc4-flat:hbm=on", "write cache or flat"),
        ("machine-a:nps=1", "nodes.socket"),
        ("spr-2s-cxl:nps=2", "has one node, which cannot be divided"),
    ] {
        let output = simulate(&profile, &["--machine", machine]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(
            said.contains(expected) && said.trim_end().lines().count() == 1,
            "{said}"
        );
    }
}
