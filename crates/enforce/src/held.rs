//! Keeps pages of programs with a companion on their nodes, so that automatic NUMA balancing does not move them; it
//! still samples accesses to them.

use crate::companion::{Answer, Companions, Request, VARIABLE};
use nodewise_linux::maps::Area;
use nodewise_linux::numa_maps;
use nodewise_linux::pagemap::Pagemap;
use nodewise_linux::{Host, pages};
use std::collections::BTreeMap;
use std::ops::Range;
use std::process::Command;

/// The text in `numa_maps` that shows a policy set by a companion.
const COMPANION_POLICY: &str = "=balancing:";
/// Mappings of the kernel's limit of 65,530 that are left to the program. Each run of held pages takes one.
const MAPPINGS: usize = 32_000;
/// Number of resident pages examined in one look; further pages are left for the next look.
const PAGES: usize = 1 << 18;
/// Pages looked up in one call.
const QUERY: usize = 4096;
const BASE: u64 = 4096;
/// Base pages of a huge page.
const HUGE: u64 = 512;

/// Keeps pages of programs with a companion on their nodes.
#[derive(Debug)]
pub struct Holder {
    companions: Companions,
    host: Host,
    counts: Held,
    /// Mappings are split only at multiples of this many base pages.
    grain: u64,
    /// A node without CPUs that all pages are kept for, wherever they lie.
    without_cpus: Option<u32>,
}

/// Number of pages that were kept on their node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Base pages kept; a page counts each time that it is kept.
    pub pages: u64,
    /// Base pages among them that are kept by a policy which allows no other node.
    pub strict: u64,
    /// Base pages that could not be kept: the program has set a policy, a node is short of memory, or there are too
    /// many runs.
    pub refused: u64,
}

/// Consecutive base pages on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    pages: Range<u64>,
    node: u32,
}

impl Holder {
    /// A holder for programs that are prepared with [`Holder::prepare`].
    ///
    /// # Errors
    /// The kernel's error.
    pub fn new() -> std::io::Result<Self> {
        let host = Host::default();
        let huge = host.transparent_huge_pages().as_deref() == Some("always");
        Ok(Self {
            companions: Companions::listen()?,
            host,
            counts: Held::default(),
            grain: if huge { HUGE } else { 1 },
            without_cpus: None,
        })
    }

    /// Gives all pages one policy, which allows a node without CPUs (the kernel's number) alone: the kernel moves a page
    /// only to the node of the CPU that accesses it, and only if the policy allows that node. So one policy keeps all pages
    /// of a mapping where they are, and where [`move_pages`](nodewise_linux::pages) puts them, which heeds no policy;
    /// otherwise each run of pages on one node becomes a mapping.
    #[must_use]
    pub fn with_one_policy(mut self, without_cpus: u32) -> Self {
        self.without_cpus = Some(without_cpus);
        self
    }

    /// Sets the environment of `command` so that it and its children connect. The plan sets the preload.
    pub fn prepare(&self, command: &mut Command) {
        command.env(VARIABLE, self.companions.name());
    }

    /// The processes that have a companion now.
    pub fn processes(&mut self) -> Vec<u32> {
        self.companions.accept()
    }

    /// Counts of the pages kept so far.
    #[must_use]
    pub fn held(&self) -> Held {
        self.counts
    }

    /// In every process with a companion, keeps the pages touched since the last look on their present nodes.
    pub fn look(&mut self) {
        for pid in self.companions.accept() {
            let runs = free_runs(&self.host, pid, self.grain, self.without_cpus).unwrap_or_default();
            let wishes: Vec<_> = runs
                .into_iter()
                .map(|r| (r.pages, Request::hold(r.node)))
                .collect();
            self.ask(pid, &wishes);
        }
    }

    /// Keeps moved pages, base pages of the process, on their new nodes.
    pub fn hold_moved(&mut self, pid: u32, moved: &[(Range<u64>, u32)]) {
        if self.without_cpus.is_none() {
            let hold = |(pages, node): &(Range<u64>, u32)| (pages.clone(), Request::hold(*node));
            self.ask(pid, &moved.iter().map(hold).collect::<Vec<_>>());
        }
    }

    /// Moves pages and keeps them there; unlike `move_pages` this reaches pages for which a hint fault is due. Returns
    /// `false` if there is no companion; the caller asks the kernel which pages have arrived.
    pub fn move_and_hold(&mut self, pid: u32, pages: &[(Range<u64>, u32)]) -> bool {
        let request = |(pages, to): &(Range<u64>, u32)| {
            let home = self.without_cpus.unwrap_or(*to);
            (pages.clone(), Request { home, to: Some(*to) })
        };
        let wishes: Vec<_> = pages.iter().map(request).collect();
        self.ask(pid, &wishes)
    }

    fn ask(&mut self, pid: u32, wishes: &[(Range<u64>, Request)]) -> bool {
        let answers = self.companions.ask(pid, wishes);
        for ((pages, _), answer) in wishes.iter().zip(&answers) {
            let many = pages.end - pages.start;
            match answer {
                Answer::Done => self.counts.pages += many,
                Answer::DoneStrictly => {
                    self.counts.pages += many;
                    self.counts.strict += many;
                }
                Answer::Refused(_) => self.counts.refused += many,
                Answer::Missing => {}
            }
        }
        !answers.contains(&Answer::Missing)
    }
}

impl Run {
    /// Shrinks the run to multiples of `grain`, except at the bounds of its area.
    fn shrink(&mut self, area: &Area, grain: u64) {
        if self.pages.start != area.start / BASE {
            self.pages.start = self.pages.start.next_multiple_of(grain);
        }
        if self.pages.end != area.end / BASE {
            self.pages.end -= self.pages.end % grain;
        }
    }
}

