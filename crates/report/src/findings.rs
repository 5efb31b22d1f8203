//! Builds the report from the results of the other crates.

use crate::copies::Copied;
use crate::model::*;
use crate::moves;
use crate::roles::Roles;
use crate::sampling::Sampling;
use nodewise_advise::{Advice, Advised, Blame, Pass, VerdictKind, schedule};
use nodewise_analysis::figures::{percent, plural, seconds};
use nodewise_analysis::{
    Conflict, Interval, Measured, Metrics, Remedy, Sampled, Samples, SharingClass, Timeline, first_touches,
    sampled_share,
};
use nodewise_machine::{Machine as Target, NodeId};
use nodewise_placement::{Context, Mapping};
use nodewise_profile::{Meta, ObjectId, Observer, Thread};
use nodewise_simulation::{Basis, Prediction, Range, Simulation};
use std::collections::BTreeMap;

/// The input of a report.
#[derive(Clone, Copy, Debug)]
pub struct Findings<'a> {
    /// Profile, histogram, affinity and machine.
    pub context: &'a Context<'a>,
    /// The mappings compared; the first is first-touch.
    pub mappings: &'a [Mapping],
    /// Predicted cost of the mappings, in the same order.
    pub simulation: &'a Simulation,
    /// Prediction of a policy that moves pages, started from first-touch, with the list of its moves. The report shows
    /// these moves in place of recorded ones.
    pub moving: Option<&'a Prediction>,
    /// Predictions of policies that copy objects, started from first-touch.
    pub copies: &'a [Prediction],
    /// The advice that follows from the simulation.
    pub advice: &'a Advice,
    /// Metrics of each slice under the first mapping.
    pub timeline: &'a Timeline,
}

impl Report {
    /// Builds the report.
    ///
    /// # Panics
    /// If there is no mapping.
    #[must_use]
    pub fn new(findings: &Findings<'_>) -> Self {
        let Context {
            profile,
            histogram,
            affinity,
            machine,
        } = *findings.context;
        let baseline = &findings.simulation.measured;
        let program = &baseline.program;
        let seen = findings.sampled().unwrap_or_default();
        let exclusivity = exclusivity(program, &seen);
        let unknown = findings.unknown_first_touch();
        let names = findings
            .advice
            .objects
            .iter()
            .map(|o| (o.blame.object, o.blame.name.clone()));
        let names = names.collect();
        let (migrations, mut moves) = match findings.moving {
            Some(prediction) => moves::simulated(prediction, histogram.page_size(), profile, &names),
            None => moves::recorded(profile, &names),
        };
        if let Some(moves) = &mut moves {
            moves.local_fraction = findings.as_moved();
            moves.local_range = moves.local_fraction.and_then(|share| findings.local_range(share));
        }
        let policies = findings.policies(exclusivity, program);
        let copies = findings.copies(exclusivity, program);
        let roles = findings.roles();
        Self {
            schema: SCHEMA,
            nodewise: env!("CARGO_PKG_VERSION").to_owned(),
            verdict: findings.advice.verdict.clone(),
            program: recorded(&profile.meta, Thread::count(&profile.threads)),
            coverage: coverage(&profile.meta),
            sampling: Sampling::of(&profile.meta, seen, unknown),
            machine: target(machine),
            affinity: Affinity {
                name: affinity.name.clone(),
                thread_nodes: affinity.nodes.iter().map(|n| n.0).collect(),
            },
            page_size: histogram.page_size(),
            totals: Totals {
                pages: program.pages,
                reads: program.reads,
                writes: program.writes,
                accesses: program.accesses(),
            },
            application_exclusivity: exclusivity,
            sharing: sharing(program),
            policies,
            copies,
            objects: findings.objects(baseline),
            few_lines: few_lines(findings.advice),
            slices: findings.slices(),
            dynamicity: Dynamicity {
                migrations: findings.timeline.dynamicity.total(),
                pages_by_moves: findings.timeline.dynamicity.distribution(),
            },
            roles_unknown: match roles {
                Some(_) => None,
                None => crate::roles::unknown(findings.context.profile),
            },
            roles,
            moves,
            migrations,
            notes: notes(findings, unknown),
        }
    }
}

