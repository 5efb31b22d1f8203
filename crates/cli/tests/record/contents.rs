//! What a recording contains: objects, first touches, regions, slices, coverage.

use crate::support::{NODEWISE, Recorded, build, program, record, scratch, status, stderr};
use nodewise_profile::{ObjectKind, RegionKind};
use std::process::Command;

#[test]
fn objects_have_the_programmers_names_and_lines() {
    let folder = scratch("objects");
    program(&folder, "objects.c");
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let recorded = Recorded::read(&folder);
    assert_eq!(recorded.names(ObjectKind::Heap), ["rhs", "field", "rhs"]);
    assert_eq!(recorded.sites("rhs").0, "main objects.c:29");
    assert_eq!(
        recorded.sites("rhs").1,
        ["initialise objects.c:21 < main objects.c:31"]
    );
    assert_eq!(
        recorded.sites("field").0,
        "checked_malloc objects.c:13 < main objects.c:30"
    );
    assert_eq!(recorded.sites("field").1, ["initialise objects.c:24"]);
    assert_eq!(recorded.sites("table").1, ["main objects.c:34"]);
    assert!(recorded.names(ObjectKind::Static).contains(&"table"));
    assert_eq!(recorded.names(ObjectKind::Mapping), ["mapped"]);
    assert!(recorded.names(ObjectKind::File)[0].ends_with("/program"));
    assert_eq!(recorded.of("mapped"), (0, 2048));
    let arena = recorded
        .profile
        .objects
        .iter()
        .find(|o| o.kind == ObjectKind::Arena)
        .unwrap();
    let (site, bytes) = arena.parts[0];
    assert_eq!(
        recorded.profile.sites[site.index()].to_string(),
        "main objects.c:44"
    );
    assert_eq!(bytes, 80_000);
}

#[test]
fn pages_belong_to_one_object_and_are_first_touched_once() {
    let folder = scratch("pages");
    program(&folder, "objects.c");
    record(&folder, &["--slice", "region"], &["./program"]);
    let recorded = Recorded::read(&folder);
    let mut owners = std::collections::BTreeMap::new();
    for row in &recorded.rows {
        for page in row.page.0..row.page.0 + u64::from(row.len) {
            assert_eq!(
                *owners.entry(page).or_insert(row.object),
                row.object,
                "page {page:#x}"
            );
        }
    }
    let mut touched = std::collections::BTreeMap::new();
    for touch in &recorded.profile.first_touches {
        for page in touch.page.0..touch.page.0 + u64::from(touch.len) {
            assert!(touched.insert(page, touch.object).is_none(), "page {page:#x}");
        }
    }
    assert_eq!(owners, touched);
}

#[test]
fn regions_have_their_function_and_line_and_cut_slices() {
    let folder = scratch("regions");
    program(&folder, "teams.c");
    let output = record(&folder, &["--slice", "region", "--threads", "3"], &["./program"]);
    assert_eq!(output.stdout, b"0.999\n", "{}", stderr(&output));
    let recorded = Recorded::read(&folder);
    let regions: Vec<String> = recorded
        .profile
        .regions
        .iter()
        .map(|r| r.frame.to_string())
        .collect();
    assert_eq!(regions, ["", "main teams.c:10", "main teams.c:13"]);
    assert_eq!(recorded.profile.regions[1].kind, RegionKind::OpenMp);
    assert_eq!(recorded.profile.slices.len(), 21); // and what follows the last region
    for slice in 0..20 {
        let (reads, writes) =
            recorded.counts(|a| a.slice.0 == slice && recorded.profile.objects[a.object.index()].name == "a");
        let expected = (1 << 15) - u64::from(slice % 2);
        assert_eq!((reads, writes), (expected, expected), "slice {slice}");
    }
    let numbers: Vec<_> = recorded.profile.threads.iter().map(|t| t.openmp).collect();
    assert_eq!(numbers, [Some(0), Some(1), Some(2)]);
}

