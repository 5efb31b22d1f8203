//! Memory that is fast and scarce: filled with the hottest pages or objects, or in the order of first touches.

mod order;

pub use order::{Filling, Order};

use self::order::{Heat, ranked};
use super::{Policy, Request};
use crate::tier::Tier;
use crate::{Context, Mapping, PagePolicy, PolicyError};
use nodewise_analysis::figures::percent;
use nodewise_profile::ObjectId;

/// Misses that a CPU has in flight, least and most (`docs/model.md`): by so much two objects' exposures to latency can
/// differ that have equally many lines.
const LEAST_IN_FLIGHT: f64 = 2.0;
const MOST_IN_FLIGHT: f64 = 12.0;

/// `hot:NODES[@SIZE]`, `hot-objects:NODES[@SIZE]`, `fill:NODES[@SIZE]`: pages in the order of a [`Filling`] on the nodes named,
/// up to their memory or SIZE; the rest on the others.
#[derive(Clone, Debug)]
pub struct Tiered {
    filling: Filling,
    tier: Tier,
}

impl Tiered {
    /// The policy that fills this tier in this order.
    #[must_use]
    pub fn new(filling: Filling, tier: Tier) -> Self {
        Self { filling, tier }
    }
}

pub(super) fn make(request: &Request<'_>, filling: Filling) -> Result<Policy, PolicyError> {
    let tier = Tier::parse(request.parameter, request.text, request.machine)?;
    Ok(Box::new(Tiered::new(filling, tier)))
}

impl PagePolicy for Tiered {
    fn name(&self) -> String {
        format!("{}:{}", self.filling.name(), self.tier.text())
    }

    fn place(&self, context: &Context<'_>) -> Mapping {
        Mapping {
            policy: self.name(),
            nodes: Order::of(self.filling, context).place(&self.tier, self.tier.size(context.machine)),
        }
    }

    fn notes(&self, context: &Context<'_>) -> Vec<String> {
        let note = match self.filling {
            Filling::Hot => None,
            Filling::HotObjects => {
                let room = self.tier.size(context.machine) / context.histogram.page_size();
                certain(&ranked(context), room).map(|certain| {
                    format!(
                        "{} of what it puts there would be there however many misses of each object are in flight at a time \
                         ({LEAST_IN_FLIGHT} to {MOST_IN_FLIGHT}, the model's range); the rest could change places with other \
                         objects",
                        percent(certain)
                    )
                })
            }
            Filling::FirstTouch => (context.profile.first_touches.is_empty())
                .then(|| "first touches were not recorded; pages are filled in by address".to_owned()),
        };
        note.map(|note| format!("{}: {note}", self.name()))
            .into_iter()
            .collect()
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
