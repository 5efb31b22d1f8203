//! How hot a page is, from the time between the kernel's scan that protects it and the access that faults.

use nodewise_linux::clock;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// log2 of the bytes of a region, all of which the kernel protects at about the same time: a quarter of what it scans at once.
const REGION_SHIFT: u32 = 26;
const WORDS: usize = 1 << (REGION_SHIFT - 12 - 6);
/// Latencies are counted in classes of 1/4 octave, of nanoseconds.
const OCTAVE: f64 = 4.0;
const CLASSES: usize = 64 * OCTAVE as usize;
/// Counts of latencies are halved when all pages were protected this many times.
const REMEMBERED_SCANS: f64 = 8.0;
/// Largest weight of a sample, and that of one after the first scan that we see, if it may have been before we attached.
const HEAVIEST: u32 = 8;
const HEAVIEST_AT_FIRST: u32 = 1;
/// The border before it is measured: the kernel's own first threshold for pages to promote.
const FIRST_BORDER_NS: f64 = 1e9;
/// The part of the period of scans that has passed before the next one, at least. Several threads that access a page at the
/// same time fault on it together, which shows no scan.
const LEAST_BETWEEN_SCANS: f64 = 0.5;
/// So many of the last faults on a region are on pages that have faulted since the last scan, if there was another one.
const REPEATS: usize = 8;
const RECENT: usize = 16;

/// Estimates latencies of hint faults.
///
/// That a page was accessed since the last scan says little, since in a second most pages are. The time until the access says
/// more: it is exponentially distributed with the page's rate of access. The kernel's tiering knows when it scanned
/// each page; we are not told. But a page faults once per scan, so a region (64 MiB) has been scanned again when pages fault a
/// second time. That is soon after the scan, since the first pages to be accessed show it.
///
/// A sample weighs the more the shorter its latency: nothing beyond the *border*, 1 within it, and 1 more each time that it
/// is half as long, up to 8. The border is such that as many pages are accessed within it after a scan as fast memory holds:
/// the working set W(t, τ) of Denning (The working set model for program behavior, CACM 11(5), 1968) has its size.
pub struct FaultLatencies {
    /// By process and number.
    regions: HashMap<(u16, u64), Region>,
    /// Samples by class of their latency.
    classes: Vec<f64>,
    /// How many times pages were protected, summed over pages.
    protected: f64,
    border_ns: f64,
    /// The least time between scans.
    between_scans_ns: u64,
    heaviest_at_first: u32,
}

/// A region's last scan, and the one before it: estimated times, and the pages that have faulted since.
#[derive(Default)]
struct Region {
    /// Pages in memory, when last looked.
    pages: u64,
    scans: [Option<ScanRound>; 2],
    /// The last faults: page, time, and whether it had faulted since the last scan.
    recent: VecDeque<(usize, u64, bool)>,
}

struct ScanRound {
    at_ns: u64,
    faulted: Box<[u64; WORDS]>,
}

impl ScanRound {
    fn at(at_ns: u64) -> Self {
        Self {
            at_ns,
            faulted: Box::new([0; WORDS]),
        }
    }

    fn has(&self, page: usize) -> bool {
        self.faulted[page / 64] >> (page % 64) & 1 == 1
    }

    fn set(&mut self, page: usize) {
        self.faulted[page / 64] |= 1 << (page % 64);
    }
}

impl FaultLatencies {
    /// `from_start`: the programs are observed since their start, so that no scan is missed.
    pub fn new(from_start: bool) -> Self {
        Self {
            regions: HashMap::new(),
            classes: vec![0.0; CLASSES],
            protected: 0.0,
            border_ns: FIRST_BORDER_NS,
            between_scans_ns: 0,
            heaviest_at_first: if from_start { HEAVIEST } else { HEAVIEST_AT_FIRST },
        }
    }

    /// Sets the number of pages in memory by process and region; other regions are forgotten.
    pub fn set_pages(&mut self, pages: HashMap<(u16, u64), u64>) {
        self.regions.retain(|key, _| pages.contains_key(key));
        for (key, pages) in pages {
            self.regions.entry(key).or_default().pages = pages;
        }
    }

