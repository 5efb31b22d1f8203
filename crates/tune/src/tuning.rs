//! A tuning, from its options to its results.

use crate::candidates::{self, Candidate, Setting};
use crate::conclusion::{Conclusion, conclude};
use crate::findings::{Baseline, Findings, NotScored};
use crate::prediction::{Predicted, predict};
use crate::trial::{Invocation, Trial};
use crate::{CandidateResult, FEWEST_RUNS, Listener, Options, profile, statistics};
use anyhow::{Context as _, bail};
use nodewise_advise::omp_places;
use nodewise_input::shell_line;
use nodewise_linux::TemporaryFolder;
use nodewise_pipeline::{Selected, Selection};
use nodewise_profile::Thread;
use nodewise_simulation::Simulation;
use std::path::PathBuf;
use std::time::Instant;

/// A profile, a machine, and a command to be made faster.
pub struct Tuning {
    options: Options,
    folder: PathBuf,
    selected: Selected,
    /// Holds the maps of candidates while they are measured.
    scratch: TemporaryFolder,
}

impl Tuning {
    /// Finds the profile, or records it.
    ///
    /// # Errors
    /// There is no profile, recording fails, the machine cannot be loaded, or the temporary folder cannot be created.
    pub fn open(options: Options, listener: Listener<'_>) -> anyhow::Result<Self> {
        let scratch = TemporaryFolder::new("tune")?;
        let folder = profile::obtain(&options, listener)?;
        let selection = Selection {
            profile: Some(folder.clone()),
            machine: options.machine.clone(),
            affinity: options.affinity.clone(),
            page_size: 0,
            other_runs: Vec::new(),
            plain: None,
            plain_cpu: None,
            core_factor: None,
        };
        Ok(Self {
            selected: selection.open()?,
            options,
            folder,
            scratch,
        })
    }

    /// The simulation and the candidates that would be measured; runs nothing.
    ///
    /// # Errors
    /// The profile cannot be read.
    pub fn predicted(&self, listener: Listener<'_>) -> anyhow::Result<(Simulation, Vec<Candidate>)> {
        let predicted = self.predict(None, listener)?;
        let candidates = self.chosen(&predicted, listener);
        Ok((predicted.0, candidates))
    }

    /// Runs the plain command and the candidates in turn, compares them, and keeps the winner's map.
    ///
    /// # Errors
    /// A run fails, its output differs from that of the first, or a map cannot be written.
    pub fn measure(&self, listener: Listener<'_>) -> anyhow::Result<Findings> {
        let started = Instant::now();
        let options = &self.options;
        let plain = Invocation::plain(&options.command);
        let warm = plain.run().context("the plain command must work first")?;
        let again = plain.run()?;
        if warm.output != again.output && !options.any_output {
            bail!(
                "`{}` prints something else each time; add --any-output if that is right",
                shell_line(&options.command)
            );
        }
        let same = profile::comparable(options, &self.selected.profile().meta.command, listener);
        let predicted = self.predict(same.then_some(again.seconds), listener)?;
        let candidates = self.chosen(&predicted, listener);
        candidates.iter().try_for_each(Candidate::prepare)?;
        let invocations: Vec<&Invocation> = std::iter::once(&plain)
            .chain(candidates.iter().map(|c| &c.invocation))
            .collect();
        let output = (!options.any_output).then_some(warm.output);
        let is_over = || options.time_limit.is_some_and(|t| started.elapsed() >= t);
        let trial = Trial { invocations, output };
        let times = trial.rounds(options.runs, &is_over, &mut Invocation::run, listener)?;
        let column = |i: usize| times.iter().map(|round| round[i]).collect::<Vec<f64>>();
        let baseline = column(0);
        let tried = candidates.iter().enumerate();
        let tried: Vec<CandidateResult> = tried
            .map(|(i, c)| CandidateResult::new(c, &baseline, column(i + 1), options.seed))
            .collect();
        let mut findings = self.conclude(&predicted.0, &candidates, baseline, tried)?;
        findings.comparable = same;
        Ok(findings)
    }

