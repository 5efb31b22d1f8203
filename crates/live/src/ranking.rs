//! What policies that rank pages need beyond samples: pages that are never accessed are never sampled, and have a place in
//! fast memory all the same.

use crate::event::MovedPages;
use crate::fault_latency::FaultLatencies;
use crate::mover::Mover;
use crate::options::MOST_RANKED_PAGES;
use crate::residents::{Looked, residents};
use crate::status::FastMemory;
use crate::topology::Topology;
use nodewise_control::Tracker;
use nodewise_linux::mempolicy::Policy;
use nodewise_linux::node_mask::NodeMask;
use nodewise_linux::{Host, clock};
use nodewise_machine::{Machine, NodeId};
use nodewise_observe::faults::{Sensor, Watch};
use nodewise_placement::{Observed, Tier};
use nodewise_profile::{BASE_PAGE_SHIFT, BASE_PAGE_SIZE, PageNumber};
use std::collections::HashMap;
use std::time::Duration;

/// Looking for all pages takes at most 1/50 of the time, and is done at most every fourth interval.
const SHARE: u32 = 50;
const INTERVALS: u32 = 4;
/// Period of the kernel's scans, if we may set it: the first one, then twice the time within which pages at the border are
/// accessed, since what is accessed later is cold.
pub const FIRST_SCAN_PERIOD: Duration = Duration::from_secs(1);
const LONGEST_SCAN_PERIOD: Duration = Duration::from_secs(60);

/// The state of a session whose policy ranks pages.
pub struct Ranking {
    host: Host,
    tier: Tier,
    /// What memory accesses are sampled of.
    looked: Looked,
    looks_at: Duration,
    /// How samples are weighed, if they are hint faults.
    latencies: Option<FaultLatencies>,
    /// Period of the kernel's scans, if we may change it.
    scan_period: Option<Duration>,
    fast: FastMemory,
    /// Whether there was more memory than is ranked.
    full: bool,
}

impl Ranking {
    /// `from_start`: the programs are observed since their start. `scan_period`: of the kernel, if it may be changed.
    pub fn new(tier: Tier, sensor: Sensor, from_start: bool, scan_period: Option<Duration>) -> Self {
        Self {
            host: Host::default(),
            tier,
            looked: match sensor {
                Sensor::Damon => Looked::Mapped,
                Sensor::Userfaultfd => Looked::Private,
                Sensor::Auto | Sensor::HintFaults => Looked::Sampled,
            },
            looks_at: Duration::ZERO,
            latencies: (sensor == Sensor::HintFaults).then(|| FaultLatencies::new(from_start)),
            scan_period,
            fast: FastMemory::default(),
            full: false,
        }
    }

    /// Whether there was more memory than is ranked since the last call.
    pub fn take_full(&mut self) -> bool {
        std::mem::take(&mut self.full)
    }

    /// What is in fast memory, as of the last decision.
    pub fn fast(&self) -> &FastMemory {
        &self.fast
    }

    /// How samples are weighed, if they are hint faults; others all weigh alike.
    pub fn latencies(&mut self) -> Option<&mut FaultLatencies> {
        self.latencies.as_mut()
    }

