//! Puts a file's pages on nodes: moves those that are in memory, and loads the others where that is asked for.

use crate::pieces::Pieces;
use crate::residence::WINDOW;
use nodewise_linux::file_pages::{self, FilePages};
use nodewise_linux::mempolicy::Policy;
use nodewise_linux::pages::{CallError, PageStatus, Scope};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: u64 = 4096;
/// Windows that a worker takes at a time: 64 MiB.
const WINDOWS_AT_A_TIME: u64 = 32;
/// Stretches of a shared memory object that get a policy of their own; the kernel keeps each in a tree of the object.
const MAX_STRETCHES: usize = 4096;

/// What to do with a file.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The file, open for reading.
    pub file: &'a File,
    /// Size of the file in bytes.
    pub size: u64,
    /// Where each page goes.
    pub pieces: &'a Pieces,
    /// Whether pages that are not in memory are read into it.
    pub load: bool,
    /// Which pages may be moved.
    pub scope: Scope,
    /// Whether the file is a shared memory object, which can keep a policy for pages to come.
    pub shared_memory: bool,
    /// Whether nothing is changed: pages that would be moved or loaded are counted.
    pub dry_run: bool,
}

/// What became of a file's pages, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// In memory, by the kernel's node number: afterwards, in a dry run as before.
    pub nodes: BTreeMap<u32, u64>,
    /// Of the file's pages that are to be in memory, how many the policy wants on each node.
    pub wanted: BTreeMap<u32, u64>,
    /// In memory on the node where the policy wants them.
    pub in_place: u64,
    /// Moved; in a dry run, to be moved.
    pub moved: u64,
    /// Loaded; in a dry run, to be loaded.
    pub loaded: u64,
    /// Left where they are, by cause.
    pub stayed: BTreeMap<Cause, u64>,
    /// Not in memory, and not loaded.
    pub absent: u64,
    /// Whether a shared memory object keeps the policy for pages to come.
    pub policy_kept: bool,
}

/// Why a page stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Other processes map it, and moving such pages needs `CAP_SYS_NICE`.
    Shared,
    /// The node that it should go to is full.
    NoRoom,
    /// Pinned, locked, or being written at that moment.
    Busy,
    /// Dropped from memory meanwhile, or cut off.
    Gone,
    /// Its file system cannot move pages, or the kernel said something else.
    Refused,
}

impl Cause {
    /// Why a page is not where it was to go, by its status and the error of the call as a whole.
    fn of(status: PageStatus, error: Option<CallError>) -> Self {
        match status {
            PageStatus::Shared => Self::Shared,
            PageStatus::NoRoom => Self::NoRoom,
            PageStatus::Unreported if error == Some(CallError::NoRoom) => Self::NoRoom,
            PageStatus::Busy => Self::Busy,
            PageStatus::Absent | PageStatus::Fault => Self::Gone,
            PageStatus::On(_) | PageStatus::Other(_) | PageStatus::Unreported => Self::Refused,
        }
    }
}

impl Placed {
    fn join(&mut self, other: &Self) {
        let add = |into: &mut BTreeMap<u32, u64>, from: &BTreeMap<u32, u64>| {
            from.iter()
                .for_each(|(node, bytes)| *into.entry(*node).or_default() += bytes);
        };
        add(&mut self.nodes, &other.nodes);
        add(&mut self.wanted, &other.wanted);
        self.in_place += other.in_place;
        self.moved += other.moved;
        self.loaded += other.loaded;
        self.absent += other.absent;
        for (cause, bytes) in &other.stayed {
            *self.stayed.entry(*cause).or_default() += bytes;
        }
    }
}