    /// Sets the time between the kernel's scans of a process.
    pub fn set_scan_period(&mut self, period: Duration) {
        self.between_scans_ns = clock::nanoseconds(period.mul_f64(LEAST_BETWEEN_SCANS));
    }

    /// The region of an address.
    pub fn region_of(address: u64) -> u64 {
        address >> REGION_SHIFT
    }

    /// The weight of a sample, 0 to 8; `None` if its latency is not known, as the page has faulted since the last scan.
    pub fn weight(&mut self, process: u16, address: u64, time_ns: u64) -> Option<u32> {
        let region = self
            .regions
            .entry((process, Self::region_of(address)))
            .or_default();
        let page = (address >> 12) as usize % (WORDS * 64);
        let (latency, scanned) = region.fault(page, time_ns, self.between_scans_ns)?;
        if scanned {
            self.protected += region.pages as f64;
        }
        self.classes[class(latency)] += 1.0;
        let heaviest = if region.scans[1].is_some() {
            HEAVIEST
        } else {
            self.heaviest_at_first
        };
        Some(match latency > self.border_ns {
            true => 0,
            false => 1 + ((self.border_ns / latency.max(1.0)).log2() as u32).min(heaviest - 1),
        })
    }

    /// Updates the border. `all`: pages of the programs; `fast`: those that fast memory holds. Returns it, nanoseconds, if it
    /// is known and more pages are accessed than fit; otherwise all that are accessed belong there.
    pub fn set_border(&mut self, all: u64, fast: u64) -> Option<f64> {
        if all == 0 || self.protected < 2.0 * all as f64 {
            return None;
        }
        let wanted = self.protected * fast as f64 / all as f64;
        let mut sum = 0.0;
        let reaches = |count: &f64| {
            sum += count;
            sum >= wanted
        };
        let at = self.classes.iter().position(reaches);
        let last = self.classes.iter().rposition(|count| *count > 0.0);
        if let Some(class) = at.or(last) {
            self.border_ns = ((class + 1) as f64 / OCTAVE).exp2();
        }
        let known = at.map(|_| self.border_ns);
        if self.protected > REMEMBERED_SCANS * all as f64 {
            self.protected /= 2.0;
            self.classes.iter_mut().for_each(|count| *count /= 2.0);
        }
        known
    }
}

fn class(latency_ns: f64) -> usize {
    ((latency_ns.max(1.0).log2() * OCTAVE) as usize).min(CLASSES - 1)
}

impl Region {
    /// Takes a fault: its latency, nanoseconds, and whether it shows that there was another scan. `None` if the page has
    /// faulted since the last scan, and it is not clear yet whether there was another one. `between`: the least time between
    /// scans.
    fn fault(&mut self, page: usize, time_ns: u64, between: u64) -> Option<(f64, bool)> {
        let Some(last) = &self.scans[0] else {
            self.scans[0] = Some(ScanRound::at(time_ns));
            return self.latency(page, time_ns).map(|latency| (latency, true));
        };
        let repeated = last.has(page) && time_ns.saturating_sub(last.at_ns) >= between;
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((page, time_ns, repeated));
        let repeats = self.recent.iter().filter(|fault| fault.2).count();
        if repeats >= REPEATS.min(self.pages.div_ceil(2) as usize).max(1) {
            let first = self
                .recent
                .iter()
                .find(|fault| fault.2)
                .map_or(time_ns, |fault| fault.1);
            self.scans[1] = self.scans[0].replace(ScanRound::at(first));
            for (page, at, _) in std::mem::take(&mut self.recent) {
                if let Some(scan) = self.scans[0].as_mut().filter(|_| at >= first) {
                    scan.set(page);
                }
            }
            return self.latency(page, time_ns).map(|latency| (latency, true));
        }
        if last.has(page) {
            return None;
        }
        self.latency(page, time_ns).map(|latency| (latency, false))
    }

