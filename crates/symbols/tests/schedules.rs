//! Tests the schedules found in outlined functions of two compilers.

use nodewise_profile::Schedule;
use nodewise_symbols::Module;
use object::{Object, ObjectSymbol};
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = r#"
static void work(int *a) { *a += 1; }
void by_number(int *a)
{
    #pragma omp parallel for schedule(static)
    for (int i = 0; i < 1000; i++) work(a + i);
}
void as_it_comes(int *a)
{
    #pragma omp parallel for schedule(dynamic, 4)
    for (int i = 0; i < 1000; i++) work(a + i);
}
void in_smaller_pieces(int *a)
{
    #pragma omp parallel for schedule(guided)
    for (int i = 0; i < 1000; i++) work(a + i);
}
void as_asked(int *a)
{
    #pragma omp parallel for schedule(runtime)
    for (int i = 0; i < 1000; i++) work(a + i);
}
void as_tasks(int *a)
{
    #pragma omp parallel
    #pragma omp single
    for (int i = 0; i < 1000; i++)
        #pragma omp task
        work(a + i);
}
int main(void)
{
    static int a[1000];
    by_number(a), as_it_comes(a), in_smaller_pieces(a), as_asked(a), as_tasks(a);
    return a[3];
}
"#;

/// The schedules of a program's outlined functions, each with the name of the original function.
fn schedules(name: &str, compiler: &str, flags: &[&str]) -> Vec<(String, Option<Schedule>)> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, SOURCE).unwrap();
    let status = Command::new(compiler)
        .args(["-g", "-fopenmp", "-o"])
        .args([&binary, &source])
        .args(flags)
        .status()
        .unwrap();
    assert!(status.success(), "{compiler}");
    let module = Module::open(&binary).unwrap();
    let bytes = std::fs::read(&binary).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let body = |symbol: object::Symbol<'_, '_>| {
        let name = symbol.name().ok()?;
        let end = name.find("._omp_fn").or_else(|| name.find(".omp_outlined"));
        let function = match end {
            Some(end) => &name[..end],
            None => name.strip_prefix(".omp_task_entry").map(|_| "as_tasks")?,
        };
        let wrapped = name.contains("_debug__");
        (!wrapped).then(|| (function.to_owned(), module.schedule(symbol.address())))
    };
    let mut found: Vec<_> = elf.symbols().filter_map(body).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

#[test]
fn each_outlined_function_says_how_it_deals_its_work() {
    for (name, compiler, flags) in [
        ("gcc-o2", "gcc", &["-O2"][..]),
        ("gcc-o0", "gcc", &["-O0"]),
        ("gcc-pointers", "gcc", &["-O2", "-fno-plt", "-no-pie"]),
        ("clang-o2", "clang-19", &["-O2"]),
        ("clang-o0", "clang-19", &["-O0"]),
    ] {
        let found = schedules(name, compiler, flags);
        for (function, expected) in [
            ("by_number", Schedule::Static),
            ("as_it_comes", Schedule::Dynamic),
            ("in_smaller_pieces", Schedule::Guided),
            ("as_asked", Schedule::Runtime),
            ("as_tasks", Schedule::Tasks),
        ] {
            let of: Vec<_> = found.iter().filter(|f| f.0 == function).map(|f| f.1).collect();
            assert!(!of.is_empty(), "{name}: {function}: {found:?}");
            assert!(
                of.iter().all(|s| *s == Some(expected)),
                "{name}: {function}: {found:?}"
            );
        }
    }
}
