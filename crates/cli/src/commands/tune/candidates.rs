//! What is worth a real run: the best predictions, and what stock tools offer.

use super::trial::Way;
use crate::output::say;
use anyhow::{Context, bail};
use nodewise_advise::{StockCommand, stock_command};
use nodewise_input::shell_line;
use nodewise_placement::Mapping;
use nodewise_simulation::{Prediction, Range, Simulation};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Something to run against the plain command.
pub struct Candidate {
    /// The policy; `first-touch, bound` and `interleave, numactl` for stock commands.
    pub policy: String,
    /// How to run it.
    pub way: Way,
    /// Predicted speed-up over first-touch.
    pub predicted: Option<Range>,
    /// The line to copy if it wins: what is run, but for the map's name.
    pub line: String,
    /// Whether that line needs no nodewise.
    pub stock: bool,
    /// Its map, in the temporary folder.
    pub map: Option<PathBuf>,
}

/// Where things are.
pub struct Setting<'a> {
    pub command: &'a [String],
    pub profile: &'a Path,
    pub machine: &'a str,
    pub affinity: &'a str,
    /// The affinity as OpenMP reads it, where OpenMP can bind the program's threads.
    pub places: Option<String>,
    /// Temporary folder for maps.
    pub scratch: &'a Path,
    /// Where the winner's map will be.
    pub map: &'a Path,
}

/// The `count` best predictions; of equal mappings the first. `mappings` are those of `simulation`.
pub fn choose<'a>(simulation: &'a Simulation, mappings: &[Mapping], count: usize) -> Vec<&'a Prediction> {
    let nodes = |p: &Prediction| mappings.iter().find(|m| m.policy == p.policy).map(|m| &m.nodes);
    let mut chosen: Vec<&Prediction> = Vec::new();
    for prediction in simulation.ranked() {
        // The baseline runs anyway, and nobody wants chance.
        let sensible = prediction.policy != "first-touch" && !prediction.policy.starts_with("random");
        if sensible && chosen.iter().all(|c| nodes(c) != nodes(prediction)) {
            chosen.push(prediction);
        }
    }
    chosen.truncate(count);
    chosen
}

/// Whether a program of this name would be found.
fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Stock commands under the simulated affinity: bound by OpenMP itself, and interleaved by `numactl`.
pub fn stock(setting: &Setting<'_>, simulation: &Simulation) -> Vec<Candidate> {
    let Some(places) = &setting.places else {
        say!("no stock command tried: OpenMP cannot bind the threads of this program");
        return Vec::new();
    };
    let command = |policy| stock_command(policy, places, setting.command);
    let bound = command("first-touch").map(|c| Candidate::stock("first-touch, bound", c, None));
    let interleave = simulation.predictions.iter().find(|p| p.policy == "round-robin");
    let mut interleaved = command("interleave")
        .map(|c| Candidate::stock("interleave, numactl", c, interleave.map(|p| p.speedup)));
    if interleaved.is_some() && !installed("numactl") {
        say!("numactl is not installed: its interleaving is not tried");
        interleaved = None;
    }
    bound.into_iter().chain(interleaved).collect()
}

impl Candidate {
    fn stock(policy: &str, stock: StockCommand, predicted: Option<Range>) -> Self {
        Self {
            policy: policy.into(),
            line: stock.line(),
            way: Way {
                command: stock.command,
                environment: stock.environment,
            },
            predicted,
            stock: true,
            map: None,
        }
    }

    /// A page policy under `nodewise run`, by a map: that binds threads as simulated.
    pub fn placed(setting: &Setting<'_>, prediction: &Prediction, index: usize) -> Self {
        let map = setting.scratch.join(format!("{index}.map"));
        let run = |map: &Path| {
            let spec = format!("map:{}", map.display());
            let own = ["run", "--policy", &spec, "--"].map(str::to_owned);
            [&own, setting.command].concat()
        };
        let own = std::env::current_exe().map_or("nodewise".into(), |p| p.display().to_string());
        Self {
            policy: prediction.policy.clone(),
            way: Way::plain(&[vec![own], run(&map)].concat()),
            predicted: Some(prediction.speedup),
            line: format!("nodewise {}", shell_line(&run(setting.map))),
            stock: false,
            map: Some(map),
        }
    }

    /// Writes its map.
    pub fn prepare(&self, setting: &Setting<'_>) -> anyhow::Result<()> {
        let Some(map) = &self.map else {
            return Ok(());
        };
        let own = std::env::current_exe().context("cannot find the nodewise executable")?;
        let mut command = Command::new(own);
        command.arg("map").arg(setting.profile).args([
            "--machine",
            setting.machine,
            "--affinity",
            setting.affinity,
        ]);
        command.args(["--policy", &self.policy, "-o"]).arg(map);
        let done = command
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
}

#[cfg(test)]
mod tests {
    use super::*;
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
    }
}
