//! One sentence about the whole program.

use crate::next::{map_and_run, plain_command};
use crate::{Asked, Blame, Matched, omp_places, stock_command};
use nodewise_analysis::{Remedy, Sampled};
use nodewise_placement::Context;
use nodewise_simulation::{Prediction, Range, Simulation};

/// A typical gain below this is not worth a change.
pub const WORTH_IT: f64 = 0.03;
/// A stock command this close to the best placement is preferred to it.
pub const CLOSE: f64 = 0.02;

/// The kinds of verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A placement is predicted to pay.
    Place,
    /// A stock command line does as well as the best placement.
    Stock,
    /// No placement is predicted to pay, but loops that match their data are.
    Match,
    /// No placement is predicted to pay.
    LeaveAlone,
    /// The program is not bound by memory.
    NotMemoryBound,
    /// Too little was seen to say.
    Unknown,
}

/// The conclusion, and what to do next.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Its kind.
    pub outcome: Outcome,
    /// The policy it recommends; `first-touch` when nothing is to be done.
    pub policy: String,
    /// Predicted gain of that policy over first-touch: speed-up minus one.
    pub gain: Range,
    /// One sentence.
    pub sentence: String,
    /// A command to copy.
    pub next: Option<String>,
    /// What the sentence rests on, a sentence each.
    pub reasons: Vec<String>,
}

/// Concludes from a simulation; `blame` begins with the object that costs most.
#[must_use]
pub fn verdict(
    context: &Context<'_>,
    simulation: &Simulation,
    blame: &[Blame],
    matched: Option<&Matched>,
    asked: &Asked,
    samples: Option<&Sampled>,
) -> Verdict {
    let worst = blame.first();
    let nothing = |outcome, sentence: String| Verdict {
        outcome,
        policy: "first-touch".into(),
        gain: Range::exactly(0.0),
        sentence,
        next: None,
        reasons: reasons(context, simulation, worst),
    };
    let machine = context.machine;
    let share = simulation.baseline().memory_share;
    if context.histogram.is_empty() {
        return nothing(
            Outcome::Unknown,
            "No accesses were recorded: there is nothing to judge.".into(),
        );
    }
    if machine.node_count() < 2 {
        let text = match machine.name.as_str() {
            "this" => "This machine has one memory node: every placement is the same here.".into(),
            name => format!("{name} has one memory node: every placement is the same there."),
        };
        return nothing(Outcome::LeaveAlone, text);
    }
    if let Some(samples) = samples {
        return crate::sampled::verdict(context, simulation, samples);
    }
    if !simulation.is_memory_bound() {
        let text = format!(
            "Leave it alone: not memory bound ({} of its time on {} is memory), placement can hardly matter.",
            percent(share.typical),
            machine.name
        );
        return nothing(Outcome::NotMemoryBound, text);
    }
    let worth = worth_it(simulation);
    if let Some(matched) = matched.filter(|m| worth.is_empty() && m.pays()) {
        return Verdict {
            gain: gain(matched.speedup),
            ..nothing(Outcome::Match, match_it(blame, matched, &machine.name))
        };
    }
    if worth.is_empty() {
        let text = format!(
            "Leave it alone: on {} no placement is predicted to beat first-touch by {} or more.",
            machine.name,
            percent(WORTH_IT)
        );
        return nothing(Outcome::LeaveAlone, text);
    }
    let mut placed = recommendation(
        context,
        simulation,
        &worth,
        (reasons(context, simulation, worst), asked),
    );
    if let Some(matched) = matched.filter(|m| m.pays() && m.beats(placed.gain)) {
        placed
            .sentence
            .truncate(placed.sentence.trim_end_matches('.').len());
        placed.sentence += &beyond(blame, matched);
    }
    placed
}

/// What no placement reaches.
fn beyond(blame: &[Blame], matched: &Matched) -> String {
    let [typical, range] = faster(matched.speedup);
    format!(
        ". Matching the loops over {} to their data, as below, is predicted {typical} first-touch {range}.",
        conflicting_names(blame)
    )
}

/// Predictions worth a change, fastest first: a typical gain, no loss in any scenario, and not chance.
pub(crate) fn worth_it(simulation: &Simulation) -> Vec<&Prediction> {
    let pays = |p: &Prediction| p.speedup.typical >= 1.0 + WORTH_IT && p.speedup.min >= 1.0;
    let mut ranked = simulation.ranked();
    ranked.retain(|p| pays(p) && !p.policy.starts_with("random"));
    ranked
}

