//! `record --plain` times the plain build too, so that the cost of recording is known.

use crate::support::{NODEWISE, Recorded, build, scratch, status, stderr};
use serde_json::Value;
use std::fs::{File, Permissions, set_permissions, write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn plain_build(folder: &Path, output: &str, flags: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record/programs/timed.c");
    let mut compiler = Command::new("cc");
    compiler
        .current_dir(folder)
        .args(["-O1", "-o", output])
        .arg(source)
        .args(flags);
    assert!(compiler.status().unwrap().success());
}

/// A folder with both builds, and an input of 30 rounds.
fn builds(test: &str) -> std::path::PathBuf {
    builds_of(test, &[])
}

fn builds_of(test: &str, flags: &[&str]) -> std::path::PathBuf {
    let folder = scratch(test);
    build(&folder, "nodewise-cc", &["timed.c"], "program", flags);
    plain_build(&folder, "program.plain", flags);
    write(folder.join("input"), "30\nsecond\n").unwrap();
    folder
}

fn record(folder: &Path, plain: &[&str]) -> Output {
    let mut record = Command::new(NODEWISE);
    record.current_dir(folder).arg("record").args(plain);
    record.args(["--force", "-o", "profile", "--", "./program"]);
    record.stdin(File::open(folder.join("input")).unwrap());
    record.output().unwrap()
}

fn ask(folder: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(NODEWISE);
    command
        .current_dir(folder)
        .args(arguments)
        .args(["profile", "--json"]);
    let output = command.args(["--machine", "nehalem-2s"]).output().unwrap();
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The cost of recording as `[min, typical, max]`, and whether it was measured.
fn cost(folder: &Path) -> ([f64; 3], bool) {
    let calibration = &ask(folder, &["simulate"])["calibration"];
    let range = serde_json::from_value(calibration["recording_cost"].clone()).unwrap();
    (range, calibration["recording_cost_measured"].as_bool().unwrap())
}

#[test]
fn the_measured_cost_lies_between_the_bounds_of_a_recording_without_it() {
    let folder = builds("plain-cost");
    let output = record(&folder, &["--plain", "./program.plain"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    // The plain run reads the input too, and its output is discarded.
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("2 lines, "));
    assert_eq!(output.stdout.iter().filter(|c| **c == b'\n').count(), 1);
    assert!(
        stderr(&output).contains("recording slowed the program"),
        "{}",
        stderr(&output)
    );
    let meta = Recorded::read(&folder).profile.meta;
    assert_eq!(meta.plain_program.as_deref(), Some("./program.plain"));
    let ([measured, typical, most], known) = cost(&folder);
    // Two counts of samples differ by chance.
    assert!(known && measured < typical && typical < most && most < 1.5 * typical);
    let measured = typical;

    assert_eq!(status(&record(&folder, &[])), 0);
    let ([least, _, most], known) = cost(&folder);
    assert!(!known && least < most);
    assert!(
        (least..=most).contains(&measured),
        "measured {measured}, bounds {least} to {most}"
    );
}

/// What a program costs when recorded follows from what it waits for: its true cost, by its plain build, must lie between
/// the bounds that a recording alone gives, whether it computes, has many misses in flight, or waits for one after the
/// other. Counting hides behind misses, and a recording does not tell how much of it: the bounds of a program that hardly
/// has any must be the closest.
#[test]
fn the_true_cost_lies_between_the_bounds_whatever_the_program_waits_for() {
    let [stencil, gather, chase] = ["-DSTENCIL", "-DGATHER", "-DCHASE"].map(|flag| {
        let folder = builds_of(&format!("plain-{}", &flag[2..]), &[flag]);
        // Two counts of samples differ by chance: the interval, as the cost of a program that waits is next to none. Where
        // other load slowed the plain run below the recorded one, it is not used, and the two are run again.
        let [least, _, most] = (0..10).find_map(|_| timed(&folder)).expect("a quiet run");
        assert_eq!(status(&record(&folder, &[])), 0);
        let ([low, _, high], known) = cost(&folder);
        assert!(!known);
        assert!(
            least <= high && low <= most,
            "{flag}: measured {least} to {most}, bounds {low} to {high}"
        );
        high / low
    });
    assert!(
        stencil < gather && stencil < chase,
        "{stencil} against {gather} and {chase}"
    );
}

/// The measured cost, unless the plain run took longer than the recorded one, as a line must then say.
fn timed(folder: &Path) -> Option<[f64; 3]> {
    let output = record(folder, &["--plain", "./program.plain"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let (cost, known) = cost(folder);
    assert_eq!(known, !stderr(&output).contains(SLOWED), "{}", stderr(&output));
    known.then_some(cost)
}

const SLOWED: &str = "something else slowed one of them";

#[test]
fn a_plain_run_that_takes_longer_than_the_recorded_one_is_not_used() {
    let folder = builds("plain-longer");
    write(folder.join("input"), "3\n").unwrap();
    let again = "for i in $(seq 100); do ./program.plain < input; done";
    write(folder.join("slow.sh"), format!("#!/bin/sh\n{again}\n")).unwrap();
    set_permissions(folder.join("slow.sh"), Permissions::from_mode(0o755)).unwrap();
    let output = record(&folder, &["--plain", "./slow.sh"]);
    assert_eq!(status(&output), 0);
    let text = stderr(&output);
    assert!(
        text.contains(SLOWED) && text.contains("is not used: it took "),
        "{text}"
    );
    let ([least, _, most], known) = cost(&folder);
    assert!(!known && least == 1.0 && most > 2.0, "{least} to {most}");
    let notes = ask(&folder, &["report"])["notes"].to_string();
    assert!(notes.contains("longer than the recorded run"), "{notes}");
}

#[test]
fn the_next_command_runs_the_plain_build_that_was_timed() {
    let folder = builds("plain-next");
    assert_eq!(status(&record(&folder, &["--plain", "./program.plain"])), 0);
    let report = ask(&folder, &["report"]);
    let notes = report["notes"].to_string();
    assert!(!notes.contains("was not timed"), "{notes}");
    let verdict = report["verdict"].to_string();
    assert!(!verdict.contains("PROGRAM"), "{verdict}");
    assert_eq!(status(&record(&folder, &[])), 0);
    let notes = ask(&folder, &["report"])["notes"].to_string();
    assert!(notes.contains("was not timed"), "{notes}");
}

#[test]
fn a_plain_run_that_cannot_be_compared_is_not_used() {
    let folder = builds("plain-unusable");
    plain_build(&folder, "program.fails", &["-DFAILS"]);
    write(folder.join("counts.sh"), "#!/bin/sh\nexec ./program\n").unwrap();
    set_permissions(folder.join("counts.sh"), Permissions::from_mode(0o755)).unwrap();
    for (plain, why) in [
        ("./program.fails", "it ended with status 3"),
        ("./counts.sh", "it counts its accesses"),
        ("true", "too short to compare"),
    ] {
        let output = record(&folder, &["--plain", plain]);
        assert_eq!(status(&output), 0);
        let text = stderr(&output);
        assert!(
            text.contains("the time of the plain build is not used: ") && text.contains(why),
            "{text}"
        );
        assert_eq!(Recorded::read(&folder).profile.meta.plain_cpu_ns, None);
    }
}

#[test]
fn a_program_that_consumes_its_input_is_recorded_first() {
    let folder = builds("plain-consumes");
    write(folder.join("consumed"), "1\n").unwrap();
    let mut record = Command::new(NODEWISE);
    record.current_dir(&folder).args([
        "record",
        "--via",
        "instrument",
        "--plain",
        "/bin/sh",
        "-o",
        "profile",
    ]);
    record
        .args(["--", "sh", "-c", "./program < consumed && rm consumed"])
        .stdin(Stdio::null());
    let output = record.output().unwrap();
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("1 lines, "));
    assert!(
        stderr(&output).contains("the time of the plain build is not used"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn what_cannot_be_the_plain_build_is_refused_before_anything_runs() {
    let folder = builds("plain-refused");
    for (plain, expected) in [
        ("./program", "this build counts its accesses"),
        ("./missing", "missing"),
    ] {
        let output = record(&folder, &["--plain", plain]);
        let code = status(&output);
        assert!((125..=127).contains(&code), "{plain}: {code}");
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1);
        assert!(output.stdout.is_empty() && !folder.join("profile").exists());
    }
    let mut piped = Command::new(NODEWISE);
    piped.current_dir(&folder).args([
        "record",
        "--plain",
        "./program.plain",
        "-o",
        "profile",
        "--",
        "./program",
    ]);
    let output = piped.stdin(Stdio::piped()).output().unwrap();
    assert_eq!(status(&output), 125);
    assert!(
        stderr(&output).contains("standard input is a pipe"),
        "{}",
        stderr(&output)
    );
    let mut faults = Command::new(NODEWISE);
    faults.args(["record", "--via", "faults", "--plain", "/bin/true", "--", "true"]);
    let output = faults.stdin(Stdio::null()).output().unwrap();
    assert_eq!(status(&output), 125, "{}", stderr(&output));
}
