//! `nodewise topo`, run as a user runs it.

use std::path::PathBuf;
use std::process::{Command, Output};

fn topo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nodewise"))
        .arg("topo")
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = topo(arguments);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("nodewise-topo-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn the_list_names_every_machine_that_can_be_shown() {
    let list = stdout(&["--list"]);
    for line in list.lines() {
        let name = line.split_whitespace().next().unwrap();
        assert!(stdout(&["--machine", name]).starts_with(name), "{name}");
    }
    assert!(list.lines().count() > 12);
}

#[test]
fn text_has_matrix_links_routes_and_where_figures_come_from() {
    let text = stdout(&["--machine", "machine-a"]);
    for part in [
        "8 nodes, 64 CPUs",
        "0>1>7",
        "7>3",
        "16bit      0-1 2-3 4-5 6-7",
        "nothing back  1>5 2>7 4>1 7>3",
        "63.85 %  of the narrower link: 16bit followed by 8bit",
        "7 reads 3 over 3>2>7, 1.91 GB/s; writes to it over 7>3, 3.75 GB/s",
        "assumed",
        "Lepers et al.",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains('\x1b'), "colour is for terminals");
}

#[test]
fn json_has_square_matrices_and_routes_of_existing_links() {
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&["--machine", "opteron-6272", "--json"])).unwrap();
    assert_eq!(json["name"], "machine-a");
    for matrix in ["latency_ns", "bandwidth_MBps"] {
        let rows = json[matrix].as_array().unwrap();
        assert!(rows.len() == 8 && rows.iter().all(|row| row.as_array().unwrap().len() == 8));
    }
    let links = json["links"].as_array().unwrap().len() as u64;
    let routes = json["routes"].as_array().unwrap();
    assert_eq!(routes.len(), 56);
    for route in routes {
        let crossed = route["links"].as_array().unwrap();
        assert!(crossed.iter().all(|l| l.as_u64().unwrap() < links));
        assert_eq!(crossed.len(), route["via"].as_array().unwrap().len() + 1);
    }
    assert!(
        json["sources"]
            .as_array()
            .unwrap()
            .iter()
            .any(|s| s["assumed"] == true)
    );
}

#[test]
fn a_saved_machine_loads_as_the_one_it_was() {
    let folder = folder("saved");
    let file = folder.join("copy.toml");
    let file = file.to_str().unwrap();
    stdout(&["--machine", "epyc-2s-nps4", "-o", file]);
    assert_eq!(
        stdout(&["--machine", file]),
        stdout(&["--machine", "epyc-2s-nps4"])
    );
    let again = folder.join("machine-a.toml");
    let again = again.to_str().unwrap();
    stdout(&["--machine", "machine-a", "-o", again]);
    let text = std::fs::read_to_string(again).unwrap();
    assert!(
        text.contains("[[hop_rules]]") && !text.contains("\nbandwidth = [["),
        "{text}"
    );
    assert_eq!(
        stdout(&["--machine", again, "--json"]),
        stdout(&["--machine", "machine-a", "--json"])
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn flows_that_move_together_share_what_they_both_cross() {
    let text = stdout(&["--machine", "machine-a", "--flows", "0>2,0>3"]);
    assert_eq!(text.matches("link 0>2").count(), 2, "{text}");
    let json: serde_json::Value = serde_json::from_str(&stdout(&[
        "--machine",
        "machine-a",
        "--flows",
        "0>2,0>3",
        "--json",
    ]))
    .unwrap();
    let flow = &json["flows"][1];
    assert_eq!(
        (flow["via"].clone(), flow["together_MBps"].as_f64()),
        (serde_json::json!([2]), Some(2164.5))
    );
    assert_eq!(json["total_MBps"], 4329.0);
    let refused = topo(&["--machine", "machine-a", "--flows", "0>9"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("there is no node 9; nodes are 0 to 7"));
}

#[test]
fn an_existing_file_stays_unless_forced() {
    let folder = folder("force");
    let file = folder.join("a.svg");
    std::fs::write(&file, "mine").unwrap();
    let path = file.to_str().unwrap();
    let refused = topo(&["--machine", "machine-a", "--svg", path]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--force"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    stdout(&["--machine", "machine-a", "--svg", path, "--force"]);
    assert!(std::fs::read_to_string(&file).unwrap().starts_with("<svg"));
    assert_eq!(
        std::fs::read_dir(&folder).unwrap().count(),
        1,
        "nothing half-written is left"
    );
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn files_that_cannot_be_written_are_said_before_anything_is_done() {
    let folder = folder("files");
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let none = path("none/a.toml");
    let (same, picture) = (path("same"), path("picture.svg"));
    std::fs::write(&same, "mine").unwrap();
    for (arguments, because) in [
        (vec!["-o", &none, "--svg", &picture], "there is no folder"),
        (vec!["-o", &same, "--svg", &picture], "exists already"),
        (vec!["-o", &picture, "--svg", &picture], "name two files"),
        (vec!["-o", folder.to_str().unwrap(), "--force"], "is a folder"),
    ] {
        for measure in [&["--measure", "--quick"][..], &["--machine", "machine-a"]] {
            let refused = topo(&[measure, &arguments].concat());
            let error = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert_eq!(refused.status.code(), Some(2), "{error}");
            assert!(error.contains(because) && error.lines().count() == 1, "{error}");
            assert!(refused.stdout.is_empty() && std::fs::read_dir(&folder).unwrap().count() == 1);
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn directions_of_one_width_and_two_classes_are_not_alike() {
    let folder = folder("class");
    let file = folder.join("two.toml");
    let text = "name = 'two'\ntitle = ''\nlatency_ns = [[100, 200], [200, 100]]\n\
                nodes = [{ cpus = '0', memory = '1G', bandwidth = 9000 }, { cpus = '1', memory = '1G', bandwidth = 9000 }]\n\
                links = [{ from = 0, to = 1, class = 'wide', bandwidth = 4000 }, \
                { from = 1, to = 0, class = 'fast', bandwidth = 4000 }]";
    std::fs::write(&file, text).unwrap();
    let shown = stdout(&["--machine", file.to_str().unwrap()]);
    assert!(
        shown.contains("wide  0>1") && shown.contains("fast  1>0"),
        "{shown}"
    );
    std::fs::write(&file, text.replace("wide", "fast")).unwrap();
    assert!(stdout(&["--machine", file.to_str().unwrap()]).contains("fast  0-1"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_unknown_machine_is_one_line_with_a_suggestion() {
    let output = topo(&["--machine", "xeon-x7505"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(error.lines().count(), 1);
    assert!(error.contains("did you mean xeon-x7550?"), "{error}");
}
