//! Predicted time by code region.

use crate::Range;
use nodewise_profile::{Frame, Profile, Region, RegionId, Schedule};

/// The predicted cost of one region's phases under one mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionCost {
    /// The function that the region was outlined from; empty for code outside parallel regions.
    pub frame: Frame,
    /// How the region divides work among threads, if that is known.
    pub schedule: Option<Schedule>,
    /// Predicted wall time; the sum over all regions is the run's time.
    pub seconds: Range,
    /// Lines fetched, if all of them reach memory.
    pub lines: f64,
    /// Share of them fetched from the reader's own node; 1 where there are none.
    pub local_fraction: f64,
}

/// Sums over one region's phases.
#[derive(Clone, Debug, Default)]
pub(crate) struct RegionSums {
    /// Wall time by scenario, nanoseconds.
    ns: Vec<f64>,
    lines: f64,
    local: f64,
}

impl RegionSums {
    pub fn add_time(&mut self, scenario: usize, ns: f64) {
        if self.ns.len() <= scenario {
            self.ns.resize(scenario + 1, 0.0);
        }
        self.ns[scenario] += ns;
    }

    /// Lines `[reader * nodes + memory]`.
    pub fn add_lines(&mut self, lines: &[f64], nodes: usize) {
        self.lines += lines.iter().sum::<f64>();
        self.local += lines.iter().step_by(nodes + 1).sum::<f64>();
    }

    fn cost(&self, region: Region) -> RegionCost {
        RegionCost {
            frame: region.frame,
            schedule: region.schedule,
            seconds: Range::spanning(&self.ns.iter().map(|ns| ns * 1e-9).collect::<Vec<_>>()),
            lines: self.lines,
            local_fraction: if self.lines > 0.0 {
                self.local / self.lines
            } else {
                1.0
            },
        }
    }
}

/// The regions that took time, longest first.
pub(crate) fn costs(sums: &[RegionSums], profile: &Profile) -> Vec<RegionCost> {
    let of = |region: usize| profile.regions.get(region).cloned().unwrap_or_default();
    let mut costs: Vec<_> = sums
        .iter()
        .enumerate()
        .filter(|(_, sums)| !sums.ns.is_empty())
        .map(|(region, sums)| sums.cost(of(region)))
        .collect();
    costs.sort_by(|a, b| b.seconds.typical.total_cmp(&a.seconds.typical));
    costs
}

/// The sums of one region; extends the list if necessary.
pub(crate) fn of(sums: &mut Vec<RegionSums>, region: RegionId) -> &mut RegionSums {
    if sums.len() <= region.index() {
        sums.resize_with(region.index() + 1, RegionSums::default);
    }
    &mut sums[region.index()]
}
