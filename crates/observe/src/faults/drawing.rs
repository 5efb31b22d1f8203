//! Chooses at random the pages of a process that are set aside next, among those in memory.

use nodewise_analysis::random::SplitMix;
use nodewise_linux::maps::Area;
use nodewise_linux::pagemap::{PageRun, Pagemap};
use nodewise_linux::userfaultfd::{HUGE, SMALL, Window};
use std::collections::HashMap;
use std::time::Duration;

/// Longest time for which a page that is not accessed stays aside.
pub const MAX_HOLD: Duration = Duration::from_millis(50);
/// The unit from which two pages are chosen at a time; equal to the unit by which sharing between threads is detected.
const PAIR_BLOCK_BYTES: u64 = 64 << 10;
/// The largest guard area below a thread's stack, bytes; larger areas without access rights belong to heaps.
const MAX_GUARD_BYTES: u64 = 256 << 10;
/// The usual size of a thread's stack (`ulimit -s`). Stacks are not sampled, as only their own thread uses them. In
/// larger stacks, and in those that a program places itself, only the pages that the kernel writes when a thread ends
/// are left out ([`robust_lists`]).
const USUAL_STACK_BYTES: u64 = 8 << 20;

/// The pages of a process that can be set aside.
#[derive(Default)]
pub struct Memory {
    mappings: Vec<Mapping>,
    pub pages: u64,
}

struct Mapping {
    start: u64,
    end: u64,
    runs: Vec<PageRun>,
    pages: u64,
}

impl Memory {
    /// The pages that are in memory now.
    pub fn of(pid: u32, areas: &[Area]) -> Self {
        let Ok(pagemap) = Pagemap::of(pid) else {
            return Self::default();
        };
        let mappings = areas.iter().filter(|area| can_be_set_aside(area)).map(|area| {
            let mut runs = Vec::new();
            let from = area.start
                + if is_above_guard(areas, area) {
                    USUAL_STACK_BYTES
                } else {
                    0
                };
            // A process that has ended has no pages.
            let _ = pagemap.runs(from, area.end, |run| runs.push(run));
            Mapping::new(area.start, area.end, runs)
        });
        Self::new(mappings.collect())
    }

    fn new(mappings: Vec<Mapping>) -> Self {
        Self {
            pages: mappings.iter().map(|m| m.pages).sum(),
            mappings,
        }
    }

    /// Chooses a window of random pages in memory, all of one mapping and of one size; none if there are none. `rests`:
    /// whether the mapping that begins at an address is in cooldown.
    pub fn draw(
        &self,
        random: &mut SplitMix,
        access_rates: &AccessRates,
        rests: impl Fn(u64) -> bool,
    ) -> Option<Window> {
        let awake = || self.mappings.iter().filter(|m| !rests(m.start));
        let pages = awake().map(|m| m.pages).sum();
        let any = |random: &mut SplitMix| {
            let mut at = below(random, pages)?;
            let mapping = awake().find(|m| within(&mut at, m.pages))?;
            Some((mapping, mapping.at(at)?))
        };
        let mut drawn = any(random)?;
        for _ in 0..AccessRates::TRIES {
            if access_rates.accepts(drawn.1.0, random) {
                break;
            }
            drawn = any(random)?;
        }
        let (mapping, (_, first)) = drawn;
        let page_bytes = if first.huge { HUGE } else { SMALL };
        let most = if first.huge {
            Window::MOST_HUGE / 2 + 1
        } else {
            Window::MOST
        };
        let mut chosen: Vec<u64> = Vec::with_capacity(most);
        for _ in 0..AccessRates::TRIES * most {
            if chosen.len() + 1 >= most {
                break;
            }
            let Some((page, run)) = mapping.at(below(random, mapping.pages)?) else {
                continue;
            };
            if !access_rates.accepts(page, random) {
                continue;
            }
            let page = page / page_bytes * page_bytes;
            let other =
                page / PAIR_BLOCK_BYTES * PAIR_BLOCK_BYTES + below(random, PAIR_BLOCK_BYTES / SMALL)? * SMALL;
            if run.huge == first.huge {
                chosen.push(page);
                chosen.extend(Some(other).filter(|other| !run.huge && (run.start..run.end).contains(other)));
            }
        }
        chosen.sort_unstable();
        chosen.dedup();
        let mut window = Window {
            start: mapping.start,
            bytes: mapping.end - mapping.start,
            page_bytes,
            milliseconds: MAX_HOLD.as_millis() as u64,
            count: chosen.len() as u64,
            ..Window::default()
        };
        window.pages[..chosen.len()].copy_from_slice(&chosen);
        (window.count > 0).then_some(window)
    }
}

