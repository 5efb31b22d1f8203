//! Which thread touched an object first, and which region uses it most and how.

use crate::source::{SERIAL, place_of_frame, place_of_site, routine};
use nodewise_analysis::{Division, RegionUse, Usage};
use nodewise_placement::Context;
use nodewise_profile::{Frame, ObjectId, RegionKind, SiteId, Thread, ThreadId};
use serde::Serialize;
use std::collections::BTreeMap;

/// If one thread first touched at least this share of an object's pages, it placed the object.
const MIN_ALONE_SHARE: f64 = 0.9;

/// The code and threads that first touched an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FirstTouched {
    /// `file:line` where most of its pages were first touched.
    #[serde(rename = "site")]
    pub at: String,
    /// The thread that first touched most of them.
    #[serde(skip)]
    pub thread: ThreadId,
    /// How many threads first touched any.
    pub threads: usize,
    /// Share of the object's pages that were first touched by `thread`.
    pub largest_share: f64,
}

/// The region that uses an object most.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UsedBy {
    /// `file:line` of the region.
    #[serde(rename = "site")]
    pub at: String,
    /// Threads that use it there.
    pub threads: usize,
    /// Share of the object's accesses that are made in the region.
    pub share: f64,
    /// Whether most of the accesses there are reads.
    #[serde(skip)]
    pub reads: bool,
}

impl FirstTouched {
    /// Whether one thread first touched nearly all pages.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.largest_share >= MIN_ALONE_SHARE
    }
}

/// How one region divides an object, with the region's location.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// The function that the region was outlined from; empty for serial code.
    pub function: String,
    /// `file:line` of the region.
    pub at: String,
    /// How the threads divide it among them, where that was recognised.
    pub division: Division,
}

/// First touches of one object, in numbers of pages.
#[derive(Default)]
struct Touches {
    threads: BTreeMap<ThreadId, u64>,
    sites: BTreeMap<SiteId, u64>,
}

/// For each object, where and by which threads it was first touched.
pub(crate) fn first_touched(context: &Context<'_>) -> BTreeMap<ObjectId, FirstTouched> {
    let mut objects: BTreeMap<ObjectId, Touches> = BTreeMap::new();
    for touch in &context.profile.first_touches {
        let touches = objects.entry(touch.object).or_default();
        *touches.threads.entry(touch.thread).or_default() += u64::from(touch.len);
        *touches.sites.entry(touch.site).or_default() += u64::from(touch.len);
    }
    let summary = |touches: &Touches| {
        let (&thread, &most) = touches.threads.iter().max_by_key(|t| t.1)?;
        let (&site, _) = touches.sites.iter().max_by_key(|s| s.1)?;
        Some(FirstTouched {
            at: place_of_site(context, site),
            thread,
            threads: touches.threads.len(),
            largest_share: most as f64 / touches.threads.values().sum::<u64>() as f64,
        })
    };
    objects
        .iter()
        .filter_map(|(&object, touches)| Some((object, summary(touches)?)))
        .collect()
}

/// The region (or the threads outside all regions) that uses an object most.
pub(crate) fn used_by(context: &Context<'_>, usage: &Usage, object: ObjectId) -> Option<UsedBy> {
    let total: u64 = usage.regions(object).map(|(_, u)| u.accesses()).sum();
    let (region, cell) = usage.regions(object).max_by_key(|(_, u)| u.accesses())?;
    let described = context.profile.regions.get(region.index());
    let (at, threads) = match described {
        Some(r) if r.kind == RegionKind::OpenMp => (place_of_frame(&r.frame), cell.threads()),
        _ => outside_openmp(context, cell),
    };
    Some(UsedBy {
        at,
        threads,
        share: cell.accesses() as f64 / total.max(1) as f64,
        reads: cell.reads >= 4 * cell.writes,
    })
}

/// The start routine that most of the program's own threads have, and the number of these threads; serial code if there
/// are none.
fn outside_openmp(context: &Context<'_>, cell: &RegionUse) -> (String, usize) {
    let mut routines: BTreeMap<&Frame, usize> = BTreeMap::new();
    for id in cell.thread_ids() {
        let thread = context.profile.threads.get(id.index());
        let own = |t: &&Thread| t.openmp.is_none() && !["", "main"].contains(&&*t.start.function);
        if let Some(thread) = thread.filter(own) {
            *routines.entry(&thread.start).or_default() += 1;
        }
    }
    // The main thread may run the routine, too. Its other accesses, for instance to fill the object, cannot be told
    // apart.
    let main = match cell.thread_ids().next() {
        Some(ThreadId(0)) => " and by the main thread",
        _ => "",
    };
    match routines.into_iter().max_by_key(|r| r.1) {
        Some((start, threads)) => (routine(start) + main, threads),
        None => (SERIAL.to_owned(), cell.threads()),
    }
}

/// A division with its location in the source.
pub(crate) fn pass(context: &Context<'_>, division: &Division) -> Pass {
    let (function, at) = match context.profile.regions.get(division.region.index()) {
        Some(r) if r.kind == RegionKind::OpenMp => (r.frame.function.clone(), place_of_frame(&r.frame)),
        _ => (String::new(), SERIAL.to_owned()),
    };
    Pass {
        function,
        at,
        division: division.clone(),
    }
}
