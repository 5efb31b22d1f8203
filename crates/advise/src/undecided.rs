//! Verdicts that depend on an uncertain quantity: another plausible value would reverse them. Instead of advice, the
//! verdict says how to determine the quantity.

use crate::gain::{
    MIN_GAIN, SOME_LOSS, ScenarioOutcome, is_valid_in_other_runs, joint_gain, largest_joint_gain,
    scenario_outcomes, worth_it,
};
use crate::matched::Matched;
use crate::next_command::{ReportOptions, in_words, options, plain_command};
use crate::phrases::percent;
use crate::verdict::{Verdict, VerdictKind};
use nodewise_input::shell_line;
use nodewise_placement::Context;
use nodewise_simulation::{MEMORY_BOUND, Range, Simulation, Varied};

/// Why no advice can be given.
pub(crate) struct Undecided {
    /// Gain of the best placement, or of matching loops to their data, over all scenarios.
    gain: Range,
    /// Whether it turns on matching loops to their data, and not on placements.
    by_matching: bool,
    /// If the advice is reversed only where all other quantities are at ends of their ranges, too: what happens there.
    jointly: Option<&'static str>,
    /// The quantities whose values would reverse the advice.
    by: Vec<Varied>,
}

impl Undecided {
    /// `None` if every scenario gives the same advice. If the typical scenario gains, and another one gains less
    /// without a loss, a change does no harm; then only quantities that a plain run would determine make the verdict
    /// undecided, and for the others [`doubt`] qualifies it.
    pub fn of(simulation: &Simulation, matched: Option<&Matched>) -> Option<Self> {
        let scenario_outcomes = scenario_outcomes(simulation, matched.map(|m| &*m.by_scenario));
        let (typical, others) = scenario_outcomes.split_first()?;
        let reverses = |o: &&ScenarioOutcome| {
            o.recommends_change != typical.recommends_change
                && (o.varied.is_known_by_a_plain_run() || !typical.recommends_change)
        };
        let mut by: Vec<Varied> = others.iter().filter(reverses).map(|o| o.varied).collect();
        let pays = matched.is_some_and(Matched::pays);
        if by.is_empty() && typical.recommends_change && worth_it(simulation).is_empty() && !pays {
            by = losing(simulation, matched);
        }
        let jointly = match by.is_empty() && !typical.recommends_change {
            true => gain_at_unknown_cost(simulation, matched),
            false => None,
        };
        if jointly.is_some() {
            by = known_by_a_plain_run(simulation);
        }
        by.dedup();
        let all = || scenario_outcomes.iter().map(|o| o.gain).chain(jointly);
        let gain = Range::new(
            all().fold(f64::MAX, f64::min),
            typical.gain,
            all().fold(0.0, f64::max),
        );
        (!by.is_empty()).then(|| Self {
            gain,
            by_matching: matched.is_some() && Self::of(simulation, None).is_none(),
            jointly: jointly.map(|_| "gain"),
            by,
        })
    }

    /// The same of a change that is to be recommended, with these speed-ups, if what recording cost was not measured: `None`
    /// unless the change loses with that and all other uncertain quantities at ends of their ranges (`jointly`).
    pub fn by_loss(
        simulation: &Simulation,
        speedup: Range,
        jointly: impl Iterator<Item = f64>,
        by_matching: bool,
    ) -> Option<Self> {
        let (least, most) = jointly.fold((speedup.min, speedup.max), |(a, b), s| (a.min(s), b.max(s)));
        if simulation.calibration.measured_cost || least >= 1.0 - SOME_LOSS {
            return None;
        }
        let by = known_by_a_plain_run(simulation);
        (!by.is_empty()).then(|| Self {
            gain: Range::new(least - 1.0, speedup.typical - 1.0, most - 1.0),
            by_matching,
            jointly: Some("lose"),
            by,
        })
    }

    /// Whether timing the plain program would decide.
    fn by_plain_run(&self) -> bool {
        self.by.iter().any(|v| v.is_known_by_a_plain_run())
    }

