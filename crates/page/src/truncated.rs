//! Truncates a report so that it fits into a file, with a note that it was.

use crate::archive::size;
use crate::view::json_of;
use nodewise_report::{Report, Slice};
use std::borrow::Cow;

/// Lengths of long lists to try, the longest first.
const LIST_LENGTHS: [usize; 3] = [2000, 500, 100];
/// Number of characters that a text keeps.
const MAX_CHARACTERS: usize = 300;

/// The report itself if its compressed size is at most `budget`, else a shortened copy. Lists lose entries at the end
/// only, so that the indices of the remaining ones stay valid.
#[must_use]
pub fn truncated(report: &Report, budget: usize) -> Cow<'_, Report> {
    let fits = |report: &Report| size(&json_of(report)) <= budget;
    if fits(report) {
        return Cow::Borrowed(report);
    }
    let mut short = report.clone();
    for kept in LIST_LENGTHS {
        keep(&mut short, kept);
        if fits(&short) {
            break;
        }
    }
    let left_out = report.objects.len() - short.objects.len();
    short.notes.push(format!(
        "Long lists and texts are cut short in this file ({left_out} objects are left out, slices joined); \
         `nodewise report --json` has them whole."
    ));
    Cow::Owned(short)
}

fn keep(report: &mut Report, entries: usize) {
    report.objects.truncate(entries);
    report.slices = joined(&report.slices, entries);
    report.migrations.truncate(entries);
    report.dynamicity.pages_by_moves.truncate(entries);
    for object in &mut report.objects {
        for text in [
            &mut object.name,
            &mut object.site,
            &mut object.blame,
            &mut object.advice,
        ] {
            shorten(text);
        }
        object.patterns.truncate(entries.min(20));
    }
    if let Some(moves) = &mut report.moves {
        moves.objects.truncate(entries);
        moves.over_time.truncate(entries);
        moves.objects.iter_mut().for_each(|o| o.homes.truncate(entries));
    }
}

/// Merges neighbouring slices, weighted by accesses, so that at most `entries` remain.
fn joined(slices: &[Slice], entries: usize) -> Vec<Slice> {
    let join = |group: &[Slice]| {
        let accesses: u64 = group.iter().map(|s| s.accesses).sum();
        let mean = |of: fn(&Slice) -> f64| {
            let sum: f64 = group.iter().map(|s| of(s) * s.accesses as f64).sum();
            if accesses == 0 {
                of(&group[0])
            } else {
                sum / accesses as f64
            }
        };
        // For any weights of the slices, their mean lies between the smallest and the largest bound.
        let ranges: Option<Vec<[f64; 2]>> = group.iter().map(|s| s.local_range).collect();
        let around = |ranges: Vec<[f64; 2]>| {
            let hull = |a: [f64; 2], b: [f64; 2]| [a[0].min(b[0]), a[1].max(b[1])];
            ranges.into_iter().reduce(hull)
        };
        let balanced = group.iter().all(|s| s.access_balance.is_some());
        Slice {
            start_seconds: group[0].start_seconds,
            end_seconds: group[group.len() - 1].end_seconds,
            accesses,
            exclusivity: mean(|s| s.exclusivity),
            local_fraction: mean(|s| s.local_fraction),
            local_range: ranges.and_then(around),
            access_balance: balanced.then(|| mean(|s| s.access_balance.unwrap_or_default())),
            migrations: group.iter().map(|s| s.migrations).sum(),
        }
    };
    slices
        .chunks(slices.len().div_ceil(entries).max(1))
        .map(join)
        .collect()
}

fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MAX_CHARACTERS) {
        text.truncate(end);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_slices_keep_sums_and_means() {
        let slice = |i: u32| Slice {
            start_seconds: f64::from(i),
            end_seconds: f64::from(i + 1),
            accesses: u64::from(i),
            exclusivity: 1.0,
            local_fraction: f64::from(i % 2),
            local_range: (i > 1).then_some([0.1 * f64::from(i % 3), 0.5 + 0.05 * f64::from(i)]),
            access_balance: (i < 6).then_some(0.5),
            migrations: 1,
        };
        let slices: Vec<Slice> = (0..8).map(slice).collect();
        let joined = joined(&slices, 4);
        let shares: Vec<f64> = joined.iter().map(|s| s.local_fraction).collect();
        assert_eq!(shares, [1.0, 3.0 / 5.0, 5.0 / 9.0, 7.0 / 13.0]);
        assert_eq!(
            (joined[0].local_range, joined[2].local_range),
            (None, Some([0.1, 0.75]))
        );
        assert_eq!(
            (
                joined[1].start_seconds,
                joined[1].end_seconds,
                joined[1].migrations
            ),
            (2.0, 4.0, 2)
        );
        assert_eq!(
            [joined[0].access_balance, joined[3].access_balance],
            [Some(0.5), None]
        );
        assert_eq!(super::joined(&slices, 8), slices);
    }

    #[test]
    fn a_long_text_ends_between_letters() {
        let mut text = "é".repeat(MAX_CHARACTERS + 1);
        shorten(&mut text);
        assert_eq!(text, "é".repeat(MAX_CHARACTERS) + "…");
    }
}
