//! Plans of which pages of a process move, for each pair of nodes.

use super::kernel::{Kernel, Linux};
use super::refusal;
use super::run::{BASE, HUGE, Run};
use super::stayed::{Cause, Stayed};
use crate::EnforceError;
use nodewise_linux::maps::Area;
use nodewise_linux::numa_maps::Range;
use nodewise_linux::pagemap::Pagemap;
use nodewise_linux::pages::{CallError, PageStatus, Scope};
use nodewise_linux::{Host, ReadError};
use nodewise_placement::Deal;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Pages queried in one call.
const ASKED: usize = 1 << 15;

/// A run of pages and the node that they should be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Address of the first page.
    pub address: u64,
    /// Number of pages of 4 KiB.
    pub pages: u64,
    /// The kernel's number of the node.
    pub node: u32,
}

impl Target {
    /// Addresses of its bytes.
    #[must_use]
    pub fn bytes(&self) -> std::ops::Range<u64> {
        self.address..self.address + (self.pages << BASE)
    }
}

/// Pages that move from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The kernel's number of the node that they are on.
    pub from: u32,
    /// The kernel's number of the node that they move to.
    pub to: u32,
    /// Runs of pages, in ascending order of address.
    pub runs: Vec<Run>,
}

impl Pair {
    /// Number of pages of 4 KiB.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.runs.iter().map(Run::pages).sum()
    }

    /// Appends a page, if possible to the last run.
    pub(super) fn push(&mut self, address: u64, shift: u32) {
        match self.runs.last_mut() {
            Some(run)
                if run.shift == shift
                    && run.address + (u64::from(run.count) << shift) == address
                    && run.count < u32::MAX =>
            {
                run.count += 1;
            }
            _ => self.runs.push(Run {
                address,
                count: 1,
                shift,
            }),
        }
    }
}

/// The pages of a process that will move, and those that cannot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Process whose pages will move.
    pub pid: u32,
    /// Pages to move for each pair of nodes.
    pub pairs: Vec<Pair>,
    /// Pages on these nodes that are known to stay: shared with other processes; swapped out; or resident, but on a
    /// node that the kernel does not tell (being migrated, or protected by balancing in a process whose page map we may
    /// not read).
    pub stayed: Stayed,
}

