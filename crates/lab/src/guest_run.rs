//! Results of one run in the guest.

use nodewise_analysis::balance;
use std::collections::BTreeMap;

/// An object that was placed or seen: an allocation, or the executable's writable data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectSeen {
    /// The process it belongs to, in the guest.
    pub process: u32,
    /// The rule that placed it, by its place in the map.
    pub rule: Option<u32>,
    /// Number of its first page.
    pub page: u64,
    /// Its length in pages.
    pub pages: u64,
    /// Who allocated it, by order of creation.
    pub thread: u32,
    /// User-mode reads and writes of it, as `accesses` of the outcome.
    pub accesses: Vec<Vec<u64>>,
}

/// A page, over all of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageSeen {
    /// Its virtual page number.
    pub page: u64,
    /// Whose it is, by its place in [`GuestRun::objects`]; none: it belongs to no object.
    pub object: Option<usize>,
    /// The node it was on when it was last accessed.
    pub home: usize,
    /// Reads and writes by node of the CPU.
    pub accesses: Vec<u64>,
}

/// A slice of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SliceSeen {
    /// When it ended, nanoseconds of the guest's clock after the run's beginning.
    pub end_ns: u64,
    /// Its part of [`GuestRun::accesses`].
    pub accesses: Vec<Vec<u64>>,
}

/// One run. Matrices are `[cpu_node][memory_node]`, in accesses of user mode; empty if it was not counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuestRun {
    /// The placement, as asked for.
    pub under: String,
    /// Whether it ran to its end, and its results are here.
    pub ended: bool,
    /// As a shell gives it; 0 as long as it has not ended.
    pub exit_status: u8,
    /// The guest's own clock, nanoseconds: says nothing about the cost of memory.
    pub guest_ns: u64,
    /// Reads and writes of the command's objects.
    pub accesses: Vec<Vec<u64>>,
    /// The rest: stacks, code's constants, libraries, small allocations.
    pub elsewhere: Vec<Vec<u64>>,
    /// Slices of it, in order.
    pub slices: Vec<SliceSeen>,
    /// By node: touched pages of the objects, where each was last.
    pub pages: Vec<u64>,
    /// Every page that was accessed, ascending.
    pub page_list: Vec<PageSeen>,
    /// What the kernel's counters in `/proc/vmstat` rose by.
    pub kernel: BTreeMap<String, i64>,
    /// The objects, in the order they were seen.
    pub objects: Vec<ObjectSeen>,
    /// Whether `accesses` are over objects; otherwise none are known and it is over everything.
    pub over_objects: bool,
    /// What `nodewise run --summary` wrote, JSON.
    pub placement: Option<String>,
    /// What `nodewise balance --summary` wrote, JSON.
    pub balance: Option<String>,
    /// What a reader of the figures must know: one line each.
    pub notes: Vec<String>,
}

impl SliceSeen {
    /// The part of its accesses that found their page on their own node; none without accesses.
    #[must_use]
    pub fn local_fraction(&self) -> Option<f64> {
        local_part(&self.accesses)
    }
}

/// The diagonal's part of a matrix.
fn local_part(accesses: &[Vec<u64>]) -> Option<f64> {
    let rows = accesses.iter().enumerate();
    let local: u64 = rows.filter_map(|(node, row)| row.get(node)).sum();
    let all: u64 = accesses.iter().flatten().sum();
    (all > 0).then(|| local as f64 / all as f64)
}

impl GuestRun {
    /// The part of the accesses that found their page on their own node; none without accesses.
    #[must_use]
    pub fn local_fraction(&self) -> Option<f64> {
        local_part(&self.accesses)
    }

    /// The local fraction that a fixed mapping could have reached at best: each page, all along, on the
    /// node that accessed it most (the locality policy of Diener et al., with hindsight).
    #[must_use]
    pub fn reachable_fraction(&self) -> Option<f64> {
        let counted = |p: &&PageSeen| p.object.is_some() || !self.over_objects;
        let pages = || self.page_list.iter().filter(counted);
        let most: u64 = pages().filter_map(|p| p.accesses.iter().max()).sum();
        let all: u64 = pages().flat_map(|p| &p.accesses).sum();
        (all > 0).then(|| most as f64 / all as f64)
    }

    /// How even the load of the memory nodes is (Diener et al., equation 5); none without accesses.
    #[must_use]
    pub fn access_balance(&self) -> Option<f64> {
        let nodes = self.accesses.first()?.len();
        let on = |node: usize| self.accesses.iter().map(|row| row[node]).sum();
        let per_node: Vec<u64> = (0..nodes).map(on).collect();
        (per_node.iter().sum::<u64>() > 0).then(|| balance(&per_node))
    }
}
