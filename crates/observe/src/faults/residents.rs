//! Tracks which pages of a process were resident before a fault: this distinguishes hint faults from first touches.

use super::kind::Kind;
use nodewise_linux::faults::Fault;
use nodewise_linux::pagemap::Pagemap;
use nodewise_profile::{BASE_PAGE_SHIFT, BASE_PAGE_SIZE};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// log2 of the pages in a region, the unit of the maps below: a region is as large as a huge page.
const REGION_SHIFT: u32 = 9;
const REGION: u64 = 1 << REGION_SHIFT;
/// Largest number of resident pages looked up when attaching to a running process: 64 GiB, a quarter of a second.
const MAX_RESIDENT_PAGES: u64 = 1 << 24;
/// Largest address range searched for resident pages, in pages, where searching unused addresses takes time too: 1 TiB,
/// about a second.
const MAX_SEARCHED_PAGES: u64 = 1 << 28;
/// Largest number of pages of a new mapping that are looked up again, because an old mapping may have been there.
const MAX_RECHECKED_PAGES: u64 = 1 << 14;

/// Time after its first touch in which a page gets no hint fault: the kernel's first scan comes later.
const FIRST_TOUCH_GRACE_NS: u64 = 100_000_000;

/// One bit for each page of a region.
type Bits = [u64; (REGION / 64) as usize];

/// The resident pages of one process.
#[derive(Clone, Debug, Default)]
pub struct Residents {
    regions: HashMap<u64, Bits>,
    /// Pages that will be copied at the next write after a fork; used only if the kernel does not report copies.
    shared: HashMap<u64, Bits>,
    /// Time of recent first touches: a page that was only read is copied when it is first written. Used only if the
    /// kernel does not report copies.
    touched: HashMap<u64, u64>,
    /// Resident pages that the last lookup found without a fault before; `found_ns` is the time of the lookup.
    found: HashMap<u64, Bits>,
    found_ns: u64,
    /// Known mappings: first address and the address after the last.
    areas: BTreeMap<u64, u64>,
    /// Mappings from before we attached that are too large to look up; their pages are assumed to be resident.
    old: Vec<(u64, u64)>,
    /// Regions with first touches since the last look, and those of new mappings.
    fresh: BTreeSet<u64>,
    mapped: Vec<(u64, u64)>,
}

impl Residents {
    /// The residents of a running process, from its mappings in ascending order.
    pub fn of_running(pagemap: Option<&Pagemap>, areas: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut all = Self::default();
        let (mut there, mut looked_through) = (0, 0);
        let leaps = pagemap.is_some_and(Pagemap::leaps);
        for (start, end) in areas {
            all.areas.insert(start, end);
            let (first, pages) = (page(start), page(end) - page(start));
            let worth = there < MAX_RESIDENT_PAGES && (leaps || looked_through + pages <= MAX_SEARCHED_PAGES);
            looked_through += if worth { pages } else { 0 };
            let regions = &mut all.regions;
            let note = |p| {
                there += 1;
                set(regions, p);
            };
            let known = pagemap.is_some_and(|map| worth && map.resident(first, pages, note).is_ok());
            if !known {
                all.old.push((start, end));
            }
        }
        all
    }

    /// Classifies a fault, and records that the page is resident.
    pub fn classify(&mut self, fault: &Fault) -> Kind {
        let page = page(fault.address);
        // A lookup after the fault may have found the page because of the fault.
        let found = take(&mut self.found, page) && fault.time_ns < self.found_ns;
        let there = !found && (get(&self.regions, page) || self.is_old(fault.address));
        let shared = take(&mut self.shared, page);
        let touched = self.touched.remove(&page);
        let soon = touched.is_some_and(|at| fault.time_ns.saturating_sub(at) < FIRST_TOUCH_GRACE_NS);
        if there {
            return match fault.protected {
                Some(true) if fault.write == Some(true) => Kind::Copy,
                Some(true) => Kind::Unknown,
                Some(false) => Kind::Hint,
                None if soon => Kind::Copy,
                None if shared => Kind::Unknown,
                None => Kind::Hint,
            };
        }
        set(&mut self.regions, page);
        self.fresh.insert(page >> REGION_SHIFT);
        if fault.protected.is_none() {
            self.touched.insert(page, fault.time_ns);
        }
        // A page that was protected against writes must have been resident, although no fault showed it.
        if fault.protected == Some(true) {
            Kind::Copy
        } else {
            Kind::First
        }
    }

