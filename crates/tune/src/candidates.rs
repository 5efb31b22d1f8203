//! Selects the candidates to be measured: the best predictions, and placements that stock tools offer.

use crate::event::note;
use crate::{Invocation, Listener};
use anyhow::{Context, bail};
use nodewise_advise::{StockCommand, is_valid_in_other_runs, stock_command};
use nodewise_input::shell_line;
use nodewise_placement::Mapping;
use nodewise_simulation::{Prediction, Range, Simulation};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A placement that is measured against the plain command.
pub struct Candidate {
    /// The policy; `first-touch, bound` and `interleave, numactl` for stock commands.
    pub policy: String,
    /// The command that runs it.
    pub invocation: Invocation,
    /// Predicted speed-up over first-touch.
    pub predicted: Option<Range>,
    /// The command line to copy if the candidate wins: the one that is run, but with the map's final name.
    pub line: String,
    /// Whether that command line works without nodewise.
    pub stock: bool,
    /// The map of the candidate; `None` for stock commands.
    pub map: Option<Map>,
}

/// The file with the placement of a candidate, and how it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// Path of the map while candidates are measured, in the temporary folder.
    scratch: PathBuf,
    /// Final path of the map, if the candidate wins.
    kept: PathBuf,
    /// The arguments of `nodewise` that write the map, without the output file.
    arguments: Vec<OsString>,
}

impl Map {
    /// The command line to copy that writes the map to its final path.
    #[must_use]
    pub fn line(&self) -> String {
        let to = ["-o".into(), self.kept.clone().into_os_string()];
        format!(
            "nodewise {}",
            shell_line(&[self.arguments.as_slice(), &to].concat())
        )
    }
}

/// The input that all candidates of a tuning share.
pub struct Setting<'a> {
    pub command: &'a [OsString],
    pub profile: &'a Path,
    pub machine: &'a str,
    pub affinity: &'a str,
    /// The affinity in the syntax of `OMP_PLACES`; `None` if OpenMP cannot bind the program's threads that way.
    pub places: Option<String>,
    /// Temporary folder for maps.
    pub scratch: &'a Path,
    /// Final path of the winner's map; `None`: a new file named after program and policy.
    pub map: Option<&'a Path>,
}

impl Setting<'_> {
    /// Final path of a policy's map. If the user gave none, it is an unused file name, so that a second tuning or
    /// another policy does not replace the map.
    fn kept(&self, policy: &str) -> PathBuf {
        if let Some(map) = self.map {
            return map.to_owned();
        }
        let program = Path::new(&self.command[0]).file_name().unwrap_or_default();
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        };
        let stem = format!(
            "{}.{}",
            program.to_string_lossy(),
            policy.chars().map(plain).collect::<String>()
        );
        nodewise_pipeline::unused_map(&stem).into()
    }
}

/// The `count` best predictions; of several policies with equal mappings, only the first. Policies that are predicted
/// to lose in another run, because threads then take other parts of the data, come last: every measured run is a
/// different run from the recorded one. `mappings` are those of `simulation`.
pub fn choose<'a>(simulation: &'a Simulation, mappings: &[Mapping], count: usize) -> Vec<&'a Prediction> {
    let nodes = |p: &Prediction| mappings.iter().find(|m| m.policy == p.policy).map(|m| &m.nodes);
    let mut chosen: Vec<&Prediction> = Vec::new();
    let (kept, lost): (Vec<_>, Vec<_>) = simulation
        .ranked()
        .into_iter()
        .partition(|p| is_valid_in_other_runs(p));
    for prediction in kept.into_iter().chain(lost) {
        // The baseline is measured in any case, and random placements are only for comparison in simulations.
        let sensible = prediction.policy != "first-touch" && !prediction.policy.starts_with("random");
        if sensible && chosen.iter().all(|c| nodes(c) != nodes(prediction)) {
            chosen.push(prediction);
        }
    }
    chosen.truncate(count);
    chosen
}

/// Whether a program of this name is in a folder of `PATH`.
fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Candidates that use stock tools, under the simulated affinity: threads bound by OpenMP, and pages interleaved by
/// `numactl`.
pub fn stock(setting: &Setting<'_>, simulation: &Simulation, listener: Listener<'_>) -> Vec<Candidate> {
    let Some(places) = &setting.places else {
        note(
            listener,
            "no stock command tried: OpenMP cannot bind the threads of this program",
        );
        return Vec::new();
    };
    let command = |policy| stock_command(policy, places, setting.command);
    let bound = command("first-touch").map(|c| Candidate::stock("first-touch, bound", c, None));
    let interleave = simulation.predictions.iter().find(|p| p.policy == "round-robin");
    let mut interleaved = command("interleave")
        .map(|c| Candidate::stock("interleave, numactl", c, interleave.map(|p| p.speedup)));
    if interleaved.is_some() && !installed("numactl") {
        note(
            listener,
            "numactl is not installed: its interleaving is not tried",
        );
        interleaved = None;
    }
    bound.into_iter().chain(interleaved).collect()
}