impl Findings<'_> {
    fn roles(&self) -> Option<Roles> {
        let (profile, histogram) = (self.context.profile, self.context.histogram);
        let found = nodewise_analysis::Roles::of(profile)?;
        let regions = &self.simulation.baseline().regions;
        Some(Roles::of(&found, (profile, histogram), regions))
    }

    /// Local fraction with recorded or simulated page moves; `None` if there are none. The prediction for recorded
    /// moves comes after those of the mappings.
    fn as_moved(&self) -> Option<f64> {
        if let Some(moving) = self.moving {
            return Some(moving.local_fraction);
        }
        let further = self.simulation.predictions.get(self.mappings.len()..)?;
        Some(further.first()?.local_fraction)
    }

    /// Bounds of the share of accesses, given the share of samples; `None` if accesses are not samples.
    fn local_range(&self, share: f64) -> Option<[f64; 2]> {
        Some(range(self.samples_for_bounds()?.program.share(share)))
    }

    /// The samples, if bounds have to be computed from them; `None` on one node, where every access is local.
    fn samples_for_bounds(&self) -> Option<&Samples> {
        let several = self.context.machine.node_count() > 1;
        self.advice.samples.as_ref().filter(|_| several)
    }

    /// Sampling statistics of the whole program; `None` if accesses are not samples.
    fn sampled(&self) -> Option<Sampled> {
        Some(self.advice.samples.as_ref()?.program)
    }

    /// Figures of each policy. Exclusivity and access balance by accessing node are the same for all, because they
    /// depend on the affinity alone.
    fn policies(&self, application_exclusivity: f64, program: &Metrics) -> Vec<Policy> {
        let first = &self.mappings[0].nodes;
        let moved = |nodes: &[NodeId]| nodes.iter().zip(first).filter(|(a, b)| a != b).count() as u64;
        let one = |(mapping, predicted): (&Mapping, &Prediction)| Policy {
            migrations: moved(&mapping.nodes),
            ..self.policy(predicted, application_exclusivity, program)
        };
        self.mappings
            .iter()
            .zip(&self.simulation.predictions)
            .map(one)
            .collect()
    }

    /// Figures of each policy that copies objects, compared with placements.
    fn copies(&self, exclusivity: f64, program: &Metrics) -> Vec<Policy> {
        let one = |predicted: &Prediction| {
            let mut copies = Copied::of(predicted, self.simulation.placements());
            if let Some(copied) = copies.as_mut().filter(|c| !c.objects.is_empty()) {
                copied.sentence += " Copies are the program's to make (nw_replicate of libnodewise); its NODEWISE_GUARD=1 \
                                    finds writes to what was copied, which recordings do not see if system calls make them.";
            }
            Policy {
                copies,
                ..self.policy(predicted, exclusivity, program)
            }
        };
        self.copies.iter().map(one).collect()
    }

    fn policy(&self, predicted: &Prediction, application_exclusivity: f64, program: &Metrics) -> Policy {
        let counted = !self.is_sampled();
        let range = |r: Range| counted.then_some([r.min, r.max]);
        Policy {
            policy: predicted.policy.clone(),
            application_exclusivity,
            page_balance: predicted.page_balance,
            access_balance: counted.then_some(predicted.access_balance),
            access_balance_as_printed: counted.then(|| program.access_balance_as_printed()),
            local_fraction: predicted.local_fraction,
            local_range: self.local_range(predicted.local_fraction),
            other_runs: predicted.other_runs.map(Into::into),
            migrations: 0,
            seconds: counted.then_some(predicted.seconds.typical),
            seconds_range: range(predicted.seconds),
            speedup: counted.then_some(predicted.speedup.typical),
            speedup_range: range(predicted.speedup),
            copies: None,
        }
    }

    /// Bounds of the share of local accesses in a slice; nothing is known of pages without samples in it.
    fn local_range_in(&self, slice: &Metrics) -> Option<[f64; 2]> {
        let program = self.samples_for_bounds()?.program;
        let seen = slice.pages as f64 / program.pages.max(1) as f64 * (1.0 - program.unseen);
        let local = sampled_share(slice.local_fraction(), slice.accesses(), 1.0 - seen);
        Some(range(local))
    }

    fn slices(&self) -> Vec<Slice> {
        let seconds = |ns: u64| ns as f64 * 1e-9;
        let counted = !self.is_sampled();
        let one = |s: &nodewise_analysis::SliceMetrics| {
            let times = &self.context.profile.slices;
            let time = times.get(s.slice.index()).copied().unwrap_or_default();
            Slice {
                start_seconds: seconds(time.start_ns),
                end_seconds: seconds(time.end_ns),
                accesses: s.metrics.accesses(),
                exclusivity: s.metrics.application_exclusivity(),
                local_fraction: s.metrics.local_fraction(),
                local_range: self.local_range_in(&s.metrics),
                access_balance: counted.then(|| s.metrics.access_balance()),
                migrations: s.migrations,
            }
        };
        self.timeline.slices.iter().map(one).collect()
    }

    /// Whether accesses are samples; figures that need counts are then omitted.
    fn is_sampled(&self) -> bool {
        self.context.profile.meta.observer.is_sampled()
    }

    /// The share of pages whose first touch was not observed; 0 if accesses are not samples.
    fn unknown_first_touch(&self) -> f64 {
        if !self.is_sampled() {
            return 0.0;
        }
        let touches = first_touches(self.context.profile, self.context.histogram);
        let unknown = touches.iter().filter(|t| t.is_none()).count();
        unknown as f64 / touches.len().max(1) as f64
    }

    fn objects(&self, measured: &Measured) -> Vec<Object> {
        let one = |advised: &Advised| {
            let metrics = measured.objects.get(&advised.blame.object)?;
            let mut object = self.object(advised, metrics)?;
            // Advice on an object must not contradict the verdict. A mismatch between loops and data is reported in
            // any case: it is a property of the program, and may cost more with larger data.
            let instead = match self.advice.verdict.outcome {
                VerdictKind::Place | VerdictKind::Stock | VerdictKind::Match => None,
                VerdictKind::LeaveAlone | VerdictKind::NotMemoryBound => Some("Leave it alone."),
                VerdictKind::Undecided | VerdictKind::Unknown => {
                    Some("Undecided, as is the verdict on the program.")
                }
            };
            if let Some(advice) = instead.filter(|_| !self.is_sampled() && !object.is_mismatched()) {
                object.advice = advice.to_owned();
                object.snippet = None;
            }
            Some(object)
        };
        self.advice.objects.iter().filter_map(one).collect()
    }

    fn object(&self, advised: &Advised, metrics: &Metrics) -> Option<Object> {
        let blame = &advised.blame;
        let counted = !self.is_sampled();
        let sampled = self.advice.samples.as_ref().map(|s| s.object(blame.object));
        let local = metrics.local_fraction();
        let profile = self.context.profile;
        let object = profile.object(blame.object)?;
        Some(Object {
            name: blame.name.clone(),
            kind: object.kind.name().to_owned(),
            site: profile
                .site(object.site)
                .map(ToString::to_string)
                .unwrap_or_default(),
            bytes: object.bytes,
            allocations: u64::from(object.repeats) + 1,
            pages: metrics.pages,
            accesses: metrics.accesses(),
            read_fraction: counted.then(|| metrics.reads as f64 / metrics.accesses().max(1) as f64),
            cost_share: counted.then_some(blame.cost_share),
            exclusivity: exclusivity(metrics, &sampled.unwrap_or_default()),
            sampled: sampled.map(Into::into),
            local_fraction: local,
            local_range: self
                .samples_for_bounds()
                .map(|s| range(s.object(blame.object).share(local))),
            sharing: metrics.sharing().name().to_owned(),
            pattern: blame.pattern.name().to_owned(),
            patterns: blame.passes.iter().map(|p| division(blame, p)).collect(),
            uniform_sharing: blame.loops_in_conflict().map(uniform_sharing),
            distribution: blame.distribution.map(|d| d.name().to_owned()),
            first_touch: blame.first_touched.clone(),
            used_by: blame.used_by.clone(),
            blame: advised.sentence.clone(),
            advice: as_sentence(&advised.advice),
            snippet: advised.snippet.clone(),
        })
    }
}