    /// Handles a new mapping. The kernel reports a mapping merged with a neighbour as one, so pages in it are kept
    /// until they have been looked up.
    pub fn map(&mut self, start: u64, end: u64) {
        let inside: Vec<(u64, u64)> = self.overlapping(start, end).collect();
        let joined = inside
            .iter()
            .any(|&(s, e)| s >= start && e <= end && (s, e) != (start, end));
        if !joined {
            self.forget(start, end);
        }
        for (s, e) in inside {
            self.areas.remove(&s);
            if s < start {
                self.areas.insert(s, start);
            }
            if e > end {
                self.areas.insert(end, e);
            }
        }
        self.areas.insert(start, end);
        if page(end) - page(start) <= MAX_RECHECKED_PAGES {
            self.mapped.push((start, end));
        }
    }

    /// Looks up pages that may have become resident or not without a fault that we saw: huge pages, sampling at longer
    /// periods, unmapped memory. `now_ns` reads the clock of the faults' times.
    pub fn refresh(&mut self, pagemap: &Pagemap, now_ns: impl Fn() -> u64) {
        let newest = self.touched.values().max().copied().unwrap_or(0);
        self.touched.retain(|_, at| *at + FIRST_TOUCH_GRACE_NS > newest);
        self.found.clear();
        for (start, end) in std::mem::take(&mut self.mapped) {
            let there = self.look_up(pagemap, page(start), page(end) - page(start));
            self.forget(start, end);
            there.iter().for_each(|p| set(&mut self.regions, *p));
        }
        for region in std::mem::take(&mut self.fresh) {
            let there = self.look_up(pagemap, region << REGION_SHIFT, REGION);
            there.iter().for_each(|p| set(&mut self.regions, *p));
        }
        // Read after the lookups: threads continue meanwhile, and on a busy host a lookup may wait for a CPU. With an
        // earlier time, first touches during the lookup would be taken for hint faults.
        self.found_ns = now_ns();
    }

    /// The resident pages of a range; those not known before are recorded as found.
    fn look_up(&mut self, pagemap: &Pagemap, first: u64, count: u64) -> Vec<u64> {
        let mut there = Vec::new();
        // A process that has ended has no pages.
        let _ = pagemap.resident(first, count, |p| there.push(p));
        for page in there.iter().filter(|p| !get(&self.regions, **p)) {
            set(&mut self.found, *page);
        }
        there
    }

    /// Whether there are pages to look up.
    pub fn is_stale(&self) -> bool {
        !self.fresh.is_empty() || !self.mapped.is_empty()
    }

    /// The residents of a forked child: all resident pages are shared, and copied when parent or child writes.
    pub fn fork(&mut self, kernel_tells_copies: bool) -> Self {
        if !kernel_tells_copies {
            self.shared.clone_from(&self.regions);
        }
        self.clone()
    }

    fn is_old(&self, address: u64) -> bool {
        self.old
            .iter()
            .any(|(start, end)| (*start..*end).contains(&address))
    }

    fn forget(&mut self, start: u64, end: u64) {
        self.old.retain(|(s, e)| *e <= start || *s >= end);
        let (first, last) = (page(start), page(end));
        let regions = first >> REGION_SHIFT..=last >> REGION_SHIFT;
        // A huge mapping has fewer touched regions than possible ones, so go through the former.
        let touched: Vec<u64> = if self.regions.len() < ((last - first) >> REGION_SHIFT) as usize {
            self.regions
                .keys()
                .copied()
                .filter(|r| regions.contains(r))
                .collect()
        } else {
            regions.collect()
        };
        for region in touched {
            let base = region << REGION_SHIFT;
            if base >= first && base + REGION <= last {
                self.regions.remove(&region);
                self.shared.remove(&region);
            } else {
                for page in base.max(first)..(base + REGION).min(last) {
                    take(&mut self.regions, page);
                    take(&mut self.shared, page);
                }
            }
        }
    }

    fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
        let from = self.areas.range(..=start).next_back().map_or(start, |(s, _)| *s);
        let found = self.areas.range(from..end.max(from));
        found
            .map(|(s, e)| (*s, *e))
            .filter(move |(s, e)| *e > start && *s < end)
    }
}

fn page(address: u64) -> u64 {
    address >> BASE_PAGE_SHIFT
}

fn place(page: u64) -> (usize, u64) {
    let within = page % REGION;
    ((within / 64) as usize, 1 << (within % 64))
}

fn set(regions: &mut HashMap<u64, Bits>, page: u64) {
    let (word, bit) = place(page);
    regions.entry(page >> REGION_SHIFT).or_default()[word] |= bit;
}

fn get(regions: &HashMap<u64, Bits>, page: u64) -> bool {
    let (word, bit) = place(page);
    regions
        .get(&(page >> REGION_SHIFT))
        .is_some_and(|bits| bits[word] & bit != 0)
}

/// Clears a bit; returns whether it was set.
fn take(regions: &mut HashMap<u64, Bits>, page: u64) -> bool {
    let (word, bit) = place(page);
    let Some(bits) = regions.get_mut(&(page >> REGION_SHIFT)) else {
        return false;
    };
    let was = bits[word] & bit != 0;
    bits[word] &= !bit;
    was
}

