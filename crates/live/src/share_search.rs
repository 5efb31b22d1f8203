//! Finds the share of a running process's pages on some nodes at which a metric is best.

use crate::LiveError;
use nodewise_control::Climb;
use nodewise_enforce::EnforceError;
use nodewise_enforce::mover::{Mover, Plan};
use nodewise_linux::Host;
use nodewise_linux::pages::Scope;
use nodewise_placement::Deal;

/// Two groups of nodes, by the kernel's numbers: within each, pages are dealt evenly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sides {
    /// Where pages are at a share of 0.
    pub near: Vec<u32>,
    /// Where they are at a share of 100.
    pub far: Vec<u32>,
}

impl Sides {
    /// All nodes, and how pages are dealt over them, with `share` hundredths on the far ones.
    fn dealt(&self, share: u32) -> (Vec<u32>, Deal) {
        // Whole hundredths, so that each side has exactly its own.
        let side = |nodes: &[u32], hundredths: u32| -> Vec<f64> {
            let count = nodes.len() as u32;
            let of = |node: u32| hundredths / count + u32::from(node < hundredths % count);
            (0..count).map(|node| f64::from(of(node)) / 100.0).collect()
        };
        let shares = [side(&self.near, 100 - share), side(&self.far, share)].concat();
        (
            [self.near.clone(), self.far.clone()].concat(),
            Deal::steady(&shares),
        )
    }
}

/// What moving pages for a share came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Applied {
    /// Hundredths of the pages that were to be on the far nodes.
    pub share: u32,
    /// The part of the pages on both sides that is there now by the kernel's count, 0 to 1: nodes may be full, and some pages
    /// stay.
    pub reached: f64,
    /// Pages of 4 KiB that moved.
    pub pages: u64,
    /// Pages of 4 KiB that were to move and stayed.
    pub stayed: u64,
    /// How long it took, seconds.
    pub seconds: f64,
}

/// The search; pages that the process touches for the first time meanwhile are placed by its own memory policy, and dealt
/// with the next step.
#[derive(Debug)]
pub struct ShareSearch {
    pid: u32,
    sides: Sides,
    scope: Scope,
    mover: Mover,
    climb: Climb,
}

impl ShareSearch {
    /// A search that has moved nothing.
    #[must_use]
    pub fn new(pid: u32, sides: Sides, mover: Mover, scope: Scope) -> Self {
        Self {
            pid,
            sides,
            scope,
            mover: mover.with_scope(scope),
            climb: Climb::default(),
        }
    }

    /// The share to measure next, hundredths; `None` at the end.
    #[must_use]
    pub fn next_share(&self) -> Option<u32> {
        self.climb.next_share()
    }

    /// Takes the cost that was measured with [`ShareSearch::next_share`] applied, smaller being better.
    pub fn measured(&mut self, cost: f64) {
        self.climb.measured(cost);
    }

    /// The best share by what was measured so far; `None` before the first measurement.
    #[must_use]
    pub fn best(&self) -> Option<u32> {
        self.climb.best()
    }

    /// The part of the pages on both sides that is on the far nodes, 0 to 1, by the kernel's count.
    #[must_use]
    pub fn reached(&self) -> f64 {
        let bytes = Host::default().resident_by_node(self.pid).unwrap_or_default();
        let on = |nodes: &[u32]| nodes.iter().filter_map(|n| bytes.get(n)).sum::<u64>() as f64;
        let (near, far) = (on(&self.sides.near), on(&self.sides.far));
        far / (near + far).max(1.0)
    }

    /// Moves pages so that this share of them is on the far nodes.
    ///
    /// # Errors
    /// The process's pages cannot be read or moved.
    pub fn apply(&mut self, share: u32) -> Result<Applied, LiveError> {
        let (nodes, deal) = self.sides.dealt(share);
        let failed = |e: EnforceError| LiveError::new(e.to_string());
        let plan = Plan::of_shares(self.pid, &nodes, (&nodes, &deal), self.scope).map_err(failed)?;
        let moved = self.mover.carry_out(&plan, &|_| ()).map_err(failed)?;
        Ok(Applied {
            share,
            reached: self.reached(),
            pages: moved.pages,
            stayed: plan.pages().saturating_sub(moved.pages),
            seconds: moved.ns as f64 / 1e9,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_divided_evenly_within_each_side() {
        let sides = Sides {
            near: vec![0, 1],
            far: vec![4],
        };
        let (nodes, deal) = sides.dealt(20);
        assert_eq!(nodes, [0, 1, 4]);
        let mut pages = [0; 3];
        (0..100).for_each(|page| pages[deal.node(page).index()] += 1);
        assert_eq!(pages, [40, 40, 20]);
        let (_, deal) = Sides {
            near: vec![0, 1],
            far: vec![2, 3],
        }
        .dealt(31);
        let far = (0..100).filter(|page| deal.node(*page).index() > 1).count();
        assert_eq!(far, 31, "not 15 of each");
        let all = |share| (0..100).map(move |page| sides.dealt(share).1.node(page).0);
        assert!(all(100).all(|node| node == 2));
    }
}
