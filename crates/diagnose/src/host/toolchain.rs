//! Checks the files installed with nodewise, and the compiler that they need, by compiling a program.

use super::{Finding, State};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub fn findings(beside: &Path) -> Vec<Finding> {
    let mut all = Vec::new();
    let instrument = instrument(beside);
    let works = instrument.state == State::Works;
    all.push(instrument);
    if works {
        all.push(openmp(beside));
    }
    all.push(preload(beside));
    all
}

/// Checks instrumentation by compiling a program as a user would.
fn instrument(beside: &Path) -> Finding {
    let missing = |because: String| Finding::new("observers", "instrument", State::Missing, because);
    let Some(runtime) = library(beside, "libnodewise-rt.so", "") else {
        return missing(format!("no libnodewise-rt.so beside {}", beside.display()))
            .with_remedy("make build");
    };
    let Some(pass) = library(beside, "nodewise-pass-", ".so") else {
        return missing(format!("no compiler pass beside {}", runtime.display()))
            .with_remedy("apt install clang-19 llvm-19-dev libomp-19-dev && make build");
    };
    let major = version_of(&pass);
    match trial(beside, &[], "int main(void) { return 0; }\n") {
        Ok(()) => {
            let text = format!("exact, by nodewise-cc with clang {major}; every access of what it compiled");
            Finding::new("observers", "instrument", State::Works, text)
        }
        Err(why) => missing(why).with_remedy(format!("apt install clang-{major}")),
    }
}

fn openmp(beside: &Path) -> Finding {
    match trial(
        beside,
        &["-fopenmp"],
        "#include <omp.h>\nint main(void) { return omp_get_thread_num(); }\n",
    ) {
        Ok(()) => Finding::new(
            "observers",
            "openmp",
            State::Works,
            "parallel regions and thread numbers are recorded",
        ),
        Err(why) => {
            let major =
                library(beside, "nodewise-pass-", ".so").map_or_else(|| "19".to_owned(), |p| version_of(&p));
            Finding::new("observers", "openmp", State::Limited, why)
                .with_remedy(format!("apt install libomp-{major}-dev"))
        }
    }
}

fn preload(beside: &Path) -> Finding {
    match library(beside, "libnodewise-preload.so", "") {
        Some(_) => {
            let text = "`run` places dynamically linked programs before first touch; static ones it refuses";
            Finding::new("actuators", "preload", State::Works, text)
        }
        None => {
            let because = format!("no libnodewise-preload.so beside {}", beside.display());
            Finding::new("actuators", "preload", State::Missing, because).with_remedy("make build")
        }
    }
}

/// Compiles a source text and discards the result; the error is the first line of the compiler's message.
fn trial(beside: &Path, flags: &[&str], text: &str) -> Result<(), String> {
    let wrapper = beside.join("nodewise-cc");
    let started = Command::new(&wrapper)
        .args(flags)
        .args(["-x", "c", "-c", "-o", "/dev/null", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = started.map_err(|e| format!("{} does not start: {e}", wrapper.display()))?;
    if let Some(mut input) = child.stdin.take() {
        // A compiler that fails early closes its input: its own message says more.
        let _ = input.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let message = String::from_utf8_lossy(&output.stderr);
    let first = message
        .lines()
        .next()
        .unwrap_or("the compiler failed without a word");
    if output.status.success() {
        Ok(())
    } else {
        Err(first.to_owned())
    }
}

/// Finds a library in the folders that a build or an installation uses.
pub fn library(beside: &Path, start: &str, end: &str) -> Option<PathBuf> {
    let places = [
        beside.join("lib"),
        beside.to_owned(),
        beside.join("../lib/nodewise"),
    ];
    let matching = |folder: &PathBuf| {
        let entries = std::fs::read_dir(folder).ok()?;
        let names = entries
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned());
        let name = names.filter(|n| n.starts_with(start) && n.ends_with(end)).max()?;
        Some(folder.join(name))
    };
    places.iter().find_map(matching)
}

/// The compiler version in a file name such as `nodewise-pass-19.so`.
fn version_of(pass: &Path) -> String {
    let stem = pass.file_stem().unwrap_or_default().to_string_lossy();
    stem.rsplit('-').next().unwrap_or_default().to_owned()
}