const _: () = assert!(BASE_PAGE_SIZE << REGION_SHIFT == 2 << 20);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fault(page: u64, write: Option<bool>, protected: Option<bool>) -> Fault {
        let address = page << BASE_PAGE_SHIFT | 0x123;
        Fault {
            time_ns: 0,
            pid: 1,
            tid: 1,
            cpu: 0,
            address,
            write,
            protected,
        }
    }

    /// A fault one second after the previous one.
    fn plain(page: u64) -> Fault {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NOW: AtomicU64 = AtomicU64::new(0);
        let time_ns = NOW.fetch_add(1_000_000_000, Ordering::Relaxed);
        Fault {
            time_ns,
            ..fault(page, None, None)
        }
    }

    #[test]
    fn a_page_that_was_read_is_copied_when_it_is_written_soon_after() {
        let mut all = Residents::default();
        let soon = fault(7, None, None);
        let later = Fault {
            time_ns: FIRST_TOUCH_GRACE_NS,
            ..soon
        };
        assert_eq!(
            [soon, soon, soon].map(|f| all.classify(&f)),
            [Kind::First, Kind::Copy, Kind::Hint]
        );
        let mut all = Residents::default();
        assert_eq!([soon, later].map(|f| all.classify(&f)), [Kind::First, Kind::Hint]);
    }

    #[test]
    fn the_first_fault_of_a_page_is_its_first_touch_and_the_next_are_hints() {
        let mut all = Residents::default();
        assert_eq!(
            [7, 7, 8, 7].map(|p| all.classify(&plain(p))),
            [Kind::First, Kind::Hint, Kind::First, Kind::Hint]
        );
    }

    #[test]
    fn copies_are_told_by_the_kernel_and_after_a_fork_without_it_unknown() {
        let mut all = Residents::default();
        let (first, copy) = (
            fault(7, Some(false), Some(false)),
            fault(7, Some(true), Some(true)),
        );
        assert_eq!(
            [first, copy, first].map(|f| all.classify(&f)),
            [Kind::First, Kind::Copy, Kind::Hint]
        );
        let mut child = all.fork(false);
        assert_eq!(
            [7, 7, 9].map(|p| child.classify(&plain(p))),
            [Kind::Unknown, Kind::Hint, Kind::First]
        );
        assert_eq!(all.classify(&plain(7)), Kind::Unknown, "the parent copies too");
        let mut child = all.fork(true);
        assert_eq!(child.classify(&copy), Kind::Copy);
    }

    #[test]
    fn memory_mapped_anew_is_touched_anew_and_joined_memory_is_not() {
        let mut all = Residents::default();
        let at = |p: u64| p << BASE_PAGE_SHIFT;
        all.map(at(10), at(20));
        all.classify(&plain(12));
        all.map(at(10), at(30)); // one more mapping behind it
        assert_eq!(
            [12, 25].map(|p| all.classify(&plain(p))),
            [Kind::Hint, Kind::First]
        );
        all.map(at(10), at(30)); // the same place again
        assert_eq!(all.classify(&plain(12)), Kind::First);
        all.map(at(11), at(13)); // into its middle
        assert_eq!(
            [12, 25].map(|p| all.classify(&plain(p))),
            [Kind::First, Kind::First]
        );
    }

    #[test]
    fn a_page_found_before_its_fault_was_heard_of_is_touched_by_that_fault() {
        let own = vec![1_u8; 4 << 12];
        let pagemap = Pagemap::of(std::process::id()).unwrap();
        let at = |time_ns, number: u64| Fault {
            time_ns,
            ..fault(page(own.as_ptr() as u64) + number, Some(true), Some(false))
        };
        let mut all = Residents::default();
        assert_eq!(all.classify(&at(1, 1)), Kind::First);
        all.refresh(&pagemap, || 10);
        let late = [at(2, 2), at(11, 2), at(12, 3), at(3, 1)];
        let kinds = [Kind::First, Kind::Hint, Kind::Hint, Kind::Hint];
        assert_eq!(late.map(|f| all.classify(&f)), kinds);
    }

    #[test]
    fn memory_of_a_process_that_ran_before_is_there() {
        let own = vec![1_u8; 1 << 20];
        let (start, pid) = (own.as_ptr() as u64, std::process::id());
        let pagemap = Pagemap::of(pid).unwrap();
        let areas = [(start & !0xfff, (start + (1 << 20)) & !0xfff)];
        let mut known = Residents::of_running(Some(&pagemap), areas.into_iter());
        assert_eq!(known.classify(&plain(page(start + 8192))), Kind::Hint);
        let mut assumed = Residents::of_running(None, areas.into_iter());
        assert_eq!(assumed.classify(&plain(page(start + 8192))), Kind::Hint);
        assert_eq!(assumed.classify(&plain(1)), Kind::First);
    }

    #[test]
    fn vast_mappings_that_are_hardly_used_are_known() {
        let mut small = vec![1_u8; 1 << 16];
        let vast = Vec::<u8>::with_capacity(4 << 30); // address space without memory
        let pagemap = Pagemap::of(std::process::id()).unwrap();
        let (at, beside) = (vast.as_ptr() as u64, small.as_mut_ptr() as u64);
        let vast = (at & !0xfff, (at + (4 << 30)) & !0xfff);
        // As if there were twenty such mappings.
        let areas = std::iter::repeat_n(vast, 20).chain([(beside & !0xfff, (beside + (1 << 16)) & !0xfff)]);
        let mut known = Residents::of_running(Some(&pagemap), areas);
        assert_eq!(known.classify(&plain(page(beside) + 1)), Kind::Hint);
        assert_eq!(known.classify(&plain(page(at) + 7_000)), Kind::First);
    }

    proptest! {
        #[test]
        fn forgetting_is_what_a_set_of_pages_would_do(
            touched in prop::collection::btree_set(0u64..3000, 0..80), start in 0u64..3000, len in 1u64..3000,
        ) {
            let mut all = Residents::default();
            touched.iter().for_each(|p| set(&mut all.regions, *p));
            all.forget(start << BASE_PAGE_SHIFT, (start + len) << BASE_PAGE_SHIFT);
            for page in 0..6000 {
                let kept = touched.contains(&page) && !(start..start + len).contains(&page);
                prop_assert_eq!(get(&all.regions, page), kept, "{}", page);
            }
        }
    }
}