fn few_lines(advice: &Advice) -> Vec<FewLines> {
    let mut found: BTreeMap<ObjectId, FewLines> = BTreeMap::new();
    for contended_page in &advice.contended_pages {
        let advised = advice
            .objects
            .iter()
            .find(|o| o.blame.object == contended_page.object);
        let none = || FewLines {
            object: advised.map(|o| o.blame.name.clone()),
            pages: 0,
            share: 0.0,
        };
        let object = found.entry(contended_page.object).or_insert_with(none);
        object.pages += 1;
        object.share += contended_page.share;
    }
    let mut found: Vec<FewLines> = found.into_values().collect();
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found
}

fn range(share: Interval) -> [f64; 2] {
    [share.low, share.high]
}

/// Exclusivity. If there are enough samples, it is the mean over pages with equal weight; otherwise pages are weighted
/// by their accesses.
fn exclusivity(metrics: &Metrics, sampled: &Sampled) -> f64 {
    sampled
        .exclusivity
        .map_or_else(|| metrics.application_exclusivity(), |e| e.value)
}

fn division(blame: &Blame, pass: &Pass) -> Division {
    let found = &pass.division;
    Division {
        region: pass.function.clone(),
        site: pass.at.clone(),
        pattern: found.pattern.name().to_owned(),
        repeat: found.repeat,
        inverse: found.inverse,
        explained: found.explained,
        share: found.share,
        read_fraction: found.reads as f64 / (found.reads + found.writes).max(1) as f64,
        threads: found.threads,
        doubt: found.alternative_causes().map(str::to_owned),
        schedule: schedule(blame.distribution, blame.loops_in_conflict().is_some(), found).map(str::to_owned),
    }
}

