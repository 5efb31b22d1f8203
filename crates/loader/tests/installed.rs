//! Compares the lists of libraries with those of the loaders themselves, for installed programs.

use nodewise_loader::{Environment, Foreign, Kind, Program, kind, libraries};
use std::path::{Path, PathBuf};
use std::process::Command;

const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
/// Largest number of installed programs to compare.
const MOST: usize = 120;

/// The libraries that a loader lists for a file, without the loader; `None` if the file cannot be loaded.
fn listed(loader: &Path, file: &Path) -> Option<Vec<PathBuf>> {
    let output = Command::new(loader).arg("--list").arg(file).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let paths = text
        .lines()
        .filter_map(|line| line.split_once(" => ")?.1.rsplit_once(" (0x"))
        .map(|(path, _)| PathBuf::from(path))
        .filter(|path| path.file_name() != loader.file_name());
    output.status.success().then(|| paths.collect())
}

fn dynamic(path: &Path) -> Option<Program> {
    match kind(path).ok()? {
        Kind::Elf(program) if program.is_dynamic() => Some(program),
        _ => None,
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn glibcs_loader_finds_the_same_in_the_same_order() {
    let mut files: Vec<PathBuf> = std::fs::read_dir("/usr/bin")
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| dynamic(p).is_some_and(|p| p.foreign().is_none()))
        .collect();
    files.sort();
    let step = files.len().div_ceil(MOST).max(1);
    let mut compared = 0;
    for file in files.iter().step_by(step) {
        // A loader that is called by name takes $ORIGIN from the path of a symbolic link, the kernel from its target.
        let real = file.canonicalize().unwrap();
        let Some(expected) = listed(LOADER.as_ref(), &real) else {
            continue;
        };
        let own = libraries(file, &Environment::default()).unwrap();
        assert_eq!(own.found, expected, "{}", file.display());
        assert_eq!(own.missing, [], "{}", file.display());
        compared += 1;
    }
    assert!(compared > 20, "only {compared} programs");
}

/// A missing library is reported with the file that needs it.
#[test]
fn what_is_missing_is_named_with_who_asks() {
    let program = std::env::temp_dir().join(format!("nodewise-lacking-{}", std::process::id()));
    let mut bytes = std::fs::read("/bin/true").unwrap();
    let name = bytes.windows(9).position(|w| w == b"libc.so.6").unwrap();
    bytes[name..name + 9].copy_from_slice(b"libc.so.X");
    std::fs::write(&program, bytes).unwrap();
    let found = libraries(&program, &Environment::default()).unwrap();
    std::fs::remove_file(&program).unwrap();
    assert_eq!(found.missing.len(), 1);
    assert_eq!(found.missing[0].name, "libc.so.X");
    assert_eq!(found.missing[0].by.file_name(), program.file_name());
}

/// Compiles a shared library or program into `folder`.
fn built(folder: &Path, compiler: &str, arguments: &[&str]) -> bool {
    let source = folder.join("one.c");
    std::fs::write(
        &source,
        "int one(void) { return 1; }\nint main(void) { return one() - 1; }\n",
    )
    .unwrap();
    let mut command = Command::new(compiler);
    command.arg(&source).args(arguments).current_dir(folder);
    command.status().is_ok_and(|s| s.success())
}

/// A program whose library needs another library, which is found by the run path of either of them.
fn with_run_paths(folder: &Path, compiler: &str, tag: &str) -> Option<PathBuf> {
    for sub in ["near", "far", "far/deep"] {
        std::fs::create_dir_all(folder.join(sub)).unwrap();
    }
    let library = ["-shared", "-fPIC", "-nostdlib"];
    let linked = |output: &str, more: &[&str]| {
        let arguments = [&["-o", output][..], more, &[tag]].concat();
        built(folder, compiler, &arguments)
    };
    let deep = linked("far/deep/libdeep.so", &library);
    let near = linked(
        "near/libnear.so",
        &[
            &library[..],
            &[
                "-Wl,--no-as-needed",
                "-Lfar/deep",
                "-ldeep",
                "-Wl,-rpath,$ORIGIN/../far/deep",
            ],
        ]
        .concat(),
    );
    let program = linked(
        "program",
        &[
            "-Wl,--no-as-needed",
            "-Lnear",
            "-lnear",
            "-Wl,-rpath,${ORIGIN}/near",
            "-Wl,--allow-shlib-undefined",
        ],
    );
    (deep && near && program).then(|| folder.join("program"))
}

#[test]
#[cfg(target_arch = "x86_64")]
fn run_paths_and_variables_lead_where_the_loader_goes() {
    let folder = std::env::temp_dir().join(format!("nodewise-run-paths-{}", std::process::id()));
    let folder = |n: usize| folder.join(n.to_string());
    let tags = ["-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"];
    let compilers = [
        ("gcc", Path::new(LOADER)),
        ("musl-gcc", Path::new("/lib/ld-musl-x86_64.so.1")),
    ];
    let cases = compilers.iter().flat_map(|c| tags.map(|t| (*c, t)));
    for (number, ((compiler, loader), tag)) in cases.enumerate() {
        let folder = folder(number);
        std::fs::create_dir_all(&folder).unwrap();
        let folder = folder.canonicalize().unwrap();
        if !loader.exists() {
            continue;
        }
        let program = with_run_paths(&folder, compiler, tag).unwrap();
        let own = libraries(&program, &Environment::default()).unwrap();
        assert_eq!(own.missing, [], "{compiler} {tag}");
        let plain: Vec<_> = own.found.iter().map(|p| p.canonicalize().unwrap()).collect();
        let expected: Vec<_> = listed(loader, &program).unwrap();
        let expected: Vec<_> = expected.iter().map(|p| p.canonicalize().unwrap()).collect();
        assert_eq!(plain, expected, "{compiler} {tag}");
        // A copy of the library in another folder comes first or last, depending on the kind of run path (`tag`).
        std::fs::copy(folder.join("near/libnear.so"), folder.join("far/libnear.so")).unwrap();
        let library_path = Some(folder.join("far").into());
        let environment = Environment {
            library_path,
            preload: None,
        };
        let own = libraries(&program, &environment).unwrap();
        let asked = Command::new(loader)
            .args(["--list".as_ref(), program.as_os_str()])
            .env("LD_LIBRARY_PATH", folder.join("far"))
            .output()
            .unwrap();
        let first = own.found[0].canonicalize().unwrap();
        let text = String::from_utf8_lossy(&asked.stdout).into_owned();
        let line = text.lines().find(|l| l.contains("libnear.so")).unwrap();
        let theirs = line.split_once(" => ").unwrap().1.rsplit_once(" (0x").unwrap().0;
        assert_eq!(
            first,
            Path::new(theirs).canonicalize().unwrap(),
            "{compiler} {tag}"
        );
    }
    let _ = std::fs::remove_dir_all(folder(0).parent().unwrap());
}

#[test]
fn a_static_program_is_told_from_a_dynamic_one() {
    let folder = std::env::temp_dir().join(format!("nodewise-static-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for (name, options, reached) in [
        ("dynamic", &[][..], None),
        ("static", &["-static"], Some(Foreign::Static)),
        ("static-pie", &["-static-pie"], Some(Foreign::Static)),
    ] {
        assert!(built(&folder, "gcc", &[&["-o", name], options].concat()));
        let program = Program::open(&folder.join(name)).unwrap();
        assert_eq!(
            (program.is_dynamic(), program.foreign()),
            (reached.is_none(), reached.clone()),
            "{name}"
        );
        assert!(program.is_native());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
