//! The hottest pages, or objects, in the memory that is fast and scarce.

use super::sized::{Filling, Heat, ranked, sized};
use super::{Policy, Request};
use crate::tier::Tier;
use crate::{Context, Mapping, PagePolicy, PolicyError};
use nodewise_analysis::figures::percent;
use nodewise_profile::ObjectId;

/// Misses that a CPU has in flight, least and most (`docs/model.md`): by so much two objects' exposures to latency can
/// differ that have equally many lines.
const LEAST_IN_FLIGHT: f64 = 2.0;
const MOST_IN_FLIGHT: f64 = 12.0;

/// `hot:NODES[@SIZE]`: pages in descending order of the lines that they had from memory (ties: of accesses, then of a hash
/// of page numbers), on the nodes named, up to their memory or SIZE; the rest on the others. Within a tier each page is
/// on the node from which its readers have it with the least latency. Among placements that stay, none with as many pages
/// in the tier fetches more lines from it, unless a node of it is full while others have room.
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
        sized(Filling::Hot, &self.0, context, self.name())
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

impl PagePolicy for HotObjects {
    fn name(&self) -> String {
        format!("hot-objects:{}", self.0.text())
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        sized(Filling::HotObjects, &self.0, context, self.name())
    }

    fn notes(&self, context: &Context<'_>) -> Vec<String> {
        let room = self.0.size(context.machine) / context.histogram.page_size();
        let note = certain(&ranked(context), room).map(|certain| {
            format!(
                "{}: {} of what it puts there would be there however many misses of each object are in flight at a time \
                 ({LEAST_IN_FLIGHT} to {MOST_IN_FLIGHT}, the model's range); the rest could change places with other objects",
                self.name(),
                percent(certain),
            )
        });
        note.into_iter().collect()
    }
}

/// The share of the tier's pages that belong to objects with so many pages there at any number of misses in flight an
/// object; `None` if all objects fit. Of an object those are certain that fit behind all others which could come before
/// it: those with more than 1/6 of its lines a page.
fn certain(ranked: &[(ObjectId, Heat)], room: u64) -> Option<f64> {
    let all: u64 = ranked.iter().map(|o| o.1.pages).sum();
    if all <= room || room == 0 {
        return None;
    }
    let spread = MOST_IN_FLIGHT / LEAST_IN_FLIGHT;
    let sure = |(object, heat): &(ObjectId, Heat)| {
        let before = ranked
            .iter()
            .filter(|(other, o)| other != object && o.density() * spread >= heat.density());
        let before: u64 = before.map(|o| o.1.pages).sum();
        room.saturating_sub(before).min(heat.pages)
    };
    let with_lines = ranked.iter().filter(|o| o.1.lines > 0);
    Some(with_lines.map(sure).sum::<u64>() as f64 / room as f64)
}

#[cfg(test)]
mod tests;