impl Plan {
    /// Pages of 4 KiB to move.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.pairs.iter().map(Pair::pages).sum()
    }

    /// All pages of a process on the nodes from which `to` moves pages; its pairs are source and target, by the
    /// kernel's numbers. A process that has just ended has no pages. Pages that other processes map too are moved in
    /// [`Scope::Shared`] alone, else they stay.
    ///
    /// # Errors
    /// There is no such process, or we may not read its memory map.
    pub fn of_nodes(pid: u32, to: &[(u32, u32)], scope: Scope) -> Result<Self, EnforceError> {
        Self::by(pid, Aim::Nodes(to.iter().copied().collect()), scope)
    }

    /// All pages of a process that are not where `deal` has them: pages on `from`, by virtual page number, each node of the
    /// deal being the one with that index in `to`; by the kernel's numbers. In mappings with transparent huge pages two
    /// megabytes each are dealt, as a huge page moves whole. The rest is as in [`Plan::of_nodes`].
    ///
    /// # Errors
    /// Those of [`Plan::of_nodes`].
    pub fn of_shares(
        pid: u32,
        from: &[u32],
        (to, deal): (&[u32], &Deal),
        scope: Scope,
    ) -> Result<Self, EnforceError> {
        let aim = Aim::Shares {
            from: from.iter().copied().collect(),
            to: to.to_vec(),
            deal: deal.clone(),
            huge: Host::default()
                .huge_mappings(pid)
                .unwrap_or_default()
                .into_keys()
                .collect(),
            block: BASE,
        };
        Self::by(pid, aim, scope)
    }

    fn by(pid: u32, aim: Aim, scope: Scope) -> Result<Self, EnforceError> {
        let mut planner = Planner::new(pid, aim, scope);
        let host = Host::default();
        let ranges = host.numa_maps(pid).map_err(|e| unreadable(pid, &e))?;
        let areas = host.maps(pid).map_err(|e| unreadable(pid, &e))?;
        let ends: HashMap<u64, &Area> = areas.iter().map(|a| (a.start, a)).collect();
        let map = Pagemap::of(pid).ok();
        for range in &ranges {
            // A range without area was mapped between the two readings.
            let Some(area) = ends.get(&range.start).filter(|_| planner.concerns(range)) else {
                continue;
            };
            planner.aim.enter(area.start, range.page_size.ilog2());
            match planner.scan(area, range.page_size.ilog2(), map.as_ref()) {
                Err(CallError::Gone) => break,
                answer => answer.map_err(|e| refusal::explain(pid, e))?,
            }
        }
        Ok(planner.finish())
    }

    /// The resident pages of the targets that are on other nodes, and for each target whether all of its resident pages are on its
    /// node already. A process that has ended has none.
    ///
    /// # Errors
    /// We may not read the memory map of the process.
    pub fn of_targets(pid: u32, targets: &[Target]) -> Result<(Self, Vec<bool>), EnforceError> {
        let mut planner = Planner::new(pid, Aim::Nodes(BTreeMap::new()), Scope::Exclusive);
        let pages = targets.iter().enumerate().flat_map(|(target, t)| {
            let address = t.address >> BASE << BASE;
            (0..t.pages).map(move |i| (address + (i << BASE), target))
        });
        let mut pages: Vec<(u64, usize)> = pages.collect();
        pages.sort_unstable_by_key(|p| p.0);
        pages.dedup_by_key(|p| p.0);
        // Pages of each target on its node, and elsewhere.
        let mut found = vec![(0, 0); targets.len()];
        for part in pages.chunks(ASKED) {
            let addresses: Vec<u64> = part.iter().map(|p| p.0).collect();
            let statuses = match planner.kernel.query(&addresses) {
                Err(CallError::Gone) => break,
                answer => answer.map_err(|e| refusal::explain(pid, e))?,
            };
            for ((address, target), status) in part.iter().zip(statuses) {
                let to = targets[*target].node;
                match status.node() {
                    Some(from) if from != to => {
                        planner.push(from, to, *address, BASE);
                        found[*target].1 += 1;
                    }
                    Some(_) => found[*target].0 += 1,
                    None => {}
                }
            }
        }
        let already = found
            .into_iter()
            .map(|(there, elsewhere)| there > 0 && elsewhere == 0);
        Ok((planner.finish(), already.collect()))
    }
}

/// The current node of each target's first resident page.
pub fn homes(pid: u32, targets: &[Target]) -> Vec<Option<u32>> {
    let kernel = Linux::of(pid, Scope::Exclusive);
    let addresses: Vec<u64> = targets.iter().map(|t| t.address).collect();
    let mut homes = nodes(&kernel, &addresses);
    let unknown = homes.iter_mut().zip(targets).filter(|(home, _)| home.is_none());
    for (home, target) in unknown.filter(|(_, target)| target.pages > 1) {
        let rest: Vec<u64> = (1..target.pages).map(|i| target.address + (i << BASE)).collect();
        *home = nodes(&kernel, &rest).into_iter().flatten().next();
    }
    homes
}

/// Whether any page of each target is resident, even if the kernel does not tell its node; all true if the page map
/// cannot be read.
pub fn present(pid: u32, targets: &[Target]) -> Vec<bool> {
    let Ok(map) = Pagemap::of(pid) else {
        return vec![Host::default().has_process(pid); targets.len()];
    };
    let is_there = |target: &Target| {
        let mut there = false;
        // A process that has ended has no pages.
        let _ = map.resident(target.address >> BASE, target.pages, |_| there = true);
        there
    };
    targets.iter().map(is_there).collect()
}

/// The node of each page, where the kernel tells it.
fn nodes(kernel: &Linux, addresses: &[u64]) -> Vec<Option<u32>> {
    let parts = addresses.chunks(ASKED);
    parts
        .flat_map(|part| match kernel.query(part) {
            Ok(statuses) => statuses.into_iter().map(PageStatus::node).collect(),
            Err(_) => vec![None; part.len()],
        })
        .collect()
}

fn unreadable(pid: u32, error: &ReadError) -> EnforceError {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => refusal::explain(pid, CallError::Denied),
        _ if !Host::default().has_process(pid) => refusal::explain(pid, CallError::Gone),
        _ => EnforceError::usage(error.to_string()),
    }
}

