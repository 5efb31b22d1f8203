//! A validation: states what will be run on this machine, and runs it, from the first recording to the document.

use crate::busy::MAX_OTHER_LOAD;
use crate::document::{KIND, METHODS};
use crate::placements::{self, AFFINITY, Placement};
use crate::program_trial::Bench;
use crate::{DescribedMachine, Document, Job, Program, ProgramResult, Rule, SCHEMA, Settings, Site, Summary};
use anyhow::{Context, bail};
use nodewise_analysis::figures::{bytes, whole_percent};
use nodewise_linux::interrupts::Interrupts;
use nodewise_linux::{Host, TemporaryFolder, affinity};
use nodewise_machine::Machine;
use nodewise_tune::{Event, Listener, NotScored};
use std::time::{Duration, Instant};

/// Options of a validation; the fields correspond to the arguments of `nodewise validate`.
#[derive(Clone, Debug)]
pub struct Options {
    /// The programs, in the order of the set.
    pub programs: Vec<&'static Program>,
    /// Number of timed runs of each placement, at least 1.
    pub runs: u32,
    /// Time limit for the whole validation, including the measurement of the machine.
    pub time_limit: Duration,
    /// Size of a program's arrays, bytes; `None`: by the rule.
    pub array_memory: Option<u64>,
    /// Number of iterations of every program; `None`: by the rule.
    pub iterations: Option<u64>,
}

/// A validation of predictions on this machine.
pub struct Validation {
    options: Options,
    host: Host,
    /// The nodes and CPUs of this machine.
    here: Machine,
    /// The properties of this machine that affect sizes and times.
    pub site: Site,
    /// The rule by which sizes are chosen.
    pub rule: Rule,
    /// The programs with their sizes.
    pub jobs: Vec<Job>,
    placements: Vec<Placement>,
}