impl Candidate {
    fn stock(policy: &str, stock: StockCommand, predicted: Option<Range>) -> Self {
        Self {
            policy: policy.into(),
            line: stock.line(),
            invocation: Invocation {
                command: stock.command,
                environment: stock.environment,
            },
            predicted,
            stock: true,
            map: None,
        }
    }

    /// A page policy, enforced by `nodewise run` with a map, which also binds threads as simulated.
    pub(crate) fn placed(setting: &Setting<'_>, prediction: &Prediction, index: usize) -> Self {
        let policy = prediction.policy.clone();
        let run = |map: &Path| {
            let mut spec = OsString::from("map:");
            spec.push(map);
            let own = ["run".into(), "--policy".into(), spec, "--".into()];
            [&own, setting.command].concat()
        };
        let (machine, affinity) = (setting.machine, setting.affinity);
        let words = [
            OsStr::new("map"),
            setting.profile.as_os_str(),
            OsStr::new("--machine"),
            OsStr::new(machine),
            OsStr::new("--affinity"),
            OsStr::new(affinity),
            OsStr::new("--policy"),
            OsStr::new(&policy),
        ];
        let map = Map {
            scratch: setting.scratch.join(format!("{index}.map")),
            kept: setting.kept(&policy),
            arguments: words.map(OsStr::to_owned).to_vec(),
        };
        let own = std::env::current_exe().map_or("nodewise".into(), PathBuf::into_os_string);
        Self {
            policy,
            invocation: Invocation::plain(&[vec![own], run(&map.scratch)].concat()),
            predicted: Some(prediction.speedup),
            line: format!("nodewise {}", shell_line(&run(&map.kept))),
            stock: false,
            map: Some(map),
        }
    }

    /// Writes the candidate's map to the temporary folder.
    pub(crate) fn prepare(&self) -> anyhow::Result<()> {
        let Some(map) = &self.map else {
            return Ok(());
        };
        let own = std::env::current_exe().context("cannot find the nodewise executable")?;
        let done = Command::new(own)
            .args(&map.arguments)
            .arg("-o")
            .arg(&map.scratch)
            .stdin(Stdio::null())
            .output()
            .context("cannot start `nodewise map`")?;
        if !done.status.success() {
            let errors = String::from_utf8_lossy(&done.stderr);
            bail!(
                "no map for `{}`: {}",
                self.policy,
                errors.lines().last().unwrap_or("no message")
            );
        }
        Ok(())
    }

    /// Copies the candidate's map to its final path.
    pub(crate) fn keep(&self) -> anyhow::Result<()> {
        if let Some(map) = &self.map {
            std::fs::copy(&map.scratch, &map.kept)
                .with_context(|| format!("cannot write {}", map.kept.display()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_analysis::{Expected, OtherRuns};
    use nodewise_machine::NodeId;
    use nodewise_simulation::{Parameters, simulate};

    #[test]
    fn equal_mappings_are_one_candidate() {
        let profile = nodewise_profile::Profile::default();
        let machine = nodewise_machine::Machine::named("xeon-x7550").unwrap();
        let histogram = nodewise_analysis::Histogram {
            pages: vec![Default::default(); 2],
            objects: vec![Default::default(); 2],
            offsets: vec![0; 3],
            ..Default::default()
        };
        let affinity = nodewise_analysis::Affinity::of_cpus("", &profile, &machine, &[]);
        let context = nodewise_placement::Context {
            profile: &profile,
            histogram: &histogram,
            affinity: &affinity,
            machine: &machine,
        };
        let map = |policy: &str, second| Mapping {
            policy: policy.into(),
            nodes: vec![NodeId(0), NodeId(second)],
        };
        let mappings = [
            map("first-touch", 0),
            map("locality", 1),
            map("frequency", 1),
            map("interleave", 2),
        ];
        let nothing = nodewise_profile::InMemory::default();
        let simulation = simulate(&context, &mappings, &nothing, &Parameters::default()).unwrap();
        let chosen = choose(&simulation, &mappings, 3);
        let names: Vec<_> = chosen.iter().map(|p| p.policy.as_str()).collect();
        assert_eq!(names, ["locality", "interleave"]);

        // In other runs threads take other parts, so that these placements lose their locality.
        let mut nonlocal_runs = simulation.clone();
        for prediction in &mut nonlocal_runs.predictions {
            let lost = Expected {
                by_number: prediction.local_fraction - 0.5,
                by_data: prediction.local_fraction - 0.5,
            };
            let of_both = OtherRuns {
                all: lost,
                mapped: lost,
            };
            prediction.other_runs = (prediction.policy != "interleave").then_some(of_both);
        }
        let chosen = choose(&nonlocal_runs, &mappings, 3);
        let names: Vec<_> = chosen.iter().map(|p| p.policy.as_str()).collect();
        assert_eq!(names, ["interleave", "locality"]);
    }
}
