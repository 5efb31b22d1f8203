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
    /// This many at a time, at least 1.
    pub together: usize,
    waiting: usize,
    phases: BTreeMap<RegionId, Merged>,
}

/// A region over several slices, and how many CPUs were busy in it.
pub(crate) struct Merged {
    phase: Phase,
    work: f64,
    /// The work over how many CPUs could do it at a time.
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

    /// Adds a slice; whether it is time to [`Self::take`].
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

    /// What was added since, by region.
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

    /// CPUs busy at a time, at most; the mean over the work.
    fn at_a_time(&self) -> f64 {
        if self.alone > 0.0 {
            (self.work / self.alone).max(1.0)
        } else {
            f64::INFINITY
        }
    }

    /// Its traffic under one of several policies, somewhere.
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