fn uniform_sharing(conflict: &Conflict) -> UniformSharing {
    UniformSharing {
        share: conflict.share,
        share_in_order: conflict.share_in_order,
        remedy: match conflict.remedy {
            Remedy::BlockExclusive { .. } => Some("block-exclusive".to_owned()),
            Remedy::StaticInverse => Some("static-inverse".to_owned()),
            Remedy::None => None,
        },
    }
}

fn recorded(meta: &Meta, threads: usize) -> Program {
    Program {
        command: meta.command.clone(),
        threads,
        started_at: meta.started_at,
        wall_seconds: meta.wall_ns as f64 * 1e-9,
        plain_wall_seconds: meta.plain_wall_ns.map(|ns| ns as f64 * 1e-9),
        observer: meta.observer.name().to_owned(),
        exact: !meta.observer.is_sampled(),
        loop_schedule: meta.loop_schedule.clone(),
        slicing: meta.slicing.clone(),
        exit_status: meta.exit_status,
        truncated: meta.truncated.clone(),
        host: Host {
            model: meta.host_model.clone(),
            cpus: meta.host_cpus,
            nodes: meta.host_nodes,
        },
    }
}

/// The coverage that a recording reports.
#[must_use]
pub fn coverage(meta: &Meta) -> Coverage {
    let c = &meta.coverage;
    let module = |(name, share): &(String, f64)| MissedModule {
        name: name.clone(),
        share: *share,
    };
    Coverage {
        // An emulator and the kernel observe all code.
        share: matches!(meta.observer, Observer::Emulate | Observer::Faults)
            .then_some(1.0)
            .or_else(|| c.share()),
        samples: c.samples,
        instrumented: c.instrumented,
        waiting: c.waiting,
        missed: c.missed,
        kernel: c.kernel,
        missed_modules: c.missed_modules.iter().map(module).collect(),
    }
}

fn target(machine: &Target) -> Machine {
    let node = |n: &nodewise_machine::Node| Node {
        cpus: n.cpus.len(),
        memory: n.memory,
        bandwidth: n.bandwidth,
    };
    Machine {
        name: machine.name.clone(),
        title: machine.title.clone(),
        nodes: machine.nodes.iter().map(node).collect(),
        numa_factor: machine.numa_factor(),
        latency_ns: machine.latency_ns.clone(),
        sources: machine.sources.clone(),
    }
}

fn sharing(program: &Metrics) -> Vec<Sharing> {
    let class = |class: SharingClass| Sharing {
        class: class.name().to_owned(),
        pages: program.class_pages[class.index()],
        accesses: program.class_accesses[class.index()],
    };
    SharingClass::ALL.into_iter().map(class).collect()
}

fn notes(findings: &Findings<'_>, unknown: f64) -> Vec<String> {
    let Context {
        profile,
        machine,
        affinity,
        histogram,
    } = *findings.context;
    let (calibration, meta) = (&findings.simulation.calibration, &profile.meta);
    let mut notes = match &meta.sampling {
        _ if !meta.observer.is_sampled() => vec![
            time_difference_note(meta, machine, histogram.threads),
            format!("Predicted times rest on the {}.", calibration.basis.text()),
            cores_note(findings.simulation.parameters.core_factor),
        ],
        sampling => samples(sampling.as_ref(), unknown),
    };
    if !calibration.measured_cost && matches!(calibration.basis, Basis::CpuTime | Basis::WallTime) {
        notes.push(format!(
            "Recording slowed the program by between {:.1} and {:.1} times: {}.",
            calibration.recording_cost.min,
            calibration.recording_cost.max,
            calibration.why_unmeasured()
        ));
    }
    let several = profile.threads.len() > 1 && !meta.observer.is_sampled();
    if let Some(most) = findings.simulation.side_by_side.filter(|_| several) {
        notes.push(concurrency_note(meta, most));
    }
    if affinity.cpus.len() > machine.cpus().len() {
        notes.push(format!(
            "{} share {} of the machine.",
            plural(affinity.cpus.len(), "thread"),
            plural(machine.cpus().len(), "CPU")
        ));
    }
    let assumed = machine.sources.iter().filter(|s| s.assumed).count();
    if assumed > 0 {
        notes.push(format!(
            "{assumed} of the machine’s figures are assumptions; they are marked above."
        ));
    }
    if let Some(schedule) = &meta.loop_schedule {
        notes.push(dealt_note(schedule));
    }
    if let Some(status) = meta.exit_status.filter(|s| *s != 0) {
        notes.push(format!("The program ended with status {status}."));
    }
    notes
}