    /// Updates how much samples count and what memory is free. Returns the period of the kernel's scans, if it should be
    /// another one. `scan_ms`: the present one, if we set it; otherwise it is the kernel's least.
    pub fn adapt(
        &mut self,
        tracker: &mut Tracker,
        machine: &Machine,
        scan_ms: Option<u32>,
    ) -> Option<Duration> {
        let page_size = BASE_PAGE_SIZE << tracker.page_shift();
        let numbers = machine.nodes.iter().map(|n| n.os_index);
        let free = self.host.spare_pages(numbers, page_size);
        tracker.set_free(free.unwrap_or_else(|| vec![u64::MAX; machine.node_count()]));
        let nodes = self.tier.nodes();
        let there = (0..tracker.len())
            .filter(|i| nodes.contains(&tracker.home(*i)))
            .count() as u64;
        self.fast = FastMemory {
            nodes: nodes.iter().map(|n| n.0).collect(),
            bytes: there * page_size,
            of_bytes: tracker.len() as u64 * page_size,
        };
        let latencies = self.latencies.as_mut()?;
        latencies.set_scan_period(scan_ms.map_or(FIRST_SCAN_PERIOD, |ms| Duration::from_millis(ms.into())));
        let free = nodes
            .iter()
            .filter_map(|n| tracker.free(*n))
            .fold(0, u64::saturating_add);
        let fast = there
            .saturating_add(free)
            .min(self.tier.size(machine) / page_size);
        let border = latencies.set_border(tracker.len() as u64, fast)?;
        let present = self.scan_period?;
        let period = Duration::from_secs_f64(2e-9 * border).clamp(FIRST_SCAN_PERIOD, LONGEST_SCAN_PERIOD);
        let ratio = period.as_secs_f64() / present.as_secs_f64();
        // Small changes are not worth a write of the kernel's settings.
        if (0.8..=1.25).contains(&ratio) {
            return None;
        }
        self.scan_period = Some(period);
        self.scan_period
    }

    /// Has our own memory allocated outside the tier; the command, if one was started, was so before.
    fn leave_fast_memory(&self, topology: &Topology) {
        let outside = topology
            .machine
            .node_ids()
            .filter(|n| !self.tier.nodes().contains(n));
        let outside: NodeMask = outside
            .map(|n| topology.machine.nodes[n.index()].os_index)
            .collect();
        // Before Linux 5.15 there is no such policy, and ours stays where it is used.
        let _ = Policy::PreferredMany(outside).apply();
    }

    /// Takes in where all pages are, if it is time to. Returns those of each process that others have moved.
    pub fn take_residents(
        &mut self,
        tracker: &mut Tracker,
        watch: &mut Watch,
        mover: &Mover,
        topology: &Topology,
        page_shift: u32,
        interval: Duration,
    ) -> Vec<(u32, Vec<MovedPages>)> {
        let began = clock::monotonic();
        if began < self.looks_at {
            return Vec::new();
        }
        if self.looks_at.is_zero() {
            self.leave_fast_memory(topology);
        }
        let shift = BASE_PAGE_SHIFT + page_shift;
        let (mut found, mut by_region, mut known) = (Vec::new(), HashMap::new(), 0);
        for pid in watch.processes() {
            let Some(process) = watch.number(pid) else {
                continue;
            };
            let home = |(address, node): (u64, Option<u32>)| {
                let page = PageNumber::of_address(process, address >> shift << shift);
                let node = node.and_then(|node| topology.node(node));
                (page, mover.supposed_home(page).or(node))
            };
            let left = MOST_RANKED_PAGES.saturating_sub(known);
            let homes = residents(&self.host, pid, shift, self.looked, left);
            known += homes.len();
            self.full |= homes.len() == left;
            for (address, _) in &homes {
                *by_region
                    .entry((process, FaultLatencies::region_of(*address)))
                    .or_default() += 1;
            }
            let homes: Vec<(PageNumber, Option<NodeId>)> = homes.into_iter().map(home).collect();
            let range = PageNumber::of_address(process, 0)..PageNumber::of_address(process + 1, 0);
            let moved = tracker.take_residents(range, &homes).into_iter();
            let moved = moved.filter_map(|(page, from)| {
                let to = tracker.home_of(page)?;
                let count = 1;
                Some(MovedPages {
                    pid,
                    page,
                    count,
                    from,
                    to,
                })
            });
            found.push((pid, moved.collect()));
        }
        if let Some(latencies) = &mut self.latencies {
            latencies.set_pages(by_region);
        }
        let now = clock::monotonic();
        self.looks_at = now + (interval * INTERVALS).max((now - began) * SHARE);
        found
    }
}
