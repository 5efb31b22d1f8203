//! The local fractions that another run is expected to have under a mapping.

use super::by_data::{SeenData, seen_data};
use super::doers::{Doers, own_shares};
use super::{Assignment, Roles};
use crate::{Affinity, Histogram, first_touches};
use nodewise_machine::NodeId;
use nodewise_profile::{FirstTouch, ObjectId, Profile};
use std::collections::BTreeMap;

/// Smallest gain in the local fraction of all accesses for which `run` binds threads by data.
pub const LEAST_GAIN_BY_DATA: f64 = 0.05;

/// Local fractions that another run is expected to have under a mapping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// With threads bound by their numbers.
    pub by_number: f64,
    /// With each thread on the node that `run` finds by the data that the thread writes: that of its part, where these data
    /// lie there. As `by_number` where `run` binds threads by number: unless they take their parts in order of arrival, if
    /// nothing is placed, if OpenMP binds them, or if less than [`LEAST_GAIN_BY_DATA`] of all accesses is gained. What they do
    /// before they are found is not counted.
    pub by_data: f64,
}

/// Expected local fractions in other runs, where threads may take other parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherRuns {
    /// Shares of all accesses.
    pub all: Expected,
    /// Shares of the accesses to objects that maps can place.
    pub mapped: Expected,
}

impl Roles {
    /// The expected local fractions of another run. Pages are on the nodes in `homes`. What a thread of the recorded run
    /// accessed is accessed in another run by the threads that have its part there. Pages that are `left` to first touch are
    /// on the nodes on which the threads begin that have the part of the thread that touched them.
    #[must_use]
    pub fn expected(
        &self,
        profile: &Profile,
        histogram: &Histogram,
        affinity: &Affinity,
        (homes, left): (&[NodeId], &[bool]),
    ) -> OtherRuns {
        let touches = first_touches(profile, histogram);
        let own = match self.assignment {
            Assignment::Dynamic => Vec::new(),
            Assignment::Fixed | Assignment::Arrival => own_shares(profile, histogram),
        };
        let local = |seen: Option<&[SeenData]>| {
            let doers = Doers::new(self, profile, affinity, (&own, seen));
            local_fractions(doers, profile, histogram, (homes, left, &touches))
        };
        let by_number = local(None);
        let places = left.iter().any(|left| !left);
        let by_data = (self.assignment == Assignment::Arrival && places).then(|| {
            let seen = seen_data(self, profile, histogram, affinity, (homes, left, &touches));
            local(Some(&seen))
        });
        let by_data = by_data
            .filter(|[all, _]| *all >= by_number[0] + LEAST_GAIN_BY_DATA)
            .unwrap_or(by_number);
        let [all, mapped] = [0, 1].map(|which| Expected {
            by_number: by_number[which],
            by_data: by_data[which],
        });
        OtherRuns { all, mapped }
    }
}

/// The local fractions of all accesses, and of those to objects that maps can place.
fn local_fractions(
    mut doers: Doers,
    profile: &Profile,
    histogram: &Histogram,
    (homes, left, touches): (&[NodeId], &[bool], &[Option<&FirstTouch>]),
) -> [f64; 2] {
    let mut sums = [(0.0, 0.0); 2];
    for page in histogram.iter() {
        let touch = touches[page.index].filter(|_| left[page.index]);
        let is_mapped = profile.objects[page.object.index()].kind.is_mappable();
        for entry in page.entries {
            let accesses = entry.accesses() as f64;
            let local = accesses
                * match touch {
                    Some(touch) => doers.begins_where_it_works(touch.thread, entry.thread),
                    None => doers.works_on(entry.thread, homes[page.index]),
                };
            for (sum, local_sum) in sums.iter_mut().take(1 + usize::from(is_mapped)) {
                *sum += accesses;
                *local_sum += local;
            }
        }
    }
    sums.map(|(sum, local)| if sum > 0.0 { local / sum } else { 1.0 })
}

/// For each page, whether a map's rules would leave it to first touch: it is on its first-touch node, and so are nearly
/// all accesses to its object.
#[must_use]
pub fn left_to_first_touch(
    profile: &Profile,
    histogram: &Histogram,
    affinity: &Affinity,
    homes: &[NodeId],
) -> Vec<bool> {
    const MIN_FIRST_TOUCH_SHARE: f64 = 0.95;
    let touches = first_touches(profile, histogram);
    let there: Vec<bool> = touches
        .iter()
        .zip(homes)
        .map(|(touch, home)| touch.is_some_and(|touch| affinity.node(touch.thread) == *home))
        .collect();
    let mut sums: BTreeMap<ObjectId, (u64, u64)> = BTreeMap::new();
    for page in histogram.iter() {
        let (all, at_home) = sums.entry(page.object).or_default();
        *all += page.accesses();
        *at_home += page.accesses() * u64::from(there[page.index]);
    }
    let is_left = |object: ObjectId| {
        let (all, at_home) = sums[&object];
        at_home as f64 >= MIN_FIRST_TOUCH_SHARE * all as f64
    };
    histogram
        .iter()
        .map(|page| there[page.index] && is_left(page.object))
        .collect()
}