    pub fn verdict(
        self,
        context: &Context<'_>,
        simulation: &Simulation,
        report_options: &ReportOptions,
        nothing: impl FnOnce(VerdictKind, String) -> Verdict,
    ) -> Verdict {
        let why: Vec<String> = self.by.iter().map(|v| because(*v, simulation)).collect();
        let sentence = format!(
            "Undecided: on {} {} gains between {} and {}; that depends on {}.",
            context.machine.name,
            match self.by_matching {
                true => "matching the loops to their data, as below,",
                false => "the best placement",
            },
            percent(self.gain.min),
            percent(self.gain.max),
            why.join(", and on ")
                + &self.jointly.map_or_else(String::new, |what| {
                    format!("; it would {what} only if the other unknown quantities are at their limits, too")
                })
        );
        let runs = plain_command(context, report_options);
        let mut tune = ["nodewise", "tune", "--"].map(str::to_owned).to_vec();
        tune.extend(runs.command);
        let (next, then) = match runs.instrumented {
            _ if self.by.contains(&Varied::Concurrency) => {
                (None, Some(record_again(context, self.by_plain_run())))
            }
            _ if self.by_plain_run() => (
                None,
                Some(time_it(
                    context,
                    report_options,
                    simulation.calibration.measured_cost,
                )),
            ),
            _ if self.by.iter().all(|v| v.is_known_by_measuring_the_machine()) => {
                (None, Some(measure_it(context, report_options)))
            }
            _ if self.by_matching => (
                None,
                Some("change one of the loops as below, and time the program before and after".to_owned()),
            ),
            Some(program) => (None, Some(in_words(&program, &shell_line(&tune)))),
            None => (Some(shell_line(&tune)), None),
        };
        Verdict {
            gain: self.gain,
            next,
            then,
            ..nothing(VerdictKind::Undecided, sentence)
        }
    }
}

/// The quantities that timing the plain program would determine.
fn known_by_a_plain_run(simulation: &Simulation) -> Vec<Varied> {
    let varied = simulation.scenarios.iter().map(|s| s.varied);
    let mut known: Vec<Varied> = varied.filter(|v| v.is_known_by_a_plain_run()).collect();
    known.dedup();
    known
}

/// The largest gain with all uncertain quantities at ends of their ranges, if what recording cost was not measured. That one's range
/// is as wide as ignorance, so that it is not enough to vary the others at its typical value: any of them may decide at the
/// true one, which a plain run tells.
fn gain_at_unknown_cost(simulation: &Simulation, matched: Option<&Matched>) -> Option<f64> {
    if simulation.calibration.measured_cost {
        return None;
    }
    let matching = matched.map(|m| joint_gain(simulation, m.jointly.iter().copied()));
    let matching = matching.filter(|gain| *gain >= MIN_GAIN);
    let placement = largest_joint_gain(simulation).map(|(_, gain)| gain);
    placement.into_iter().chain(matching).max_by(f64::total_cmp)
}

/// How to see what threads do at a time; with a plain run, if that would tell something else as well.
fn record_again(context: &Context<'_>, plain: bool) -> String {
    let record = ["nodewise", "record"].map(str::to_owned);
    let plain = plain
        .then(|| ["--plain", "PLAIN"].map(str::to_owned))
        .into_iter()
        .flatten();
    let command = plain
        .chain(["--".to_owned()])
        .chain(context.profile.meta.command.iter().cloned());
    let record = shell_line(&record.into_iter().chain(command).collect::<Vec<_>>());
    format!("record it again while nothing else runs on the host, and for a second or more: {record}")
}

/// How to measure the cost of recording; in words, because the path of the plain build is not known. If it was `timed`
/// already, only a longer run narrows the interval.
fn time_it(context: &Context<'_>, report_options: &ReportOptions, timed: bool) -> String {
    let record = ["nodewise", "record", "--plain", "PLAIN", "--"].map(str::to_owned);
    let record = shell_line(&[&record[..], &context.profile.meta.command].concat());
    if timed {
        return format!(
            "record a longer run (more iterations, a larger input), which narrows that interval: {record}"
        );
    }
    format!(
        "record it with its plain build, which is then timed: {}; or measure the CPU time of a plain run with as many \
         threads, without waiting (OMP_WAIT_POLICY=passive), and add it: {} --plain-cpu 1.5s",
        record,
        shell_line(&report_command(context, report_options))
    )
}

/// The command that reports what is reported here.
fn report_command(context: &Context<'_>, report_options: &ReportOptions) -> Vec<String> {
    let mut report = ["nodewise", "report"].map(str::to_owned).to_vec();
    report.extend(Some(&report_options.profile).filter(|p| !p.is_empty()).cloned());
    report.extend(options(context, report_options));
    report
}

/// How to replace what the machine's file assumes by what is measured.
fn measure_it(context: &Context<'_>, report_options: &ReportOptions) -> String {
    const MEASURED: &str = "measured.toml";
    let measured = ReportOptions {
        machine: MEASURED.to_owned(),
        ..report_options.clone()
    };
    format!(
        "measure it, on the machine itself: nodewise topo --measure -o {MEASURED}; then: {}",
        shell_line(&report_command(context, &measured))
    )
}

