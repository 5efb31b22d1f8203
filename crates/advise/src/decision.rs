//! Decides the verdict on the whole program.

use crate::advised::Advised;
use crate::gain::{MAX_STOCK_SLOWDOWN, MIN_GAIN, SOME_LOSS, largest_joint_gain, pays_once, worth_it};
use crate::matched::Matched;
use crate::next_command::{ReportOptions, in_words, map_and_run, plain_command};
use crate::phrases::{faster, percent};
use crate::stock::{omp_places, stock_command};
use crate::undecided::{Undecided, doubt};
use crate::verdict::{Verdict, VerdictKind};
use nodewise_analysis::{ContendedPage, Remedy, Sampled, figures};
use nodewise_placement::Context;
use nodewise_simulation::{Prediction, Range, ScenarioCost, Simulation};

/// Runs predicted to take less time than this, in seconds, are inconclusive: starting a process takes about a
/// millisecond, so too much of the time is start-up.
const SHORT_RUN_S: f64 = 0.01;

/// Fewer counted accesses than this are named by the verdict: a process's own start makes as many.
const FEW_ACCESSES: u64 = 10_000;

/// If less than this share of the program's work was seen, the verdict says how much was.
const MIN_COVERAGE: f64 = 0.8;

/// If at least this share of all accesses is to a few contended lines, the verdict itself says so.
const MIN_CONTENDED_SHARE: f64 = 0.5;

/// The verdict from a simulation; `objects` begin with the costliest.
pub(crate) fn verdict(
    context: &Context<'_>,
    simulation: &Simulation,
    objects: &[Advised],
    matched: Option<&Matched>,
    report_options: &ReportOptions,
    samples: Option<&Sampled>,
) -> Verdict {
    let worst = objects.first();
    let nothing = |outcome, sentence: String| Verdict {
        outcome,
        policy: "first-touch".into(),
        gain: Range::exactly(0.0),
        sentence,
        next: None,
        then: None,
        reasons: reasons(simulation, worst),
    };
    let machine = context.machine;
    let share = simulation.baseline().memory_share;
    if context.histogram.is_empty() {
        return nothing(
            VerdictKind::Unknown,
            "No accesses were recorded: there is nothing to judge.".into(),
        );
    }
    if machine.node_count() < 2 {
        let text = match machine.name.as_str() {
            "this" => "This machine has one memory node: every placement is the same here.".into(),
            name => format!("{name} has one memory node: every placement is the same there."),
        };
        return nothing(VerdictKind::LeaveAlone, text);
    }
    if let Some(samples) = samples {
        return crate::sampled::verdict(context, simulation, samples);
    }
    if let Some(open) = Undecided::of(simulation, matched) {
        return open.verdict(context, simulation, report_options, nothing);
    }
    if !simulation.is_memory_bound() {
        let text = format!(
            "Leave it alone: not memory bound ({} of its time on {} is memory), placement can hardly matter.",
            percent(share.typical),
            machine.name
        );
        return nothing(VerdictKind::NotMemoryBound, text);
    }
    let worth = worth_it(simulation);
    let match_loses =
        |m: &Matched| Undecided::by_loss(simulation, m.speedup, m.jointly.iter().copied(), true);
    if let Some(matched) = matched.filter(|m| worth.is_empty() && m.pays()) {
        if let Some(open) = match_loses(matched) {
            return open.verdict(context, simulation, report_options, nothing);
        }
        let doubt = doubt(simulation, matched.by_scenario.iter().copied()).unwrap_or_default();
        return Verdict {
            gain: gain(matched.speedup),
            ..nothing(
                VerdictKind::Match,
                match_it(objects, matched, &machine.name) + &doubt,
            )
        };
    }
    if worth.is_empty() {
        let text = format!(
            "Leave it alone: on {} no placement is predicted to beat first-touch by {} or more.",
            machine.name,
            percent(MIN_GAIN)
        );
        return nothing(VerdictKind::LeaveAlone, text);
    }
    let mut placed = recommendation(
        context,
        simulation,
        &worth,
        (reasons(simulation, worst), report_options),
    );
    let chosen = worth.iter().find(|p| p.policy == placed.policy);
    let open = chosen.and_then(|p| {
        let jointly = p.jointly.iter().map(|cost| cost.speedup);
        Undecided::by_loss(simulation, p.speedup, jointly, false)
    });
    if let Some(open) = open {
        return open.verdict(context, simulation, report_options, nothing);
    }
    let better = matched.filter(|m| m.pays() && m.beats(placed.gain) && match_loses(m).is_none());
    if let Some(matched) = better {
        placed
            .sentence
            .truncate(placed.sentence.trim_end_matches('.').len());
        placed.sentence += &matching_sentence(objects, matched);
    }
    placed
}

