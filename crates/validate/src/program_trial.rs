//! The trial of one program: records it, predicts its time under each placement, and runs it under each in turn.

use crate::pages::{self, PagesSeen, Watch};
use crate::placements::{AFFINITY, Placement};
use crate::{Calibrated, Job, Point, ProgramResult, busy};
use anyhow::{Context, bail};
use nodewise_analysis::figures::whole_percent;
use nodewise_linux::Host;
use nodewise_linux::interrupts::Interrupts;
use nodewise_machine::Machine;
use nodewise_pipeline::{Selected, Selection};
use nodewise_simulation::Prediction;
use nodewise_tune::{Event, Invocation, Listener, Predicted, RunResult, Trial, median, predict};
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Smallest overlap of the actual and the predicted distribution of pages over nodes for which they agree.
const MIN_OVERLAP: f64 = 0.9;
/// Interval at which the pages of an untimed run are read.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Prefixes of the environment variables of OpenMP runtimes.
const OPENMP_PREFIXES: [&str; 3] = ["OMP_", "KMP_", "GOMP_"];
/// The interval for a timed run, whose pages are not read because that would disturb it.
const NO_INSPECTION: Duration = Duration::from_secs(3600);

/// The input that all programs of a validation share.
pub struct Bench<'a> {
    pub host: &'a Host,
    pub machine: &'a Machine,
    pub machine_file: &'a Path,
    pub placements: &'a [Placement],
    pub threads: usize,
    pub runs: u32,
    pub scratch: &'a Path,
    pub interrupts: &'a Interrupts,
    /// Path of the running nodewise executable.
    pub own: PathBuf,
}

/// The trial of one program, with the paths of its recording and its map.
struct ProgramTrial<'a> {
    bench: &'a Bench<'a>,
    job: &'a Job,
    profile: PathBuf,
    map: PathBuf,
}

impl Bench<'_> {
    /// Records, predicts and runs a program; begins no further round after `until`.
    ///
    /// # Errors
    /// A run fails, its output differs from that of the others, or a signal has arrived.
    pub fn try_program(
        &self,
        job: &Job,
        until: Instant,
        listener: Listener<'_>,
    ) -> anyhow::Result<ProgramResult> {
        let name = job.program.name;
        let trying = ProgramTrial {
            bench: self,
            job,
            profile: self.scratch.join(format!("{name}.nwp")),
            map: self.scratch.join(format!("{name}.map")),
        };
        let ran = trying.run(until, listener).with_context(|| name.to_owned());
        drop(std::fs::remove_dir_all(&trying.profile));
        ran
    }

    /// Fails if a signal has arrived that asks this process to terminate.
    fn go_on(&self) -> anyhow::Result<()> {
        match self.interrupts.taken() {
            Some(_) => bail!("interrupted; no file is written"),
            None => Ok(()),
        }
    }

    /// Runs an invocation; `look` is called every `pause`.
    fn once(
        &self,
        invocation: &Invocation,
        pause: Duration,
        look: impl FnMut(u32),
    ) -> anyhow::Result<RunResult> {
        self.go_on()?;
        let [out, err] = ["out", "err"].map(|name| self.scratch.join(name));
        let mut command = invocation.command();
        command.stdout(File::create(&out)?).stderr(File::create(&err)?);
        // Files that a killed child leaves behind are removed with our folder.
        command.env("TMPDIR", self.scratch);
        // The user's own settings of binding or scheduling would change the placement from the predicted one.
        for (name, _) in std::env::vars_os() {
            if OPENMP_PREFIXES
                .iter()
                .any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
            {
                command.env_remove(name);
            }
        }
        let start = Instant::now();
        let status = self.interrupts.run(&mut command, pause, look);
        let seconds = start.elapsed().as_secs_f64();
        self.go_on()?;
        let status = status.with_context(|| format!("cannot run {}", invocation.command[0].display()))?;
        invocation.result_of(status, &std::fs::read(&out)?, &std::fs::read(&err)?, seconds)
    }

    fn own(&self, words: &[&str], paths: &[&Path]) -> Vec<OsString> {
        let words = words.iter().map(OsString::from);
        let paths = paths.iter().map(|p| p.as_os_str().to_owned());
        std::iter::once(self.own.clone().into_os_string())
            .chain(words)
            .chain(paths)
            .collect()
    }
}

