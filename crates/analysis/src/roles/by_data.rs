//! The nodes to which `run` binds threads by the data that they take, and what keeps it from doing so.
//!
//! `run` clears the soft-dirty bits of a process and sees which pages each thread then writes first (`live::roles`). So
//! it learns nothing from data that is only read, and where memory is too large to be looked at. Threads of OpenMP
//! teams are bound by OpenMP's own runtime, by number.

use super::{Assignment, Roles};
use crate::{Affinity, Histogram, Votes, thread_numbers};
use nodewise_machine::NodeId;
use nodewise_profile::{FirstTouch, Object, Profile};
use std::collections::BTreeMap;

/// Largest number of pages of a process that is looked at, a huge page counted as one: clearing the bits of that many
/// stops it for about 10 ms (40 ns each).
pub const MOST_WATCHED_PAGES: u64 = 250_000;

/// Why `run` does not bind threads by the data that they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFollowed {
    /// OpenMP's runtime binds its own threads, by number.
    OpenMp,
    /// A process uses more than [`MOST_WATCHED_PAGES`] pages of the profile's size. With larger ones it may be followed.
    TooManyPages,
    /// Threads write next to no pages.
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

    /// The reason as a sentence, with the means against it if there is one.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::OpenMp => "`run` binds them by number: OpenMP's runtime binds its own threads.",
            Self::TooManyPages => {
                "`run` looks at 250,000 pages of a process at most, a huge page counted as one, and else binds threads by number; \
                 this one used more (`run --page-size 2M`)."
            }
            Self::NotWritten => {
                "`run` binds them by number: what threads only read does not tell it whose part it is."
            }
        }
    }
}

impl Roles {
    /// What keeps `run` from binding threads by the data that they take; `None` if nothing does, or if threads do not
    /// take parts in order of arrival.
    #[must_use]
    pub fn not_followed(&self, profile: &Profile, histogram: &Histogram) -> Option<NotFollowed> {
        match self.assignment {
            Assignment::Fixed | Assignment::Dynamic => None,
            Assignment::Arrival if is_bound_by_openmp(profile) => Some(NotFollowed::OpenMp),
            Assignment::Arrival if is_unwritten(self, profile, histogram) => Some(NotFollowed::NotWritten),
            Assignment::Arrival => {
                let mut pages: BTreeMap<u16, u64> = BTreeMap::new();
                for page in &histogram.pages {
                    *pages.entry(page.process()).or_default() += 1;
                }
                let most = pages.into_values().max().unwrap_or(0);
                (most > MOST_WATCHED_PAGES).then_some(NotFollowed::TooManyPages)
            }
        }
    }

    /// Whether the recorded thread of this number did a part that another thread may do in another run.
    fn has_part(&self, number: u32) -> bool {
        self.team.contains(&number) || self.part_threads.keys().any(|(_, part)| *part == number)
    }
}

fn is_bound_by_openmp(profile: &Profile) -> bool {
    profile.threads.iter().any(|thread| thread.openmp.is_some())
}

/// Whether most of the accesses of threads with parts are those of threads that write too few pages to tell whose they are.
fn is_unwritten(roles: &Roles, profile: &Profile, histogram: &Histogram) -> bool {
    const FEW_PAGES: f64 = 4.0;
    let mut sums = vec![(0.0, 0); profile.threads.len()];
    for page in histogram.iter() {
        let writes: u64 = page.entries.iter().map(|entry| entry.writes).sum();
        for entry in page.entries {
            let (written, all) = &mut sums[entry.thread.index()];
            *written += entry.writes as f64 / writes.max(1) as f64;
            *all += entry.accesses();
        }
    }
    let numbers = thread_numbers(profile).into_iter().zip(sums);
    let (mut unwritten, mut all) = (0, 0);
    for (_, (written, of_thread)) in numbers.filter(|(number, _)| roles.has_part(*number)) {
        unwritten += if written < FEW_PAGES { of_thread } else { 0 };
        all += of_thread;
    }
    2 * unwritten > all
}

/// The node of most of the data of a part, and the number of observations; `None` if no node has a clear majority.
pub(super) type SeenData = Option<(NodeId, u32)>;

/// For each number of a recorded thread, what `run` sees of the data of the thread that has its part in another run: the
/// pages that it writes, weighted as `run` weights them. Pages are on the nodes in `homes`; those that are `left` to first touch
/// are where the thread begins that touches them, which is unknown for threads that have a part.
pub(super) fn seen_data(
    roles: &Roles,
    profile: &Profile,
    histogram: &Histogram,
    affinity: &Affinity,
    (homes, left, touches): (&[NodeId], &[bool], &[Option<&FirstTouch>]),
) -> Vec<SeenData> {
    let numbers = thread_numbers(profile);
    let count = numbers.iter().max().map_or(0, |most| *most as usize + 1);
    if is_bound_by_openmp(profile) {
        return vec![None; count];
    }
    let has_part: Vec<bool> = numbers.iter().map(|number| roles.has_part(*number)).collect();
    let weights = weights(profile, histogram);
    let anywhere = NodeId(1 + homes.iter().map(|home| home.0).max().unwrap_or(0));
    let mut votes = vec![Votes::default(); count];
    for page in histogram.iter() {
        let (home, weight) = match touches[page.index].filter(|_| left[page.index]) {
            Some(touch) if has_part[touch.thread.index()] => (anywhere, 1.0),
            Some(touch) => (affinity.node(touch.thread), 1.0),
            None => (homes[page.index], weights[page.object.index()]),
        };
        let writes: u64 = page.entries.iter().map(|entry| entry.writes).sum();
        for entry in page.entries.iter().filter(|entry| entry.writes > 0) {
            // The likelihood that it is the first to write the page after its bit was cleared.
            let likelihood = entry.writes as f64 / writes as f64;
            votes[numbers[entry.thread.index()] as usize].add_likely(home, weight, likelihood);
        }
    }
    votes
        .iter()
        .map(|votes| votes.majority().filter(|(node, _)| *node != anywhere))
        .collect()
}

/// By object, the accesses to one of its pages relative to the mean over all pages; 1 for objects that rules do not place.
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