fn recommendation(
    context: &Context<'_>,
    simulation: &Simulation,
    worth: &[&Prediction],
    (reasons, asked): (Vec<String>, &Asked),
) -> Verdict {
    let (best, command) = (worth[0], plain_command(context));
    let places = omp_places(context.affinity, context.profile);
    let stock = |p: &Prediction| Some(stock_command(&p.policy, places.as_ref()?, &command)?.line());
    let near = worth
        .iter()
        .filter(|p| p.seconds.typical <= best.seconds.typical * (1.0 + CLOSE));
    let mut close = near.filter_map(|p| Some((*p, stock(p)?)));
    let (outcome, chosen, next) = match close.next() {
        Some((p, line)) => (Outcome::Stock, p, line),
        None => {
            let line = map_and_run(&best.policy, context, asked);
            (Outcome::Place, best, line)
        }
    };
    let compared = simulation.predictions[1..].iter().any(|p| stock(p).is_some());
    Verdict {
        outcome,
        policy: chosen.policy.clone(),
        gain: gain(chosen.speedup),
        sentence: praise((outcome, compared), chosen, best, &simulation.machine),
        next: Some(next),
        reasons,
    }
}

fn gain(speedup: Range) -> Range {
    Range::new(speedup.min - 1.0, speedup.typical - 1.0, speedup.max - 1.0)
}

/// Loops and data deal the same array differently: the program has to change.
fn match_it(blame: &[Blame], matched: &Matched, machine: &str) -> String {
    let named = conflicting_names(blame);
    let [typical, range] = faster(matched.speedup);
    format!(
        "Match loops and data: no placement suits {named}, whose loops divide it differently; distributed and \
         scheduled as below, the program is predicted {typical} first-touch on {machine} {range}."
    )
}

fn conflicting_names(blame: &[Blame]) -> String {
    let named: Vec<String> = conflicting(blame).map(|b| format!("`{}`", b.name)).collect();
    match &named[..] {
        [one, two, three, _, ..] => format!("{one}, {two}, {three} and others"),
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        all => all.concat(),
    }
}

/// Objects whose loops should change.
fn conflicting(blame: &[Blame]) -> impl Iterator<Item = &Blame> {
    let curable = |b: &&Blame| b.conflict.as_ref().is_some_and(|c| c.remedy != Remedy::None);
    blame.iter().filter(curable)
}

fn praise(
    (outcome, compared): (Outcome, bool),
    chosen: &Prediction,
    best: &Prediction,
    machine: &str,
) -> String {
    let how = match outcome {
        Outcome::Stock if chosen.policy == best.policy => "a stock command does it".to_owned(),
        Outcome::Stock => format!(
            "within {} of the best ({}), with a stock command",
            percent(CLOSE),
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

/// "25 % faster than" or, from twice on, "4.9× as fast as"; and the range in the same unit.
pub(crate) fn faster(speedup: Range) -> [String; 2] {
    let twice = speedup.typical >= 2.0;
    let ratios = [speedup.min, speedup.typical, speedup.max];
    let [low, typical, high] = ratios.map(|ratio| match twice {
        true => format!("{ratio:.1}×"),
        false => percent(ratio - 1.0),
    });
    let than = if twice { "as fast as" } else { "faster than" };
    [format!("{typical} {than}"), format!("(between {low} and {high})")]
}

fn reasons(context: &Context<'_>, simulation: &Simulation, worst: Option<&Blame>) -> Vec<String> {
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
    if let Some(worst) = worst.filter(|w| w.cost_share > 0.05) {
        all.push(worst.sentence.clone());
    }
    if let Some(share) = context.profile.meta.coverage.share().filter(|s| *s < 0.8) {
        all.push(format!(
            "Only {} of the program's work was seen: the prediction is that partial.",
            percent(share)
        ));
    }
    if let Some(why) = &context.profile.meta.truncated {
        all.push(format!("The profile is cut short: {why}."));
    }
    all
}

pub(crate) fn percent(fraction: f64) -> String {
    let value = fraction * 100.0;
    if value.abs() < 9.95 {
        format!("{value:.1} %").replace(".0 %", " %")
    } else {
        format!("{value:.0} %")
    }
}
