//! How often memory is accessed, by DAMON: for policies that rank pages and need not know who accesses them.

use nodewise_control::{Controller, Tracker};
use nodewise_linux::damon::{Monitor, Refusal, Region};
use nodewise_linux::{Host, clock};
use nodewise_machine::{Machine, NodeId};
use nodewise_observe::faults::{Unavailable, Watch, damon_unavailable};
use nodewise_placement::Tier;
use nodewise_profile::PageNumber;
use std::time::Duration;

/// While more is spent than the budget allows, regions are checked up to this many times less often.
const SLOWEST: u32 = 16;

/// Monitors the processes of a session.
pub struct Heat {
    monitor: Monitor,
    /// The interval with which it began.
    interval: Duration,
    /// The node that all accesses are taken to come from, as DAMON does not say.
    reader: NodeId,
    /// Regions taken in.
    regions: u64,
    /// CPU time of the kernel's threads that was charged, of those that run now.
    charged: Duration,
    left_out: bool,
}

impl Heat {
    /// Begins with no process.
    ///
    /// # Errors
    /// DAMON cannot be used here.
    pub fn start(
        host: &Host,
        interval: Duration,
        tier: &Tier,
        machine: &Machine,
    ) -> Result<Self, Unavailable> {
        let of_tier = || {
            tier.nodes()
                .iter()
                .copied()
                .find(|n| machine.cpu_nodes().any(|c| c == *n))
        };
        Ok(Self {
            monitor: Monitor::start(host, interval)
                .map_err(|refusal: Refusal| damon_unavailable(&refusal))?,
            interval,
            reader: of_tier()
                .or_else(|| machine.cpu_nodes().next())
                .unwrap_or_default(),
            regions: 0,
            charged: Duration::ZERO,
            left_out: false,
        })
    }

    /// Takes in what was found of the session's processes, and charges what finding it took. Returns whether there are processes, for the
    /// first time, that are not monitored.
    pub fn take_in(&mut self, watch: &mut Watch, tracker: &mut Tracker, controller: &mut Controller) -> bool {
        let refused = self.monitor.follow(&watch.processes());
        let spent = self.monitor.cpu_time();
        watch.charge_upkeep(spent.saturating_sub(self.charged));
        self.charged = spent;
        self.pace(watch.overdrawn());
        for (pid, regions) in self.monitor.take() {
            let Some(process) = watch.number(pid) else {
                continue;
            };
            let began = clock::own_cpu_time();
            self.regions += regions.len() as u64;
            for region in &regions {
                self.add(process, region, tracker, controller);
            }
            watch.charge(clock::own_cpu_time() - began);
        }
        !refused.is_empty() && !std::mem::replace(&mut self.left_out, true)
    }

    /// Every page of a region that is known gets its count; that of pages never seen to be in memory is of no use.
    fn add(&self, process: u16, region: &Region, tracker: &mut Tracker, controller: &mut Controller) {
        let page = |address| PageNumber::of_address(process, address);
        let mut counted = Vec::new();
        tracker.add_to_range(
            page(region.start)..page(region.end),
            self.reader,
            region.accesses,
            |page| {
                counted.push(page);
            },
        );
        controller.sampled_together(&counted, region.accesses);
    }

    fn pace(&mut self, overdrawn: bool) {
        let now = self.monitor.interval();
        let next = match overdrawn {
            true => (now * 2).min(self.interval * SLOWEST),
            false => (now / 2).max(self.interval),
        };
        if next != now {
            self.monitor.set_interval(next);
        }
    }

    /// Regions whose accesses were taken in.
    pub fn regions(&self) -> u64 {
        self.regions
    }
}
