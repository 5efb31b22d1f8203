//! `nodewise files` on this host: what it says of files is what the kernel has in memory, and bad input is a line.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MIB: u64 = 1 << 20;

fn files(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nodewise"))
        .arg("files")
        .args(arguments)
        .output()
        .unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let output = files(&[&["--json"], arguments].concat());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A folder of its own for a test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nodewise-files-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A file of a mebibyte, just written and therefore in memory.
    fn file(&self, name: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, vec![7; MIB as usize]).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn in_memory(nodes: &Value) -> u64 {
    let nodes = nodes.as_object().unwrap();
    nodes.values().map(|n| n["bytes"].as_u64().unwrap()).sum()
}

#[test]
fn a_file_that_was_just_written_is_in_memory_and_whoever_maps_it_is_named() {
    let folder = Folder::new("written");
    let path = folder.file("a");
    let found = json(&[&path]);
    let object = &found["objects"][0];
    assert_eq!(
        (object["size"].as_u64(), in_memory(&object["nodes"])),
        (Some(MIB), MIB)
    );
    assert_eq!(object["mapped_by"], Value::Array(Vec::new()));
    // This test maps its own executable.
    let own = std::env::current_exe().unwrap();
    let found = json(&[own.to_str().unwrap()]);
    let pids: Vec<u64> = found["objects"][0]["mapped_by"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|m| m["pid"].as_u64())
        .collect();
    assert!(pids.contains(&u64::from(std::process::id())), "{pids:?}");
    let own = std::process::id().to_string();
    let found = json(&[&own]);
    let names = found["objects"].as_array().unwrap().iter();
    assert!(
        names
            .filter_map(|o| o["name"].as_str())
            .any(|n| n.contains("/libc.so")),
        "of a process: {found}"
    );
}

#[test]
fn placing_a_file_where_it_is_moves_nothing_and_keeps_its_contents() {
    let folder = Folder::new("placed");
    let path = folder.file("a");
    for policy in ["interleave", "block"] {
        let placed = json(&["--policy", policy, "--load", &path]);
        let placed = &placed["files"][0]["placed"];
        assert_eq!(placed["in_place"].as_u64(), Some(MIB), "{placed}");
        assert_eq!(placed["stayed"], serde_json::json!({}));
    }
    let dropped = json(&["--drop", "--dry-run", &path]);
    assert_eq!(
        in_memory(&dropped["files"][0]["before"]["nodes"]),
        MIB,
        "a dry run drops nothing"
    );
    assert_eq!(std::fs::read(&path).unwrap(), vec![7; MIB as usize]);
}

#[test]
fn names_from_others_are_lines_of_their_own_and_harmless() {
    let folder = Folder::new("names");
    folder.file("two\nlines \x1b[2J");
    folder.file("plain");
    let output = files(&[folder.0.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.lines().filter(|line| line.contains("1 MiB")).count();
    assert_eq!(rows, 2, "{text}");
    assert!(!text.contains('\x1b') && text.contains("two lines"), "{text}");
}

#[test]
fn bad_input_is_a_line_and_status_2() {
    let folder = Folder::new("bad");
    let path = folder.file("a");
    let fifo = folder.0.join("fifo");
    Command::new("mkfifo").arg(&fifo).status().unwrap();
    for (arguments, expected) in [
        (vec!["/nonexistent-file"], "No such file"),
        (vec!["/dev/null"], "is a device"),
        (vec![fifo.to_str().unwrap()], "is a pipe"),
        (vec!["4294967295"], "no process"),
        (vec!["1", path.as_str()], "not both"),
        (vec!["--policy", "interleave"], "which files"),
        (
            vec!["--policy", "magic", path.as_str()],
            "for files: interleave, block",
        ),
        (vec!["--policy", "node:77", path.as_str()], "no such node"),
        (
            vec!["--policy", "block", "--piece", "5000", path.as_str()],
            "no multiple of 4K",
        ),
        (
            vec!["--policy", "block", "--nodes", "x", path.as_str()],
            "not a list",
        ),
        (vec!["--dry-run", path.as_str()], "--policy or --drop"),
    ] {
        let output = files(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    // A pipe in a folder is no file, and waiting for its writer would be for ever.
    assert!(files(&[folder.0.to_str().unwrap()]).status.success());
    assert!(Path::new(&path).exists());
}