/// How loops were dealt instead of what the program asks.
pub(crate) fn dealt_note(schedule: &str) -> String {
    format!(
        "OpenMP loops that ask for a dynamic or guided schedule were dealt by schedule({schedule}); `nodewise run --schedule \
         {schedule}` runs the plain program so."
    )
}

/// Notes on the limits of samples.
fn samples(sampling: Option<&nodewise_profile::Sampling>, unknown: f64) -> Vec<String> {
    let mut notes = vec![
        "Accesses are samples: the first use of a page after each of the kernel's scans. A page used a thousand \
         times as often is not seen more often, so pages weigh alike, and neither time nor load is predicted."
            .to_owned(),
        "Which node uses a page most, and from which nodes it is used, is what samples tell reliably.".to_owned(),
    ];
    if let Some(s) = sampling {
        notes.push(format!(
            "Pages with fewer than {} are not judged; bounds are Wilson's at 95 %, averaged over the judged pages.",
            plural(s.minimum_samples as usize, "sample")
        ));
        if s.lost > 0 {
            notes.push(format!(
                "{} were lost before they could be read.",
                plural(s.lost as usize, "sample")
            ));
        }
        if !s.writes {
            notes.push("Reads and writes were not told apart.".to_owned());
        }
    }
    if unknown > 0.0 {
        notes.push(format!(
            "The first touch of {} of the pages was not seen; they are taken to live on the node that uses them most.",
            percent(unknown)
        ));
    }
    notes
}

/// How fast the machine's cores compute against the recording host's. On slower ones memory weighs less.
fn cores_note(factor: Range) -> String {
    match factor.max > factor.min {
        true => format!(
            "How fast the machine's cores compute is not known: between {} and {} times as long as the recording host's, in the \
             ranges (`--core-factor F` says it). On slower cores memory weighs less, and placement gains less.",
            factor.min, factor.max
        ),
        false => format!(
            "Computing takes {} times as long as on the recording host.",
            factor.typical
        ),
    }
}

/// How many CPUs threads outside OpenMP kept busy, `most` at most, and whether others may have kept them waiting.
fn concurrency_note(meta: &Meta, most: f64) -> String {
    let seen = format!(
        "Threads outside OpenMP kept {most:.1} CPUs busy at a time at most while this was recorded, with others free"
    );
    if meta.was_undisturbed() {
        return format!("{seen}, and are predicted to.");
    }
    let why = match meta.other_cpus() {
        Some(cpus) if cpus >= 0.05 => {
            format!("other processes kept {cpus:.1} CPUs busy meanwhile")
        }
        Some(_) => "the run was too short for the kernel's account of what other processes used".to_owned(),
        None => "what other processes used meanwhile is not known".to_owned(),
    };
    format!("{seen}, and are predicted to; but {why}, so that more may run at a time: ranges contain that.")
}

/// Explains a large difference between the recorded and the predicted time.
fn time_difference_note(meta: &Meta, machine: &Target, threads: usize) -> String {
    let crowd = match threads {
        threads if meta.host_cpus > 0 && threads > meta.host_cpus as usize => {
            format!(
                "its {threads} threads shared {}",
                plural(meta.host_cpus as usize, "CPU")
            )
        }
        threads => plural(threads, "thread"),
    };
    format!(
        "The recorded {} are not what the predictions are compared with: there {crowd} while their accesses \
         were counted; predicted times are the plain program's on {}, a CPU for each thread as far as it has them.",
        seconds(meta.wall_ns as f64 * 1e-9),
        machine.name
    )
}

/// The phrase with a capital letter at the start and a full stop at the end.
fn as_sentence(phrase: &str) -> String {
    let mut letters = phrase.chars();
    let first = letters
        .next()
        .map(|c| c.to_uppercase().to_string())
        .unwrap_or_default();
    let stop = if phrase.ends_with('.') { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}
