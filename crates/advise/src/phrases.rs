//! Phrases that several sentences share: per cents, gains, lists of locations.

use crate::users::Pass;
use nodewise_analysis::figures::plural;
use nodewise_simulation::Range;

/// Largest number of loops with the same pattern that a sentence names.
const MAX_LOOPS_NAMED: usize = 3;

/// The causes of accesses to a few lines.
pub const FEW_LINES: &str = "waiting for a flag or a lock, or variables that all threads use";

/// "25 % faster than" or, for factors of two and more, "4.9× as fast as"; and the range in the same unit.
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

pub(crate) fn percent(fraction: f64) -> String {
    let value = fraction * 100.0;
    if value.abs() < 9.95 {
        format!("{value:.1} %").replace(".0 %", " %")
    } else {
        format!("{value:.0} %")
    }
}

/// Sort key of a source location: `a.c:9` comes before `a.c:10`.
pub(crate) fn in_source_order(at: &str) -> (&str, u32) {
    let (file, line) = at.rsplit_once(':').unwrap_or((at, ""));
    (file, line.parse().unwrap_or(0))
}

/// "at a.c:1, a.c:2 and a.c:3".
pub(crate) fn places<'a>(passes: impl Iterator<Item = &'a Pass>) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for pass in passes {
        if !lines.contains(&&*pass.at) {
            lines.push(&pass.at);
        }
    }
    lines.sort_by_key(|at| in_source_order(at));
    let left = lines.len().saturating_sub(MAX_LOOPS_NAMED);
    let more = plural(left, "more line");
    lines.truncate(MAX_LOOPS_NAMED);
    if left > 0 {
        lines.push(&more);
    }
    match lines.split_last() {
        Some((last, [])) => format!("at {last}"),
        Some((last, others)) => format!("at {} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The names of the dimensions in a bit set: "x", "x and y", …
pub(crate) fn dimension_names(dimensions: u32) -> String {
    let names: Vec<&str> = (0..3)
        .filter(|d| dimensions >> d & 1 == 1)
        .map(|d| ["x", "y", "z"][d])
        .collect();
    names.join(" and ")
}
