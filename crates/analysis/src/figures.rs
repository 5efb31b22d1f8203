//! Number formats for people, used everywhere: three significant digits and a unit.

use crate::Interval;

/// Sums of shares that differ by less are equal.
const ROUNDING_ERROR: f64 = 1e-12;

/// Formats a number to three significant digits.
fn significant(value: f64) -> String {
    // The number of digits follows the rounded value: 99.97 is 100, not 100.0. The page has the same rule
    // (web/src/format.ts).
    let digits = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}

fn scaled(value: f64, base: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    while value >= base * 0.9995 && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    // Sizes that are whole in their unit have no error to show.
    let number = if unit == 0 || (base == 1024.0 && value.fract() == 0.0) {
        format!("{value:.0}")
    } else {
        significant(value)
    };
    match units[unit] {
        "" => number,
        unit => format!("{number} {unit}"),
    }
}

/// `950`, `1.25 k`, `3.40 G`.
#[must_use]
pub fn count(n: u64) -> String {
    scaled(n as f64, 1000.0, &["", "k", "M", "G", "T", "P"])
}

/// Formats an integer with thousands separators: `8,191`.
#[must_use]
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with its noun, in all its digits: `1 node`, `8,191 pages`. [`exact`] is the same for counts of 64 bits.
#[must_use]
pub fn plural(n: usize, what: &str) -> String {
    exact(n as u64, what)
}

/// `node` for one, `nodes`, `accesses` and `copies` for any other number. The page has the same rule
/// (web/src/format.ts).
#[must_use]
pub fn noun(n: usize, what: &str) -> String {
    let vowels = ['a', 'e', 'i', 'o', 'u'];
    match what.strip_suffix('y') {
        _ if n == 1 => what.to_owned(),
        Some(stem) if !stem.ends_with(vowels) => format!("{stem}ies"),
        _ if what.ends_with('s') || what.ends_with("ch") => format!("{what}es"),
        _ => format!("{what}s"),
    }
}

/// The number of entries that a shortened list leaves out, and where all of them are: ` and 3 more nodes (--json)`;
/// empty if none is left out.
#[must_use]
pub fn and_more(left: usize, what: &str, whole: &str) -> String {
    match left {
        0 => String::new(),
        _ => format!(" and {} ({whole})", plural(left, &format!("more {what}"))),
    }
}

/// A number with its noun, shortened: `1 access`, `307 k accesses`.
#[must_use]
pub fn amount(n: u64, what: &str) -> String {
    format!("{} {}", count(n), noun(index(n), what))
}

/// A number with its noun, in all its digits: `1 page`, `8,191 pages`.
#[must_use]
pub fn exact(n: u64, what: &str) -> String {
    format!("{} {}", grouped(n), noun(index(n), what))
}

fn index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// `1 page`, `307 k pages`.
#[must_use]
pub fn pages(n: u64) -> String {
    amount(n, "page")
}

