//! Commands with stock tools (numactl, OpenMP) that produce a placement.

use nodewise_analysis::Affinity;
use nodewise_input::shell_line;
use nodewise_machine::CpuId;
use nodewise_placement::ThreadBinding;
use nodewise_profile::Profile;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A command with the variables set for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockCommand {
    /// Environment variables to set, name and value.
    pub environment: Vec<(&'static str, String)>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

impl StockCommand {
    /// The line to type in a shell.
    #[must_use]
    pub fn line(&self) -> String {
        let mut words: Vec<OsString> = Vec::new();
        if !self.environment.is_empty() {
            words.push("env".into());
            words.extend(
                self.environment
                    .iter()
                    .map(|(name, value)| format!("{name}={value}").into()),
            );
        }
        words.extend_from_slice(&self.command);
        shell_line(&words)
    }
}

/// The stock command for a policy with threads bound to `places`, if there is one.
///
/// Interleaving is done by `numactl`, in the order of page faults; the balance is the same. Under Slurm, `srun` binds
/// memory itself, and reaches first-touch only.
#[must_use]
pub fn stock_command(policy: &str, places: &str, command: &[impl AsRef<OsStr>]) -> Option<StockCommand> {
    let command: Vec<OsString> = command.iter().map(OsString::from).collect();
    let srun = command
        .first()
        .is_some_and(|c| Path::new(c).file_name().is_some_and(|name| name == "srun"));
    let before = match policy.split_once(':').unwrap_or((policy, "")) {
        ("first-touch", _) if srun => {
            let own = ["srun", "--cpu-bind=cores", "--mem-bind=local"].map(OsString::from);
            return Some(StockCommand {
                environment: Vec::new(),
                command: [&own, &command[1..]].concat(),
            });
        }
        _ if srun => return None,
        ("first-touch", _) => Vec::<OsString>::new(),
        ("interleave" | "round-robin", _) => vec!["numactl".into(), "--interleave=all".into()],
        ("node", node) => vec!["numactl".into(), format!("--preferred={node}").into()],
        _ => return None,
    };
    Some(StockCommand {
        environment: vec![
            ("OMP_PLACES", places.to_owned()),
            ("OMP_PROC_BIND", "close".into()),
        ],
        command: [before, command].concat(),
    })
}

/// The value of `OMP_PLACES` that binds OpenMP thread i as the affinity does; `None` if OpenMP cannot do so: there are
/// several processes, or no OpenMP threads.
#[must_use]
pub fn omp_places(affinity: &Affinity, profile: &Profile) -> Option<String> {
    let team = profile.threads.iter().filter_map(|t| t.openmp).max()? as usize + 1;
    if profile.threads.iter().any(|t| t.process != 0) {
        return None;
    }
    let cpus = ThreadBinding::of(affinity, profile).cpus;
    Some(runs(cpus.get(..team)?))
}

/// One place per CPU, in order; CPUs at equal distances are written as `{first}:count:step`.
fn runs(cpus: &[CpuId]) -> String {
    let mut places = Vec::new();
    let mut left = cpus;
    while let [first, rest @ ..] = left {
        let step = rest
            .first()
            .map_or(0, |next| i64::from(next.0) - i64::from(first.0));
        let steady = |pair: &&[CpuId]| i64::from(pair[1].0) - i64::from(pair[0].0) == step;
        let count = match left.windows(2).take_while(steady).count() + 1 {
            count if count > 2 && step > 0 => count,
            _ => 1,
        };
        places.push(match (count, step) {
            (1, _) => format!("{{{}}}", first.0),
            (_, 1) => format!("{{{}}}:{count}", first.0),
            _ => format!("{{{}}}:{count}:{step}", first.0),
        });
        left = &left[count..];
    }
    places.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        text.split('|').map(str::to_owned).collect()
    }

    #[test]
    fn only_policies_a_stock_tool_knows_have_a_stock_command() {
        let line = |policy, command| stock_command(policy, "{0}:4", &words(command)).map(|s| s.line());
        let bound = "env 'OMP_PLACES={0}:4' OMP_PROC_BIND=close";
        assert_eq!(
            line("interleave", "./a").unwrap(),
            format!("{bound} numactl --interleave=all ./a")
        );
        assert_eq!(
            line("node:2", "./a").unwrap(),
            format!("{bound} numactl --preferred=2 ./a")
        );
        assert_eq!(line("first-touch", "./a").unwrap(), format!("{bound} ./a"));
        assert_eq!(line("mixed:0.9", "./a"), None);
        let job = line("first-touch", "srun|-n|1|./a").unwrap();
        assert_eq!(job, "srun --cpu-bind=cores --mem-bind=local -n 1 ./a");
        assert_eq!(line("interleave", "srun|./a"), None);
    }

    #[test]
    fn equal_steps_are_written_short() {
        let runs = |cpus: &[u32]| runs(&cpus.iter().copied().map(CpuId).collect::<Vec<_>>());
        assert_eq!(runs(&[0, 1, 2, 3]), "{0}:4");
        assert_eq!(runs(&[0, 8, 16, 1, 9, 17]), "{0}:3:8,{1}:3:8");
        assert_eq!(runs(&[3, 0, 1]), "{3},{0},{1}");
    }

    /// Parses a list of places of one CPU each, as the OpenMP specification defines it.
    fn read(places: &str) -> Vec<u32> {
        let number = |text: &str| text.trim_matches(['{', '}']).parse::<u32>().unwrap();
        let interval = |text: &str| {
            let parts: Vec<u32> = text.split(':').map(number).collect();
            let (count, step) = (*parts.get(1).unwrap_or(&1), *parts.get(2).unwrap_or(&1));
            (0..count).map(move |i| parts[0] + i * step).collect::<Vec<_>>()
        };
        places.split(',').flat_map(interval).collect()
    }

    proptest! {
        #[test]
        fn thread_i_reads_its_own_cpu(cpus in proptest::collection::vec(0u32..12, 1..40)) {
            let ids: Vec<_> = cpus.iter().copied().map(CpuId).collect();
            prop_assert_eq!(read(&runs(&ids)), cpus);
        }
    }
}
