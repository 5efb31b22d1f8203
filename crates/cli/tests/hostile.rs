//! Small profiles that claim very many pages are refused with a one-line error, before memory is allocated for them.

mod synthetic;

use std::path::Path;
use std::process::{Command, Stdio};

const MACHINE: [&str; 2] = ["--machine", "nehalem-2s"];

/// A program that runs a command and then prints the command's exit status and peak memory in KiB.
const MEASURED: &str = "
import os, sys
child = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(child, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
";

/// Exit status, peak memory in MiB, and output of a command.
fn measured(arguments: &[&str], folder: &Path) -> (i32, u64, String) {
    let output = Command::new("python3")
        .args(["-c", MEASURED, env!("CARGO_BIN_EXE_nodewise")])
        .args(arguments)
        .args(MACHINE)
        .arg(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (printed, stderr) = (output.stdout, output.stderr);
    let printed = String::from_utf8(printed).unwrap();
    let last = printed.lines().last().unwrap();
    let (status, kib) = last.split_once(' ').unwrap();
    (
        status.parse().unwrap(),
        kib.parse::<u64>().unwrap() >> 10,
        String::from_utf8(stderr).unwrap(),
    )
}

#[test]
fn a_run_of_pages_beyond_its_object_takes_no_memory() {
    let sound = synthetic::profile("hostile-sound");
    let commands = [
        &["report"][..],
        &["report", "--json"],
        &["simulate"],
        &["map", "--policy", "locality", "-o", "-"],
        &["top", "--once"],
    ];
    let usual = commands.map(|command| {
        let (status, peak, stderr) = measured(command, &sound);
        assert_eq!(status, 0, "{command:?}: {stderr}");
        peak
    });
    for length in [1 << 25, 1 << 26, u32::MAX] {
        let folder = synthetic::beyond("hostile-run", length);
        for (command, usual) in commands.into_iter().zip(usual) {
            let (status, peak, stderr) = measured(command, &folder);
            assert_eq!(status, 2, "{command:?}: {stderr}");
            assert_eq!(stderr.lines().count(), 1, "{command:?}: {stderr}");
            assert!(stderr.contains("damaged: its rows name"), "{command:?}: {stderr}");
            // A valid profile of the same size takes as much; 100 bytes for each page would be more than 3 GiB.
            assert!(peak < usual + 200, "{command:?}: {peak} MiB, usually {usual} MiB");
        }
    }
}
