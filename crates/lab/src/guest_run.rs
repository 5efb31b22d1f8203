//! Results of one run in the guest.

use nodewise_analysis::balance;
use std::collections::BTreeMap;

/// An object that the guest's processes reported: an allocation, or the executable's writable data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestObject {
    /// The number of its process in the guest.
    pub process: u32,
    /// Index in the map of the rule that placed it.
    pub rule: Option<u32>,
    /// Number of its first page.
    pub page: u64,
    /// Its length in pages.
    pub pages: u64,
    /// The thread that allocated it, by order of creation.
    pub thread: u32,
    /// User-mode reads and writes of the object, in the form of [`GuestRun::accesses`].
    pub accesses: Vec<Vec<u64>>,
}

/// A page, with its accesses during a whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestPage {
    /// Its virtual page number.
    pub page: u64,
    /// Index of its object in [`GuestRun::objects`]; `None` if it belongs to no object.
    pub object: Option<usize>,
    /// The node it was on at its last access.
    pub home: usize,
    /// Reads and writes, by node of the CPU.
    pub accesses: Vec<u64>,
}

/// The counts of one slice of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestSlice {
    /// End of the slice: nanoseconds on the guest's clock since the run began.
    pub end_ns: u64,
    /// The slice's part of [`GuestRun::accesses`].
    pub accesses: Vec<Vec<u64>>,
}

/// The results of one run. Matrices are `[cpu_node][memory_node]`, in user-mode accesses; empty if the run was not
/// counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuestRun {
    /// The placement, as asked for.
    pub under: String,
    /// Whether the run ended by itself, so that its results are complete.
    pub ended: bool,
    /// Exit status as a shell reports it; 0 until the run has ended.
    pub exit_status: u8,
    /// Duration on the guest's clock, nanoseconds; says nothing about the cost of memory.
    pub guest_ns: u64,
    /// Reads and writes of the command's objects.
    pub accesses: Vec<Vec<u64>>,
    /// All other reads and writes: to stacks, constants, libraries and small allocations.
    pub other_accesses: Vec<Vec<u64>>,
    /// The slices of the run, in order.
    pub slices: Vec<GuestSlice>,
    /// Number of touched pages of the objects, by the node that each was on last.
    pub pages: Vec<u64>,
    /// All pages that were accessed, ascending.
    pub page_list: Vec<GuestPage>,
    /// Increase of the kernel's counters in `/proc/vmstat`.
    pub kernel: BTreeMap<String, i64>,
    /// The objects, in the order they were seen.
    pub objects: Vec<GuestObject>,
    /// Whether `accesses` covers objects only; if no objects are known, it covers all memory.
    pub over_objects: bool,
    /// The JSON that `nodewise run --summary` wrote.
    pub placement: Option<String>,
    /// The JSON that `nodewise balance --summary` wrote.
    pub balance: Option<String>,
    /// Remarks that a reader of the figures must know, one line each.
    pub notes: Vec<String>,
}

impl GuestSlice {
    /// The share of the slice's accesses that were local; `None` without accesses.
    #[must_use]
    pub fn local_fraction(&self) -> Option<f64> {
        local_part(&self.accesses)
    }
}

/// The share of accesses on a matrix's diagonal; `None` without accesses.
fn local_part(accesses: &[Vec<u64>]) -> Option<f64> {
    let rows = accesses.iter().enumerate();
    let local: u64 = rows.filter_map(|(node, row)| row.get(node)).sum();
    let all: u64 = accesses.iter().flatten().sum();
    (all > 0).then(|| local as f64 / all as f64)
}

impl GuestRun {
    /// The share of the run's accesses that were local; `None` without accesses.
    #[must_use]
    pub fn local_fraction(&self) -> Option<f64> {
        local_part(&self.accesses)
    }

    /// The largest local fraction that a fixed mapping could have reached: each page always on the node that accessed
    /// it most (the locality policy of Diener et al., with hindsight).
    #[must_use]
    pub fn reachable_fraction(&self) -> Option<f64> {
        let counted = |p: &&GuestPage| p.object.is_some() || !self.over_objects;
        let pages = || self.page_list.iter().filter(counted);
        let most: u64 = pages().filter_map(|p| p.accesses.iter().max()).sum();
        let all: u64 = pages().flat_map(|p| &p.accesses).sum();
        (all > 0).then(|| most as f64 / all as f64)
    }

    /// How evenly accesses are spread over memory nodes (Diener et al., equation 5); `None` without accesses.
    #[must_use]
    pub fn access_balance(&self) -> Option<f64> {
        let nodes = self.accesses.first()?.len();
        let on = |node: usize| self.accesses.iter().map(|row| row[node]).sum();
        let per_node: Vec<u64> = (0..nodes).map(on).collect();
        (per_node.iter().sum::<u64>() > 0).then(|| balance(&per_node))
    }
}
