//! `report` on loops of real programs: patterns, conflicts, and remedies with libnodewise.

use crate::support::{NODEWISE, build, library, scratch, stderr};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the source tree, where programs to record lie.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// A teaching program, instrumented.
fn workload(folder: &Path, name: &str) -> PathBuf {
    let source = format!("../../../../../workloads/{name}");
    let [include, library] = library();
    build(
        folder,
        "nodewise-cc",
        &[&source],
        name.trim_end_matches(".c"),
        &["-fopenmp", &include, &library, "-lm"],
    )
}

/// Records with eight threads, on two nodes of four as libnodewise sees it.
fn record(folder: &Path, program: &Path, arguments: &[&str]) {
    let mut record = Command::new(NODEWISE);
    record
        .current_dir(folder)
        .env("OMP_NUM_THREADS", "8")
        .env("NODEWISE_PRETEND", "2x4")
        .args(["record", "--force", "-o", "profile", "--"])
        .arg(program)
        .args(arguments);
    let output = record.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

fn report(folder: &Path, arguments: &[&str]) -> String {
    report_on("nehalem-2s", folder, arguments)
}

fn report_on(machine: &str, folder: &Path, arguments: &[&str]) -> String {
    let mut report = Command::new(NODEWISE);
    let report = report
        .current_dir(folder)
        .args(["report", "profile", "--machine", machine]);
    let output = report.args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn json(folder: &Path) -> Value {
    serde_json::from_str(&report(folder, &["--json"])).unwrap()
}

fn object<'a>(report: &'a Value, name: &str) -> &'a Value {
    let objects = report["objects"].as_array().unwrap();
    objects
        .iter()
        .find(|o| o["name"] == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

/// Patterns of an object in a region's function, each once.
fn patterns<'a>(object: &'a Value, region: &str) -> Vec<&'a str> {
    let all = object["patterns"].as_array().unwrap().iter();
    let mut found: Vec<_> = all
        .filter(|p| p["region"] == region)
        .map(|p| p["pattern"].as_str().unwrap())
        .collect();
    found.dedup();
    found
}

/// Lines of the source that hold `text`.
fn lines(source: &str, text: &str) -> Vec<String> {
    let file = std::fs::read_to_string(root().join("workloads").join(source)).unwrap();
    let numbered = file.lines().enumerate().filter(|(_, l)| l.contains(text));
    numbered.map(|(i, _)| format!("{source}:{}", i + 1)).collect()
}

/// Whether C with these declarations before it compiles.
fn assert_compiles(folder: &Path, snippet: &str, declared: &str) {
    let (includes, code): (Vec<&str>, Vec<&str>) = snippet.lines().partition(|l| l.starts_with("#include"));
    let text = format!(
        "{}\n{declared}\nvoid f(long nx, long ny, long nz, size_t item);\n\
         void f(long nx, long ny, long nz, size_t item)\n{{\n(void)nx, (void)ny, (void)nz, (void)item;\n\
         long i_first = 0, i_last = nx, j_first = 0, j_last = ny;\n\
         (void)i_first, (void)i_last, (void)j_first, (void)j_last;\n{}\n}}\n",
        includes.join("\n"),
        code.join("\n")
    );
    let file = folder.join("snippet.c");
    std::fs::write(&file, &text).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=c11",
        "-fopenmp",
        "-fsyntax-only",
        "-Wall",
        "-Wno-empty-body",
        &library()[0],
    ]);
    let output = compiler.arg(&file).output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}\n{text}",
        stderr(&output)
    );
}

#[test]
fn every_pattern_is_found_where_a_program_has_it() {
    let folder = scratch("patterns");
    let program = build(&folder, "nodewise-cc", &["patterns.c"], "patterns", &["-fopenmp"]);
    record(&folder, &program, &[]);
    let report = json(&folder);
    for (name, pattern, distribution) in [
        ("by_rows", "x-wise", "bind-rows"),
        ("by_columns", "y-wise", "bind-columns"),
        ("inside", "z-wise", "cyclic"),
        ("in_turn", "strided", "cyclic"),
        ("in_chunks", "strided", "cyclic"),
        ("by_all", "uniform", "replicate"),
        ("at_random", "random", "replicate"),
    ] {
        let object = object(&report, name);
        assert_eq!(patterns(object, "main")[..1], [pattern], "{name}: {object:#}");
        assert_eq!(object["distribution"], distribution, "{name}");
        assert_eq!(object["uniform_sharing"], Value::Null, "{name}");
    }
    // The first row and the last are left out.
    assert_eq!(object(&report, "by_columns")["patterns"][0]["repeat"], 30);
}