/// Warns that the run is short, or that few accesses were counted; `None` if neither is so, or if there was nothing to decide.
pub(crate) fn of_short_run(simulation: &Simulation) -> Option<String> {
    let seconds = simulation.baseline().seconds.typical;
    let accesses = simulation.calibration.accesses;
    let counted = figures::amount(accesses, "access");
    if seconds < SHORT_RUN_S {
        let seconds = figures::seconds(seconds);
        return Some(format!(
            " The run is short ({counted}, {seconds} predicted): start-up weighs as much as the work, judge a longer one."
        ));
    }
    let few = format!(" Only {counted} counted: percentages of so few say little about its memory.");
    (accesses < FEW_ACCESSES).then_some(few)
}

/// Says that a placement would pay where all uncertain quantities are at ends of their ranges at once, of a verdict to
/// leave the program alone, which holds where each of them alone is; `None` where none would.
pub(crate) fn of_all_ranges(simulation: &Simulation, verdict: &Verdict) -> Option<String> {
    if !matches!(
        verdict.outcome,
        VerdictKind::LeaveAlone | VerdictKind::NotMemoryBound
    ) {
        return None;
    }
    let (best, gain) = largest_joint_gain(simulation)?;
    let narrows = match simulation.calibration.measured_cost {
        true => "",
        false if simulation.calibration.plain_is_slower => {
            "`record --plain` on a quiet machine narrows them, "
        }
        false => "`record --plain` narrows them, ",
    };
    Some(format!(
        " With all ranges at an end at once `{}` would gain {}: {narrows}`nodewise tune` measures.",
        best.policy,
        percent(gain)
    ))
}

/// The reason to measure a placement, of which next to nothing would be left where all uncertain quantities are at ends
/// of their ranges at once; `None` if it pays there too, or one of them alone takes its gain, which the verdict says.
pub(crate) fn least_of_all_ranges(simulation: &Simulation, verdict: &Verdict) -> Option<String> {
    if !matches!(verdict.outcome, VerdictKind::Place | VerdictKind::Stock) {
        return None;
    }
    let chosen = simulation
        .predictions
        .iter()
        .find(|p| p.policy == verdict.policy)?;
    let least = |costs: &[ScenarioCost]| costs.iter().map(|c| c.speedup).fold(f64::MAX, f64::min) - 1.0;
    let (alone, together) = (least(&chosen.by_scenario), least(&chosen.jointly));
    let left = match together {
        loss if loss < -SOME_LOSS => format!("it loses {}", percent(-loss)),
        _ => "it gains next to nothing".to_owned(),
    };
    (alone >= MIN_GAIN && together < MIN_GAIN).then(|| {
        format!("With all of the model's ranges at an end at once {left}: measure before and after.")
    })
}

/// Says that a placement would pay only if threads took the same parts again; `None` unless it is better than all
/// placements that pay in other runs, too.
pub(crate) fn of_one_run(simulation: &Simulation) -> Option<String> {
    let once = pays_once(simulation)?;
    let best = worth_it(simulation).into_iter().next();
    if best.is_some_and(|best| best.seconds.typical <= once.seconds.typical) {
        return None;
    }
    let other = once.other_runs?.all;
    Some(format!(
        " `{}` pays in the recorded run only ({} local): threads take other parts in each run, and another one keeps {} local.",
        once.policy,
        percent(once.local_fraction),
        percent(other.by_data)
    ))
}

