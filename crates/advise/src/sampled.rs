//! Verdict and advice from samples, which tell who uses a page but not how intensely.
//!
//! NUMA hint faults show a page once per scan, however often it is used, so neither time nor load can be derived from
//! them. They do show which nodes use a page, and whether it is on one of these.

use crate::blame::Blame;
use crate::phrases::percent;
use crate::verdict::{Verdict, VerdictKind};
use nodewise_analysis::{Interval, Sampled};
use nodewise_input::shell_line;
use nodewise_placement::Context;
use nodewise_simulation::{Prediction, Range, Simulation};

/// Name of the policy that repeats the recorded moves, if there were any.
const REPLAY_POLICY: &str = "replay";
/// Smallest difference of local fractions that is mentioned.
const MIN_LOCAL_DIFFERENCE: f64 = 0.05;
/// An object with at least this local fraction is left where it is.
const MIN_LOCAL_FRACTION: f64 = 0.8;
/// Pages count as owned by one node if at least this share of their samples is from it, by the lower bound.
const MIN_OWNER_SHARE: f64 = 0.6;

/// The verdict from local fractions alone. It is never *leave it alone*: that would need bounds of a few points, which
/// samples of visits do not give for accesses ([`nodewise_analysis::sampled_share`]).
pub(crate) fn verdict(context: &Context<'_>, simulation: &Simulation, seen: &Sampled) -> Verdict {
    let today = simulation.baseline();
    let local = |share: f64| seen.share(share).words(0.0);
    let chance = |p: &&Prediction| !p.policy.starts_with("random");
    let (moved, fixed): (Vec<&Prediction>, Vec<&Prediction>) = simulation.predictions[1..]
        .iter()
        .partition(|p| p.policy == REPLAY_POLICY);
    let others = fixed.into_iter().filter(chance);
    let best = others.max_by(|a, b| a.local_fraction.total_cmp(&b.local_fraction));
    let noticeable = |p: &&Prediction| p.local_fraction >= today.local_fraction + MIN_LOCAL_DIFFERENCE;
    let better = best.filter(noticeable);
    let most = best.map_or(0.0, |b| b.local_fraction).max(today.local_fraction);
    let moved = moved
        .first()
        .filter(|m| noticeable(m) && m.local_fraction >= most);
    let (sentence, next) = match (too_few_judged(seen), moved, better) {
        (Some(too_few), ..) => (too_few, None),
        (None, Some(moved), _) => (
            format!(
                "As its pages moved, more of the samples were local than under first-touch or any fixed placement (local of \
                 what threads use, as moved: {}; under first-touch: {}; at best otherwise: {}).",
                local(moved.local_fraction),
                local(today.local_fraction),
                local(most)
            ),
            Some(balance_command(context)),
        ),
        (None, None, Some(best)) => (
            format!(
                "By samples, more would be local under {} than under first-touch (local of what threads use: {}; under \
                 first-touch: {}); what that saves in time, samples cannot say.",
                best.policy,
                local(best.local_fraction),
                local(today.local_fraction)
            ),
            Some(dry_run_command(context)),
        ),
        (None, None, None) => (
            format!(
                "By samples, no placement makes noticeably more local than first-touch ({} of the samples are local under \
                 it), but samples do not count accesses and cannot exclude that one does (local of what threads use: {}); \
                 an exact recording tells, under emulation 10 to 50 times slower than the program.",
                percent(today.local_fraction),
                local(today.local_fraction)
            ),
            Some(record_command(context)),
        ),
    };
    Verdict {
        outcome: VerdictKind::Unknown,
        policy: "first-touch".into(),
        gain: Range::exactly(0.0),
        sentence,
        next: next.filter(|_| !context.profile.meta.command.is_empty()),
        then: None,
        reasons: vec![
            "A page is seen once a scan, however often it is used: samples say whose it is, not what it costs.".into(),
        ],
    }
}