    /// The time since the page was protected, nanoseconds: since the last scan, or, if it has not faulted since the one
    /// before, since then at least.
    fn latency(&mut self, page: usize, time_ns: u64) -> Option<f64> {
        let [Some(last), before] = &mut self.scans else {
            return None;
        };
        last.set(page);
        let protected = before.as_ref().filter(|before| !before.has(page)).unwrap_or(last);
        Some(time_ns.saturating_sub(protected.at_ns) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodewise_analysis::random::SplitMix;

    const SECOND: f64 = 1e9;

    /// Mean weights of pages with these rates of access (a second, Poisson) over many scans, 2 s apart.
    fn weights(rates: &[f64], fast: u64) -> Vec<f64> {
        let mut latencies = FaultLatencies::new(false);
        latencies.set_pages(HashMap::from([((7, 0), rates.len() as u64)]));
        let mut random = SplitMix(1);
        let mut due: Vec<f64> = vec![0.0; rates.len()];
        let mut sums = vec![0.0; rates.len()];
        let scans = 60;
        for scan in 0..scans {
            let (at, next) = (2.0 * f64::from(scan), 2.0 * f64::from(scan + 1));
            let mut faults: Vec<(f64, usize)> = Vec::new();
            for (page, rate) in rates.iter().enumerate() {
                if due[page] <= at {
                    // It was accessed since the scan before, and is protected anew.
                    due[page] = at - (1.0 - random.share()).ln() / rate;
                }
                if due[page] < next {
                    faults.push((due[page], page));
                }
            }
            faults.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (time, page) in faults {
                let weight = latencies.weight(7, (page as u64) << 12, (time * SECOND) as u64);
                if scan >= scans / 2 {
                    sums[page] += f64::from(weight.unwrap_or(0));
                }
            }
            latencies.set_border(rates.len() as u64, fast);
        }
        sums.iter().map(|sum| sum / f64::from(scans / 2)).collect()
    }

    #[test]
    fn hot_pages_weigh_more_than_pages_that_are_accessed_in_every_period_as_well() {
        let rates: Vec<f64> = (0..3000).map(|page| [8.0, 2.0, 0.4][page % 3]).collect();
        let weights = weights(&rates, 1000);
        let mean = |kind: usize| weights.iter().skip(kind).step_by(3).sum::<f64>() / 1000.0;
        assert!(
            mean(0) > 2.0 * mean(1) && mean(1) > 2.0 * mean(2),
            "{} {} {}",
            mean(0),
            mean(1),
            mean(2)
        );
        let right = (0..3000)
            .filter(|p| p % 3 == 0)
            .filter(|p| weights[*p] > mean(1) * 1.5)
            .count();
        assert!(right > 900, "{right}");
    }

    #[test]
    fn threads_that_fault_together_show_no_scan() {
        let mut region = Region {
            pages: 4,
            ..Region::default()
        };
        assert_eq!(region.fault(3, 1000, 500), Some((0.0, true)));
        assert_eq!(region.fault(3, 1200, 500), None);
        assert_eq!(region.fault(4, 1300, 500), Some((300.0, false)));
        // One page again is no scan, two of four are.
        assert_eq!(region.fault(3, 2000, 500), None);
        assert_eq!(region.fault(4, 2500, 500), Some((500.0, true)));
        assert_eq!(region.fault(3, 2600, 500), None);
        assert_eq!(region.fault(5, 2500, 500), Some((1500.0, false)));
    }

    #[test]
    fn after_the_first_scan_every_sample_is_one_and_forgotten_regions_begin_anew() {
        let mut latencies = FaultLatencies::new(false);
        latencies.set_scan_period(Duration::from_secs(1));
        assert_eq!(latencies.weight(1, 5 << 12, 10), Some(1));
        assert_eq!(
            latencies.weight(1, 5 << 12, 11),
            None,
            "no new scan, and so no new latency"
        );
        assert_eq!(latencies.set_border(9, 3), None);
        latencies.set_pages(HashMap::from([((2, 0), 4)]));
        assert_eq!(latencies.weight(1, 5 << 12, 20), Some(1));
        assert_eq!(latencies.set_border(0, 3), None);
    }
}