/// Neighbouring runs as one, for one node.
fn joined(mut runs: Vec<Run>, node: u32) -> Vec<Run> {
    runs.sort_by_key(|r| r.pages.start);
    let mut joined: Vec<Run> = Vec::new();
    for run in runs {
        match joined.last_mut() {
            Some(last) if last.pages.end == run.pages.start => last.pages.end = run.pages.end,
            _ => joined.push(Run { node, ..run }),
        }
    }
    joined
}

/// Runs of resident pages in private writable memory without a companion's policy, longest first, as many as the limit
/// on mappings allows. Pages that are not resident are left out, as a policy would decide on which node they are
/// allocated. Within a mapping, runs begin and end at multiples of `grain`, because the kernel makes no huge page
/// across a boundary of mappings. `one_node`: the node for which all are kept, if there is such.
fn free_runs(host: &Host, pid: u32, grain: u64, one_node: Option<u32>) -> Option<Vec<Run>> {
    let areas = host.maps(pid).ok()?;
    let known: BTreeMap<u64, numa_maps::Range> = host
        .numa_maps(pid)
        .ok()?
        .into_iter()
        .map(|r| (r.start, r))
        .collect();
    let pagemap = Pagemap::of(pid).ok()?;
    let (mut runs, mut asked) = (Vec::new(), 0);
    for area in areas.iter().filter(|a| a.permissions == "rw-p") {
        let Some(range) = known
            .get(&area.start)
            .filter(|r| !r.policy.contains(COMPANION_POLICY))
        else {
            continue;
        };
        match whole(area, range) {
            Some(run) => runs.push(run),
            None if range.pages.is_empty() || asked >= PAGES => {}
            None => {
                let from = runs.len();
                asked += mixed(pid, &pagemap, area, &mut runs);
                runs[from..].iter_mut().for_each(|r| r.shrink(area, grain));
            }
        }
    }
    if let Some(node) = one_node {
        runs = joined(runs, node);
    }
    runs.retain(|r| !r.pages.is_empty());
    runs.sort_by_key(|r| std::cmp::Reverse(r.pages.end - r.pages.start));
    // A run inside a mapping splits it into three.
    runs.truncate(MAPPINGS.saturating_sub(areas.len()) / 2);
    Some(runs)
}

/// The run of an area all of whose pages are on one node.
fn whole(area: &Area, range: &numa_maps::Range) -> Option<Run> {
    let (node, bytes) = range.bytes().next()?;
    let all = range.pages.len() == 1 && bytes == area.end - area.start;
    let pages = area.start / BASE..area.end / BASE;
    all.then_some(Run { pages, node })
}

/// Appends the runs of an area; returns the number of pages that were looked up.
fn mixed(pid: u32, pagemap: &Pagemap, area: &Area, runs: &mut Vec<Run>) -> usize {
    let mut resident = Vec::new();
    let (first, count) = (area.start / BASE, (area.end - area.start) / BASE);
    let read = pagemap.resident(first, count, |page| {
        if resident.len() < PAGES {
            resident.push(page * BASE);
        }
    });
    if read.is_err() {
        return 0;
    }
    let mut open: Option<Run> = None;
    for addresses in resident.chunks(QUERY) {
        let Ok(statuses) = pages::query(pid, addresses) else {
            break;
        };
        for (address, status) in addresses.iter().zip(statuses) {
            let (page, Some(node)) = (address / BASE, status.node()) else {
                continue;
            };
            match &mut open {
                Some(run) if run.pages.end == page && run.node == node => run.pages.end += 1,
                _ => runs.extend(open.replace(Run {
                    pages: page..page + 1,
                    node,
                })),
            }
        }
    }
    runs.extend(open);
    resident.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_one_policy_neighbours_on_different_nodes_are_one_run() {
        let run = |pages: Range<u64>, node| Run { pages, node };
        let all = joined(vec![run(7..9, 1), run(1..3, 0), run(3..6, 1)], 2);
        assert_eq!(all, [run(1..6, 2), run(7..9, 2)]);
    }

    #[test]
    fn mappings_are_not_cut_inside_huge_pages() {
        let area = Area::parse("100000-900000 rw-p 00000000 00:00 0").unwrap();
        let shrunk = |pages: Range<u64>| {
            let mut run = Run { pages, node: 0 };
            run.shrink(&area, HUGE);
            run.pages
        };
        assert_eq!(shrunk(0x100..0x900), 0x100..0x900, "the whole mapping");
        assert_eq!(shrunk(0x300..0x7ff), 0x400..0x600);
        assert_eq!(shrunk(0x100..0x5ff), 0x100..0x400);
        assert!(shrunk(0x3f0..0x410).is_empty());
    }

    #[test]
    fn runs_are_of_touched_memory_only() {
        if nodewise_linux::mempolicy::allowed_nodes().is_err() {
            return;
        }
        let memory = vec![1u8; 64 << 12];
        let runs = free_runs(&Host::default(), std::process::id(), 1, None).unwrap();
        let page = memory.as_ptr() as u64 / BASE + 1;
        assert!(runs.iter().any(|r| r.pages.contains(&page)));
        let untouched = Vec::<u8>::with_capacity(64 << 20);
        let page = untouched.as_ptr() as u64 / BASE + 4096;
        let runs = free_runs(&Host::default(), std::process::id(), 1, None).unwrap();
        assert!(!runs.iter().any(|r| r.pages.contains(&page)));
        assert!(
            runs.windows(2)
                .all(|w| w[0].pages.clone().count() >= w[1].pages.clone().count())
        );
    }
}