/// The gain of matching loops, which no placement reaches.
fn matching_sentence(objects: &[Advised], matched: &Matched) -> String {
    let [typical, range] = faster(matched.speedup);
    format!(
        ". Matching the loops over {} to their data, as below, is predicted {typical} first-touch {range}.",
        conflicting_names(objects)
    )
}

fn recommendation(
    context: &Context<'_>,
    simulation: &Simulation,
    worth: &[&Prediction],
    (reasons, report_options): (Vec<String>, &ReportOptions),
) -> Verdict {
    let (best, runs) = (worth[0], plain_command(context, report_options));
    let places = omp_places(context.affinity, context.profile);
    let stock = |p: &Prediction| Some(stock_command(&p.policy, places.as_ref()?, &runs.command)?.line());
    let near = worth
        .iter()
        .filter(|p| p.seconds.typical <= best.seconds.typical * (1.0 + MAX_STOCK_SLOWDOWN));
    let mut close = near.filter_map(|p| Some((*p, stock(p)?)));
    let (outcome, chosen, (before, run)) = match close.next() {
        Some((p, line)) => (VerdictKind::Stock, p, (None, line)),
        None => {
            let lines = map_and_run(&best.policy, &runs.command, context, report_options);
            (VerdictKind::Place, best, lines)
        }
    };
    let (next, then) = match &runs.instrumented {
        Some(program) => (before, Some(in_words(program, &run))),
        None => (
            Some(before.map_or_else(|| run.clone(), |map| format!("{map} && {run}"))),
            None,
        ),
    };
    let compared = simulation.predictions[1..].iter().any(|p| stock(p).is_some());
    let speedups = chosen.by_scenario.iter().map(|cost| cost.speedup);
    Verdict {
        outcome,
        policy: chosen.policy.clone(),
        gain: gain(chosen.speedup),
        sentence: placement_sentence((outcome, compared), chosen, best, &simulation.machine)
            + &doubt(simulation, speedups).unwrap_or_default(),
        next,
        then,
        reasons,
    }
}

fn gain(speedup: Range) -> Range {
    Range::new(speedup.min - 1.0, speedup.typical - 1.0, speedup.max - 1.0)
}

/// The verdict if loops divide the same array differently, so that the program has to change.
fn match_it(objects: &[Advised], matched: &Matched, machine: &str) -> String {
    let named = conflicting_names(objects);
    let [typical, range] = faster(matched.speedup);
    format!(
        "Match loops and data: no placement suits {named}, whose loops divide it differently; distributed and \
         scheduled as below, the program is predicted {typical} first-touch on {machine} {range}."
    )
}

fn conflicting_names(objects: &[Advised]) -> String {
    let named: Vec<String> = conflicting(objects)
        .map(|o| format!("`{}`", o.blame.name))
        .collect();
    match &named[..] {
        [one, two, three, others @ ..] if !others.is_empty() => {
            let more = figures::and_more(others.len(), "object", "--json");
            format!("{one}, {two}, {three}{more}")
        }
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        all => all.concat(),
    }
}

/// The objects whose loops should change.
fn conflicting(objects: &[Advised]) -> impl Iterator<Item = &Advised> {
    let is_curable = |o: &&Advised| {
        let conflict = o.blame.loops_in_conflict();
        conflict.is_some_and(|c| c.remedy != Remedy::None)
    };
    objects.iter().filter(is_curable)
}

