//! The part of the report on which threads take which parts in other runs.

use nodewise_analysis::figures::{percent, plural};
use nodewise_analysis::{Assignment, Roles as Found};
use nodewise_simulation::OtherRuns as Predicted;
use serde::Serialize;

/// How the threads of other runs of the same command took the parts of the recorded one. A part is the pages of which
/// one thread made more than half of the accesses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Roles {
    /// `fixed`, `arrival` or `dynamic`.
    pub assignment: &'static str,
    /// Number of other runs.
    pub other_runs: u32,
    /// Share of the accesses to parts that the thread of the same number made.
    pub by_number: f64,
    /// Share that threads made which were matched with parts by the pages that they access.
    pub by_data: f64,
    /// Share that matched threads would have made if each had taken work without regard to parts.
    pub by_chance: f64,
    /// Share of all accesses that went to parts.
    pub in_parts: f64,
    /// The same in a sentence.
    pub sentence: String,
}

/// Local fractions that another run is expected to have under a policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OtherRuns {
    /// With threads bound by their numbers.
    pub by_number: f64,
    /// With each thread on the node of the part that it takes.
    pub by_data: f64,
    /// The first, of the accesses to objects that maps reach.
    pub mapped_by_number: f64,
    /// The second of those.
    pub mapped_by_data: f64,
}

impl From<Predicted> for OtherRuns {
    fn from(p: Predicted) -> Self {
        Self {
            by_number: p.all.by_number,
            by_data: p.all.by_data,
            mapped_by_number: p.mapped.by_number,
            mapped_by_data: p.mapped.by_data,
        }
    }
}

impl From<&Found> for Roles {
    fn from(found: &Found) -> Self {
        Self {
            assignment: found.assignment.name(),
            other_runs: found.runs,
            by_number: found.by_number,
            by_data: found.by_data,
            by_chance: found.by_chance,
            in_parts: found.in_parts,
            sentence: sentence(found),
        }
    }
}

/// Pages of no part that are worth a word.
const OUTSIDE: f64 = 0.1;

/// What other runs show of the threads, in a sentence.
#[must_use]
pub fn sentence(found: &Found) -> String {
    let runs = plural(found.runs as usize, "other run");
    let (number, data) = (percent(found.by_number), percent(found.by_data));
    let text = match found.assignment {
        Assignment::Fixed => format!(
            "Threads take their parts by number: in {runs} the thread of the same number made {number} of the accesses to \
             each part."
        ),
        Assignment::Arrival => format!(
            "Threads take their parts in order of arrival: in {runs} the thread of the same number made {number} of the \
             accesses to each part, and another one, found by the pages that it uses, {data}."
        ),
        Assignment::Dynamic if found.in_parts == 0.0 => {
            "Threads take work as it comes: no thread makes most of the accesses to any page.".to_owned()
        }
        Assignment::Dynamic => format!(
            "Threads take work as it comes: in {runs}, threads matched by the pages that they use made {data} of the accesses \
             to each part, {} by chance.",
            percent(found.by_chance)
        ),
    };
    match 1.0 - found.in_parts {
        outside if (OUTSIDE..1.0).contains(&outside) => {
            format!(
                "{text} {} of the accesses are to pages that no thread uses most.",
                percent(outside)
            )
        }
        _ => text,
    }
}

/// What a placement is worth in another run, in a sentence; nothing where threads keep their parts.
#[must_use]
pub fn worth(policy: &str, expected: &OtherRuns) -> Option<String> {
    let (number, data) = (percent(expected.by_number), percent(expected.by_data));
    (number != data).then(|| {
        format!("In another run {policy} keeps {number} of the accesses local by the numbers of threads, {data} by data.")
    })
}
