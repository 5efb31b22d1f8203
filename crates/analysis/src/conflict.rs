//! Uniform data sharing: regions give the same pages to different nodes, so that no home suits all of them (Majo &
//! Gross 3.1, Figure 5(e)).

use crate::{Affinity, Division, Pattern};
use nodewise_machine::NodeId;
use std::collections::BTreeSet;

/// A conflict is reported if more than this share of the pages is shared; fewer are pages at block borders.
const MIN_SHARED_PAGE_SHARE: f64 = 0.1;
/// Shortest block, in pages, that page placement can separate: one page, with a tolerance for a boundary row.
const MIN_BLOCK_PAGES: f64 = 0.95;

/// The change that removes the sharing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A block-exclusive distribution over these dimensions, and loops that match it (Majo & Gross 4.1).
    BlockExclusive {
        /// Bit set: bit d is dimension d.
        dimensions: u32,
    },
    /// The schedule static-inverse in the loops that count down (Majo & Gross 4.2).
    StaticInverse,
    /// No remedy is known that keeps the loops as they are.
    None,
}

/// Regions of one object that divide it differently.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// Share of the pages with an owner that different regions give to different nodes: 1 − 1/N if one region divides
    /// the object x-wise and another y-wise on N nodes.
    pub share: f64,
    /// The same share if threads were bound to nodes in the order of their numbers, as libnodewise binds them: the
    /// actual binding may hide the conflict.
    pub share_in_order: f64,
    /// The change of the program that would remove the conflict.
    pub remedy: Remedy,
    /// Where loops divide several dimensions: length in pages of the shortest contiguous piece of a block if the array
    /// is cut for all nodes. Below one page, a page holds items of several nodes, and no distribution helps.
    pub block_pages: Option<f64>,
}

impl Conflict {
    /// The conflict among an object's divisions under `affinity`, and under `in_order`, in which threads are bound in
    /// the order of their numbers. `None` if all regions divide the object alike, or if at most a tenth of its pages
    /// are shared.
    #[must_use]
    pub fn of(divisions: &[Division], affinity: &Affinity, in_order: &Affinity) -> Option<Self> {
        let significant: Vec<&Division> = divisions.iter().filter(|d| d.is_of_loops()).collect();
        let (owned, others): (Vec<_>, Vec<_>) = significant.iter().copied().partition(|d| d.has_owners());
        let inside_pages = others.iter().any(|d| d.pattern == Pattern::ZWise);
        let chunks = |d: &Division| (d.pattern == Pattern::Strided).then_some(d.repeat);
        let kind = |d: &&Division| (d.pattern, d.inverse, chunks(d));
        // Two divisions that are both `Blocks` may still have different orders.
        let ordered = owned.len() < 2 || owned.iter().all(|d| d.pattern != Pattern::Blocks);
        let alike = ordered && owned.windows(2).all(|w| kind(&w[0]) == kind(&w[1]));
        if owned.is_empty() || (alike && !inside_pages) {
            return None;
        }
        let [share, share_in_order] = [affinity, in_order].map(|affinity| match inside_pages {
            true => 1.0,
            false => shared_pages(&owned, affinity),
        });
        let mut remedy = if inside_pages {
            Remedy::None
        } else {
            remedy(&owned)
        };
        let block_pages =
            matches!(remedy, Remedy::BlockExclusive { .. }).then(|| block_pages(&owned, in_order));
        if block_pages.is_some_and(|pages| pages < MIN_BLOCK_PAGES) {
            remedy = Remedy::None;
        }
        (share.max(share_in_order) > MIN_SHARED_PAGE_SHARE).then_some(Self {
            share,
            share_in_order,
            remedy,
            block_pages,
        })
    }

    /// Whether a block-exclusive distribution fails only because rows are too short for the page size.
    #[must_use]
    pub fn is_finer_than_pages(&self) -> bool {
        self.remedy == Remedy::None && self.block_pages.is_some()
    }

    /// Whether pages are shared under the affinity that [`Conflict::of`] was given.
    #[must_use]
    pub fn shows(&self) -> bool {
        self.share > MIN_SHARED_PAGE_SHARE
    }
}

/// Of the pages that have an owner in any of the regions, the share that has owners on several nodes.
fn shared_pages(divisions: &[&Division], affinity: &Affinity) -> f64 {
    let (mut owned, mut shared) = (0u64, 0u64);
    for page in divisions.first().map_or(0..0, |d| d.pages()) {
        let mut nodes = divisions.iter().filter_map(|d| d.node(page, affinity));
        let Some(first) = nodes.next() else { continue };
        owned += 1;
        shared += u64::from(nodes.any(|node: NodeId| node != first));
    }
    shared as f64 / owned.max(1) as f64
}

/// Length in pages of one node's part of the shortest repetition of blocks.
fn block_pages(divisions: &[&Division], in_order: &Affinity) -> f64 {
    let nodes: BTreeSet<NodeId> = in_order.nodes.iter().copied().collect();
    let round = |d: &&Division| d.pages().len() as f64 / f64::from(d.repeat.max(1));
    let shortest = divisions.iter().map(round).fold(f64::INFINITY, f64::min);
    shortest / nodes.len().max(1) as f64
}

fn remedy(divisions: &[&Division]) -> Remedy {
    let distributed: Option<Vec<usize>> = divisions.iter().map(|d| d.pattern.dimension()).collect();
    let Some(distributed) = distributed else {
        return Remedy::None;
    };
    let dimensions = distributed.iter().fold(0, |bits, d| bits | 1 << d);
    if u32::is_power_of_two(dimensions) {
        let both = [true, false].map(|inverse| divisions.iter().any(|d| d.inverse == inverse));
        return if both == [true, true] {
            Remedy::StaticInverse
        } else {
            Remedy::None
        };
    }
    Remedy::BlockExclusive { dimensions }
}
