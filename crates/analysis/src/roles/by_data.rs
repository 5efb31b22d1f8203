//! The nodes to which `run` binds threads by the data that they take, and what keeps it from doing so.
//!
//! `run` clears the soft-dirty bits of a process and sees which pages each thread then writes first (`live::roles`). So
//! it learns nothing from data that is only read, and where memory is too large to be looked at. Threads of OpenMP
//! teams are bound by OpenMP's own runtime, by number.

use super::{Assignment, Roles};
use crate::{Affinity, Histogram, Votes, first_touches, thread_numbers};
use nodewise_machine::NodeId;
use nodewise_profile::{Object, Profile};
use std::collections::BTreeMap;

/// Largest number of pages of a process that is looked at, a huge page counted as one: clearing the bits of that many
/// stops it for about 10 ms (40 ns each).
pub const MOST_WATCHED_PAGES: u64 = 250_000;

/// Why `run` does not bind threads by the data that they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFollowed {
    /// OpenMP's runtime binds its own threads, by number.
    OpenMp,
    /// A process uses more than [`MOST_WATCHED_PAGES`] pages.
    TooManyPages,
    /// Threads only read their parts, or write mostly elsewhere.
    NotWritten,
}

impl NotFollowed {
    /// The stable name in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenMp => "openmp",
            Self::TooManyPages => "too-many-pages",
            Self::NotWritten => "not-written",
        }
    }

    /// The reason as a clause, with the means against it if there is one.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::OpenMp => "OpenMP's runtime binds its own threads by number",
            Self::TooManyPages => {
                "more than 250,000 pages are too many to look at; with huge pages (`run --page-size 2M`) they may be few enough"
            }
            Self::NotWritten => "what threads only read does not tell it whose part it is",
        }
    }
}

impl Roles {
    /// What keeps `run` from binding threads by the data that they take; `None` if nothing does, or if threads do not
    /// take parts in order of arrival.
    #[must_use]
    pub fn not_followed(&self, profile: &Profile, histogram: &Histogram) -> Option<NotFollowed> {
        let by_arrival = self.assignment == Assignment::Arrival;
        by_arrival
            .then(|| for_the_program(profile, histogram).or_else(|| self.unwritten(profile, histogram)))
            .flatten()
    }

    /// Whether most of the accesses to parts are those of threads that make most of theirs to pages which they do not
    /// write.
    fn unwritten(&self, profile: &Profile, histogram: &Histogram) -> Option<NotFollowed> {
        let mut sums = vec![(0, 0); profile.threads.len()];
        for entry in histogram.iter().flat_map(|page| page.entries) {
            let (written, all) = &mut sums[entry.thread.index()];
            *written += if entry.writes > 0 { entry.accesses() } else { 0 };
            *all += entry.accesses();
        }
        let in_parts = thread_numbers(profile)
            .into_iter()
            .zip(sums)
            .filter(|(number, _)| self.has_part(*number));
        let (mut unwritten, mut all) = (0, 0);
        for (_, (written, of_thread)) in in_parts {
            unwritten += if 2 * written < of_thread { of_thread } else { 0 };
            all += of_thread;
        }
        (2 * unwritten > all).then_some(NotFollowed::NotWritten)
    }

    /// Whether the recorded thread of this number did a part that another thread may do in another run.
    fn has_part(&self, number: u32) -> bool {
        self.team.contains(&number) || self.part_threads.keys().any(|(_, part)| *part == number)
    }
}

/// What keeps threads of a program from being bound by their data, whichever they take.
fn for_the_program(profile: &Profile, histogram: &Histogram) -> Option<NotFollowed> {
    if profile.threads.iter().any(|thread| thread.openmp.is_some()) {
        return Some(NotFollowed::OpenMp);
    }
    let mut pages: BTreeMap<u16, u64> = BTreeMap::new();
    for page in &histogram.pages {
        *pages.entry(page.process()).or_default() += 1;
    }
    let most = pages.into_values().max().unwrap_or(0);
    (most > MOST_WATCHED_PAGES).then_some(NotFollowed::TooManyPages)
}

/// The node of most of the data of a part, and the number of observations; `None` if no node has a clear majority.
pub(super) type SeenData = Option<(NodeId, u32)>;

/// For each number of a recorded thread, what `run` sees of the data of the thread that has its part in another run: the
/// pages that it writes, weighted as `run` weights them. Pages are on the nodes in `homes`. Those that a thread touches first
/// itself, where they are `left` to first touch, are where it happens to run.
pub(super) fn seen_data(
    profile: &Profile,
    histogram: &Histogram,
    affinity: &Affinity,
    (homes, left): (&[NodeId], &[bool]),
) -> Vec<SeenData> {
    let numbers = thread_numbers(profile);
    let count = numbers.iter().max().map_or(0, |most| *most as usize + 1);
    if for_the_program(profile, histogram).is_some() {
        return vec![None; count];
    }
    let weights = weights(profile, histogram);
    let touches = first_touches(profile, histogram);
    let anywhere = NodeId(1 + homes.iter().map(|home| home.0).max().unwrap_or(0));
    let mut votes = vec![Votes::default(); count];
    for page in histogram.iter() {
        let writers = page.entries.iter().filter(|entry| entry.writes > 0);
        let writes: u64 = writers.clone().map(|entry| entry.writes).sum();
        for entry in writers {
            // The likelihood that it is the first to write the page after its bit was cleared.
            let weight = weights[page.object.index()] * entry.writes as f64 / writes as f64;
            let home = match touches[page.index].filter(|_| left[page.index]) {
                Some(touch) if touch.thread == entry.thread => anywhere,
                Some(touch) => affinity.node(touch.thread),
                None => homes[page.index],
            };
            votes[numbers[entry.thread.index()] as usize].add(home, weight);
        }
    }
    votes
        .iter()
        .map(|votes| votes.majority().filter(|(node, _)| *node != anywhere))
        .collect()
}

/// By object, the accesses to one of its pages relative to the mean over all pages; 1 where no rule places it.
fn weights(profile: &Profile, histogram: &Histogram) -> Vec<f64> {
    let mut sums = vec![(0_u64, 0_u64); profile.objects.len()];
    let mut all = 0;
    for page in histogram.iter() {
        let (accesses, pages) = &mut sums[page.object.index()];
        *accesses += page.accesses();
        *pages += 1;
        all += page.accesses();
    }
    let mean = all.max(1) as f64 / histogram.len().max(1) as f64;
    let weight = |(object, (accesses, pages)): (&Object, (u64, u64))| match object.kind.is_mappable() {
        true => accesses as f64 / pages.max(1) as f64 / mean,
        false => 1.0,
    };
    profile.objects.iter().zip(sums).map(weight).collect()
}
