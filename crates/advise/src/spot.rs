//! Waiting that counts as work, named where it weighs.

use crate::Blame;
use crate::verdict::percent;
use nodewise_analysis::{Histogram, Spot};

/// An object of which such pages make less is advised on by the rest of it.
const MOSTLY: f64 = 0.5;

/// Says of the objects that have such pages that their accesses are to a few lines. Where that is most of what is
/// accessed of an object, no advice on placing it follows from who accesses it.
pub(crate) fn mark(histogram: &Histogram, spots: &[Spot], blame: &mut [Blame]) {
    if spots.is_empty() {
        return;
    }
    let all: u64 = histogram.entries.iter().map(|e| e.accesses()).sum();
    for blame in blame {
        let own = || spots.iter().filter(|s| s.object == blame.object);
        let share: f64 = own().map(|s| s.share).sum();
        if share == 0.0 {
            continue;
        }
        blame.sentence += &format!(
            " {} of all accesses are to a few lines of {} of its pages: {WHAT}.",
            percent(share),
            own().count()
        );
        let pages = histogram.iter().filter(|p| p.object == blame.object);
        let accesses: u64 = pages.map(|p| p.accesses()).sum();
        if share * all as f64 >= MOSTLY * accesses as f64 {
            blame.advice = ELSEWHERE.to_owned();
            (blame.snippet, blame.distribution, blame.conflict) = (None, None, None);
        }
    }
}

/// What accesses to a few lines are.
pub const WHAT: &str = "waiting for a flag or a lock, or variables that all threads use";

/// The line stays in the caches of those who look at it; it is the writes that cost.
const ELSEWHERE: &str = "no placement follows from this: what caches hold does not depend on where the page lies; \
                         keep what different threads write on lines of their own, and wait less often";

/// What the verdict's shares of accesses contain.
pub(crate) fn reason(spots: &[Spot]) -> Option<String> {
    let share: f64 = spots.iter().map(|s| s.share).sum();
    (!spots.is_empty()).then(|| {
        format!(
            "{} of all accesses are to a few lines of {}: variables that all threads use, or waiting in barriers and locks \
             of the program's own, which counts as work. Shares of accesses (local, exclusivity, balance) say that \
             much about those lines; predicted times do not.",
            percent(share),
            if spots.len() == 1 { "one page".to_owned() } else { format!("{} pages", spots.len()) }
        )
    })
}