impl Job<'_> {
    /// Carries it out with several threads. A file that is truncated, grows, or is dropped from memory meanwhile is no
    /// error: what is there is placed. `progress` is called with further bytes that are done.
    ///
    /// # Errors
    /// The file cannot be mapped or read.
    pub fn carry_out(&self, progress: &(dyn Fn(u64) + Sync)) -> io::Result<Placed> {
        let windows = self.size.div_ceil(WINDOW);
        let parts = windows.div_ceil(WINDOWS_AT_A_TIME);
        let next = AtomicU64::new(0);
        let whole = Mutex::new(Ok(Placed::default()));
        let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        std::thread::scope(|scope| {
            for _ in 0..workers.min(parts) {
                scope.spawn(|| {
                    loop {
                        let first = next.fetch_add(1, Ordering::Relaxed) * WINDOWS_AT_A_TIME;
                        if first >= windows {
                            return;
                        }
                        for window in first..windows.min(first + WINDOWS_AT_A_TIME) {
                            let done = self.window(window);
                            let mut whole = whole.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                            match (&mut *whole, done) {
                                (Ok(sum), Ok(done)) => sum.join(&done),
                                (whole @ Ok(_), Err(error)) => *whole = Err(error),
                                (Err(_), _) => return,
                            }
                            progress(WINDOW.min(self.size - window * WINDOW));
                        }
                    }
                });
            }
        });
        let whole = whole
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        whole.map(|placed| Placed {
            policy_kept: self.shared_memory && !self.dry_run && self.keep_policy().is_ok(),
            ..placed
        })
    }

    fn window(&self, window: u64) -> io::Result<Placed> {
        let offset = window * WINDOW;
        let pages = FilePages::map(self.file, offset, WINDOW.min(self.size - offset))?;
        let wanted: Vec<u32> = (0..pages.count())
            .map(|p| self.pieces.node(offset / PAGE + p as u64))
            .collect();
        let before = pages.nodes()?;
        let mut placed = Placed::default();
        self.move_misplaced(&pages, &wanted, &before, &mut placed);
        let absent = |p: &usize| before[*p].node().is_none() && before[*p] == PageStatus::Absent;
        for run in runs(&wanted, |p| absent(&p)) {
            let bytes = run.len() as u64 * PAGE;
            if !self.load {
                continue;
            }
            placed.loaded += bytes;
            if !self.dry_run {
                let start = offset + run.start as u64 * PAGE;
                Policy::Preferred([wanted[run.start]].into_iter().collect()).apply()?;
                file_pages::load(self.file, start, bytes.min(self.size - start))?;
            }
        }
        let after = if self.dry_run { before } else { pages.nodes()? };
        for (status, node) in after.iter().zip(&wanted) {
            if let Some(on) = status.node() {
                *placed.nodes.entry(on).or_default() += PAGE;
                placed.in_place += PAGE * u64::from(on == *node);
            } else {
                placed.absent += PAGE;
            }
            if status.node().is_some() || self.load {
                *placed.wanted.entry(*node).or_default() += PAGE;
            }
        }
        if self.load && self.dry_run {
            placed.absent = 0;
        }
        Ok(placed)
    }

    fn move_misplaced(&self, pages: &FilePages, wanted: &[u32], before: &[PageStatus], placed: &mut Placed) {
        let mut by_node: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (page, (status, node)) in before.iter().zip(wanted).enumerate() {
            if status.node().is_some_and(|on| on != *node) {
                by_node.entry(*node).or_default().push(page);
            }
        }
        if self.dry_run {
            placed.moved += by_node
                .values()
                .map(|pages| pages.len() as u64 * PAGE)
                .sum::<u64>();
            return;
        }
        // A call for each node: one that is full ends the call, without a word on the pages after it.
        for (node, misplaced) in by_node {
            let (statuses, error) = pages.move_to(&misplaced, node, self.scope);
            for status in statuses {
                if status == PageStatus::On(node) {
                    placed.moved += PAGE;
                } else {
                    *placed.stayed.entry(Cause::of(status, error)).or_default() += PAGE;
                }
            }
        }
    }

    /// Has a shared memory object keep the policy, piece by piece.
    fn keep_policy(&self) -> io::Result<()> {
        let count = self.size.div_ceil(PAGE) as usize;
        let wanted: Vec<u32> = (0..count as u64).map(|page| self.pieces.node(page)).collect();
        let stretches = runs(&wanted, |_| true);
        if stretches.len() > MAX_STRETCHES {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let pages = FilePages::map(self.file, 0, self.size)?;
        for stretch in stretches {
            let node = wanted[stretch.start];
            pages.set_policy(stretch, &Policy::Preferred([node].into_iter().collect()))?;
        }
        Ok(())
    }
}

/// Neighbouring pages that satisfy a condition and go to the same node.
fn runs(wanted: &[u32], holds: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for page in (0..wanted.len()).filter(|p| holds(*p)) {
        match found.last_mut() {
            Some(run) if run.end == page && wanted[run.start] == wanted[page] => run.end += 1,
            _ => found.push(page..page + 1),
        }
    }
    found
}