/// Says that too few of the sampled pages have enough samples to be judged; `None` if at least half of them have.
fn too_few_judged(seen: &Sampled) -> Option<String> {
    (seen.judged * 2 < seen.pages).then(|| {
        format!(
            "Too few samples to say: {} of {} sampled pages were seen often enough to be judged; watch for longer.",
            seen.judged, seen.pages
        )
    })
}

/// The command for an exact recording, which counts each access: under emulation, as sampled programs are plain builds.
fn record_command(context: &Context<'_>) -> String {
    command_line(context, "record", &["--via", "emulate", "--"])
}

/// The command that shows what would be moved, without moving it.
fn dry_run_command(context: &Context<'_>) -> String {
    command_line(context, "balance", &["--dry-run", "--"])
}

/// The command that moves pages, for a program in which recorded moves paid.
fn balance_command(context: &Context<'_>) -> String {
    command_line(context, "balance", &["--"])
}

/// A command of nodewise, with the recorded command after its options.
fn command_line(context: &Context<'_>, name: &'static str, options: &[&'static str]) -> String {
    let words = ["nodewise", name].into_iter().chain(options.iter().copied());
    let mut words: Vec<String> = words.map(str::to_owned).collect();
    words.extend_from_slice(&context.profile.meta.command);
    shell_line(&words)
}

/// The sentence that says what happened to an object, from samples.
pub(crate) fn sentence(blame: &Blame, seen: &Sampled) -> String {
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
    let local = seen.share(blame.local_fraction).words(0.0);
    format!("`{}`: {judged}; {by}; local accesses: {local}.", blame.name)
}

/// The advice on an object, from samples.
pub(crate) fn advice(blame: &Blame, seen: &Sampled) -> String {
    to_do(seen.shares, seen.share(blame.local_fraction)).into()
}

/// The advice for these values: `shares` is the share of a page's samples that come from the node with most, `local`
/// what samples say of the share of accesses that are local.
fn to_do(shares: Option<Interval>, local: Interval) -> &'static str {
    match shares {
        None => "Watch it for longer",
        Some(_) if local.low >= MIN_LOCAL_FRACTION => "Leave it alone",
        Some(_) if local.value >= MIN_LOCAL_FRACTION => {
            "by samples it is where it is used; only an exact recording excludes that most of its accesses are remote"
        }
        Some(e) if e.low >= MIN_OWNER_SHARE => {
            "move its pages to the nodes that use them: `nodewise balance` does"
        }
        Some(e) if e.high < MIN_OWNER_SHARE => {
            "leave it where it is: by samples no node uses most of a page, so no home makes most of it local"
        }
        Some(_) => "watch it for longer: its samples leave open whether one node or several use a page",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_left_alone_only_where_its_lower_bound_is_local() {
        let owned = Some(Interval {
            low: 0.8,
            value: 0.9,
            high: 1.0,
        });
        let advice_for = |low, value| {
            to_do(
                owned,
                Interval {
                    low,
                    value,
                    high: 1.0,
                },
            )
        };
        assert_eq!(advice_for(0.85, 0.99), "Leave it alone");
        assert!(advice_for(0.5, 0.99).contains("only an exact recording"));
        assert!(advice_for(0.1, 0.3).starts_with("move its pages"));
    }

    #[test]
    fn owners_are_denied_only_where_the_interval_does() {
        let half = Interval {
            low: 0.2,
            value: 0.5,
            high: 0.8,
        };
        let advice_for = |low, value, high| to_do(Some(Interval { low, value, high }), half);
        assert!(advice_for(0.5, 1.0, 1.0).starts_with("watch it for longer"));
        assert!(advice_for(0.3, 0.5, 0.7).starts_with("watch it for longer"));
        assert!(advice_for(0.3, 0.4, 0.5).contains("no node uses most of a page"));
        assert!(advice_for(0.8, 0.9, 1.0).starts_with("move its pages"));
    }
}