#[test]
fn slices_by_accesses_are_even() {
    let folder = scratch("accesses");
    program(&folder, "grows.c");
    let output = record(&folder, &["--slice", "accesses:10000"], &["./program", "50"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let recorded = Recorded::read(&folder);
    assert_eq!(recorded.of("all"), (1, 50 * 2048));
    let slices = recorded.profile.slices.len();
    assert!((10..=12).contains(&slices), "{slices}");
    for slice in 0..slices as u32 - 2 {
        let (reads, writes) = recorded.counts(|a| a.slice.0 == slice);
        assert!(
            (9_000..=11_000).contains(&(reads + writes)),
            "{slice}: {}",
            reads + writes
        );
    }
}

#[test]
fn waiting_threads_do_not_drown_the_program() {
    let folder = scratch("waiting");
    program(&folder, "teams.c");
    let mut counts = Vec::new();
    for policy in ["active", "passive"] {
        let output = Command::new(NODEWISE)
            .current_dir(&folder)
            .env("OMP_WAIT_POLICY", policy)
            .args([
                "record",
                "--force",
                "--threads",
                "4",
                "-o",
                "profile",
                "--",
                "./program",
            ])
            .output()
            .unwrap();
        assert_eq!(output.stdout, b"0.999\n", "{}", stderr(&output));
        counts.push(Recorded::read(&folder).of("a"));
    }
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn profiles_are_numbered_and_the_summary_says_what_matters() {
    let folder = scratch("summary");
    program(&folder, "teams.c");
    for number in 1..=2 {
        let output = Command::new(NODEWISE)
            .current_dir(&folder)
            .args(["record", "--", "./program"])
            .output()
            .unwrap();
        let stderr = stderr(&output);
        assert!(
            folder
                .join(format!("nodewise-profile-{number}/manifest.json"))
                .exists()
        );
        for part in [
            "accesses",
            "pages",
            "object",
            "coverage",
            &format!("report nodewise-profile-{number}"),
        ] {
            assert!(stderr.contains(part), "{part}: {stderr}");
        }
    }
}

#[test]
fn code_that_is_not_instrumented_is_named() {
    let folder = scratch("coverage");
    std::fs::write(
        folder.join("spin.c"),
        "double spin(long n) { volatile double s = 0; for (long i = 0; i < n; i++) s += i; return s; }",
    )
    .unwrap();
    let built = Command::new("cc")
        .current_dir(&folder)
        .args(["-shared", "-fPIC", "-o", "libspin.so", "spin.c"])
        .status();
    assert!(built.unwrap().success());
    std::fs::write(
        folder.join("main.c"),
        "#include <stdlib.h>\ndouble spin(long); double a[100000];\n\
         int main(void) { for (int r = 0; r < 2000; r++) for (int i = 0; i < 100000; i++) a[i] += i;\n\
         return spin(200000000) + a[9] < 0; }",
    )
    .unwrap();
    let main = folder.join("main.c");
    build(
        &folder,
        "nodewise-cc",
        &[main.to_str().unwrap()],
        "program",
        &["-L.", "-lspin", "-Wl,-rpath,$ORIGIN"],
    );
    let output = record(&folder, &[], &["./program"]);
    assert_eq!(status(&output), 0);
    if stderr(&output).contains("not permitted") {
        eprintln!("skipped: sampling is not permitted here");
        return;
    }
    let coverage = Recorded::read(&folder).profile.meta.coverage;
    let total = coverage.instrumented + coverage.waiting + coverage.missed + coverage.kernel;
    assert!((total - 1.0).abs() < 1e-9);
    assert_eq!(coverage.missed_modules[0].0, "libspin.so");
    assert!(
        coverage.instrumented > 0.0 && stderr(&output).contains("libspin.so"),
        "{}",
        stderr(&output)
    );

    // A program without symbols is covered as well; two runs take different shares of their time in each part.
    let stripped = Command::new("strip").current_dir(&folder).arg("program").status();
    assert!(stripped.unwrap().success());
    assert_eq!(status(&record(&folder, &["--force"], &["./program"])), 0);
    let without = Recorded::read(&folder).profile.meta.coverage.instrumented;
    assert!(
        without > coverage.instrumented / 2.0,
        "{without} of {}",
        coverage.instrumented
    );
}
