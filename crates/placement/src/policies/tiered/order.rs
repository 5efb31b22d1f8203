//! The orders in which a tier can be filled, for one size of it or for many.

use crate::tier::{Tier, latency_costs};
use crate::{Context, formulas};
use nodewise_analysis::first_touches;
use nodewise_machine::NodeId;
use nodewise_profile::ObjectId;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// In which order pages go into a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// `hot`: in descending order of the lines that they had from memory (ties: of accesses, then of a hash of page
    /// numbers). Among placements that stay, none with as many pages in the tier fetches more lines from it, unless a node
    /// of it is full while others have room.
    Hot,
    /// `hot-objects`: objects in descending order of lines a page, each as a whole while there is room; the first that no
    /// longer fits is divided, its first pages are in the tier. For programs whose allocations are placed once, as by a
    /// map's rules. SOAR (Liu et al., OSDI 2025) orders objects by their exposure to latency: misses × latency ÷ misses
    /// in flight. Recordings have the misses (lines), not how many of one object's are in flight at a time.
    HotObjects,
    /// `fill`: in the order of first touches, near the thread that touches a page first, by latency. As Linux allocates
    /// where nodes are full; within a slice, touches are assumed to ascend by address, and pages of which the first touch
    /// was not recorded come last. The baseline for the others.
    FirstTouch,
}

const NAMES: [(Filling, &str); 3] = [
    (Filling::Hot, "hot"),
    (Filling::HotObjects, "hot-objects"),
    (Filling::FirstTouch, "fill"),
];

impl Filling {
    /// The filling of a policy, with parameters or without; `None` if it is another policy.
    #[must_use]
    pub fn of_policy(text: &str) -> Option<Self> {
        let name = text.split(':').next().unwrap_or_default();
        NAMES.iter().find(|n| n.1 == name).map(|n| n.0)
    }

    /// The name of its policy, without parameters.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|n| n.0 == self).map_or("", |n| n.1)
    }
}

/// The order of a filling and what it costs to have pages on each node, once for all sizes.
pub struct Order<'a> {
    context: &'a Context<'a>,
    pages: Vec<u32>,
    /// The node of the thread that touches each page first, if that is what is near.
    touched_from: Option<Vec<NodeId>>,
}

impl<'a> Order<'a> {
    /// The order in which the context's pages are filled in.
    #[must_use]
    pub fn of(filling: Filling, context: &'a Context<'a>) -> Self {
        let (pages, touched_from) = match filling {
            Filling::Hot => (hottest_pages(context), None),
            Filling::HotObjects => (hottest_objects(context), None),
            Filling::FirstTouch => (first_touched(context), Some(context.first_touch())),
        };
        Self {
            context,
            pages,
            touched_from,
        }
    }

    /// The node of each page if the tier has `size` bytes.
    #[must_use]
    pub fn place(&self, tier: &Tier, size: u64) -> Vec<NodeId> {
        let Context {
            histogram,
            affinity,
            machine,
            ..
        } = *self.context;
        tier.fill(self.context, size, &self.pages, |page, costs| {
            match &self.touched_from {
                Some(from) => costs.copy_from_slice(&machine.latency_ns[from[page].index()]),
                None => latency_costs(histogram.page(page).entries, affinity, machine, costs),
            }
        })
    }
}

/// Pages and lines of an object.
#[derive(Clone, Copy, Default)]
pub(super) struct Heat {
    pub pages: u64,
    pub lines: u64,
}

impl Heat {
    /// Lines for each page of the object.
    pub fn density(self) -> f64 {
        self.lines as f64 / self.pages.max(1) as f64
    }
}

/// By object: the hottest first.
pub(super) fn ranked(context: &Context<'_>) -> Vec<(ObjectId, Heat)> {
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

/// Pages by lines, then accesses, largest first; ties in the order of a hash of the page number.
fn hottest_pages(context: &Context<'_>) -> Vec<u32> {
    let heat = |page: usize| {
        let view = context.histogram.page(page);
        let spread = formulas::random(view.page.0, 0, u32::MAX);
        (
            Reverse(view.lines()),
            Reverse(view.accesses()),
            spread,
            page as u32,
        )
    };
    let mut order: Vec<_> = (0..context.histogram.len()).into_par_iter().map(heat).collect();
    order.par_sort_unstable();
    order.into_iter().map(|h| h.3).collect()
}

/// Pages by their objects' lines a page, largest first; an object's pages ascend.
fn hottest_objects(context: &Context<'_>) -> Vec<u32> {
    let ranked = ranked(context);
    let rank: BTreeMap<ObjectId, u32> = ranked.iter().map(|o| o.0).zip(0..).collect();
    let of_page: Vec<u32> = context.histogram.objects.iter().map(|id| rank[id]).collect();
    let mut order: Vec<u32> = (0..context.histogram.len() as u32).collect();
    order.sort_by_key(|page| of_page[*page as usize]);
    order
}

/// Pages in the order of first touches; those of which it is not known come last.
fn first_touched(context: &Context<'_>) -> Vec<u32> {
    let touches = first_touches(context.profile, context.histogram);
    let mut order: Vec<u32> = (0..touches.len() as u32).collect();
    order.sort_by_key(|page| {
        let touch = touches[*page as usize];
        (touch.is_none(), touch.map(|t| t.slice))
    });
    order
}