impl Validation {
    /// Determines what will be run; runs nothing.
    ///
    /// # Errors
    /// The machine cannot be read, or a program of the set is missing.
    pub fn new(options: Options) -> anyhow::Result<Self> {
        let host = Host::default();
        let here = Machine::load("this")?;
        let site = Site::of(&host, &here);
        let placements = placements::all(&here);
        let (programs, runs) = (options.programs.len(), options.runs);
        let mut rule = Rule::of(&site, programs, placements.len(), runs, options.time_limit);
        rule.overridden = options.array_memory.is_some() || options.iterations.is_some();
        if let Some(bytes) = options.array_memory {
            rule.array_bytes = bytes.min(rule.most_bytes);
        }
        let threads = site.cpus as u64;
        let job = |program: &&'static Program| {
            program.builds()?;
            Ok(rule.job(program, threads, options.iterations))
        };
        Ok(Self {
            jobs: options.programs.iter().map(job).collect::<anyhow::Result<_>>()?,
            options,
            host,
            here,
            site,
            rule,
            placements,
        })
    }

    /// Names of the placements, the reference first.
    pub fn placements(&self) -> impl Iterator<Item = &str> {
        self.placements.iter().map(Placement::name)
    }

    /// The reason if predictions will not be compared with measurements.
    #[must_use]
    pub fn not_scored(&self) -> Option<NotScored> {
        NotScored::why(self.site.nodes, self.site.cpus)
    }

    /// Checks, before anything is measured, that this process may use the whole machine.
    ///
    /// # Errors
    /// Some CPUs may not be used, or too little memory is free.
    pub fn check(&self) -> anyhow::Result<()> {
        let allowed = affinity::allowed_cpus()?;
        let cpus = self.here.cpus();
        let missing = cpus.iter().filter(|(cpu, _)| !allowed.contains(&cpu.0)).count();
        if missing > 0 {
            bail!(
                "{missing} of {} CPUs may not be used here (affinity or cpuset); the whole machine is validated",
                cpus.len()
            );
        }
        let largest = self.jobs.iter().map(|j| j.bytes).max().unwrap_or(0);
        let free = self.host.available_memory().unwrap_or(u64::MAX);
        // Half as much again as the arrays, for the memory of the runtime and the kernel.
        if free < largest + largest / 2 {
            bail!(
                "{} of memory are free, arrays take up to {}; free some, or choose --array-memory",
                bytes(free),
                bytes(largest)
            );
        }
        Ok(())
    }

    /// Checks that `machine` describes this machine.
    ///
    /// # Errors
    /// Its nodes or CPUs differ.
    pub fn check_machine(&self, machine: &Machine) -> anyhow::Result<()> {
        if machine.cpus() != self.here.cpus() || machine.node_count() != self.here.node_count() {
            bail!(
                "{} has {} nodes and {} CPUs, this machine {} and {}, or they are numbered otherwise; measure it with \
                 nodewise topo --measure -o FILE",
                machine.name,
                machine.node_count(),
                machine.cpus().len(),
                self.site.nodes,
                self.site.cpus
            );
        }
        Ok(())
    }

    /// Records, predicts, runs and compares. `began` is the start of the time limit.
    ///
    /// # Errors
    /// A program fails, the temporary folder cannot be used, or a signal has arrived.
    pub fn run(
        &self,
        machine: &Machine,
        described: DescribedMachine,
        date: String,
        began: Instant,
        listener: Listener<'_>,
    ) -> anyhow::Result<Document> {
        self.check_machine(machine)?;
        // From here on, signals are held back, so that after Ctrl-C the recordings are removed before this process
        // ends.
        let interrupts = Interrupts::hold().context("cannot hold signals back")?;
        let scratch = TemporaryFolder::new("validate")?;
        let file = scratch.path().join("machine.toml");
        std::fs::write(&file, &described.toml).with_context(|| format!("cannot write {}", file.display()))?;
        let bench = Bench {
            host: &self.host,
            machine,
            machine_file: &file,
            placements: &self.placements,
            threads: self.site.cpus,
            runs: self.options.runs,
            scratch: scratch.path(),
            interrupts: &interrupts,
            own: std::env::current_exe().context("cannot find the nodewise executable")?,
        };
        let (programs, left_out) = self.programs(&bench, began, listener)?;
        Ok(self.document(machine, described, date, began, programs, left_out))
    }

    /// Tries all programs; each gets an equal share of the remaining time.
    fn programs(
        &self,
        bench: &Bench<'_>,
        began: Instant,
        listener: Listener<'_>,
    ) -> anyhow::Result<(Vec<ProgramResult>, Vec<&'static str>)> {
        let (mut programs, mut left_out) = (Vec::new(), Vec::new());
        let end = began + self.options.time_limit;
        for (at, job) in self.jobs.iter().enumerate() {
            let left = end.saturating_duration_since(Instant::now());
            let name = job.program.name;
            if left.is_zero() && at > 0 {
                listener(Event::Note(format!("{name}: left out, time is up")));
                left_out.push(name);
                continue;
            }
            let arguments = job.arguments().join(" ");
            listener(Event::Note(format!(
                "{name} {arguments}: recorded, predicted, run"
            )));
            let until = Instant::now() + left / (self.jobs.len() - at) as u32;
            let ran = bench.try_program(job, until, listener)?;
            for what in disturbances(&ran) {
                listener(Event::Note(what));
            }
            programs.push(ran);
        }
        Ok((programs, left_out))
    }

    fn document(
        &self,
        machine: &Machine,
        described: DescribedMachine,
        date: String,
        began: Instant,
        programs: Vec<ProgramResult>,
        left_out: Vec<&'static str>,
    ) -> Document {
        let not_scored = NotScored::why(machine.node_count(), self.site.cpus);
        Document {
            kind: KIND,
            schema: SCHEMA,
            nodewise: env!("CARGO_PKG_VERSION"),
            date,
            is_virtual: self.site.virtual_machine.is_some(),
            not_scored,
            site: self.site.clone(),
            machine: described,
            rule: self.rule,
            settings: Settings {
                threads: self.site.cpus,
                affinity: AFFINITY,
                runs: self.options.runs,
                time_limit_seconds: self.options.time_limit.as_secs_f64(),
            },
            summary: Summary::of(&programs).filter(|_| not_scored.is_none()),
            notes: self
                .remarks()
                .into_iter()
                .chain(programs.iter().flat_map(disturbances))
                .collect(),
            programs,
            left_out,
            seconds: began.elapsed().as_secs_f64(),
            how: METHODS.into(),
        }
    }

    /// Remarks on this machine that are necessary to interpret its figures, one line each.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let mut all = Vec::new();
        if let Some(why) = &self.site.virtual_machine {
            all.push(format!(
                "a virtual machine or an emulator ({why}): its times are those of no hardware"
            ));
        }
        match self.not_scored() {
            Some(NotScored::OneNode) => {
                all.push(
                    "one memory node: all placements are the same, so nothing is validated here".to_owned(),
                );
            }
            Some(NotScored::Oversubscribed) => {
                all.push(
                    "fewer CPUs may be used at a time than there are (a quota): nothing is validated"
                        .to_owned(),
                );
            }
            None => {}
        }
        if self.site.numa_balancing.is_some_and(|on| on > 0) && self.site.nodes > 1 {
            all.push(
                "the kernel's automatic balancing is on: it moves pages of first-touch, which is not predicted; off for \
                 the time: sysctl kernel.numa_balancing=0"
                    .to_owned(),
            );
        }
        if self.site.last_level_bytes.is_none() {
            all.push("the kernel reports no caches: sizes do not follow them".to_owned());
        }
        if self.rule.overridden {
            all.push("sizes were asked for, not those of the rule: this tries the procedure out".to_owned());
        }
        all
    }
}

/// Remarks on what disturbed the runs of a program.
fn disturbances(ran: &ProgramResult) -> Vec<String> {
    let mut all = Vec::new();
    let most = ran.others_before.max(ran.others_during);
    if most > MAX_OTHER_LOAD {
        all.push(format!(
            "{}: others used up to {} of the CPUs",
            ran.program,
            whole_percent(most)
        ));
    }
    for point in ran.points.iter().filter(|p| !p.counted) {
        let agreement = point.pages.as_ref().map_or(0.0, |p| p.agreement);
        all.push(format!(
            "{} under {}: only {} of its pages were where they were predicted; it does not count",
            ran.program,
            point.placement,
            whole_percent(agreement)
        ));
    }
    all
}
