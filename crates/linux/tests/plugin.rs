//! The example of a user's policy is compiled, loaded and asked; broken ones are refused.

use nodewise_linux::plugin::{Cell, Input, Plugin};
use std::path::{Path, PathBuf};
use std::process::Command;

fn header_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/user-policy")
}

/// Compiles `source` into a library of its own.
fn compiled(name: &str, source: &Path) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join(format!("{name}.so"));
    let status = Command::new("cc")
        .args([
            "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I",
        ])
        .arg(header_folder())
        .arg("-o")
        .args([&library, source])
        .status()
        .expect("a C compiler");
    assert!(status.success());
    library
}

fn written(name: &str, text: &str) -> PathBuf {
    let source = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.c"));
    std::fs::write(&source, format!("#include \"nodewise_policy.h\"\n{text}\n")).unwrap();
    compiled(name, &source)
}

fn input<'a>(cells: &'a [Cell]) -> Input<'a> {
    Input {
        page_size: 4096,
        page: &[7, 9],
        offsets: &[0, 2, 3],
        cells,
        first_touch: &[0, 0],
        thread_node: &[0, 2],
        latency: &[100.0, 110.0, 200.0, 150.0, 100.0, 150.0, 200.0, 110.0, 100.0],
        bandwidth: &[1.0, 1.0, 1.0],
    }
}

fn cell(thread: u32, reads: u64) -> Cell {
    Cell {
        reads,
        writes: 1,
        lines: 0,
        thread,
    }
}

#[test]
fn the_example_puts_pages_where_they_wait_least() {
    let plugin = Plugin::load(&compiled("nearest", &header_folder().join("nearest.c"))).unwrap();
    // Page 0 is shared evenly by nodes 0 and 2: node 1 in the middle serves both at 110 ns.
    let cells = [cell(0, 9), cell(1, 9), cell(1, 4)];
    assert_eq!(plugin.place(&input(&cells)).unwrap(), [1, 2]);
}

#[test]
fn what_is_no_policy_is_refused_in_one_line() {
    let error = |library: &Path| Plugin::load(library).unwrap_err().to_string();
    assert!(error(Path::new("absent.so")).starts_with("absent.so: cannot be loaded: "));
    let other = written(
        "other",
        "int nothing; int nodewise_nothing(void) { return nothing; }",
    );
    assert!(error(&other).ends_with("exports no `nodewise_policy_abi`: not a nodewise policy"));
    let newer = "uint32_t nodewise_policy_abi(void) { return 9; }
        int nodewise_policy(const nodewise_histogram *h, uint32_t *n) { (void)h; (void)n; return 0; }";
    assert!(error(&written("newer", newer)).contains("built for policy interface 9, this is 1"));
}

#[test]
fn a_policy_that_fails_is_reported() {
    let failing = "uint32_t nodewise_policy_abi(void) { return NODEWISE_POLICY_ABI; }
        int nodewise_policy(const nodewise_histogram *h, uint32_t *n) { (void)h; (void)n; return 3; }";
    let plugin = Plugin::load(&written("failing", failing)).unwrap();
    let cells = [cell(0, 9), cell(1, 9), cell(1, 4)];
    let error = plugin.place(&input(&cells)).unwrap_err().to_string();
    assert!(error.ends_with("the policy failed with status 3"), "{error}");
}
