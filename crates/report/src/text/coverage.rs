//! Text on which share of a program's CPU time is in code whose accesses were counted, and where the rest was spent.

use crate::Coverage;
use nodewise_input::escaped;

/// Largest number of modules that are named; the rest are summed up as others.
const MAX_MODULES_NAMED: usize = 3;

/// One sentence without its full stop. The counted and the missed share refer to the program's own user-mode work and
/// add up to 100 %; the shares of waiting and the kernel refer to all of its CPU time.
#[must_use]
pub fn coverage(coverage: &Coverage) -> String {
    let Some(share) = coverage.share else {
        return match coverage.samples {
            0 => "coverage unknown (no samples)".to_owned(),
            _ => "coverage unknown (the run was too short to sample)".to_owned(),
        };
    };
    let own = (coverage.instrumented + coverage.missed).max(f64::MIN_POSITIVE);
    let mut parts = vec![(String::new(), share)];
    if share < 1.0 {
        let named = coverage.missed_modules.iter().take(MAX_MODULES_NAMED);
        parts.extend(named.map(|m| (escaped(&m.name), m.share / own)));
    }
    let rest = 1.0 - parts.iter().map(|p| p.1).sum::<f64>();
    parts.push(("others".to_owned(), rest.max(0.0)));
    let tenths = adding_up(&parts.iter().map(|p| p.1).collect::<Vec<_>>());
    let missed = listed(parts.iter().zip(&tenths).skip(1).map(|(p, t)| (p.0.as_str(), *t)));
    let separate_parts = [("waiting", coverage.waiting), ("kernel", coverage.kernel)];
    let separate_parts = listed(
        separate_parts
            .into_iter()
            .map(|(name, share)| (name, (share * 1000.0).round() as u32)),
    );
    let more = match (missed.as_str(), separate_parts.as_str()) {
        ("", "") => String::new(),
        (missed, "") => format!(" (not counted: {missed})"),
        ("", separate_parts) => format!(" (apart: {separate_parts})"),
        (missed, separate_parts) => format!(" (not counted: {missed}; apart: {separate_parts})"),
    };
    format!("coverage {}{more}", tenth(tenths[0]))
}

/// Joins the parts that are larger than zero.
fn listed<'a>(parts: impl Iterator<Item = (&'a str, u32)>) -> String {
    let parts: Vec<String> = parts
        .filter(|p| p.1 > 0)
        .map(|(name, t)| format!("{name} {}", tenth(t)))
        .collect();
    parts.join(", ")
}

fn tenth(tenths: u32) -> String {
    match tenths % 10 {
        0 => format!("{} %", tenths / 10),
        tenth => format!("{}.{tenth} %", tenths / 10),
    }
}

/// Converts shares that sum to 1 to tenths of a per cent that sum to 1,000 (largest remainder method).
fn adding_up(shares: &[f64]) -> Vec<u32> {
    let exact: Vec<f64> = shares.iter().map(|s| s * 1000.0).collect();
    let mut tenths: Vec<u32> = exact.iter().map(|e| *e as u32).collect();
    let mut by_remainder: Vec<usize> = (0..shares.len()).collect();
    by_remainder.sort_by(|a, b| exact[*b].fract().total_cmp(&exact[*a].fract()));
    let left = 1000u32.saturating_sub(tenths.iter().sum());
    by_remainder
        .iter()
        .take(left as usize)
        .for_each(|i| tenths[*i] += 1);
    tenths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MissedModule;

    fn coverage_text(instrumented: f64, modules: &[(&str, f64)], waiting: f64, kernel: f64) -> String {
        let missed = modules.iter().map(|m| m.1).sum();
        let module = |(name, share): &(&str, f64)| MissedModule {
            name: (*name).to_owned(),
            share: *share,
        };
        coverage(&Coverage {
            share: Some(instrumented / (instrumented + missed)),
            samples: 1000,
            instrumented,
            waiting,
            missed,
            kernel,
            missed_modules: modules.iter().map(module).collect(),
        })
    }

    #[test]
    fn what_was_counted_and_what_was_not_add_up() {
        let text = coverage_text(
            0.6,
            &[
                ("libc.so.6", 0.15),
                ("liba.so", 0.03),
                ("libb.so", 0.01),
                ("libc.so", 0.01),
            ],
            0.15,
            0.05,
        );
        assert_eq!(
            text,
            "coverage 75 % (not counted: libc.so.6 18.7 %, liba.so 3.8 %, libb.so 1.2 %, others \
             1.3 %; apart: waiting 15 %, kernel 5 %)"
        );
        for modules in [
            &[("libc.so.6", 0.07), ("ld", 0.0001)][..],
            &[("a", 0.333), ("b", 0.333)],
            &[],
        ] {
            let text = coverage_text(0.3, modules, 0.2, 0.1);
            let own = text
                .split("; apart")
                .next()
                .unwrap()
                .split(" (apart")
                .next()
                .unwrap();
            let shares = own
                .split(' ')
                .filter_map(|w| w.trim_matches('(').parse::<f64>().ok());
            assert!((shares.sum::<f64>() - 100.0).abs() < 1e-9, "{text}");
            assert!(!text.contains(" 0 %"), "{text}");
        }
    }
}
