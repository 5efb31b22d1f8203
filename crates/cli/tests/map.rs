//! `nodewise map` on a small profile: maps are written, checked, applied in a simulation, and refused.

mod synthetic;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn nodewise(profile: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodewise"));
    command
        .arg("map")
        .arg(profile)
        .args(["--machine", "xeon-x7550"])
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Standard output of a map that was made.
fn map(profile: &Path, policy: &str) -> String {
    let output = nodewise(profile, &["--policy", policy, "--affinity", "scatter", "-o", "-"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// The one line of a refusal.
fn refusal(profile: &Path, arguments: &[&str]) -> String {
    let output = nodewise(profile, arguments);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr).lines().count(), 1);
    text(&output.stderr).trim_end().to_owned()
}

#[test]
fn a_map_says_what_where_and_how_much() {
    let profile = synthetic::profile("map-words");
    let map = map(&profile, "mixed");
    for expected in [
        "policy = \"mixed:0.9\"",
        "machine = \"xeon-x7550\"",
        "nodes = 4",
        "program = \"solve\"",
        "threads = 8",
        "# grid: 2 MiB, ",
        "# rhs: 2 MiB, ",
        "site = \"main solve.c:30\"",
        "distribution = \"interleave 0,1,2,3\"",
        "name = \"scatter\"",
    ] {
        assert!(map.contains(expected), "{expected} is missing in\n{map}");
    }
}

#[test]
fn a_map_applied_again_gives_the_same_map() {
    let profile = synthetic::profile("map-again");
    let file = profile.join("locality.map");
    let first = nodewise(&profile, &["--policy", "locality", "-o", file.to_str().unwrap()]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert!(
        text(&first.stderr).contains("% of accesses local under them"),
        "{}",
        text(&first.stderr)
    );
    let written = std::fs::read_to_string(&file).unwrap();
    let again = nodewise(
        &profile,
        &["--policy", &format!("map:{}", file.display()), "-o", "-"],
    );
    let rules = |map: &str| map[map.find("[kept]").unwrap()..].to_owned();
    assert_eq!(rules(text(&again.stdout)), rules(&written));
}

#[test]
fn existing_files_stay_unless_forced() {
    let profile = synthetic::profile("map-force");
    let file = profile.join("a.map");
    std::fs::write(&file, "mine").unwrap();
    let arguments = ["--policy", "interleave", "-o", file.to_str().unwrap()];
    assert!(refusal(&profile, &arguments).ends_with("exists already; choose another name or add --force"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    assert!(
        nodewise(&profile, &[&arguments[..], &["--force"]].concat())
            .status
            .success()
    );
    assert!(std::fs::read_to_string(&file).unwrap().contains("format = 1"));
}

#[test]
fn each_bad_request_is_one_line() {
    let profile = synthetic::profile("map-refused");
    let refused = |policy: &str| refusal(&profile, &["--policy", policy, "-o", "-"]);
    assert!(refused("nearest").starts_with("nodewise: unknown policy `nearest`; known: first-touch, "));
    assert_eq!(
        refused("node:4"),
        "nodewise: policy `node:4`: xeon-x7550 has nodes 0 to 3; write node:N"
    );
    assert_eq!(refused("all").split(" names ").next(), Some("nodewise: `all`"));
    assert!(refused("map:absent.map").starts_with("nodewise: cannot read absent.map: "));
    assert!(refused("./absent.so").starts_with("nodewise: ./absent.so: cannot be loaded: "));
    let affinity = refusal(
        &profile,
        &["--policy", "locality", "--affinity", "close", "-o", "-"],
    );
    assert!(
        affinity.starts_with("nodewise: unknown affinity `close`; known: compact, "),
        "{affinity}"
    );
}

#[test]
fn a_map_for_one_node_says_that_it_was_decided_for_one() {
    let profile = synthetic::profile("map-one-node");
    let machine = profile.join("one.toml");
    let one = "name = \"one\"\ntitle = \"One node\"\nlatency_ns = [[80]]\n\
        nodes = [{ cpus = \"0-7\", memory = \"8G\", bandwidth = 10000 }]\n";
    std::fs::write(&machine, one).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_nodewise"))
        .arg("map")
        .arg(&profile)
        .arg("--machine")
        .arg(&machine)
        .args(["--policy", "locality", "-o", "-"])
        .output()
        .unwrap();
    let stderr = text(&output.stderr);
    assert!(
        output.status.success() && stderr.contains("decided for one node (one)"),
        "{stderr}"
    );
}

/// Compiles a policy against the header that users get.
fn library(folder: &Path, name: &str, source: &Path) -> PathBuf {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/user-policy");
    let library = folder.join(name);
    let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"];
    let status = Command::new("cc")
        .args(flags)
        .arg("-I")
        .arg(header)
        .arg("-o")
        .args([&library, source])
        .status();
    assert!(status.expect("a C compiler").success());
    library
}

#[test]
fn a_users_policy_decides_like_one_of_ours() {
    let profile = synthetic::profile("map-plugin");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/user-policy/nearest.c");
    let nearest = library(&profile, "nearest.so", &source);
    let rules = |map: &str| map[map.find("[kept]").unwrap()..].to_owned();
    // All remote latencies of this machine are equal, so the nearest node is the local one.
    assert_eq!(
        rules(&map(&profile, nearest.to_str().unwrap())),
        rules(&map(&profile, "locality"))
    );

    let wild = profile.join("wild.c");
    let code = "#include \"nodewise_policy.h\"\nuint32_t nodewise_policy_abi(void) { return NODEWISE_POLICY_ABI; }\n\
        int nodewise_policy(const nodewise_histogram *h, uint32_t *n) { (void)h; n[0] = 9; return 0; }\n";
    std::fs::write(&wild, code).unwrap();
    let wild = library(&profile, "wild.so", &wild);
    let error = refusal(&profile, &["--policy", wild.to_str().unwrap(), "-o", "-"]);
    assert!(
        error.ends_with("put page 0 on node 9, but xeon-x7550 has nodes 0 to 3"),
        "{error}"
    );
}

#[test]
fn a_map_of_asym_binds_to_chosen_nodes_and_keeps_pages_on_them() {
    let profile = synthetic::profile("map-asym");
    let arguments = [
        "--machine",
        "mai-opteron-8n",
        "--threads",
        "asym",
        "--policy",
        "interleave",
        "-o",
        "-",
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_nodewise"))
        .arg("map")
        .arg(&profile)
        .args(arguments)
        .output()
        .unwrap();
    let (_, binding) = text(&output.stdout).split_once("[binding]").unwrap();
    assert!(binding.contains("name = \"asym\""), "{binding}");
    let (_, list) = binding.split_once("nodes = [").unwrap();
    let list = list.split(']').next().unwrap();
    let numbers = list.split(',').filter_map(|n| n.trim().parse().ok());
    let mut nodes: Vec<i64> = numbers.collect();
    nodes.sort_unstable();
    nodes.dedup();
    // Eight threads fill four nodes of two CPUs.
    assert_eq!(nodes.len(), 4);
    let used = text(&output.stdout)
        .lines()
        .filter_map(|l| l.split("interleave ").nth(1));
    let mut lists = 0;
    for list in used
        .filter_map(|l| l.split('"').next())
        .filter(|l| l.contains(','))
    {
        let list: Vec<i64> = list.split(',').map(|n| n.parse().unwrap()).collect();
        assert!(
            list.iter().all(|n| nodes.contains(n)),
            "{list:?} is not on {nodes:?}"
        );
        lists += 1;
    }
    assert!(lists > 0, "no rule interleaves:\n{}", text(&output.stdout));
}
