//! Tests dependencies between crates: each crate uses only crates that docs/ARCHITECTURE.md permits.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const PREFIX: &str = "nodewise-";

/// Crates by name, each with the crates that it may use; `None` stands for all.
type Arrows = BTreeMap<String, Option<BTreeSet<String>>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Parses the table of crates: `` | `crates/NAME` | holds | may use | ``.
fn allowed() -> Arrows {
    let page = std::fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = cells.get(1)?.strip_prefix("`crates/")?.strip_suffix('`')?;
        let uses = cells.get(3)?.trim_matches('–');
        let rooms = uses
            .split(',')
            .map(str::trim)
            .filter(|room| !room.is_empty())
            .map(ToOwned::to_owned);
        Some((name.to_owned(), (uses != "everything").then(|| rooms.collect())))
    };
    page.lines().filter_map(row).collect()
}

/// The transitive closure: a crate may also use the crates that its permitted dependencies may use.
fn reachable(arrows: &Arrows, from: &str) -> Option<BTreeSet<String>> {
    let mut all = arrows.get(from)?.clone()?;
    let mut queue: Vec<String> = all.iter().cloned().collect();
    while let Some(room) = queue.pop() {
        let further = arrows.get(&room).cloned().flatten().unwrap_or_default();
        queue.extend(further.iter().filter(|r| all.insert((*r).clone())).cloned());
    }
    Some(all)
}

/// The dependencies of each crate, without those of its tests.
fn used() -> BTreeMap<String, BTreeSet<String>> {
    let cargo = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&cargo.stdout).unwrap();
    let room = |package: &Value| {
        package["name"]
            .as_str()?
            .strip_prefix(PREFIX)
            .map(ToOwned::to_owned)
    };
    let packages = metadata["packages"].as_array().unwrap();
    let of = |package: &Value| {
        let dependencies = package["dependencies"].as_array()?.iter();
        let rooms = dependencies
            .filter(|d| d["kind"] != "dev")
            .filter_map(room)
            .collect();
        Some((room(package)?, rooms))
    };
    packages.iter().filter_map(of).collect()
}

#[test]
fn every_arrow_is_in_the_architectures_table() {
    let (allowed, used) = (allowed(), used());
    assert!(
        used.contains_key("cli") && allowed.len() > 5,
        "{allowed:?} {used:?}"
    );
    for (room, uses) in used {
        assert!(
            allowed.contains_key(&room),
            "crates/{room} has no row in docs/ARCHITECTURE.md"
        );
        if let Some(may) = reachable(&allowed, &room) {
            let wrong: Vec<_> = uses.difference(&may).collect();
            assert!(
                wrong.is_empty(),
                "crates/{room} may not use {wrong:?}: see docs/ARCHITECTURE.md"
            );
        }
    }
}

#[test]
fn the_table_itself_has_no_cycle() {
    let allowed = allowed();
    for room in allowed.keys() {
        let reached = reachable(&allowed, room).unwrap_or_default();
        assert!(!reached.contains(room), "crates/{room} would use itself");
    }
}