#[test]
fn on_adi_it_finds_what_the_papers_authors_found_by_hand() {
    let folder = scratch("adi");
    let program = workload(&folder, "adi.c");
    for (size, rows) in [("32", 32), ("64", 64)] {
        record(
            &folder,
            &program,
            &["--init", "parallel", "--size", size, "--iterations", "3"],
        );
        let report = json(&folder);
        let u = object(&report, "u");
        assert_eq!(patterns(u, "sweep_x"), ["x-wise"]);
        assert_eq!(patterns(u, "sweep_y"), ["x-wise"]);
        assert_eq!(patterns(u, "sweep_z"), ["y-wise"]);
        let z = u["patterns"]
            .as_array()
            .unwrap()
            .iter()
            .find(|p| p["region"] == "sweep_z")
            .unwrap();
        assert_eq!(z["repeat"], rows);
        // Figure 5(e): half the pages on two nodes.
        assert!(
            (u["uniform_sharing"]["share"].as_f64().unwrap() - 0.5).abs() < 0.05,
            "{u:#}"
        );
        assert_eq!(u["uniform_sharing"]["remedy"], "block-exclusive");
        assert_eq!(u["distribution"], "block-exclusive");
    }
    let text = report(&folder, &[]);
    assert!(text.contains("50 % of its pages are uniformly shared"), "{text}");
    assert!(text.contains("nw_describe(u, nw_block_exclusive(3))"), "{text}");
    for sweep in ["x", "y", "z"] {
        let definition = lines("adi.c", &format!("static void sweep_{sweep}(double"));
        let (file, line) = definition[0].split_once(':').unwrap();
        let line: u32 = line.parse().unwrap();
        let named = (line..line + 4).any(|l| text.contains(&format!("{file}:{l} (sweep_{sweep})")));
        assert!(named, "sweep_{sweep} is not named in\n{text}");
    }
    let snippet = json(&folder)["objects"][0]["snippet"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_compiles(&folder, &snippet, "extern double *u;");
}

#[test]
fn blocks_finer_than_pages_are_not_advised_and_those_of_a_page_are() {
    let folder = scratch("sweeps");
    let program = build(&folder, "nodewise-cc", &["sweeps.c"], "sweeps", &["-fopenmp"]);
    // On four nodes, a node's part of a row is half a page and a page.
    for (size, remedy) in [("1024", Value::Null), ("2048", "block-exclusive".into())] {
        record(&folder, &program, &[size]);
        let report: Value = serde_json::from_str(&report_on("westmere-4s", &folder, &["--json"])).unwrap();
        let grid = object(&report, "grid");
        assert_eq!(patterns(grid, "along"), ["x-wise"]);
        assert_eq!(patterns(grid, "across"), ["y-wise"]);
        assert_eq!(grid["uniform_sharing"]["remedy"], remedy, "{grid:#}");
        assert_eq!(grid["distribution"] == "block-exclusive", remedy != Value::Null);
        if remedy == Value::Null {
            assert_ne!(report["verdict"]["outcome"], "match");
        }
    }
}

#[test]
fn loops_that_the_paper_transformed_are_recognised_before_and_after() {
    let folder = scratch("npb");
    let (bt, lu) = (workload(&folder, "bt.c"), workload(&folder, "lu.c"));
    let run = |program: &Path, form: &str| {
        let size = [
            "--init",
            "parallel",
            "--size",
            "small",
            "--iterations",
            "2",
            "--form",
            form,
        ];
        record(&folder, program, &size);
        json(&folder)
    };
    let before = run(&bt, "default");
    for name in ["lhs", "rhs"] {
        let object = object(&before, name);
        assert_eq!(patterns(object, "x_solve"), ["y-wise"], "{name}");
        assert_eq!(patterns(object, "y_solve"), ["x-wise"], "{name}");
        assert_eq!(object["uniform_sharing"]["remedy"], "block-exclusive", "{name}");
    }
    let before = run(&lu, "default");
    let rhs = object(&before, "rhs");
    assert_eq!(rhs["uniform_sharing"]["remedy"], "static-inverse");
    let upper = rhs["patterns"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["region"] == "upper")
        .unwrap();
    assert_eq!(
        (&upper["inverse"], &upper["schedule"]),
        (&true.into(), &"static-inverse".into())
    );
    assert_compiles(&folder, rhs["snippet"].as_str().unwrap(), "extern double *rhs;");
    for program in [&bt, &lu] {
        let after = run(program, "matched");
        for name in ["u", "rhs", "forcing"] {
            assert_eq!(object(&after, name)["uniform_sharing"], Value::Null, "{name}");
        }
    }
}