/// The quantities of the scenarios in which what is best in the typical scenario loses: a placement, or matched loops.
fn losing(simulation: &Simulation, matched: Option<&Matched>) -> Vec<Varied> {
    let ranked = simulation.ranked();
    let placement = ranked
        .iter()
        .find(|p| is_valid_in_other_runs(p) && !p.policy.starts_with("random"));
    let placement = placement.map(|p| p.by_scenario.iter().map(|cost| cost.speedup).collect());
    let matched = matched.map(|m| m.by_scenario.clone());
    let best: Option<Vec<f64>> = [placement, matched]
        .into_iter()
        .flatten()
        .max_by(|a: &Vec<f64>, b| a[0].total_cmp(&b[0]));
    let scenarios = best.into_iter().flatten().zip(&simulation.scenarios);
    let losing = scenarios.filter(|(speedup, _)| *speedup < 1.0);
    losing.map(|(_, scenario)| scenario.varied).collect()
}

/// A sentence for a verdict that recommends a change with these speed-ups, by scenario:
/// another plausible value of some quantity would leave next to nothing of its gain, without a loss, or a program that memory
/// hardly matters for. `None` if no value would.
pub(crate) fn doubt(simulation: &Simulation, speedups: impl Iterator<Item = f64>) -> Option<String> {
    let scenarios = speedups
        .zip(&simulation.scenarios)
        .zip(&simulation.baseline().by_scenario);
    let (mut idle, mut light) = (Vec::new(), Vec::new());
    for ((speedup, scenario), first) in scenarios {
        if speedup - 1.0 < MIN_GAIN {
            idle.push(scenario.varied);
        } else if first.memory_share < MEMORY_BOUND {
            light.push(scenario.varied);
        }
    }
    light.retain(|v| !idle.contains(v));
    let why = |mut by: Vec<Varied>| {
        by.dedup();
        let why: Vec<String> = by.iter().map(|v| because(*v, simulation)).collect();
        (!why.is_empty()).then(|| why.join(", and on "))
    };
    let idle =
        why(idle).map(|why| format!(" It may gain next to nothing, without a loss; that depends on {why}."));
    let light =
        why(light).map(|why| format!(" Memory may be less than a tenth of the time; that depends on {why}."));
    (idle.is_some() || light.is_some()).then(|| {
        format!(
            "{}{} Measure before and after.",
            idle.unwrap_or_default(),
            light.unwrap_or_default()
        )
    })
}

/// The quantity with its range, as the reason for an undecided verdict.
fn because(varied: Varied, simulation: &Simulation) -> String {
    let (calibration, parameters) = (&simulation.calibration, &simulation.parameters);
    let between = |range: Range, unit: &str| format!("between {:.1} and {:.1}{unit}", range.min, range.max);
    match varied {
        Varied::RecordingCost => {
            let known = match calibration.measured_cost {
                true => "measured, by few samples of CPU time",
                false => calibration.why_unmeasured(),
            };
            let cost = between(calibration.recording_cost, " times");
            format!("how much recording slowed the program ({cost}; {known})")
        }
        Varied::Compute => format!(
            "how long it computes for each access ({}; an emulated run does not tell)",
            between(parameters.assumed_ns, " ns")
        ),
        Varied::Parallelism => format!(
            "how many misses a CPU has in flight ({})",
            between(parameters.parallelism, "")
        ),
        Varied::Miss => format!(
            "the share of its lines that reaches memory ({})",
            between(parameters.miss, "")
        ),
        Varied::Queue => format!(
            "how long a full controller delays accesses ({})",
            between(parameters.queue_ns, " ns")
        ),
        Varied::Bandwidth => format!(
            "bandwidths of {} that no source states ({} what its file assumes)",
            simulation.machine,
            between(parameters.assumed_bandwidth, " times")
        ),
        Varied::Latency => format!(
            "how much longer remote memory of {} takes than local, which no source states ({} what its file assumes)",
            simulation.machine,
            between(parameters.assumed_latency, " times")
        ),
        Varied::CacheConflicts => format!(
            "how often lines displace each other in the memory-side caches of {}, which depends on the physical pages that its kernel allocates",
            simulation.machine
        ),
        Varied::Cores => format!(
            "how long its cores compute ({}; `--core-factor F`, if you know)",
            between(parameters.core_factor, " times as long as the recording host's")
        ),
        Varied::Concurrency => format!(
            "how many of its threads run at a time ({:.1} did while it was recorded, and other processes may have kept \
             the others waiting)",
            simulation.side_by_side.unwrap_or(1.0)
        ),
        Varied::Nothing => "nothing".to_owned(),
    }
}
