//! Code and runtime of different versions refuse each other by name.

use crate::support::{NODEWISE, build, program, record, scratch, status, stderr};
use std::fs::{read, write};
use std::path::Path;
use std::process::{Command, Output};

const OURS: &str = "nodewise_interface_1";

/// Gives code in a file another interface: a symbol's name of the same length.
fn rename(file: &Path, to: &str) {
    let mut bytes = read(file).unwrap();
    let (from, to) = (OURS.as_bytes(), to.as_bytes());
    let places: Vec<usize> = (0..=bytes.len() - from.len())
        .filter(|at| bytes[*at..].starts_with(from))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    write(file, bytes).unwrap();
}

/// Runs a program of one megabyte, with `raw` as the folder of a recorder.
fn run(built: &Path, raw: Option<&Path>) -> Output {
    let mut command = Command::new(built);
    raw.map(|raw| command.env("NODEWISE_RAW", raw));
    command.arg("1").output().unwrap()
}

#[test]
fn a_program_for_another_interface_is_refused_by_name() {
    for (name, version) in [("nodewise_interface_2", 2), ("nodewise-interface-1", 0)] {
        let folder = scratch(&format!("interface-{version}"));
        let built = program(&folder, "grows.c");
        rename(&built, name);
        let output = record(&folder, &[], &[built.to_str().unwrap()]);
        let text = stderr(&output);
        assert!((125..=127).contains(&status(&output)), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.contains(&format!(
                "for interface {version} of its runtime; this version has 1"
            )),
            "{text}"
        );
        assert!(!folder.join("profile").exists());
        // The loader refuses it too, before any of its code runs.
        let alone = run(&built, None);
        assert!(
            status(&alone) == 127 && stderr(&alone).contains(name),
            "{}",
            stderr(&alone)
        );
    }
}

#[test]
fn objects_for_another_interface_are_not_linked() {
    let folder = scratch("interface-object");
    build(&folder, "nodewise-cc", &["grows.c"], "grows.o", &["-c"]);
    let linked = |object: &str| {
        let mut linker = Command::new(Path::new(NODEWISE).with_file_name("nodewise-cc"));
        linker
            .current_dir(&folder)
            .args(["-o", "program", object, "-pthread"])
            .output()
            .unwrap()
    };
    assert_eq!(status(&linked("grows.o")), 0);
    rename(&folder.join("grows.o"), "nodewise_interface_0");
    let refused = linked("grows.o");
    assert!(status(&refused) != 0 && stderr(&refused).contains("nodewise_interface_0"));
}

#[test]
fn a_recorder_of_another_version_is_named() {
    let folder = scratch("interface-recorder");
    let built = program(&folder, "grows.c");
    // nw_control: the magic number, and a version that no recorder has.
    let mut control = vec![0; 4096];
    control[..8].copy_from_slice(&0x3165_7369_7764_6f6e_u64.to_le_bytes());
    control[8..12].copy_from_slice(&999_u32.to_le_bytes());
    write(folder.join("control"), &control).unwrap();
    let output = run(&built, Some(&folder));
    let text = stderr(&output);
    assert!(
        text.contains("built by another version of nodewise") && text.lines().count() == 1,
        "{text}"
    );
    assert_eq!(status(&output), 0);
    // One that is no recorder's is nothing to speak of.
    write(folder.join("control"), vec![1; 4096]).unwrap();
    let output = run(&built, Some(&folder));
    assert_eq!((status(&output), stderr(&output)), (0, String::new()));
}

/// However it is linked, a program names its interface.
#[test]
fn the_interface_is_kept_by_the_linker() {
    let folder = scratch("interface-linked");
    for flags in [
        &["-Wl,--gc-sections", "-ffunction-sections", "-O2"][..],
        &["-no-pie", "-fno-pic"],
        &["-O0"],
    ] {
        let built = build(&folder, "nodewise-cc", &["grows.c"], "program", flags);
        assert_eq!(status(&run(&built, None)), 0, "{flags:?}");
        rename(&built, "nodewise_interface_7");
        let alone = run(&built, None);
        assert!(
            stderr(&alone).contains("nodewise_interface_7"),
            "{flags:?}: {}",
            stderr(&alone)
        );
    }
}
