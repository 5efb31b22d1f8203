//! How often memory is accessed, by DAMON: for policies that rank pages and need not know who accesses them.

use nodewise_control::{Controller, Tracker};
use nodewise_linux::Host;
use nodewise_linux::damon::{MOST_PROCESSES, Monitor, Region};
use nodewise_machine::{Machine, NodeId};
use nodewise_observe::faults::{Unavailable, Watch, damon_unavailable};
use nodewise_placement::Tier;
use nodewise_profile::{BASE_PAGE_SHIFT, PageNumber};
use std::time::Duration;

/// While more is spent than the budget allows, regions are checked up to this many times less often.
const SLOWEST: u32 = 16;

/// Monitors the processes of a session.
pub struct Heat {
    monitor: Monitor,
    pace: Pace,
    /// The node that all accesses are taken to come from, as DAMON does not say.
    reader: NodeId,
    /// Base-2 logarithm of the bytes of a page that is ranked.
    shift: u32,
    /// Number of regions whose counts were taken in so far.
    regions: u64,
}

impl Heat {
    /// Begins with no process. `page_shift`: log2 of the base pages in a page that is ranked.
    ///
    /// # Errors
    /// DAMON cannot be used here.
    pub fn start(
        host: &Host,
        interval: Duration,
        page_shift: u32,
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
            monitor: Monitor::start(host, interval).map_err(|refusal| damon_unavailable(&refusal))?,
            pace: Pace::new(interval),
            reader: of_tier()
                .or_else(|| machine.cpu_nodes().next())
                .unwrap_or_default(),
            shift: BASE_PAGE_SHIFT + page_shift,
            regions: 0,
        })
    }

    /// Takes in what was found of the session's processes, and charges what the kernel's threads took to find it. Returns a line on
    /// each process that is not monitored.
    pub fn take_in(
        &mut self,
        watch: &mut Watch,
        tracker: &mut Tracker,
        controller: &mut Controller,
    ) -> Vec<String> {
        let failed = self.monitor.follow(&watch.processes());
        watch.charge_upkeep(self.monitor.take_cpu_time());
        let found = self.monitor.take();
        let in_effect = !found.is_empty() && !self.monitor.is_changing();
        if let Some(interval) = self.pace.next(watch.savings(), in_effect) {
            self.monitor.set_interval(interval);
        }
        for (pid, regions) in found {
            let Some(process) = watch.number(pid) else {
                continue;
            };
            self.regions += regions.len() as u64;
            for region in whole_pages(&regions, self.shift) {
                self.add(process, &region, tracker, controller);
            }
        }
        failed
            .into_iter()
            .map(|(pid, error)| not_monitored(pid, &error))
            .collect()
    }

    /// Every page of a region that is known gets its count; that of pages never seen to be in memory is of no use.
    fn add(&self, process: u16, region: &Region, tracker: &mut Tracker, controller: &mut Controller) {
        let page = |address| PageNumber::of_address(process, address);
        let mut counted = Vec::new();
        let pages = page(region.start)..page(region.end);
        tracker.add_to_range(pages, self.reader, region.accesses, |page| counted.push(page));
        controller.sampled_together(&counted, region.accesses);
    }

    /// Regions whose accesses were taken in.
    pub fn regions(&self) -> u64 {
        self.regions
    }
}

fn not_monitored(pid: u32, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::QuotaExceeded => format!(
            "DAMON monitors {MOST_PROCESSES} processes at a time; the memory of process {pid} stays where it is"
        ),
        _ => format!("DAMON does not monitor process {pid}, whose memory stays where it is: {error}"),
    }
}

