//! Finds the share of a running process's pages on some nodes at which a metric is best.

use crate::LiveError;
use nodewise_control::Climb;
use nodewise_enforce::mover::{Mover, Plan};
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
        let far = f64::from(share) / 100.0;
        let side = |nodes: &[u32], part: f64| vec![part / nodes.len() as f64; nodes.len()];
        let shares = [side(&self.near, 1.0 - far), side(&self.far, far)].concat();
        ([self.near.clone(), self.far.clone()].concat(), Deal::new(&shares))
    }
}

/// What a share came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tried {
    /// Hundredths of the pages on the far nodes.
    pub share: u32,
    /// What [`ShareSearch`]'s caller measured then.
    pub cost: f64,
    /// Pages of 4 KiB that moved for it.
    pub pages: u64,
    /// How long they took to move, seconds.
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
    applied: Option<u32>,
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
            applied: None,
        }
    }

    /// Moves pages for the next share and takes the cost that `measure` returns, smaller being better. `None` at the end,
    /// or where `measure` returns `None`: then that share is not taken into account.
    ///
    /// # Errors
    /// The process's pages cannot be read or moved.
    pub fn step(&mut self, measure: impl FnOnce(u32) -> Option<f64>) -> Result<Option<Tried>, LiveError> {
        let Some(share) = self.climb.next_share() else {
            return Ok(None);
        };
        let (pages, seconds) = self.apply(share)?;
        let Some(cost) = measure(share) else {
            return Ok(None);
        };
        self.climb.measured(cost);
        Ok(Some(Tried {
            share,
            cost,
            pages,
            seconds,
        }))
    }

    /// The best share by what was measured so far; `None` before the first step.
    #[must_use]
    pub fn best(&self) -> Option<u32> {
        self.climb.best()
    }

    /// The share that pages were moved for last.
    #[must_use]
    pub fn applied(&self) -> Option<u32> {
        self.applied
    }

    /// Moves pages so that this share of them is on the far nodes. Returns how many moved, and how long that took.
    ///
    /// # Errors
    /// The process's pages cannot be read or moved.
    pub fn apply(&mut self, share: u32) -> Result<(u64, f64), LiveError> {
        let (nodes, deal) = self.sides.dealt(share);
        let failed = |e: nodewise_enforce::EnforceError| LiveError::new(e.to_string());
        let plan = Plan::of_shares(self.pid, &nodes, (&nodes, &deal), self.scope).map_err(failed)?;
        self.applied = Some(share);
        let moved = self.mover.carry_out(&plan, &|_| ()).map_err(failed)?;
        Ok((moved.pages, moved.ns as f64 / 1e9))
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
        let all = |share| (0..100).map(move |page| sides.dealt(share).1.node(page).0);
        assert!(all(100).all(|node| node == 2));
    }
}
