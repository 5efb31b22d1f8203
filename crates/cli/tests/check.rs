//! Tests `nodewise check` on imitated `/proc` and `/sys` files of a four-node host, and on this host.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A host's `proc` and `sys` in a folder of its own, removed at the end: four nodes of two CPUs.
struct Host(PathBuf);

impl Host {
    fn new(test: &str) -> Self {
        let root = std::env::temp_dir().join(format!("nodewise-check-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        let host = Self(root);
        host.write("sys/devices/system/node/online", "0-3\n");
        for (node, distances) in ["10 16 16 22", "16 10 22 16", "16 22 10 16", "22 16 16 10"]
            .iter()
            .enumerate()
        {
            let folder = format!("sys/devices/system/node/node{node}");
            host.write(
                &format!("{folder}/cpulist"),
                &format!("{}-{}\n", 2 * node, 2 * node + 1),
            );
            host.write(
                &format!("{folder}/meminfo"),
                &format!("Node {node} MemTotal:       65774816 kB\n"),
            );
            host.write(&format!("{folder}/distance"), &format!("{distances}\n"));
        }
        host.write(
            "proc/self/status",
            "Name:\tnodewise\nUid:\t1000\t1000\t1000\t1000\n",
        );
        host
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A process with a thread on each of `cpus`, each of which has run for as long.
    fn process(&self, pid: u32, name: &str, uid: u32, cpus: &[u32], numa_maps: &str) {
        let status = format!(
            "Name:\t{name}\nUmask:\t0022\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nVmRSS:\t  409600 kB\nThreads:\t{}\n\
             Cpus_allowed_list:\t0-7\nMems_allowed_list:\t0-3\n",
            cpus.len()
        );
        self.write(&format!("proc/{pid}/status"), &status);
        self.write(&format!("proc/{pid}/numa_maps"), numa_maps);
        for (index, cpu) in cpus.iter().enumerate() {
            let tid = pid + index as u32;
            let stat = format!(
                "{tid} ({name} w) R 1 {pid} {pid} 0 -1 4194304 100 0 0 0 90 10 0 0 20 0 1 0 102828 3133440 410 \
                 18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 {cpu} 0 0 0 0 0 1 1 1 1 1 1 1 0\n"
            );
            self.write(&format!("proc/{pid}/task/{tid}/stat"), &stat);
            self.write(
                &format!("proc/{pid}/task/{tid}/schedstat"),
                "1000000000 5000 20\n",
            );
        }
    }

    fn check(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
        command
            .args(["check", "--duration", "0", "--root"])
            .arg(&self.0)
            .args(arguments);
        command.output().unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.check(&[&["--json"], arguments].concat());
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text)
            .unwrap_or_else(|e| panic!("{e}: {text} {}", String::from_utf8_lossy(&output.stderr)))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process with 400 MiB on node 0, as after initialisation by one thread.
const ON_NODE_0: &str = "\
55d0c1a00000 default file=/opt/solve/bin/solve mapped=12 N0=12 kernelpagesize_kB=4
55d0c2e5b000 default heap anon=33 dirty=33 active=0 N0=33 kernelpagesize_kB=4
7f2a10000000 default anon=102400 dirty=102400 active=0 N0=102400 kernelpagesize_kB=4
7ffd4ad2e000 default stack anon=5 dirty=5 N0=5 kernelpagesize_kB=4
";

const ALL_CPUS: &[u32] = &[0, 1, 2, 3, 4, 5, 6, 7];

fn spread(policy: &str) -> String {
    format!(
        "7f2a10000000 {policy} anon=102400 dirty=102400 N0=25600 N1=25600 N2=25600 N3=25600 kernelpagesize_kB=4\n"
    )
}

fn kinds(process: &Value) -> Vec<&str> {
    process["reasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["kind"].as_str().unwrap())
        .collect()
}

fn close(value: &Value, expected: f64) {
    assert!(
        (value.as_f64().unwrap() - expected).abs() < 0.01,
        "{value} is not {expected}"
    );
}

#[test]
fn memory_on_one_node_of_threads_on_four_is_a_quarter_placed() {
    let host = Host::new("first-touch");
    host.process(4242, "solve", 1000, ALL_CPUS, ON_NODE_0);
    let output = host.check(&["--pid", "4242"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "under the threshold");
    assert!(text.starts_with("4242 solve: 25 % well placed"), "{text}");
    assert!(
        text.contains("node 0 holds 100 % of the memory") && text.contains("initialise in parallel"),
        "{text}"
    );
    assert!(text.contains("7f2a10000000"), "names the range");
    let next = "next: nodewise balance --dry-run --pid 4242";
    assert!(text.contains(next), "names what to do: {text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let of_memory = "the number is the share of the memory that lies where the threads ran";
    assert!(
        words.contains(of_memory) && words.contains("It is no share of accesses"),
        "claims nothing of accesses: {text}"
    );

    let json = host.json(&["--pid", "4242"]);
    let process = &json["processes"][0];
    close(&process["score"], 0.25);
    close(&process["expected_locality"], 0.25);
    close(&process["page_balance"], 0.0);
    close(&process["mean_latency_ns"], (100.0 + 160.0 + 160.0 + 220.0) / 4.0);
    assert_eq!(
        process["memory_bytes"][0].as_u64().unwrap(),
        (12 + 33 + 102_400 + 5) * 4096
    );
    assert_eq!(process["threads"], 8);
    assert_eq!(json["passed"], false);
}

#[test]
fn memory_spread_as_the_threads_are_can_all_be_local() {
    let host = Host::new("spread");
    host.process(4242, "solve", 1000, ALL_CPUS, &spread("interleave:0-3"));
    let output = host.check(&["--pid", "4242"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!String::from_utf8_lossy(&output.stdout).contains("next:"));
    let process = &host.json(&["--pid", "4242"])["processes"][0];
    close(&process["score"], 1.0);
    close(&process["expected_locality"], 0.25);
    close(&process["page_balance"], 1.0);
    assert_eq!(kinds(process), ["policies"]);
    assert_eq!(process["policies"]["interleave:0-3"].as_u64().unwrap(), 400 << 20);
}

#[test]
fn threads_away_from_their_memory_place_nothing() {
    let host = Host::new("away");
    host.process(4242, "solve", 1000, &[6, 7], ON_NODE_0);
    let process = &host.json(&["--pid", "4242"])["processes"][0];
    close(&process["score"], 0.0);
    close(&process["mean_latency_ns"], 220.0);
    assert_eq!(kinds(process)[0], "overfull-node");
    assert!(
        process["reasons"][0]["mend"]
            .as_str()
            .unwrap()
            .contains("numactl")
    );
}

#[test]
fn memory_without_cpus_and_outside_the_cpuset_is_named() {
    let host = Host::new("far");
    host.write("sys/devices/system/node/node3/cpulist", "\n");
    host.process(
        4242,
        "solve",
        1000,
        &[0, 1],
        "7f2a10000000 bind:3 huge anon=100 N0=50 N3=50 kernelpagesize_kB=2048\n",
    );
    let status = "Name:\tsolve\nUid:\t1000\nVmRSS:\t409600 kB\nMems_allowed_list:\t0-2\n";
    host.write("proc/4242/status", status);
    let process = &host.json(&["--pid", "4242"])["processes"][0];
    let kinds = kinds(process);
    for kind in ["memory-without-cpus", "outside-cpuset", "policies"] {
        assert!(kinds.contains(&kind), "{kind} is not in {kinds:?}");
    }
    let reasons = process["reasons"].as_array().unwrap();
    let far = reasons
        .iter()
        .find(|r| r["kind"] == "memory-without-cpus")
        .unwrap();
    assert!(
        far["mend"].as_str().unwrap().contains("balance --policy hot:"),
        "{far}"
    );
    assert_eq!(process["memory_bytes"][3].as_u64().unwrap(), 100 << 20);
}

#[test]
fn without_a_number_the_users_processes_are_listed_worst_first() {
    let host = Host::new("list");
    host.process(100, "good", 1000, ALL_CPUS, &spread("default"));
    host.process(200, "bad", 1000, ALL_CPUS, ON_NODE_0);
    host.process(300, "foreign", 0, ALL_CPUS, ON_NODE_0);
    let output = host.check(&[]);
    let text = String::from_utf8_lossy(&output.stdout);
    let order: Vec<&str> = text
        .lines()
        .skip(1)
        .take(2)
        .map(|l| l.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(order, ["200", "100"], "{text}");
    assert!(!text.contains("foreign"));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(host.check(&["--threshold", "20%"]).status.code(), Some(0));
}

#[test]
fn what_a_list_leaves_out_is_counted() {
    let host = Host::new("left-out");
    for number in 1..=14 {
        host.process(100 * number, "solve", 1000, ALL_CPUS, ON_NODE_0);
    }
    let ranges: String = (0..9)
        .map(|n| format!("7f2a1{n}000000 default anon=9 dirty=9 N0=9 kernelpagesize_kB=4\n"))
        .collect();
    host.process(4242, "pieces", 1000, ALL_CPUS, &ranges);
    let said = |arguments: &[&str], line: &str| {
        let output = host.check(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(line), "{text}");
    };
    said(&[], "\nand 3 more processes (--pid N)\n");
    said(
        &["--pid", "4242"],
        "\n  and 4 more ranges (/proc/4242/numa_maps)\n",
    );
    assert_eq!(host.json(&[])["left_out"], 3);
    let one = host.json(&["--pid", "4242"]);
    assert_eq!(
        (&one["left_out"], &one["processes"][0]["ranges_left_out"]),
        (&Value::from(0), &Value::from(4))
    );
}

#[test]
fn another_machine_lends_its_latencies_when_it_has_as_many_nodes() {
    let host = Host::new("machine");
    host.process(4242, "solve", 1000, &[6, 7], ON_NODE_0);
    let json = host.json(&["--pid", "4242", "--machine", "xeon-x7550"]);
    close(&json["processes"][0]["mean_latency_ns"], 195.0);
    let output = host.check(&["--pid", "4242", "--machine", "itanium-9030"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn resctrl_tells_what_is_measured() {
    let host = Host::new("resctrl");
    host.process(4242, "solve", 1000, &[0, 1], ON_NODE_0);
    host.write("sys/fs/resctrl/mon_groups/batch/tasks", "17\n4242\n");
    for (domain, total) in [("mon_L3_00", "1000"), ("mon_L3_01", "500")] {
        let folder = format!("sys/fs/resctrl/mon_groups/batch/mon_data/{domain}");
        host.write(&format!("{folder}/mbm_total_bytes"), total);
        host.write(&format!("{folder}/mbm_local_bytes"), "400");
    }
    // Counters that do not advance give no measurement, so none is reported.
    assert_eq!(
        host.json(&["--pid", "4242"])["processes"][0]["measured_local"],
        Value::Null
    );
}

#[test]
fn what_is_not_there_or_makes_no_sense_is_one_line() {
    let host = Host::new("bad");
    host.process(4242, "solve", 1000, &[0], "what is this\n");
    for (pid, part) in [("77", "no process 77"), ("4242", "numa_maps")] {
        let output = host.check(&["--pid", pid]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.lines().count() == 1 && error.contains(part), "{error}");
    }
}

#[test]
fn this_hosts_own_processes_are_judged() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = child.id().to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_nodewise"))
        .args([
            "check",
            "--json",
            "--duration",
            "0.3",
            "--threshold",
            "0",
            "--pid",
            &pid,
        ])
        .output()
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let process = &json["processes"][0];
    assert_eq!(
        (process["name"].as_str(), process["threads"].as_u64()),
        (Some("sleep"), Some(1))
    );
    assert!((0.0..=1.0).contains(&process["score"].as_f64().unwrap()));
    if json["nodes"] == 1 {
        assert_eq!(
            (process["score"].as_f64(), kinds(process)),
            (Some(1.0), vec!["one-node"])
        );
    }
}