/// Access statistics for each part of the memory: how many of the pages that were recently set aside were accessed in
/// time. Much of a program's memory is hardly used, such as data of libraries or input read at the start. Pages of such
/// parts are chosen less often, down to a tenth, so samples are not proportional to memory. That is acceptable, as
/// samples tell which threads use a page, not how often.
#[derive(Debug, Default)]
pub struct AccessRates {
    /// Number of pages set aside, and of accesses to them, by part; both decay.
    parts: HashMap<u64, (f64, f64)>,
    /// From when on the counts may be halved again.
    decays_at: Duration,
}

impl AccessRates {
    /// Size of a part in bytes: that of a huge page.
    const PART: u64 = HUGE;
    /// Largest number of draws for one page. If every part is unused, three draws in a hundred thousand accept no page.
    const TRIES: usize = 100;
    /// Shortest time between two halvings of the counts.
    const HALF_LIFE: Duration = Duration::from_secs(2);
    /// The probability of accepting a page whose part is never accessed.
    const LEAST: f64 = 0.1;

    /// Records that the pages of a window were set aside.
    pub fn tried(&mut self, window: &Window) {
        for page in &window.pages[..window.count as usize] {
            self.parts.entry(page / Self::PART).or_default().0 += 1.0;
        }
    }

    /// Records `count` accesses to pages that were aside, one of which was at `address`.
    pub fn accessed(&mut self, address: u64, count: f64) {
        self.parts.entry(address / Self::PART).or_default().1 += count;
    }

    /// Halves all counts, unless that was done less than two seconds ago: programs have phases. Called when resident
    /// pages are read.
    pub fn decay(&mut self, now: Duration) {
        if now < self.decays_at {
            return;
        }
        self.decays_at = now + Self::HALF_LIFE;
        self.parts.retain(|_, (tried, accessed)| {
            (*tried, *accessed) = (*tried / 2.0, *accessed / 2.0);
            *tried >= 0.1
        });
    }

    /// Decides by chance whether to accept a page that was drawn. The probability is the accessed share of its part's
    /// pages; it is one half where nothing is known.
    fn accepts(&self, page: u64, random: &mut SplitMix) -> bool {
        let (tried, accessed) = self.parts.get(&(page / Self::PART)).copied().unwrap_or_default();
        let chance = ((accessed + 1.0) / (tried + 2.0)).clamp(Self::LEAST, 1.0);
        below(random, 1 << 20).is_some_and(|at| (at as f64) < chance * f64::from(1 << 20))
    }
}

impl Mapping {
    fn new(start: u64, end: u64, runs: Vec<PageRun>) -> Self {
        Self {
            start,
            end,
            pages: runs.iter().map(pages).sum(),
            runs,
        }
    }

    /// The address of the nth resident page (in small pages), and the run that it is in.
    fn at(&self, mut nth: u64) -> Option<(u64, PageRun)> {
        let run = self.runs.iter().find(|run| within(&mut nth, pages(run)))?;
        Some((run.start + nth * SMALL, *run))
    }
}

/// Whether the nth element is among the next `count`; if not, subtracts `count` from `nth`.
fn within(nth: &mut u64, count: u64) -> bool {
    let here = *nth < count;
    *nth -= if here { 0 } else { count };
    here
}

fn pages(run: &PageRun) -> u64 {
    (run.end - run.start) / SMALL
}

/// Whether a mapping begins with a thread's stack, recognised by the guard area below it. Other memory may have merged
/// with the mapping above.
fn is_above_guard(areas: &[Area], area: &Area) -> bool {
    let guards = |below: &Area| {
        below.end == area.start && below.permissions == "---p" && below.end - below.start <= MAX_GUARD_BYTES
    };
    let at = areas.partition_point(|a| a.start < area.start);
    at > 0 && guards(&areas[at - 1])
}

/// Whether an area is private, anonymous, readable and writable memory of at least a block. Smaller areas are left out:
/// a page by which a library detects forks (`MADV_WIPEONFORK`) would be copied to the child, and samples of so little
/// memory are of no use.
fn can_be_set_aside(area: &Area) -> bool {
    if area.end - area.start < PAIR_BLOCK_BYTES {
        return false;
    }
    let anonymous = area.file == (0, 0)
        && (area.name.is_empty() || area.name == "[heap]" || area.name.starts_with("[anon:"));
    anonymous && area.permissions == "rw-p"
}

