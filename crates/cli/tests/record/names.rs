//! Names of objects, and the reported locations of their first touches.

use crate::support::{NODEWISE, Recorded, build, record, scratch, status, stderr};
use nodewise_profile::ObjectKind;
use serde_json::Value;
use std::process::Command;

#[test]
fn heap_arrays_of_cpp_programs_and_macros_have_the_programmers_names() {
    let folder = scratch("names");
    build(&folder, "nodewise-cxx", &["names.cpp"], "program", &[]);
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let recorded = Recorded::read(&folder);
    let mut names = recorded.names(ObjectKind::Heap);
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "Grid::listed",
            "Grid::owned_",
            "Grid::pointed",
            "at_start",
            "by_macro",
            "last_malloc",
            "resized"
        ]
    );
    let mut report = Command::new(NODEWISE);
    report
        .current_dir(&folder)
        .args(["report", "profile", "--machine", "nehalem-2s", "--json"]);
    let report = String::from_utf8(report.output().unwrap().stdout).unwrap();
    // A site is the whole call chain; texts name a line of the program, or the library that a header belongs to.
    let report: Value = serde_json::from_str(&report).unwrap();
    for object in report["objects"].as_array().unwrap() {
        let texts = ["name", "blame", "advice", "snippet"].map(|key| object[key].to_string());
        let texts = texts.join("\n");
        let touched = object["first_touch"]["site"].to_string();
        assert!(
            !texts.contains("__cxx_global") && !texts.contains("nw_adopt(main"),
            "{texts}"
        );
        let header = touched.contains("stl_") || touched.contains("alloc");
        assert_eq!(header, touched.contains("of the standard library"), "{touched}");
    }
}

/// Two objects of one line: the smaller one has no object of its own, and whose name it was must not pass to the other.
#[test]
fn objects_of_one_line_are_told_apart() {
    let folder = scratch("declarators");
    for (flags, names) in [
        (&[][..], ["a", "b", "c", "d", "few", "many", "p", "q"].as_slice()),
        // Without columns the line does not tell.
        (&["-gno-column-info"], &["main"]),
    ] {
        build(&folder, "nodewise-cc", &["declarators.c"], "program", flags);
        let output = record(&folder, &["--force"], &["./program"]);
        assert_eq!(status(&output), 0, "{}", stderr(&output));
        let recorded = Recorded::read(&folder);
        let mut found = recorded.names(ObjectKind::Heap);
        found.sort_unstable();
        found.dedup();
        let expected: Vec<&str> = names.iter().copied().filter(|n| *n != "few").collect();
        assert_eq!(found, expected, "{flags:?}");
        for object in recorded
            .profile
            .objects
            .iter()
            .filter(|o| o.kind == ObjectKind::Heap)
        {
            // Each has a size of its own, in the order of the alphabet.
            let nth = ["a", "b", "c", "d", "many", "p", "q"]
                .iter()
                .position(|n| *n == object.name);
            assert!(
                nth.is_none_or(|n| object.bytes == (n as u64 + 1) << 20),
                "{}",
                object.name
            );
        }
    }
}

/// Each statement of a line names its own objects; between a statement and its allocation there may be a dozen frames of
/// the standard library.
#[test]
fn objects_have_the_name_of_their_own_statement() {
    let folder = scratch("statements");
    build(&folder, "nodewise-cxx", &["statements.cpp"], "program", &[]);
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let recorded = Recorded::read(&folder);
    let mut names: Vec<(String, u64)> = recorded
        .profile
        .objects
        .iter()
        .filter(|o| o.kind == ObjectKind::Heap)
        .map(|o| (o.name.clone(), o.bytes))
        .collect();
    names.sort_unstable();
    names.dedup();
    let expected = [
        ("Mesh::edges_", 90001 * 8),
        ("Mesh::edges_", 90002 * 8),
        ("Mesh::faces_", 90000 * 4),
        ("Mesh::faces_", 90002 * 4),
        ("Mesh::nodes_", 90000 * 8),
        ("Mesh::nodes_", 90002 * 8),
        ("Mesh::nodes_", 2 * 90001 * 8),
        ("counts", 300_000 * 4),
        ("rows", 20000 * 8),
        ("shared", 80000 * 8),
        ("weights", 150_000 * 4),
    ];
    let expected = expected.map(|(name, bytes)| (name.to_owned(), bytes));
    assert_eq!(names, expected);
}
