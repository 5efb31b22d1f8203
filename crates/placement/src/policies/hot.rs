//! The hottest pages, or objects, in the memory that is fast and scarce.

use super::{Policy, Request};
use crate::tier::{Tier, latency_costs};
use crate::{Context, Mapping, PagePolicy, PolicyError, formulas};
use nodewise_analysis::figures::percent;
use nodewise_profile::ObjectId;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Misses that a CPU has in flight, least and most (`docs/model.md`): by so much two objects' exposures to latency can
/// differ that have equally many lines.
const LEAST_IN_FLIGHT: f64 = 2.0;
const MOST_IN_FLIGHT: f64 = 12.0;

/// `hot:NODES[@SIZE]`: pages in descending order of the lines that they had from memory (ties: of accesses, then of page
/// numbers), on the nodes named, up to their memory or SIZE; the rest on the others. Within a tier each page is on the
/// node from which its readers have it with the least latency. With the whole run's counts known beforehand this is the
/// bound for any policy that keeps pages in place: no other set of as many pages has more lines.
#[derive(Clone, Debug)]
pub struct Hot(Tier);

pub(super) fn pages(request: &Request<'_>) -> Result<Policy, PolicyError> {
    let tier = Tier::parse(request.parameter, request.text, request.machine)?;
    Ok(Box::new(Hot(tier)))
}

impl PagePolicy for Hot {
    fn name(&self) -> String {
        format!("hot:{}", self.0.text())
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        let mut order = heats(context);
        order.par_sort_unstable();
        fill(self, &self.0, context, order.into_iter().map(|h| h.3))
    }
}

/// `hot-objects:NODES[@SIZE]`: objects in descending order of lines a page, each as a whole while there is room; the first
/// that no longer fits is divided: its first pages are in the tier. For programs whose allocations are placed once, as by
/// a map's rules. SOAR (Liu et al., OSDI 2025) orders objects by their exposure to latency: misses × latency ÷ misses in
/// flight. Recordings have the misses (lines), not how many of one object's are in flight at a time; [`PagePolicy::notes`]
/// says how much of the tier that could change.
#[derive(Clone, Debug)]
pub struct HotObjects(Tier);

pub(super) fn objects(request: &Request<'_>) -> Result<Policy, PolicyError> {
    let tier = Tier::parse(request.parameter, request.text, request.machine)?;
    Ok(Box::new(HotObjects(tier)))
}

/// Pages and lines of an object.
#[derive(Clone, Copy, Default)]
struct Heat {
    pages: u64,
    lines: u64,
}

impl Heat {
    /// Lines a page.
    fn density(self) -> f64 {
        self.lines as f64 / self.pages.max(1) as f64
    }
}

impl PagePolicy for HotObjects {
    fn name(&self) -> String {
        format!("hot-objects:{}", self.0.text())
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        let ranked = ranked(context);
        let rank: BTreeMap<ObjectId, usize> = ranked.iter().enumerate().map(|(i, o)| (o.0, i)).collect();
        let mut order: Vec<usize> = (0..context.histogram.len()).collect();
        order.sort_by_key(|page| rank[&context.histogram.objects[*page]]);
        fill(self, &self.0, context, order.into_iter())
    }

    fn notes(&self, context: &Context<'_>) -> Vec<String> {
        let room = self.0.size(context.machine) / context.histogram.page_size();
        certain(&ranked(context), room)
            .map(|certain| {
                format!(
                    "{}: {} of what it puts on {} lies there however many misses of each object are in flight at a time ({LEAST_IN_FLIGHT} to \
                     {MOST_IN_FLIGHT}); objects of the rest could change places with others",
                    self.name(),
                    percent(certain),
                    self.0.text()
                )
            })
            .into_iter()
            .collect()
    }
}

/// By object: the hottest first.
fn ranked(context: &Context<'_>) -> Vec<(ObjectId, Heat)> {
    let mut heats: BTreeMap<ObjectId, Heat> = BTreeMap::new();
    for page in context.histogram.iter() {
        let heat = heats.entry(page.object).or_default();
        heat.pages += 1;
        heat.lines += page.lines();
    }
    let mut ranked: Vec<_> = heats.into_iter().collect();
    ranked.sort_by(|a, b| b.1.density().total_cmp(&a.1.density()).then(a.0.cmp(&b.0)));
    ranked
}

/// The share of the tier's pages that are there at any number of misses in flight an object; `None` if all objects fit.
/// An object is certain if it fits behind all that could come before it: those with more than 1/6 of its lines a page.
fn certain(ranked: &[(ObjectId, Heat)], room: u64) -> Option<f64> {
    let all: u64 = ranked.iter().map(|o| o.1.pages).sum();
    if all <= room || room == 0 {
        return None;
    }
    let spread = MOST_IN_FLIGHT / LEAST_IN_FLIGHT;
    let before = |density: f64| -> u64 {
        let could = ranked.iter().filter(|o| o.1.density() * spread >= density);
        could.map(|o| o.1.pages).sum()
    };
    let sure = ranked
        .iter()
        .filter(|o| o.1.lines > 0 && before(o.1.density()) <= room);
    Some(sure.map(|o| o.1.pages).sum::<u64>() as f64 / room as f64)
}

/// Lines and accesses of each page, largest first, and its index; ties are in the order of a hash of the page number.
fn heats(context: &Context<'_>) -> Vec<(Reverse<u64>, Reverse<u64>, u32, usize)> {
    let heat = |page: usize| {
        let view = context.histogram.page(page);
        let spread = formulas::random(view.page.0, 0, u32::MAX);
        (Reverse(view.lines()), Reverse(view.accesses()), spread, page)
    };
    (0..context.histogram.len()).into_par_iter().map(heat).collect()
}

fn fill(
    policy: &impl PagePolicy,
    tier: &Tier,
    context: &Context<'_>,
    order: impl Iterator<Item = usize>,
) -> Mapping {
    let order: Vec<usize> = order.collect();
    let nodes = tier.fill(context, &order, |page, costs| {
        let entries = context.histogram.page(page).entries;
        latency_costs(entries, context.affinity, context.machine, costs);
    });
    Mapping {
        policy: policy.name(),
        nodes,
    }
}

#[cfg(test)]
mod tests;