impl ProgramTrial<'_> {
    fn run(&self, until: Instant, listener: Listener<'_>) -> anyhow::Result<ProgramResult> {
        let [plain, recorded] = self.job.program.builds()?;
        let others_before = busy::others_now(self.bench.host);
        if others_before > busy::MAX_OTHER_LOAD {
            let share = whole_percent(others_before);
            listener(Event::Note(format!(
                "others use {share} of the CPUs now, and disturb the times"
            )));
        }
        let recording = self.record(&recorded)?;
        let selected = self.selection().open()?;
        self.make_map()?;
        let policies: Vec<String> = self
            .bench
            .placements
            .iter()
            .map(|p| p.predicted(&self.map))
            .collect();
        let policies = policies.join(",");
        // Predicted before the plain program has run, so that no measurement can influence it.
        let before = predict(&selected, &policies, None, &mut |event| {
            listener(self.named(event));
        })?;
        let command = self.command(&plain);
        let invocation =
            |p: &Placement| p.invocation(&self.bench.own, &self.map, self.bench.threads, &command);
        let invocations: Vec<Invocation> = self.bench.placements.iter().map(invocation).collect();
        let seen = self.warm_up(&invocations, recording.output, listener)?;
        let account = busy::Account::now(self.bench.host);
        let is_over = || Instant::now() >= until;
        let timed = &mut |i: &Invocation| {
            let ran = self.bench.once(i, NO_INSPECTION, |_| ())?;
            self.check_output(ran, recording.output)
        };
        let trial = Trial {
            invocations: invocations.iter().collect(),
            output: None,
        };
        let times = trial.rounds(self.bench.runs, &is_over, timed, listener)?;
        let others_during = busy::Account::now(self.bench.host).others_since(account);
        let columns = (0..invocations.len()).map(|i| times.iter().map(|round| round[i]).collect());
        let columns: Vec<Vec<f64>> = columns.collect();
        // Notes were already reported with the first prediction.
        let after = predict(&selected, &policies, Some(median(&columns[0])), &mut |_| ())?;
        Ok(ProgramResult {
            program: self.job.program.name,
            pattern: self.job.program.pattern,
            arguments: self.job.arguments(),
            bytes: self.job.bytes,
            rounds: times.len(),
            recording_seconds: recording.seconds,
            memory_share: after.0.baseline().memory_share.typical,
            others_before,
            others_during,
            points: self.points(&selected, &before, &after, columns, seen),
        })
    }

    /// Replaces the temporary file name of the map in a note by one that contains the program's name.
    fn named(&self, event: Event) -> Event {
        match event {
            Event::Note(text) => {
                let name = format!("{}, locality", self.job.program.name);
                Event::Note(text.replace(&self.map.display().to_string(), &name))
            }
            other => other,
        }
    }

    fn command(&self, program: &Path) -> Vec<OsString> {
        let words = self.job.arguments().into_iter().map(OsString::from);
        std::iter::once(program.as_os_str().to_owned())
            .chain(words)
            .collect()
    }

    fn record(&self, program: &Path) -> anyhow::Result<RunResult> {
        let threads = self.bench.threads.to_string();
        let own = self
            .bench
            .own(&["record", "--threads", &threads, "-o"], &[&self.profile]);
        let words = [own, vec!["--".into()], self.command(program)].concat();
        self.bench.once(&Invocation::plain(&words), NO_INSPECTION, |_| ())
    }

    /// Fails if the output of a run differs from that of the recorded run: placement must not change results.
    fn check_output(&self, ran: RunResult, recorded: u64) -> anyhow::Result<RunResult> {
        match ran.output == recorded {
            true => Ok(ran),
            false => bail!("printed something else than when it was recorded"),
        }
    }

    fn selection(&self) -> Selection {
        Selection {
            profile: Some(self.profile.clone()),
            machine: self.bench.machine_file.display().to_string(),
            affinity: AFFINITY.to_owned(),
            page_size: 0,
            other_runs: Vec::new(),
            plain: None,
            plain_cpu: None,
            core_factor: Some(1.0), // it recorded here
        }
    }

    fn make_map(&self) -> anyhow::Result<()> {
        let machine = self.bench.machine_file.display().to_string();
        let mut words = self.bench.own(&["map"], &[&self.profile]);
        let options = [
            "--machine",
            &machine,
            "--affinity",
            AFFINITY,
            "--policy",
            "locality",
            "-o",
        ];
        words.extend(options.map(OsString::from));
        words.push(self.map.clone().into_os_string());
        self.bench
            .once(&Invocation::plain(&words), NO_INSPECTION, |_| ())
            .map(|_| ())
    }

    /// Runs each placement once, untimed, and observes on which nodes its pages are.
    fn warm_up(
        &self,
        invocations: &[Invocation],
        output: u64,
        listener: Listener<'_>,
    ) -> anyhow::Result<Vec<Option<Vec<u64>>>> {
        let mut seen = Vec::new();
        for (placement, invocation) in self.bench.placements.iter().zip(invocations) {
            let mut watch = Watch::new(self.bench.host, self.bench.machine);
            let ran = self
                .bench
                .once(invocation, POLL_INTERVAL, |pid| watch.look(pid))?;
            self.check_output(ran, output)?;
            let pages = watch.seen();
            if pages.is_none() {
                let name = (self.job.program.name, placement.name());
                listener(Event::Note(format!(
                    "{} under {}: the kernel did not show its pages",
                    name.0, name.1
                )));
            }
            seen.push(pages);
        }
        Ok(seen)
    }

    fn points(
        &self,
        selected: &Selected,
        before: &Predicted,
        after: &Predicted,
        columns: Vec<Vec<f64>>,
        seen: Vec<Option<Vec<u64>>>,
    ) -> Vec<Point> {
        let page_size = selected.histogram.page_size();
        let nodes = self.bench.machine.node_count();
        let first = median(&columns[0]);
        let mut points = Vec::new();
        for (at, (seconds, seen)) in columns.into_iter().zip(seen).enumerate() {
            let predicted = before.0.predictions[at].seconds;
            let name = self.bench.placements[at].name();
            let mut point = Point::new(name, seconds, [predicted.typical, predicted.min, predicted.max]);
            point.pages = seen.map(|s| PagesSeen::new(pages::predicted(&before.1[at], page_size, nodes), s));
            point.counted = point.pages.as_ref().is_none_or(|p| p.agreement >= MIN_OVERLAP);
            points.push(point);
        }
        // If the pages of first-touch were not where they were predicted, its time cannot be used for calibration.
        if points[0].counted {
            let rest = points.iter_mut().zip(&after.0.predictions).skip(1);
            rest.for_each(|(point, p)| point.calibrated = Some(calibrated(first, p, point.median_seconds)));
        }
        points
    }
}

/// The calibrated prediction: the measured time of first-touch divided by the predicted speed-up.
fn calibrated(first: f64, prediction: &Prediction, measured: f64) -> Calibrated {
    let speedup = prediction.speedup;
    let seconds = first / speedup.typical;
    Calibrated {
        seconds,
        range: [first / speedup.max, first / speedup.min],
        error: seconds / measured - 1.0,
    }
}