/// A number below a limit; `None` if the limit is 0.
fn below(random: &mut SplitMix, limit: u64) -> Option<u64> {
    random.word().checked_rem(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A mapping with one run of resident pages, and as many missing pages on either side.
    fn mapping(place: u64, pages: u64, huge: bool) -> Mapping {
        let bytes = pages * if huge { HUGE } else { SMALL };
        let start = place * (HUGE << 8);
        let run = PageRun {
            start: start + (bytes.next_multiple_of(HUGE)),
            end: start + bytes.next_multiple_of(HUGE) + bytes,
            huge,
        };
        Mapping::new(start, run.end + bytes, vec![run])
    }

    proptest! {
        #[test]
        fn what_is_drawn_is_there(parts in prop::collection::vec((1u64..40, any::<bool>()), 1..8), seed in any::<u64>()) {
            let mappings = parts.iter().zip(1..).map(|((pages, huge), at)| mapping(at, *pages, *huge)).collect();
            let memory = Memory::new(mappings);
            let window = memory.draw(&mut SplitMix(seed), &AccessRates::default(), |_| false).unwrap();
            let whole = |m: &&Mapping| (m.start, m.end - m.start) == (window.start, window.bytes);
            let run = memory.mappings.iter().find(whole).unwrap().runs[0];
            prop_assert_eq!(window.page_bytes, if run.huge { HUGE } else { SMALL });
            let drawn = &window.pages[..window.count as usize];
            prop_assert!(drawn.is_sorted_by(|a, b| a < b));
            for page in drawn {
                prop_assert_eq!(page % window.page_bytes, 0);
                prop_assert!((run.start..run.end).contains(page));
            }
        }
    }

    #[test]
    fn every_page_of_a_large_mapping_is_drawn_some_time() {
        let memory = Memory::new(vec![mapping(1, 30_000, false)]);
        let start = memory.mappings[0].runs[0].start;
        let mut random = SplitMix(7);
        let mut seen = vec![false; 30_000];
        for _ in 0..20_000 {
            let window = memory
                .draw(&mut random, &AccessRates::default(), |_| false)
                .unwrap();
            for page in &window.pages[..window.count as usize] {
                seen[((page - start) / SMALL) as usize] = true;
            }
        }
        assert!(
            seen.iter().all(|s| *s),
            "{} never",
            seen.iter().filter(|s| !**s).count()
        );
        let none = Memory::default().draw(&mut random, &AccessRates::default(), |_| false);
        assert!(none.is_none());
        assert!(
            memory
                .draw(&mut random, &AccessRates::default(), |_| true)
                .is_none()
        );
    }

    #[test]
    fn parts_that_are_not_used_are_drawn_a_tenth_as_often() {
        let memory = Memory::new(vec![mapping(1, 2, true), mapping(2, 2048, false)]);
        let used = memory.mappings[1].runs[0].start..memory.mappings[1].runs[0].start + HUGE;
        let (mut access_rates, mut random) = (AccessRates::default(), SplitMix(11));
        let (mut hot, mut all) = (0, 0);
        for round in 0..4000 {
            let window = memory.draw(&mut random, &access_rates, |_| false).unwrap();
            access_rates.tried(&window);
            for page in &window.pages[..window.count as usize] {
                let is_used = used.contains(page);
                if is_used {
                    access_rates.accessed(*page, 1.0);
                }
                (hot, all) = (
                    hot + u64::from(is_used && round > 100),
                    all + u64::from(round > 100),
                );
            }
        }
        // The used pages are a sixth of the memory, but most of the pages of windows in their mapping; the mapping is
        // chosen in proportion to its size.
        let share = hot as f64 / all as f64;
        assert!(share > 0.6, "{share}");
    }

    #[test]
    fn stacks_files_and_shared_memory_are_left_alone() {
        let area = |line| can_be_set_aside(&Area::parse(line).unwrap());
        assert!(area("7f0000000000-7f0000100000 rw-p 00000000 00:00 0 "));
        assert!(area("55d000000000-55d000021000 rw-p 00000000 00:00 0    [heap]"));
        assert!(!area("7f0000000000-7f000000f000 rw-p 00000000 00:00 0 "));
        assert!(!area(
            "7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0    [stack]"
        ));
        assert!(!area("7f0000000000-7f0000100000 r--p 00000000 00:00 0 "));
        assert!(!area(
            "7f0000000000-7f0000100000 rw-s 00000000 00:01 9  /dev/zero (deleted)"
        ));
        assert!(!area(
            "7f0000000000-7f0000100000 rw-p 00000000 08:01 9  /usr/lib/x.so"
        ));
    }
}
