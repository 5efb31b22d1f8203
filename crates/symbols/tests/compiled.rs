//! Tests [`Module`] on a program that the test compiles.

use nodewise_profile::Frame;
use nodewise_symbols::Module;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = r#"
#include <stdlib.h>
double table[100];
static int counter;
__thread long mine[4];
static inline __attribute__((always_inline)) double *grab(int n)
{
    return malloc(n * sizeof(double)); /* line 8 */
}
__attribute__((noinline)) double *first(int n)
{
    double *p = grab(n); /* line 12 */
    p[0] = counter++;
    return p;
}
__attribute__((noinline)) double *second(int n)
{
    double *q = grab(2 * n); /* line 18 */
    q[1] = mine[0];
    return q;
}
int main(int argc, char **argv)
{
    (void)argv;
    table[argc] = first(argc)[0] + second(argc)[1];
    return table[argc] > 1e9;
}
"#;

fn compiled(name: &str, flags: &[&str]) -> Module {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, SOURCE).unwrap();
    let status = Command::new("cc")
        .args(flags)
        .arg("-o")
        .args([&binary, &source])
        .status()
        .unwrap();
    assert!(status.success());
    Module::open(&binary).unwrap()
}

fn frame(function: &str, line: u32, file: &str) -> Frame {
    Frame {
        function: function.into(),
        file: file.into(),
        line,
    }
}

#[test]
fn a_frame_leads_to_its_code_and_back_through_inlining() {
    let module = compiled("inlined", &["-O2", "-g"]);
    let ranges = module.ranges_of(&[frame("grab", 8, "elsewhere/inlined.c")]);
    let outer: Vec<(&str, u32)> = ranges
        .iter()
        .map(|r| (r.frames[1].function.as_str(), r.frames[1].line))
        .collect();
    assert!(
        outer.contains(&("first", 12)) && outer.contains(&("second", 18)),
        "{ranges:?}"
    );
    for range in &ranges {
        assert_eq!(module.frames(range.addresses.start), range.frames);
        assert_eq!(module.frames(range.addresses.end - 1), range.frames);
    }
}

#[test]
fn without_debug_information_a_function_stands_for_its_code() {
    let module = compiled("plain", &["-O2"]);
    let ranges = module.ranges_of(&[frame("second", 0, "")]);
    assert_eq!(ranges.len(), 1);
    assert_eq!(
        module.frames(ranges[0].addresses.start),
        vec![frame("second", 0, "")]
    );
}

#[test]
fn static_and_thread_local_variables_are_named_with_their_sizes() {
    let variables = compiled("variables", &["-O2"]).variables();
    let found = |name: &str| {
        variables
            .iter()
            .find(|v| v.name == name)
            .map(|v| (v.size, v.thread_local))
    };
    assert_eq!(found("table"), Some((800, false)));
    assert_eq!(found("counter"), Some((4, false)));
    assert_eq!(found("mine"), Some((32, true)));
}

#[test]
fn a_file_that_is_not_elf_is_refused_with_its_name() {
    let error = Module::open(std::path::Path::new("/etc/passwd"))
        .err()
        .expect("refused");
    assert!(error.to_string().contains("/etc/passwd"), "{error}");
}

#[test]
fn avx512_is_needed_where_nothing_asks_for_it() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let needs = |name: &str, flags: &[&str], main: &str| {
        let source = format!(
            "void wide(double *a) {{ for (int i = 0; i < 512; i++) a[i] = a[i] * 3 + 1; }}\n\
             double x[512];\nint main(void) {{ {main} wide(x); return 0; }}"
        );
        let (file, binary) = (folder.join(format!("{name}.c")), folder.join(name));
        std::fs::write(&file, source).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-O3", "-fno-inline"])
            .args(flags)
            .arg("-o")
            .args([&binary, &file]);
        assert!(cc.status().unwrap().success());
        nodewise_symbols::needs_avx512(&binary).unwrap()
    };
    let wide = ["-mavx512f", "-mprefer-vector-width=512"];
    assert_eq!(needs("wide", &wide, "").as_deref(), Some("wide"));
    assert_eq!(needs("narrow", &["-mavx2"], ""), None);
    let asks = "if (!__builtin_cpu_supports(\"avx512f\")) return 1;";
    assert_eq!(needs("asks", &wide, asks), None);
}

/// Three functions in assembly: one marked, one marked without unwind information, one not marked.
const MARKED: &str = r#"
#define FUNCTION(name, mark, begin, end) \
    __asm__(".text\n" mark ".globl " #name "\n.type " #name ",@function\n" #name ":\n" begin "nop\nret\n" end \
            ".size " #name ",.-" #name "\n")
FUNCTION(one, ".ascii \"a:mark\"\n", ".cfi_startproc\n", ".cfi_endproc\n");
FUNCTION(two, ".ascii \"a:mark\"\n", "", "");
FUNCTION(three, "", ".cfi_startproc\n", ".cfi_endproc\n");
int main(void) { return 0; }
"#;

#[test]
fn marked_functions_are_found_with_symbols_and_without() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (folder.join("marked.c"), folder.join("marked"));
    std::fs::write(&source, MARKED).unwrap();
    let built = Command::new("cc").arg("-o").args([&binary, &source]).status();
    assert!(built.unwrap().success());
    let ranges = || Module::open(&binary).unwrap().marked_functions(b"a:mark");
    let both = ranges();
    // A nop and a return are two bytes.
    assert_eq!(both.iter().map(|f| f.end - f.start).collect::<Vec<_>>(), [2, 2]);
    assert_eq!(
        Module::open(&binary).unwrap().symbol(both[0].start).as_deref(),
        Some("one")
    );
    assert!(Command::new("strip").arg(&binary).status().unwrap().success());
    assert_eq!(ranges(), both[..1], "where `two` ends is not known");
    assert!(
        Module::open(&binary)
            .unwrap()
            .marked_functions(b"b:mark")
            .is_empty()
    );
}
