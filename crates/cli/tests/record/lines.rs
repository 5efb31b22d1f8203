//! Fetched cache lines, the accesses that miss a thread's private cache: their number does not depend on the physical
//! addresses of pages.

use crate::support::{Recorded, build, record, scratch, status, stderr};
use nodewise_profile::ObjectKind;
use std::collections::BTreeMap;
use std::path::Path;

/// Number of pages that each of the program's two threads traverses ten times.
const PAGES: u64 = 800;
const LINES: u64 = 64;

/// Fetched lines of each thread in the arrays, in ascending order.
fn lines(folder: &Path, options: &[&str]) -> Vec<u64> {
    let output = record(folder, &[options, &["--force"]].concat(), &["./program"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let recorded = Recorded::read(folder);
    let kinds = [ObjectKind::Static, ObjectKind::Heap, ObjectKind::Mapping];
    let mut of: BTreeMap<u32, u64> = BTreeMap::new();
    for row in &recorded.rows {
        let object = &recorded.profile.objects[row.object.index()];
        // Of libraries, the emulator sees small variables.
        if kinds.contains(&object.kind) && object.bytes >= 25 << 12 {
            *of.entry(row.thread.0).or_default() += u64::from(row.len) * row.lines;
        }
    }
    let mut lines: Vec<u64> = of.into_values().filter(|l| *l >= LINES * PAGES / 2).collect();
    lines.sort_unstable();
    lines
}

/// Ten runs, in which arrays lie somewhere else each time.
fn each_line_once_in_ten_runs(via: &str, compile: impl Fn(&Path)) {
    let folder = scratch(&format!("lines-{via}"));
    compile(&folder);
    for run in 0..10 {
        let lines = lines(&folder, &["--via", via]);
        // What malloc writes before a block shares a page with nothing of ours, or with one array.
        let once = LINES * PAGES..=LINES * (PAGES + 3);
        assert!(
            lines.len() == 2 && lines.iter().all(|l| once.contains(l)),
            "run {run}: {lines:?}, expected {once:?} of two threads"
        );
    }
}

#[test]
fn a_thread_whose_pages_fit_pays_for_each_line_once() {
    each_line_once_in_ten_runs("instrument", |folder| {
        build(folder, "nodewise-cc", &["recurs.c"], "program", &["-pthread"]);
    });
}

#[test]
fn an_emulated_thread_whose_pages_fit_pays_for_each_line_once() {
    each_line_once_in_ten_runs("emulate", |folder| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/programs/recurs.c");
        let plain = std::process::Command::new("cc")
            .current_dir(folder)
            .args(["-O1", "-g", "-pthread", "-o", "program"])
            .arg(source)
            .status();
        assert!(plain.unwrap().success());
    });
}
