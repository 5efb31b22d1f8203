//! Options that take a file to write: `-` and `/dev/stdout` are standard output or refused, and a file that cannot be
//! written is reported before any work is done.

mod synthetic;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const NODEWISE: &str = env!("CARGO_BIN_EXE_nodewise");

/// Expected behaviour of an option whose file is standard output.
enum Stdout {
    /// The document is printed, and contains this text.
    Printed(&'static str),
    /// Standard output is refused, with a reason that contains this text.
    Refused(&'static str),
    /// Standard output is accepted; the document itself is not tested, because it would need a guest.
    Allowed,
}
use Stdout::{Allowed, Printed, Refused};

/// A command line with one option that takes a file; `FILE`, `PROFILE` and `PROGRAM` stand for themselves.
struct Line(&'static str, Stdout);

const LINES: &[Line] = &[
    Line("run --summary FILE -- PROGRAM", Printed("\"rules_found\"")),
    Line("run --objects FILE -- PROGRAM", Refused("appends")),
    Line("balance --summary FILE -- PROGRAM", Printed("\"policy\"")),
    Line("balance --objects FILE -- PROGRAM", Refused("appends")),
    Line("balance --metrics FILE -- PROGRAM", Refused("each interval")),
    Line(
        "tune --profile PROFILE --output FILE -- PROGRAM",
        Refused("names its map"),
    ),
    Line(
        "report PROFILE --machine nehalem-2s --html FILE",
        Printed("<html"),
    ),
    Line(
        "map PROFILE --machine nehalem-2s --policy locality --output FILE",
        Printed("[[rule]]"),
    ),
    Line(
        "simulate PROFILE --machine machine-a --policy balance:out-u --svg FILE",
        Printed("<svg"),
    ),
    Line("validate --output FILE", Refused("to be sent")),
    Line("topo --machine nehalem-2s --svg FILE", Printed("<svg")),
    Line("topo --machine nehalem-2s --output FILE", Printed("[[nodes]]")),
    Line("lab --machine nehalem-2s --scaled FILE", Printed("[[nodes]]")),
    Line(
        "lab --machine nehalem-2s --kernel /nonexistent --svg FILE -- PROGRAM",
        Allowed,
    ),
    Line(
        "lab --machine nehalem-2s --kernel /nonexistent --pages FILE -- PROGRAM",
        Allowed,
    ),
];

impl Line {
    fn run(&self, folder: &Path, file: &str, profile: &str, program: &str) -> Output {
        let words = self.0.split(' ').map(|word| match word {
            "FILE" => file,
            "PROFILE" => profile,
            "PROGRAM" => program,
            word => word,
        });
        let mut command = Command::new(NODEWISE);
        command.args(words).current_dir(folder).stdin(Stdio::null());
        command.output().unwrap()
    }

    /// A command line whose option takes a file, and the option.
    fn option(&self) -> (String, String) {
        let words: Vec<&str> = self.0.split(' ').collect();
        let file = words.iter().position(|word| *word == "FILE").unwrap();
        (words[0].to_owned(), words[file - 1].to_owned())
    }
}

fn scratch(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("files").join(test);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn help(words: &[&str]) -> String {
    let output = Command::new(NODEWISE).args(words).arg("--help").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_option_that_takes_a_file_is_in_the_table() {
    let all = help(&[]);
    let commands = all
        .lines()
        .filter_map(|l| l.strip_prefix("  ")?.split(' ').next());
    let mut options = BTreeSet::new();
    for command in commands.filter(|c| c.starts_with(|c: char| c.is_ascii_lowercase()) && *c != "help") {
        for line in help(&[command])
            .lines()
            .filter(|l| l.trim_start().starts_with('-') && l.contains(" <FILE>"))
        {
            let name = line.split_whitespace().find(|w| w.starts_with("--")).unwrap();
            options.insert((command.to_owned(), name.to_owned()));
        }
    }
    for (command, read) in [("lab", "--batch"), ("lab", "--stdin"), ("validate", "--machine")] {
        assert!(
            options.remove(&(command.to_owned(), read.to_owned())),
            "{options:?}"
        );
    }
    assert_eq!(options, LINES.iter().map(Line::option).collect());
}

#[test]
fn standard_output_is_written_to_or_refused_and_no_file_is_called_a_dash() {
    let folder = scratch("stdout");
    let profile = synthetic::profile("files-stdout").display().to_string();
    for line in LINES {
        for file in ["-", "/dev/stdout"] {
            let output = line.run(&folder, file, &profile, "true");
            let [out, stderr] =
                [&output.stdout, &output.stderr].map(|t| String::from_utf8_lossy(t).into_owned());
            assert!(
                !stderr.contains("exists already") && !stderr.contains("folder"),
                "{}: {stderr}",
                line.0
            );
            match line.1 {
                // On a host with several nodes, balancing needs privileges.
                Printed(_) if line.0.starts_with("balance") && output.status.code() == Some(125) => {}
                Printed(part) => assert!(
                    output.status.success() && out.contains(part),
                    "{}: {out}{stderr}",
                    line.0
                ),
                Refused(why) => {
                    assert!(!output.status.success() && out.is_empty(), "{}", line.0);
                    assert!(
                        stderr.contains(why) && stderr.lines().count() == 1,
                        "{}: {stderr}",
                        line.0
                    );
                }
                Allowed => assert!(stderr.contains("/nonexistent"), "{}: {stderr}", line.0),
            }
            let left: Vec<_> = folder.read_dir().unwrap().map(|e| e.unwrap().path()).collect();
            assert!(left.is_empty(), "{}: {left:?}", line.0);
        }
    }
}

#[test]
fn what_cannot_be_written_is_said_before_any_work() {
    let folder = scratch("before");
    let (there, missing) = (folder.join("there"), folder.join("missing"));
    std::fs::write(&there, "mine").unwrap();
    for line in LINES {
        let mut files = vec![
            (
                missing.join("file"),
                format!("there is no folder {}", missing.display()),
            ),
            (there.clone(), format!("{}: exists already", there.display())),
        ];
        if line.option().1 == "--metrics" {
            files.pop(); // replaced after each interval
        }
        for (file, why) in files {
            let output = line.run(&folder, file.to_str().unwrap(), "/nonexistent", "/nonexistent");
            let stderr = String::from_utf8_lossy(&output.stderr);
            let status = if ["run", "balance", "lab"].contains(&&*line.option().0) {
                125
            } else {
                2
            };
            assert_eq!(output.status.code(), Some(status), "{}: {stderr}", line.0);
            assert!(
                stderr.contains(&why) && stderr.lines().count() == 1,
                "{}: {stderr}",
                line.0
            );
        }
    }
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "mine");
    assert_eq!(folder.read_dir().unwrap().count(), 1);
}
