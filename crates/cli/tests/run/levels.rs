//! A map applies to builds by other compilers and with other levels of debug information.

use crate::running::Bench;
use nodewise_profile::{Frame, Site};
use nodewise_symbols::{Module, base_name};
use std::path::Path;
use std::process::Command;

const ARRAYS: &str = r#"
#include <stdlib.h>
int main(void) {
    double *a = malloc(400000), *b = malloc(400000), *k = malloc(400000);
    for (int i = 0; i < 50000; i++)
        a[i] = b[i] = k[i] = i;
    int wrong = a[7] + b[7] != 2 * k[7];
    free(a), free(b), free(k);
    return wrong;
}
"#;

#[test]
fn objects_of_one_line_are_told_by_their_order_without_line_tables() {
    let bench = Bench::new("one-line");
    let rule = |sequence| {
        format!(
            "[[rule]]\nkind = \"heap\"\nsite = \"main program.c:3\"\nname = \"a\"\nthread = 0\n\
             sequence = {sequence}\ndistribution = \"node {sequence}\"\npages = 98\n"
        )
    };
    let absent = "[[rule]]\nkind = \"heap\"\nsite = \"main program.c:99\"\nname = \"ghost\"\n\
                  distribution = \"node 3\"\npages = 98\n";
    let map = bench.map("program", &([0, 1, 2].map(rule).concat() + absent));
    let program = bench.compile("program", ARRAYS, &["-O1"]);
    let (output, trace) = bench.traced(&["--policy", &format!("map:{}", map.path)], &program);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let rules: Vec<_> = trace.objects.iter().map(|o| o.rule).collect();
    assert_eq!(rules, [0, 1, 2]);
    let errors = String::from_utf8_lossy(&output.stderr);
    let warning = "warning: unmatched rule: heap `ghost` `main program.c:99` (25 % of the map's pages)";
    assert!(errors.contains(warning), "{errors}");
}

const VECTORS: &str = r#"
#include <cstdio>
#include <vector>
struct Field {
    double *cells;
    explicit Field(long n) : cells(new double[n]) {}
};
int main(int argc, char **) {
    std::vector<double> a(100000L * argc, 1.0);
    std::vector<double> b(200000L * argc);
    double *raw = new double[300000L * argc];
    Field field(400000L * argc);
    for (long i = 0; i < 100000; i++)
        b[i] = raw[i] = field.cells[i] = a[i];
    std::printf("%g\n", b[9] + raw[9] + field.cells[9]);
}
"#;

fn compile(bench: &Bench, compiler: &str, flags: &[&str]) -> String {
    let (file, program) = (bench.folder.join("program.cpp"), bench.folder.join("program"));
    std::fs::write(&file, VECTORS.trim_start_matches('\n')).unwrap();
    let mut command = Command::new(compiler);
    let status = command
        .args(flags)
        .arg("-O2")
        .arg("-o")
        .args([&program, &file])
        .status();
    assert!(status.unwrap().success());
    program.display().to_string()
}

/// All chains in `main` that may allocate, as a recording of this build would name them.
fn sites(program: &str) -> Vec<String> {
    let module = Module::open(Path::new(program)).unwrap();
    let main = Frame {
        function: "main".into(),
        ..Frame::default()
    };
    let code = module.ranges_of(&[main]).remove(0).addresses;
    let chains = code.map(|address| module.frames(address));
    let allocates = |f: &Frame| [5, 10].contains(&f.line) || base_name(&f.function) == "allocate";
    let mut sites: Vec<String> = chains
        .filter(|frames| allocates(&frames[0]))
        .map(|frames| Site { frames }.to_string())
        .collect();
    sites.sort_unstable();
    sites.dedup();
    sites
}

fn rules(sites: &[String]) -> String {
    let rule = |s: &String| {
        format!("[[rule]]\nkind = \"heap\"\nsite = \"{s}\"\ndistribution = \"node 1\"\npages = 1\n")
    };
    sites.iter().map(rule).collect()
}

/// Pages of each object and the line of `main` that its rule names.
fn placed(bench: &Bench, sites: &[String], program: &str) -> Vec<(u64, String)> {
    let map = bench.map("program", &rules(sites));
    let (output, trace) = bench.traced(&["--policy", &format!("map:{}", map.path)], program);
    assert!(output.status.success(), "{output:?}");
    let objects = trace.objects.iter().filter(|o| o.rule < sites.len());
    objects
        .map(|o| (o.pages, sites[o.rule].rsplit(':').next().unwrap().to_owned()))
        .collect()
}

#[test]
fn vectors_are_found_at_any_level_of_debug_information() {
    let bench = Bench::new("levels");
    let recorded = sites(&compile(&bench, "clang++-19", &["-gline-tables-only"]));
    let lines = [(196, "8"), (391, "9"), (586, "10"), (782, "11")].map(|(p, l)| (p, l.to_owned()));
    for compiler in ["clang++-19", "g++"] {
        for level in ["-g", "-g1"] {
            let program = compile(&bench, compiler, &[level]);
            assert_eq!(placed(&bench, &recorded, &program), lines, "{compiler} {level}");
        }
    }
}
