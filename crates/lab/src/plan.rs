//! The plan that the guest's init executes; `runtime/guest/plan.c` reads it.

use crate::{Experiment, LabError, RunPlacement};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Variables that control how threads wait, and our values for them: otherwise most counted accesses would be from
/// spinning.
const WAIT_VARIABLES: [(&str, &str); 3] = [
    ("OMP_WAIT_POLICY", "passive"),
    ("GOMP_SPINCOUNT", "0"),
    ("KMP_BLOCKTIME", "0"),
];
/// Folder in the guest with the tools for scripts that call commands which are not packed.
pub(crate) const TOOLS: &str = "/lab/bin";

/// File in the guest for the JSON summary of `nodewise run` or `nodewise balance`; `runtime/guest/command.c` sends it.
const RUN_REPORT: &str = "/lab/report.json";
const BALANCE_REPORT: &str = "/lab/balance.json";

/// Limits of the guest's init: `NW_RUNS`, `NW_BROUGHT` and `NW_ARGUMENTS` in `runtime/guest/guest.h`.
const MAX_RUNS: usize = 1024;
const MAX_BROUGHT: usize = 64;
const MAX_ARGUMENTS: usize = 4096;

/// Refuses an experiment that exceeds the limits of the guest's init, before a boot is spent on it.
///
/// # Errors
/// One line: what exceeds its limit, and the limit.
pub(crate) fn check(experiment: &Experiment) -> Result<(), LabError> {
    let refuse = |what: &str, count: usize, most: usize, remedy: &str| match count > most {
        true => Err(LabError::usage(format!(
            "{count} {what}: {most} at most; {remedy}"
        ))),
        false => Ok(()),
    };
    let words = |(number, under)| arguments(experiment, under, number).len();
    let longest = experiment.runs.iter().enumerate().map(words).max();
    refuse(
        "runs in one boot",
        experiment.runs.len(),
        MAX_RUNS,
        "split the batch",
    )?;
    refuse(
        "paths to bring",
        experiment.bring.len(),
        MAX_BROUGHT,
        "bring a folder",
    )?;
    // One word is reserved for the null pointer at the end.
    let (longest, most) = (longest.unwrap_or_default(), MAX_ARGUMENTS - 1);
    refuse("words in a command", longest, most, "write them into a script")?;
    let variables = environment(experiment).len();
    refuse(
        "environment variables",
        variables,
        most,
        "start from a smaller environment",
    )
}

/// Path of a run's map in the guest.
pub(crate) fn map_path(run: usize) -> PathBuf {
    format!("/lab/map-{run}").into()
}

/// The plan: entries `key:value`, each terminated by a NUL.
pub(crate) fn text(experiment: &Experiment) -> Vec<u8> {
    let mut plan = Plan::default();
    for (name, value) in environment(experiment) {
        plan.put("env", &[name.as_os_str(), OsStr::new("="), &value]);
    }
    plan.put("cwd", &[experiment.cwd.as_os_str()]);
    if let Some(path) = &experiment.stdin {
        plan.put("stdin", &[experiment.cwd.join(path).as_os_str()]);
    }
    for path in &experiment.bring {
        plan.put("bring", &[experiment.cwd.join(path).as_os_str()]);
    }
    if let Some(slice) = experiment.slice {
        let ms = slice.as_millis().clamp(1, i32::MAX as u128);
        plan.put("slice", &[OsStr::new(&ms.to_string())]);
    }
    if experiment.capture {
        plan.put("capture", &[OsStr::new("1")]);
    }
    for (number, under) in experiment.runs.iter().enumerate() {
        plan.put("run", &[OsStr::new(&number.to_string())]);
        let balancing = if under.takes_hints() { "1" } else { "0" };
        plan.put("balancing", &[OsStr::new(balancing)]);
        for argument in arguments(experiment, under, number) {
            plan.put("arg", &[&argument]);
        }
        plan.put("end", &[]);
    }
    plan.0
}

#[derive(Default)]
struct Plan(Vec<u8>);

impl Plan {
    fn put(&mut self, key: &str, value: &[&OsStr]) {
        self.0.extend(key.as_bytes());
        self.0.push(b':');
        value.iter().for_each(|part| self.0.extend(part.as_bytes()));
        self.0.push(0);
    }
}

fn environment(experiment: &Experiment) -> Vec<(OsString, OsString)> {
    let ours = |name: &OsStr| WAIT_VARIABLES.iter().any(|(n, _)| name == *n);
    let mut all: Vec<(OsString, OsString)> = experiment
        .environment
        .iter()
        .filter(|(name, _)| !ours(name))
        .cloned()
        .collect();
    all.extend(WAIT_VARIABLES.map(|(n, v)| (n.into(), v.into())));
    match all.iter_mut().find(|(name, _)| name == "PATH") {
        Some((_, path)) => {
            path.push(":");
            path.push(TOOLS);
        }
        None => all.push(("PATH".into(), TOOLS.into())),
    }
    all
}

