//! Phrases that several sentences share: per cents, gains, lists of locations.

use crate::users::Pass;
use nodewise_analysis::figures::{self, and_more, whole_percent};
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

/// A fraction in whole per cents, below 10 % with one decimal: `25 %`, `2.5 %`, `3 %`.
pub(crate) fn percent(fraction: f64) -> String {
    match fraction.abs() {
        few if few < 0.0995 => figures::percent(fraction).replace(".0 %", " %"),
        _ => whole_percent(fraction),
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
    named(lines)
}

fn named(mut lines: Vec<&str>) -> String {
    lines.sort_by_key(|at| in_source_order(at));
    let left = lines.len().saturating_sub(MAX_LOOPS_NAMED);
    lines.truncate(MAX_LOOPS_NAMED);
    match lines.split_last() {
        Some((last, others)) if left == 0 && !others.is_empty() => {
            format!("at {} and {last}", others.join(", "))
        }
        Some(_) => format!("at {}{}", lines.join(", "), and_more(left, "line", "--json")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_not_named_are_counted() {
        assert_eq!(named(vec!["a.c:9"]), "at a.c:9");
        assert_eq!(named(vec!["a.c:10", "a.c:9"]), "at a.c:9 and a.c:10");
        assert_eq!(named(vec!["a:1", "a:2", "a:3"]), "at a:1, a:2 and a:3");
        assert_eq!(
            named(vec!["a:1", "a:2", "a:3", "a:4"]),
            "at a:1, a:2, a:3 and 1 more line (--json)"
        );
    }

    #[test]
    fn only_nothing_is_none_and_only_all_is_all() {
        let texts = [0.0, 0.0001, 0.03, 0.0254, 0.2549, 0.998, 1.0].map(percent);
        assert_eq!(texts, ["0 %", "0.1 %", "3 %", "2.5 %", "25 %", "99.8 %", "100 %"]);
    }
}