/// Which pages go where.
enum Aim {
    /// All of a node to another one.
    Nodes(BTreeMap<u32, u32>),
    /// Pages on some nodes, dealt over others.
    Shares {
        from: BTreeSet<u32>,
        to: Vec<u32>,
        deal: Deal,
        /// Addresses at which mappings with huge pages begin.
        huge: BTreeSet<u64>,
        /// log2 of the bytes that are dealt at a time in the mapping at hand.
        block: u32,
    },
}

impl Aim {
    fn concerns(&self, node: u32) -> bool {
        match self {
            Self::Nodes(to) => to.contains_key(&node),
            Self::Shares { from, .. } => from.contains(&node),
        }
    }

    /// Prepares for the mapping at `start`, with pages of 2^`shift` bytes.
    fn enter(&mut self, start: u64, shift: u32) {
        if let Self::Shares { huge, block, .. } = self {
            *block = if huge.contains(&start) {
                shift.max(HUGE)
            } else {
                shift
            };
        }
    }

    /// Where a page on `node` goes, if it moves.
    fn target(&self, node: u32, address: u64) -> Option<u32> {
        let target = match self {
            Self::Nodes(to) => to.get(&node),
            Self::Shares { to, deal, block, .. } => to.get(deal.node(address >> block).index()),
        };
        target.copied().filter(|to| *to != node && self.concerns(node))
    }
}

/// State while a plan is made.
struct Planner {
    kernel: Linux,
    scope: Scope,
    aim: Aim,
    pairs: BTreeMap<(u32, u32), Pair>,
    plan: Plan,
}

impl Planner {
    fn new(pid: u32, aim: Aim, scope: Scope) -> Self {
        Self {
            kernel: Linux::of(pid, scope),
            scope,
            aim,
            pairs: BTreeMap::new(),
            plan: Plan {
                pid,
                ..Plan::default()
            },
        }
    }

    fn concerns(&self, range: &Range) -> bool {
        range.pages.keys().any(|node| self.aim.concerns(*node))
    }

    fn push(&mut self, from: u32, to: u32, address: u64, shift: u32) {
        let pair = self.pairs.entry((from, to)).or_insert_with(|| Pair {
            from,
            to,
            runs: Vec::new(),
        });
        pair.push(address, shift);
    }

    /// Adds the pages of one mapping: first which are resident and shared, then their nodes.
    fn scan(&mut self, area: &Area, shift: u32, map: Option<&Pagemap>) -> Result<(), CallError> {
        let step = ASKED as u64;
        for first in (area.start >> BASE..area.end >> BASE).step_by(ASKED) {
            let count = step.min((area.end >> BASE) - first);
            let mut pages: Vec<(u64, bool)> = Vec::new();
            let head = |page: u64| (page << BASE).trailing_zeros() >= shift;
            match map {
                Some(map) => {
                    let sorted = map.each(first, count, |page, entry| match entry {
                        _ if !head(page) => {}
                        e if e.swapped() => self.plan.stayed.add_page(page << BASE, shift, Cause::Swapped),
                        e if e.present() => pages.push((page << BASE, e.exclusive())),
                        _ => {}
                    });
                    sorted.map_err(|_| CallError::Gone)?;
                }
                // The kernel will report shared pages when they are moved.
                None => pages.extend(
                    (first..first + count)
                        .filter(|p| head(*p))
                        .map(|p| (p << BASE, true)),
                ),
            }
            self.locate(&pages, shift)?;
        }
        Ok(())
    }

    fn locate(&mut self, pages: &[(u64, bool)], shift: u32) -> Result<(), CallError> {
        let addresses: Vec<u64> = pages.iter().map(|p| p.0).collect();
        let statuses = self.kernel.query(&addresses)?;
        for ((address, exclusive), status) in pages.iter().zip(statuses) {
            if matches!(status, PageStatus::Absent | PageStatus::Busy) {
                self.plan.stayed.add_page(*address, shift, Cause::Busy);
            }
            let way = |from| Some((from, self.aim.target(from, *address)?));
            let Some((from, to)) = status.node().and_then(way) else {
                continue;
            };
            if *exclusive || self.scope == Scope::Shared {
                self.push(from, to, *address, shift);
            } else {
                self.plan.stayed.add_page(*address, shift, Cause::Shared);
            }
        }
        Ok(())
    }

    fn finish(self) -> Plan {
        Plan {
            pairs: self.pairs.into_values().collect(),
            ..self.plan
        }
    }
}