/// The command line of a run: `nodewise run` or `nodewise balance` marks the command's beginning and end, and reports
/// its objects.
fn arguments(experiment: &Experiment, under: &RunPlacement, number: usize) -> Vec<OsString> {
    let policy = match under {
        RunPlacement::AutoNuma => RunPlacement::FirstTouch.to_string(),
        RunPlacement::Map(_) => RunPlacement::Map(map_path(number)).to_string(),
        RunPlacement::Balance(policy) => policy.clone(),
        other => other.to_string(),
    };
    let (verb, report, bind) = match under {
        RunPlacement::Balance(_) => (
            "balance",
            BALANCE_REPORT,
            experiment.bind.replace("map", "compact"),
        ),
        _ => ("run", RUN_REPORT, experiment.bind.clone()),
    };
    let mut all: Vec<OsString> = ["/lab/nodewise", verb, "--policy", &policy]
        .map(Into::into)
        .into();
    if !bind.is_empty() {
        all.extend(["--bind".into(), bind.into()]);
    }
    if let Some(threads) = experiment.threads {
        all.extend(["--threads".into(), threads.to_string().into()]);
    }
    if let RunPlacement::Balance(_) = under {
        all.extend(experiment.balancer.iter().cloned());
    }
    let results = ["--objects", "/lab/objects", "--summary", report, "--"];
    all.extend(results.map(Into::into));
    all.extend(experiment.command(number).iter().cloned());
    all
}

/// The folders in which commands are searched: the experiment's `PATH`.
pub(crate) fn search_path(experiment: &Experiment) -> Vec<PathBuf> {
    let path = experiment.environment.iter().find(|(n, _)| n == "PATH");
    let folders = path.map(|(_, v)| std::env::split_paths(v).collect::<Vec<_>>());
    folders.unwrap_or_else(|| ["/usr/bin", "/bin"].map(|p| Path::new(p).to_owned()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_guest_has_no_room_for_is_refused_beforehand() {
        let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime/guest/guest.h");
        let limits =
            format!("NW_ARGUMENTS = {MAX_ARGUMENTS}, NW_RUNS = {MAX_RUNS}, NW_BROUGHT = {MAX_BROUGHT} ");
        assert!(
            std::fs::read_to_string(header).unwrap().contains(&limits),
            "the guest has other limits"
        );
        let with = |runs, brought, words| Experiment {
            command: vec!["true".into(); words],
            runs: vec![RunPlacement::FirstTouch; runs],
            bring: vec!["a".into(); brought],
            ..Experiment::default()
        };
        assert!(check(&with(MAX_RUNS, MAX_BROUGHT, 4000)).is_ok());
        for (experiment, expected) in [
            (
                with(MAX_RUNS + 1, 0, 1),
                "1025 runs in one boot: 1024 at most; split the batch",
            ),
            (with(1, MAX_BROUGHT + 1, 1), "65 paths to bring"),
            (with(1, 0, MAX_ARGUMENTS), "words in a command: 4095 at most"),
        ] {
            let error = check(&experiment).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_plan_is_what_the_guest_reads() {
        let experiment = Experiment {
            command: vec!["./sor".into(), "--size".into()],
            cwd: "/srv/me".into(),
            environment: vec![
                ("PATH".into(), "/bin".into()),
                ("KMP_BLOCKTIME".into(), "200".into()),
            ],
            runs: vec![
                RunPlacement::AutoNuma,
                RunPlacement::Map("my.map".into()),
                RunPlacement::Balance("out-w".to_owned()),
            ],
            bind: "map".to_owned(),
            balancer: vec!["--minimum-samples".into(), "2".into()],
            threads: Some(8),
            ..Experiment::default()
        };
        let text = String::from_utf8(text(&experiment)).unwrap();
        let tokens: Vec<&str> = text.split_terminator('\0').collect();
        assert_eq!(
            tokens[..4],
            [
                "env:PATH=/bin:/lab/bin",
                "env:OMP_WAIT_POLICY=passive",
                "env:GOMP_SPINCOUNT=0",
                "env:KMP_BLOCKTIME=0"
            ]
        );
        assert_eq!(
            tokens[4..8],
            ["cwd:/srv/me", "run:0", "balancing:1", "arg:/lab/nodewise"]
        );
        let second = tokens.iter().position(|t| *t == "run:1").unwrap();
        assert_eq!(
            tokens[second + 1..].join(" "),
            "balancing:0 \
             arg:/lab/nodewise arg:run arg:--policy arg:map:/lab/map-1 arg:--bind arg:map arg:--threads arg:8 \
             arg:--objects arg:/lab/objects arg:--summary arg:/lab/report.json arg:-- arg:./sor arg:--size end: \
             run:2 balancing:1 \
             arg:/lab/nodewise arg:balance arg:--policy arg:out-w arg:--bind arg:compact arg:--threads arg:8 \
             arg:--minimum-samples arg:2 arg:--objects arg:/lab/objects arg:--summary arg:/lab/balance.json \
             arg:-- arg:./sor arg:--size end:"
        );
    }
}
