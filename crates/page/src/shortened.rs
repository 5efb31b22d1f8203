//! A report that fits into a file: long lists end early, and it says so.

use crate::archive::size;
use crate::view::json_of;
use nodewise_report::{Report, Slice};
use std::borrow::Cow;

/// Entries that long lists keep, rather too many than too few.
const KEPT: [usize; 3] = [2000, 500, 100];
/// Letters that a text keeps.
const LETTERS: usize = 300;

/// The report itself where it takes no more than so many bytes, compressed. All figures that are left stay where
/// they are in their lists.
#[must_use]
pub fn shortened(report: &Report, budget: usize) -> Cow<'_, Report> {
    let fits = |report: &Report| size(&json_of(report)) <= budget;
    if fits(report) {
        return Cow::Borrowed(report);
    }
    let mut short = report.clone();
    for kept in KEPT {
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

/// At most so many slices: neighbours become one, weighted by accesses.
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
        let balanced = group.iter().all(|s| s.access_balance.is_some());
        Slice {
            start_seconds: group[0].start_seconds,
            end_seconds: group[group.len() - 1].end_seconds,
            accesses,
            exclusivity: mean(|s| s.exclusivity),
            local_fraction: mean(|s| s.local_fraction),
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
    if let Some((end, _)) = text.char_indices().nth(LETTERS) {
        text.truncate(end);
        text.push('…');
    }
}
