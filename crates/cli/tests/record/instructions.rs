//! An access is an executed memory instruction: the compiler pass counts the same number as the emulator observes in
//! the plain build of the same source.

use crate::emulated::cells;
use crate::support::{Recorded, build, record, scratch, status, stderr};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Records `program` and its plain build. Returns the names of the arrays with a page whose counts differ, and the
/// number of pages.
fn compare(language: &str, flags: &[&str]) -> (BTreeSet<String>, usize) {
    let name = format!("instructions-{language}{}", flags.concat());
    let folder = scratch(&name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/programs/wide.c");
    let copy = folder.join(format!("wide.{language}"));
    std::fs::copy(source, &copy).unwrap();
    let copy = copy.to_str().unwrap();
    let wrapper = if language == "c" {
        "nodewise-cc"
    } else {
        "nodewise-cxx"
    };
    build(&folder, wrapper, &[copy], "program", flags);
    plain(&folder, copy, flags);
    let run = |options: &[&str], program: &str| {
        let output = record(&folder, &[options, &["--force"]].concat(), &[program]);
        assert_eq!(status(&output), 0, "{}", stderr(&output));
        cells(&Recorded::read(&folder))
    };
    let (counted, executed) = (run(&[], "./program"), run(&["--via", "emulate"], "./plain"));
    let keys: BTreeSet<_> = counted.keys().chain(executed.keys()).collect();
    let differ = keys.iter().filter(|k| counted.get(k) != executed.get(k));
    (differ.map(|k| k.0.clone()).collect(), keys.len())
}

/// By the clang that the wrappers call, with the flags that `build` gives them.
fn plain(folder: &Path, source: &str, flags: &[&str]) {
    let clang = ["clang-19", "clang-20", "clang-21", "clang"];
    let found = clang
        .iter()
        .find(|c| Command::new(c).arg("--version").output().is_ok());
    let built = Command::new(found.expect("clang"))
        .args(["-O1", "-g", "-o"])
        .arg(folder.join("plain"))
        .arg(source)
        .args(flags)
        .status();
    assert!(built.unwrap().success());
}

fn differ(flags: &[&str]) -> BTreeSet<String> {
    let mut differ = BTreeSet::new();
    for language in ["c", "cpp"] {
        let (names, pages) = compare(language, flags);
        assert!(pages > 1000, "{flags:?}: {pages} pages");
        differ.extend(names);
    }
    differ
}

#[test]
fn optimised_code_counts_as_it_executes() {
    for flags in [&["-O2"][..], &["-O3"], &["-Os"], &["-O2", "-msse4.2"]] {
        assert_eq!(differ(flags), BTreeSet::new(), "{flags:?}");
    }
}

#[test]
fn wider_registers_count_as_they_execute() {
    for flags in [
        &["-O3", "-mavx"][..],
        &["-O3", "-march=sandybridge"],
        &["-O3", "-mavx2", "-mfma"],
    ] {
        assert_eq!(differ(flags), BTreeSet::new(), "{flags:?}");
    }
}

#[test]
fn unoptimised_code_counts_otherwise_only_where_the_library_copies() {
    let copied = ["records", "from_records", "blocks", "from_blocks"].map(str::to_owned);
    let differ = differ(&["-O0"]);
    assert!(differ.is_subset(&copied.into()), "{differ:?}");
}

#[test]
fn slightly_optimised_code_counts_otherwise_only_where_halves_are_copied() {
    // Whether two copies become one depends there on how the loop keeps its addresses.
    let halves = ["pairs", "from_pairs", "singles", "from_singles"].map(str::to_owned);
    let differ = differ(&["-O1"]);
    assert!(differ.is_subset(&halves.into()), "{differ:?}");
}
