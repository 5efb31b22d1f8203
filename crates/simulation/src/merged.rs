//! Merges consecutive slices before they are solved, which bounds the time for long runs.

use crate::concurrency;
use crate::phase::Load;
use crate::resources::Resources;
use crate::tally::SliceTally;
use crate::traffic::Phase;
use crate::{Calibration, Scenario};
use nodewise_profile::{Profile, RegionId};
use std::collections::BTreeMap;

/// Accumulates phases of consecutive slices.
pub(crate) struct Merging<'a> {
    profile: &'a Profile,
    /// Number of slices that are merged, at least 1.
    pub together: usize,
    waiting: usize,
    phases: BTreeMap<RegionId, Merged>,
}

/// One region in several slices, with the number of CPUs busy in it.
pub(crate) struct Merged {
    phase: Phase,
    work: f64,
    /// The sum over slices of work divided by the CPUs that could do it at a time.
    alone: f64,
}

impl<'a> Merging<'a> {
    pub fn new(profile: &'a Profile, together: usize) -> Self {
        Self {
            profile,
            together: together.max(1),
            waiting: 0,
            phases: BTreeMap::new(),
        }
    }

    /// Adds a slice. Returns whether enough slices were added to [`Self::take`] them.
    pub fn add(&mut self, slice: &SliceTally<'_>, calibration: &Calibration, typical: &Scenario) -> bool {
        let limit = concurrency::limit(self.profile, calibration, typical, slice);
        for phase in slice.phases {
            let team = concurrency::is_team(self.profile, phase.region);
            let work = phase.accesses() as f64;
            let alone = if team { 0.0 } else { work / limit };
            self.phases
                .entry(phase.region)
                .and_modify(|m| m.absorb(phase, work, alone))
                .or_insert_with(|| Merged {
                    phase: phase.clone(),
                    work,
                    alone,
                });
        }
        self.waiting += 1;
        self.waiting >= self.together
    }

    /// The merged slices since the last call, by region.
    pub fn take(&mut self) -> Vec<Merged> {
        self.waiting = 0;
        std::mem::take(&mut self.phases).into_values().collect()
    }
}

impl Merged {
    fn absorb(&mut self, phase: &Phase, work: f64, alone: f64) {
        self.phase.absorb(phase);
        self.work += work;
        self.alone += alone;
    }

    /// Largest number of CPUs busy at a time, as a mean weighted by work.
    fn at_a_time(&self) -> f64 {
        if self.alone > 0.0 {
            (self.work / self.alone).max(1.0)
        } else {
            f64::INFINITY
        }
    }

    /// The traffic of the region under one of several policies, on the nodes that `resources` describe.
    pub fn load<'a>(
        &'a self,
        policy: usize,
        slot_nodes: &'a [usize],
        resources: &'a Resources,
        line_bytes: f64,
    ) -> Load<'a> {
        Load::new(
            &self.phase,
            policy,
            slot_nodes,
            resources,
            self.at_a_time(),
            line_bytes,
        )
    }
}
