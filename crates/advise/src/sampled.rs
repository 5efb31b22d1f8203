//! What may be said when accesses are samples: who uses which page, not how intensely.
//!
//! Hinting faults see a page once a scan however often it is used, so neither time nor load follows
//! from them. What does: whose pages they are, and whether those live there.

use crate::next::plain_command;
use crate::verdict::percent;
use crate::{Blame, Outcome, Verdict, shell_line};
use nodewise_analysis::{Pattern, Sampled, sampled_exclusivity};
use nodewise_placement::Context;
use nodewise_profile::ObjectId;
use nodewise_simulation::{Prediction, Range, Simulation};
use std::collections::BTreeMap;

/// The prediction of what was moved while it ran, if there is one.
const REPLAY: &str = "replay";
/// Points of local fraction that are worth a word.
const NOTICEABLE: f64 = 0.05;
/// Objects used locally this much are where they belong.
const LOCAL: f64 = 0.8;
/// Pages have owners when no less than this share of their samples is surely from one node.
const OWNED: f64 = 0.6;

/// Compares local fractions only.
pub(crate) fn verdict(context: &Context<'_>, simulation: &Simulation) -> Verdict {
    let today = simulation.baseline();
    let (seen, _) = exclusivity(context);
    let too_few = (seen.judged * 2 < seen.pages).then(|| {
        format!(
            "Too few samples to say: {} of {} sampled pages were seen often enough to be judged; watch for longer.",
            seen.judged, seen.pages
        )
    });
    let chance = |p: &&Prediction| !p.policy.starts_with("random");
    let (moved, fixed): (Vec<&Prediction>, Vec<&Prediction>) = simulation.predictions[1..]
        .iter()
        .partition(|p| p.policy == REPLAY);
    let others = fixed.into_iter().filter(chance);
    let best = others.max_by(|a, b| a.local_fraction.total_cmp(&b.local_fraction));
    let noticeable = |p: &&Prediction| p.local_fraction >= today.local_fraction + NOTICEABLE;
    let better = best.filter(|b| too_few.is_none() && noticeable(b));
    let most = best.map_or(0.0, |b| b.local_fraction).max(today.local_fraction);
    let moved = moved
        .first()
        .filter(|m| noticeable(m) && m.local_fraction >= most);
    let (outcome, sentence) = match (moved, better) {
        _ if too_few.is_some() => (Outcome::Unknown, too_few.unwrap_or_default()),
        (Some(moved), _) => (
            Outcome::Unknown,
            format!(
                "As its pages moved, {} of what threads use was local by samples; it is {} under first-touch, and \
                 no fixed placement makes it more than {}.",
                percent(moved.local_fraction),
                percent(today.local_fraction),
                percent(most)
            ),
        ),
        (None, Some(best)) => (
            Outcome::Unknown,
            format!(
                "By samples, {} of what threads use is local under first-touch, and {} would be under {}; \
                 what that saves in time, samples cannot say.",
                percent(today.local_fraction),
                percent(best.local_fraction),
                best.policy
            ),
        ),
        (None, None) => (
            Outcome::LeaveAlone,
            format!(
                "Leave it alone: by samples, {} of what threads use is local under first-touch, and no \
                 placement makes that noticeably more.",
                percent(today.local_fraction)
            ),
        ),
    };
    Verdict {
        outcome,
        policy: "first-touch".into(),
        gain: Range::exactly(0.0),
        sentence,
        next: match moved {
            Some(_) => Some(again(context)),
            None => better.map(|_| watch(context)),
        },
        reasons: vec![
            "A page is seen once a scan, however often it is used: samples say whose it is, not what it costs.".into(),
        ],
    }
}

/// What would be moved, before anything is.
fn watch(context: &Context<'_>) -> String {
    balance(context, &["--dry-run", "--"])
}

/// What was worth it once.
fn again(context: &Context<'_>) -> String {
    balance(context, &["--"])
}

fn balance(context: &Context<'_>, options: &[&str]) -> String {
    let words = ["nodewise", "balance"].iter().chain(options);
    let mut words: Vec<String> = words.map(|w| (*w).to_owned()).collect();
    words.extend(plain_command(context));
    shell_line(&words)
}

fn exclusivity(context: &Context<'_>) -> (Sampled, BTreeMap<ObjectId, Sampled>) {
    let sampling = context.profile.meta.sampling.as_ref();
    let minimum = sampling.map_or(1, |s| s.minimum_samples);
    let nodes = context.machine.node_count();
    sampled_exclusivity(context.histogram, context.affinity, nodes, minimum)
}

/// Takes back what accesses would have to be counted for, and orders by remote samples.
pub(crate) fn restate(context: &Context<'_>, blame: &mut [Blame]) {
    let (_, sampled) = exclusivity(context);
    let mut samples = vec![0; context.profile.objects.len()];
    for page in context.histogram.iter() {
        if let Some(sum) = samples.get_mut(page.object.index()) {
            *sum += page.accesses();
        }
    }
    for blame in blame.iter_mut() {
        let seen = sampled.get(&blame.object).copied().unwrap_or_default();
        (blame.sentence, blame.advice) = (sentence(blame, &seen), advice(blame, &seen));
        blame.pattern = match blame.pattern {
            Pattern::ReadShared => Pattern::Uniform,
            Pattern::Gather => Pattern::Random,
            pattern => pattern,
        };
        (blame.cost_share, blame.saved_share) = (0.0, 0.0);
        (blame.snippet, blame.conflict, blame.distribution) = (None, None, None);
        blame.passes.clear();
    }
    let remote = |b: &Blame| samples[b.object.index()] as f64 * (1.0 - b.local_fraction);
    blame.sort_by(|a, b| remote(b).total_cmp(&remote(a)));
}

fn sentence(blame: &Blame, seen: &Sampled) -> String {
    let judged = match seen.shares {
        None => format!(
            "none of its {} sampled pages has enough samples to be judged",
            seen.pages
        ),
        Some(e) => format!(
            "one node makes {} ({} – {}) of a page's samples, by the {} of {} sampled pages that have enough",
            percent(e.value),
            percent(e.low),
            percent(e.high),
            seen.judged,
            seen.pages
        ),
    };
    let by = blame.first_touched.as_ref().map_or_else(
        || "nobody saw its first touch".to_owned(),
        |t| format!("first touched at {}", t.at),
    );
    let local = percent(blame.local_fraction);
    format!(
        "`{}`: {judged}; {by}, {local} of its samples are local.",
        blame.name
    )
}

fn advice(blame: &Blame, seen: &Sampled) -> String {
    match seen.shares {
        None => "Watch it for longer".into(),
        Some(_) if blame.local_fraction >= LOCAL => "Leave it alone".into(),
        Some(e) if e.low >= OWNED => {
            "move its pages to the nodes that use them: `nodewise balance` does".into()
        }
        Some(_) => "Its pages have no single owner: no home makes them local".into(),
    }
}