    fn setting(&self) -> Setting<'_> {
        Setting {
            command: &self.options.command,
            profile: &self.folder,
            machine: &self.options.machine,
            affinity: &self.options.affinity,
            places: omp_places(&self.selected.affinity, self.selected.profile()),
            scratch: self.scratch.path(),
            map: self.options.map.as_deref(),
        }
    }

    /// Predicts all policies; if the plain wall time is given, predictions are calibrated with it.
    fn predict(&self, plain_seconds: Option<f64>, listener: Listener<'_>) -> anyhow::Result<Predicted> {
        predict(&self.selected, "first-touch,all", plain_seconds, listener)
    }

    /// The best predictions, followed by stock commands; on one node, only one candidate.
    fn chosen(&self, predicted: &Predicted, listener: Listener<'_>) -> Vec<Candidate> {
        let (simulation, mappings) = predicted;
        let setting = self.setting();
        let several = simulation.baseline().controllers.len() > 1;
        let count = if several { self.options.candidates } else { 1 };
        let best = candidates::choose(simulation, mappings, count)
            .into_iter()
            .enumerate();
        let mut all: Vec<_> = best.map(|(i, p)| Candidate::placed(&setting, p, i)).collect();
        if several {
            all.extend(candidates::stock(&setting, simulation, listener));
        }
        all
    }

    fn conclude(
        &self,
        simulation: &Simulation,
        candidates: &[Candidate],
        baseline: Vec<f64>,
        tried: Vec<CandidateResult>,
    ) -> anyhow::Result<Findings> {
        let nodes = simulation.baseline().controllers.len();
        let threads = Thread::count(&self.selected.profile().threads);
        let (conclusion, winner) = conclude(&tried, baseline.len(), nodes);
        let plain = shell_line(&self.options.command);
        let command = match (conclusion, winner) {
            (Conclusion::Stock, Some(w)) => tried[w].command.clone(),
            (Conclusion::Place, Some(w)) => {
                candidates[w].keep()?;
                tried[w].command.clone()
            }
            _ => plain.clone(),
        };
        let seconds = simulation.baseline().seconds;
        Ok(Findings {
            schema: 1,
            machine: simulation.machine.clone(),
            nodes,
            memory_bound: simulation.is_memory_bound(),
            profile: self.folder.display().to_string(),
            comparable: true,
            not_scored: NotScored::why(nodes, threads),
            rounds: baseline.len(),
            sentence: sentence(conclusion, winner.map(|w| &tried[w]), simulation, nodes),
            baseline: Baseline {
                command: plain,
                median_seconds: statistics::median(&baseline),
                seconds: baseline,
                predicted_seconds: seconds.typical,
                predicted_range: [seconds.min, seconds.max],
            },
            candidates: tried,
            conclusion,
            command,
        })
    }
}

fn sentence(
    conclusion: Conclusion,
    winner: Option<&CandidateResult>,
    simulation: &Simulation,
    nodes: usize,
) -> String {
    let gain = |t: &CandidateResult| {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        let m = t.measured;
        let (low, high) = (percent(m.interval[0]), percent(m.interval[1]));
        format!(
            "{:.0} % faster (95 % interval {low:.0} to {high:.0} %)",
            percent(m.ratio)
        )
    };
    match (conclusion, winner) {
        (Conclusion::Stock, Some(t)) => {
            format!("Use the stock command: {}, as good as any placement.", gain(t))
        }
        (Conclusion::Place, Some(t)) => format!("Use `{}`: {}.", t.policy, gain(t)),
        (Conclusion::TooFewRuns, _) => {
            format!("Too few runs to tell: at least {FEWEST_RUNS} are needed.")
        }
        _ if nodes < 2 => "Leave it alone: this machine has one memory node, so no placement can gain \
                           anything here; the differences above are overhead and noise."
            .to_owned(),
        _ if !simulation.is_memory_bound() => {
            "Leave it alone: not memory bound, and nothing was measured to be faster.".to_owned()
        }
        _ => "Leave it alone: nothing was measured to be reliably faster.".to_owned(),
    }
}