/// `512 B`, `4 KiB`, `1.50 MiB`.
#[must_use]
pub fn bytes(n: u64) -> String {
    scaled(n as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// A bandwidth in MB/s as `8.52 GB/s`.
#[must_use]
pub fn gigabytes(bandwidth: f64) -> String {
    format!("{} GB/s", significant(bandwidth / 1000.0))
}

/// A fraction as `12.5 %`; never rounded up to 100 % or down to 0 %.
#[must_use]
pub fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    let rounded = match percent.abs() {
        p if p > 0.0 && p < 0.1 => 0.1,
        p if p < 100.0 && p > 99.9 => 99.9,
        p => p,
    };
    format!("{:.1} %", rounded.copysign(percent) + 0.0)
}

/// A fraction in whole per cents: `12 %`. Where these would be 0 or 100 and the fraction is neither, as
/// [`percent`] writes it. Rounding errors of sums do not count as a difference.
#[must_use]
pub fn whole_percent(fraction: f64) -> String {
    let rounded = (fraction * 100.0).round();
    match rounded / 100.0 {
        end if (end == 0.0 || end == 1.0) && (end - fraction).abs() > ROUNDING_ERROR => percent(fraction),
        _ => format!("{:.0} %", rounded + 0.0),
    }
}

/// How an amount is spread over nodes, by their numbers: `node 0`, `nodes 0 (60 %), 1 (40 %)`, and `nowhere` if there is
/// none.
#[must_use]
pub fn spread(held: impl IntoIterator<Item = (u32, u64)>) -> String {
    let on: Vec<(u32, u64)> = held.into_iter().filter(|(_, amount)| *amount > 0).collect();
    let total: u64 = on.iter().map(|(_, amount)| amount).sum();
    let share =
        |(node, amount): &(u32, u64)| format!("{node} ({})", whole_percent(*amount as f64 / total as f64));
    match &on[..] {
        [] => "nowhere".to_owned(),
        [(node, _)] => format!("node {node}"),
        _ => format!("nodes {}", on.iter().map(share).collect::<Vec<_>>().join(", ")),
    }
}

/// `2.10 s`, `15.0 ms`.
#[must_use]
pub fn seconds(s: f64) -> String {
    match s {
        0.0 => "0 s".into(),
        s if s >= 1.0 => format!("{} s", significant(s)),
        s if s >= 1e-3 => format!("{} ms", significant(s * 1e3)),
        s => format!("{} µs", significant(s * 1e6)),
    }
}

/// Formats a factor: `1.90×`.
#[must_use]
pub fn ratio(r: f64) -> String {
    format!("{r:.2}×")
}

/// An interval of a share, in words; `least` is the smallest possible share.
#[must_use]
pub fn between([low, high]: [f64; 2], least: f64) -> String {
    let share = Interval {
        low,
        value: low,
        high,
    };
    share.words(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spread_says_its_shares_and_what_is_not_its_node() {
        assert_eq!(spread([(0, 0), (3, 7)]), "node 3");
        assert_eq!(spread([(0, 999), (1, 1)]), "nodes 0 (99.9 %), 1 (0.1 %)");
        assert_eq!(spread([(0, 0)]), "nowhere");
    }

    #[test]
    fn one_is_not_several() {
        assert_eq!(
            [0, 1, 2, 307_000].map(pages),
            ["0 pages", "1 page", "2 pages", "307 k pages"]
        );
        assert_eq!(amount(1, "access"), "1 access");
        assert_eq!(amount(0, "access"), "0 accesses");
        assert_eq!([1, 8191].map(|n| exact(n, "page")), ["1 page", "8,191 pages"]);
        let nouns = ["copy", "array", "first touch", "loss"].map(|what| noun(2, what));
        assert_eq!(nouns, ["copies", "arrays", "first touches", "losses"]);
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(
            (grouped(999), grouped(1_234_567)),
            ("999".into(), "1,234,567".into())
        );
    }

    #[test]
    fn what_a_list_leaves_out_is_said_with_where_it_is() {
        assert_eq!(and_more(0, "node", "--json"), "");
        assert_eq!(and_more(1, "node", "--json"), " and 1 more node (--json)");
        assert_eq!(and_more(2, "process", "--json"), " and 2 more processes (--json)");
    }

    #[test]
    fn a_share_is_called_all_or_nothing_only_when_it_is() {
        assert_eq!(percent(1.0), "100.0 %");
        assert_eq!(percent(0.99999), "99.9 %");
        assert_eq!(percent(0.00001), "0.1 %");
        assert_eq!(percent(0.0), "0.0 %");
        assert_eq!(
            (percent(-0.0), percent(-0.00001)),
            ("0.0 %".into(), "-0.1 %".into())
        );
        let fractions = [0.0, 0.00001, 0.004, 0.006, 0.124, 0.994, 0.996, 1.0, 1.5, -0.001];
        let texts = [
            "0 %", "0.1 %", "0.4 %", "1 %", "12 %", "99 %", "99.6 %", "100 %", "150 %", "-0.1 %",
        ];
        assert_eq!(fractions.map(whole_percent), texts);
        assert_eq!(whole_percent((0..10).map(|_| 0.1).sum()), "100 %");
    }
}