/// Regions whose ends are those of pages of `1 << shift` bytes. A page that lies in several has the largest of their counts.
fn whole_pages(regions: &[Region], shift: u32) -> Vec<Region> {
    let mut whole: Vec<Region> = Vec::with_capacity(regions.len());
    let mut push = |start: u64, end: u64, accesses: u32| {
        if start < end {
            whole.push(Region { start, end, accesses });
        }
    };
    let size = 1 << shift;
    let mut shared: Option<(u64, u32)> = None;
    for region in regions {
        let (first, last) = (region.start >> shift << shift, (region.end - 1) >> shift << shift);
        let (mut from, mut accesses) = (first, region.accesses);
        // The page that the last region ended in.
        if let Some((page, count)) = shared.take() {
            if page == first {
                accesses = accesses.max(count);
            } else {
                push(page, page + size, count);
            }
        }
        if first < last {
            push(first, first + size, accesses);
            (from, accesses) = (first + size, region.accesses);
        }
        push(from.min(last), last, accesses);
        shared = Some((last, accesses));
    }
    if let Some((page, count)) = shared {
        push(page, page + size, count);
    }
    whole
}

/// How often regions are checked, within the observing budget.
struct Pace {
    /// The interval with which it began, and the present one.
    least: Duration,
    now: Duration,
    /// Whether the last change has taken effect.
    in_effect: bool,
}

impl Pace {
    fn new(least: Duration) -> Self {
        Self {
            least,
            now: least,
            in_effect: false,
        }
    }

    /// The next interval, if it is another one. `savings`: the account of the budget, as a share of what it can hold. `in_effect`: regions
    /// were reported, and no change is under way.
    fn next(&mut self, savings: f64, in_effect: bool) -> Option<Duration> {
        self.in_effect |= in_effect;
        let next = match savings {
            _ if !self.in_effect => self.now,
            spent if spent < 0.0 => (self.now * 2).min(self.least * SLOWEST),
            saved if saved > Watch::RECOVERED => (self.now / 2).max(self.least),
            _ => self.now,
        };
        (next != self.now).then(|| {
            (self.now, self.in_effect) = (next, false);
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(start: u64, end: u64, accesses: u32) -> Region {
        Region { start, end, accesses }
    }

    #[test]
    fn a_page_in_several_regions_has_the_largest_count() {
        let found = [
            of(0x1000, 0x3000, 2),
            of(0x3000, 0x5000, 9),
            of(0x5000, 0x6000, 1),
            of(0x2_1000, 0x2_2000, 4),
        ];
        assert_eq!(
            whole_pages(&found, 12),
            [
                of(0x1000, 0x2000, 2),
                of(0x2000, 0x3000, 2),
                of(0x3000, 0x4000, 9),
                of(0x4000, 0x5000, 9),
                of(0x5000, 0x6000, 1),
                of(0x2_1000, 0x2_2000, 4),
            ]
        );
        // Pages of 16 KiB.
        assert_eq!(
            whole_pages(&found, 14),
            [of(0, 0x4000, 9), of(0x4000, 0x8000, 9), of(0x2_0000, 0x2_4000, 4),]
        );
        let long = [of(0, 0x1_0000, 3), of(0x1_0000, 0x1_1000, 5)];
        assert_eq!(
            whole_pages(&long, 14),
            [
                of(0, 0x4000, 3),
                of(0x4000, 0xc000, 3),
                of(0xc000, 0x1_0000, 3),
                of(0x1_0000, 0x1_4000, 5),
            ]
        );
    }

    #[test]
    fn checks_become_rarer_while_too_much_is_spent_and_wait_for_each_change() {
        let second = Duration::from_secs(1);
        let mut pace = Pace::new(second);
        assert_eq!(pace.next(-1.0, false), None, "nothing was reported yet");
        assert_eq!(pace.next(-1.0, true), Some(second * 2));
        assert_eq!(pace.next(-1.0, false), None);
        for times in [4, 8, 16] {
            assert_eq!(pace.next(-0.1, true), Some(second * times));
        }
        assert_eq!(pace.next(-1.0, true), None, "not rarer than that");
        assert_eq!(pace.next(0.2, true), None, "not before the account has recovered");
        assert_eq!(pace.next(0.9, true), Some(second * 8));
    }
}
