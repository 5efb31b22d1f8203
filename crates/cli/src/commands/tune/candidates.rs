//! What is worth a real run: the best predictions, and what stock tools offer.

use super::trial::Way;
use anyhow::{Context, bail};
use nodewise_advise::{shell_line, stock_command};
use nodewise_simulation::{Prediction, Range, Simulation};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Something to run against the plain command.
pub struct Candidate {
    /// The policy; `first-touch, bound` for threads bound by OpenMP itself.
    pub policy: String,
    /// How to run it.
    pub way: Way,
    /// Predicted speed-up over first-touch.
    pub predicted: Option<Range>,
    /// The line to copy if it wins.
    pub line: String,
    /// The stock line that does the same, if there is one.
    pub stock: Option<String>,
    /// Its map, in the temporary folder.
    pub map: Option<PathBuf>,
}

/// Where things are.
pub struct Setting<'a> {
    pub command: &'a [String],
    pub profile: &'a Path,
    pub machine: &'a str,
    pub affinity: &'a str,
    /// Temporary folder for maps.
    pub scratch: &'a Path,
    /// Where the winner's map will be.
    pub map: &'a Path,
}

/// Policies that `run` applies without a map.
const WITHOUT_MAP: [&str; 3] = ["interleave", "round-robin", "weighted"];

/// The `count` best predictions, with interleave and bound threads among the candidates where there
/// is more than one node.
pub fn choose(simulation: &Simulation, count: usize, nodes: usize) -> Vec<&Prediction> {
    // The baseline runs anyway, and nobody wants chance.
    let sensible = |p: &&Prediction| p.policy != "first-touch" && !p.policy.starts_with("random");
    let others = || simulation.ranked().into_iter().filter(sensible);
    let mut chosen: Vec<&Prediction> = others().take(if nodes < 2 { 1 } else { count }).collect();
    if nodes > 1 && chosen.iter().all(|p| stock_command(&p.policy, "", &[]).is_none()) {
        chosen.extend(others().find(|p| p.policy == "interleave"));
    }
    chosen
}

impl Candidate {
    /// First-touch with threads that stay, by OpenMP's own means.
    pub fn bound(setting: &Setting<'_>) -> Self {
        let line = stock_command("first-touch", setting.affinity, setting.command);
        let bind = if setting.affinity == "scatter" {
            "spread"
        } else {
            "close"
        };
        Self {
            policy: "first-touch, bound".into(),
            way: Way {
                command: setting.command.to_vec(),
                environment: vec![("OMP_PROC_BIND", bind), ("OMP_PLACES", "cores")],
            },
            predicted: None,
            line: line.clone().unwrap_or_default(),
            stock: line,
            map: None,
        }
    }

    /// A page policy under `nodewise run`, by a map where `run` needs one.
    pub fn placed(setting: &Setting<'_>, prediction: &Prediction, index: usize) -> Self {
        let policy = &prediction.policy;
        let direct = WITHOUT_MAP.contains(&policy.as_str()) || policy.starts_with("node:");
        let map = (!direct).then(|| setting.scratch.join(format!("{index}.map")));
        let spec = |file: &Path| format!("map:{}", file.display());
        let run = |spec: String| {
            [
                vec!["run".to_owned(), "--policy".to_owned(), spec, "--".to_owned()],
                setting.command.to_vec(),
            ]
            .concat()
        };
        let line = |spec| format!("nodewise {}", shell_line(&run(spec)));
        let own = std::env::current_exe().map_or("nodewise".into(), |p| p.display().to_string());
        let actual = map.as_deref().map_or(policy.clone(), spec);
        Self {
            policy: policy.clone(),
            way: Way::plain(&[vec![own], run(actual)].concat()),
            predicted: Some(prediction.speedup),
            line: line(if direct { policy.clone() } else { spec(setting.map) }),
            stock: stock_command(policy, setting.affinity, setting.command),
            map,
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
