//! Recording of programs in which a thread holds the dynamic loader's lock and waits for another thread, and of
//! programs that query the loader. A program that hangs is killed.

use crate::emulated::plain;
use crate::support::{NODEWISE, Recorded, build, program, record, scratch, status, stderr};
use nodewise_profile::{ObjectKind, RegionKind};
use std::path::Path;
use std::process::{Command, Output};

/// Records a program in `folder`, for at most a minute.
fn within_a_minute(folder: &Path, via: &str, command: &[&str]) -> Output {
    let bounded = [&["timeout", "-s", "KILL", "60"], command].concat();
    record(folder, &["--via", via, "--force"], &bounded)
}

#[test]
fn a_callback_of_the_loader_may_wait_for_a_thread() {
    let folder = scratch("callback");
    program(&folder, "callback.c");
    let output = within_a_minute(&folder, "instrument", &["./program"]);
    assert_eq!(
        (status(&output), output.stdout.as_slice()),
        (5, b"4095\n".as_slice()),
        "{}",
        stderr(&output)
    );
    let recorded = Recorded::read(&folder);
    assert!(recorded.names(ObjectKind::Tls).contains(&"own"));
    assert!(recorded.of("own").1 >= 4096 - 1024, "{:?}", recorded.of("own"));
}

#[test]
fn a_constructor_may_wait_for_a_team() {
    let folder = scratch("constructs");
    build(&folder, "nodewise-cc", &["opens.c"], "program", &[]);
    let flags = ["-shared", "-fPIC", "-fopenmp"];
    build(&folder, "nodewise-cc", &["constructs.c"], "library.so", &flags);
    // Which thread of the team arrives first, and registers the region, varies.
    for _ in 0..10 {
        let _ = std::fs::remove_dir_all(folder.join("profile"));
        let output = within_a_minute(&folder, "instrument", &["./program", "./library.so"]);
        assert_eq!(
            (status(&output), output.stdout.as_slice()),
            (0, b"constructed\n39999\n".as_slice()),
            "{}",
            stderr(&output)
        );
    }
    let recorded = Recorded::read(&folder);
    assert_eq!(recorded.of("numbers"), (1, 40_000));
    assert!(
        recorded
            .profile
            .regions
            .iter()
            .any(|r| r.kind == RegionKind::OpenMp)
    );
    let numbered = recorded.profile.threads.iter().filter(|t| t.openmp.is_some());
    assert_eq!(numbered.count(), 4);
}

#[test]
fn a_library_is_opened_on_behalf_of_its_opener() {
    let folder = scratch("origin");
    build(&folder, "nodewise-cc", &["opens.c"], "program", &[]);
    let flags = ["-shared", "-fPIC"];
    build(&folder, "nodewise-cc", &["library.c"], "library.so", &flags);
    for (via, program) in [("instrument", "./program"), ("emulate", "./plain")] {
        let _ = std::fs::remove_dir_all(folder.join("profile"));
        if via == "emulate" {
            plain(&folder, "cc", "library.c", &["-O1", "-shared", "-fPIC"]);
            std::fs::rename(folder.join("plain"), folder.join("library.so")).unwrap();
            plain(&folder, "cc", "opens.c", &["-O1"]);
        }
        let output = within_a_minute(&folder, via, &[program, "$ORIGIN/library.so"]);
        assert_eq!(output.stdout, b"39999\n", "{via}: {}", stderr(&output));
        assert_eq!(Recorded::read(&folder).of("inside"), (1, 40_000), "{via}");
    }
}

/// strace slows down each system call, so that a library is unmapped between being found and being read; without strace
/// this race occurs only in some runs.
#[test]
fn a_library_may_be_closed_while_it_is_looked_at() {
    let folder = scratch("reopens");
    build(&folder, "nodewise-cc", &["reopens.c"], "program", &["-pthread"]);
    plain(&folder, "cc", "library.c", &["-O1", "-shared", "-fPIC"]);
    let libraries: Vec<_> = (0..4).map(|i| format!("./library-{i}.so")).collect();
    for library in &libraries {
        std::fs::copy(folder.join("plain"), folder.join(library)).unwrap();
    }
    plain(&folder, "cc", "reopens.c", &["-O1", "-pthread"]);
    for (via, program) in [("instrument", "./program"), ("emulate", "./plain")] {
        let output = Command::new("strace")
            .current_dir(&folder)
            .args(["-f", "-o", "/dev/null", "timeout", "-s", "KILL", "60", NODEWISE])
            .args(["record", "--via", via, "--force", "-o", "profile", "--", program])
            .args(&libraries)
            .output()
            .expect("strace, which `make setup` installs");
        assert_eq!(
            (status(&output), output.stdout.as_slice()),
            (0, b"80\n".as_slice()),
            "{via}: {}",
            stderr(&output)
        );
    }
}