fn placement_sentence(
    (outcome, compared): (VerdictKind, bool),
    chosen: &Prediction,
    best: &Prediction,
    machine: &str,
) -> String {
    let how = match outcome {
        VerdictKind::Stock if chosen.policy == best.policy => "a stock command does it".to_owned(),
        VerdictKind::Stock => format!(
            "within {} of the best ({}), with a stock command",
            percent(MAX_STOCK_SLOWDOWN),
            best.policy
        ),
        _ if compared => "no stock command comes close".to_owned(),
        _ => "no stock command was compared".to_owned(),
    };
    format!(
        "Place it by `{}`: predicted {} first-touch on {machine} {}; {how}.",
        chosen.policy,
        faster(chosen.speedup)[0],
        faster(chosen.speedup)[1]
    )
}

fn reasons(simulation: &Simulation, worst: Option<&Advised>) -> Vec<String> {
    let baseline = simulation.baseline();
    let mut all = vec![format!(
        "Under first-touch {} of the accesses are local and memory takes {} of the time (between {} and {}).",
        percent(baseline.local_fraction),
        percent(baseline.memory_share.typical),
        percent(baseline.memory_share.min),
        percent(baseline.memory_share.max),
    )];
    let busiest = baseline
        .controllers
        .iter()
        .max_by(|a, b| a.utilization.total_cmp(&b.utilization));
    if let Some(controller) = busiest.filter(|c| c.utilization > 0.5) {
        let load = percent(controller.utilization);
        all.push(format!(
            "The memory controller of node {} is {load} busy on average.",
            controller.node
        ));
    }
    if let Some(worst) = worst.filter(|w| w.blame.cost_share > 0.05) {
        all.push(worst.sentence.clone());
    }
    all
}

/// Whether there was anything to decide: accesses, and a machine of several nodes.
pub(crate) fn is_decided(context: &Context<'_>) -> bool {
    context.machine.node_count() > 1 && !context.histogram.is_empty()
}

/// Says that the recording ended early, if it did.
pub(crate) fn of_truncated(context: &Context<'_>) -> Option<String> {
    let why = context.profile.meta.truncated.as_ref();
    why.map(|why| format!(" The profile is cut short: {why}."))
}

/// Says that the program was ended by a signal, if it was: what it did until then is not what it does when it works.
pub(crate) fn of_signal(context: &Context<'_>) -> Option<String> {
    let status = context.profile.meta.exit_status?;
    (status > 128).then(|| {
        format!(
            " The program was ended by signal {} while it was recorded: this is of what it did until then.",
            status - 128
        )
    })
}

/// Says that only a part of the program's work was counted, if that is so.
pub(crate) fn of_part(context: &Context<'_>) -> Option<String> {
    let meta = &context.profile.meta;
    let covered = meta.coverage.share().filter(|s| *s < MIN_COVERAGE);
    covered.map(|share| {
        format!(
            " Only {} of the program's work was seen: the prediction covers only that part.",
            percent(share)
        )
    })
}

/// Says in the verdict itself that most accesses are waiting, or go to variables that all threads use; [`of_few_lines`]
/// says what follows from it.
pub(crate) fn of_mostly_few_lines(contended_pages: &[ContendedPage]) -> Option<String> {
    let share: f64 = contended_pages.iter().map(|s| s.share).sum();
    (share >= MIN_CONTENDED_SHARE).then(|| {
        format!(
            " Most accesses ({}) are to a few lines that several threads use or wait for.",
            percent(share)
        )
    })
}

/// Says how many of the accesses go to a few lines, and what that means for the verdict's figures.
pub(crate) fn of_few_lines(contended_pages: &[ContendedPage]) -> Option<String> {
    let share: f64 = contended_pages.iter().map(|s| s.share).sum();
    (!contended_pages.is_empty()).then(|| {
        format!(
            "{} of all accesses are to a few lines of {}: variables that all threads use, or waiting in barriers and locks \
             of the program's own, which counts as work. Shares of accesses (local, exclusivity, balance) say that \
             much about those lines; predicted times do not.",
            percent(share),
            figures::plural(contended_pages.len(), "page")
        )
    })
}
