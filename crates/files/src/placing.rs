//! Puts a file's pages on nodes: moves those that are in memory, and loads the others where that is asked for.

use crate::pieces::Pieces;
use crate::windows::{DataWindows, WINDOW, length};
use nodewise_linux::file_pages::FilePages;
use nodewise_linux::mempolicy::Policy;
use nodewise_linux::page_cache;
use nodewise_linux::pages::{CallError, PageStatus, Scope};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

const PAGE: u64 = 4096;

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
    /// Whether nothing is changed: pages that would be moved or loaded are counted.
    pub dry_run: bool,
}

/// What became of a file's pages, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// In memory at the end, by the kernel's node number; in a dry run as they are now.
    pub nodes: BTreeMap<u32, u64>,
    /// Of the file's pages that are to be in memory, how many the policy wants on each node.
    pub wanted: BTreeMap<u32, u64>,
    /// In memory at the end on the node where the policy wants them.
    pub in_place: u64,
    /// Came to their node; in a dry run, to be moved.
    pub moved: u64,
    /// Loaded; in a dry run, to be loaded.
    pub loaded: u64,
    /// Left where they are, or loaded elsewhere, by cause.
    pub stayed: BTreeMap<Cause, u64>,
    /// Not in memory at the end. Holes of the file do not count.
    pub absent: u64,
    /// Whether a shared memory object keeps the policy for pages to come.
    pub policy_kept: bool,
}

/// Why a page is not where it should be.
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
    /// In words, with what to do where something can be done.
    #[must_use]
    pub fn why(self) -> &'static str {
        match self {
            Self::Shared => "other processes map it, and moving that needs root (CAP_SYS_NICE)",
            Self::NoRoom => "the node is full",
            Self::Busy => "in use by the kernel at that moment, or pinned; run it again",
            Self::Gone => "dropped from memory or cut off meanwhile",
            Self::Refused => "the kernel does not move it",
        }
    }

    /// Why a page is not where it was to go, by its status and the error of the call as a whole.
    fn of(status: PageStatus, error: Option<CallError>) -> Self {
        match status {
            PageStatus::Shared => Self::Shared,
            PageStatus::NoRoom => Self::NoRoom,
            PageStatus::Unreported if error == Some(CallError::NoRoom) => Self::NoRoom,
            // The kernel has tried ten times, and says no more than that a page was left over.
            PageStatus::Unreported if error.is_none() => Self::Busy,
            PageStatus::Busy => Self::Busy,
            PageStatus::Absent | PageStatus::Fault => Self::Gone,
            PageStatus::On(_) | PageStatus::Other(_) | PageStatus::Unreported => Self::Refused,
        }
    }
}

fn add(into: &mut BTreeMap<u32, u64>, node: u32, bytes: u64) {
    *into.entry(node).or_default() += bytes;
}

impl Placed {
    fn join(&mut self, other: &Self) {
        other
            .nodes
            .iter()
            .for_each(|(node, bytes)| add(&mut self.nodes, *node, *bytes));
        other
            .wanted
            .iter()
            .for_each(|(node, bytes)| add(&mut self.wanted, *node, *bytes));
        self.in_place += other.in_place;
        self.moved += other.moved;
        self.loaded += other.loaded;
        self.absent += other.absent;
        for (cause, bytes) in &other.stayed {
            *self.stayed.entry(*cause).or_default() += bytes;
        }
    }

    fn stay(&mut self, cause: Cause, bytes: u64) {
        *self.stayed.entry(cause).or_default() += bytes;
    }
}

/// A window of a file while it is placed.
struct Window {
    pages: FilePages,
    /// First page of the window, numbered within the file.
    first: u64,
    bytes: u64,
    /// The node of each page.
    wanted: Vec<u32>,
}

impl Window {
    fn of(job: &Job<'_>, window: u64) -> io::Result<Self> {
        let bytes = length(window, job.size);
        let pages = FilePages::map(job.file, window * WINDOW, bytes)?;
        let first = window * WINDOW / PAGE;
        Ok(Self {
            wanted: (first..)
                .take(pages.count())
                .map(|page| job.pieces.node(page))
                .collect(),
            pages,
            first,
            bytes,
        })
    }

    /// Bytes of a page: of the last of a file, as far as the file goes.
    fn page_bytes(&self, page: usize) -> u64 {
        PAGE.min(self.bytes - page as u64 * PAGE)
    }

    fn misplaced(&self, statuses: &[PageStatus]) -> BTreeMap<u32, Vec<usize>> {
        let mut by_node: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (page, (status, node)) in statuses.iter().zip(&self.wanted).enumerate() {
            if status.node().is_some_and(|on| on != *node) {
                by_node.entry(*node).or_default().push(page);
            }
        }
        by_node
    }
}

impl Job<'_> {
    /// Carries it out with several threads, and asks the kernel at the end where the pages are. A file that is truncated,
    /// grows, or is dropped from memory meanwhile is no error: what is there is placed. `progress` is called with further
    /// bytes that are done.
    ///
    /// # Errors
    /// The file cannot be mapped or read, or this user does not learn which of its pages are in memory.
    pub fn carry_out(&self, progress: &(dyn Fn(u64) + Sync)) -> io::Result<Placed> {
        let mut placed = self.each(&|window| self.change(window), progress)?;
        // Only now: what is loaded late may have driven out what was loaded first.
        let last = self.each(&|window| self.count(window), &|_| ())?;
        placed.join(&last);
        Ok(placed)
    }

    /// Calls `work` for each window with data, from several threads, and adds up what it returns.
    fn each(
        &self,
        work: &(dyn Fn(u64) -> io::Result<Placed> + Sync),
        progress: &(dyn Fn(u64) + Sync),
    ) -> io::Result<Placed> {
        fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
            mutex.lock().unwrap_or_else(PoisonError::into_inner)
        }
        let windows = Mutex::new(DataWindows::of(self.file, self.size));
        let whole = Mutex::new(Ok(Placed::default()));
        let next = || locked(&windows).next();
        let worker = || {
            while let Some(window) = next() {
                let done = work(window);
                match (&mut *locked(&whole), done) {
                    (Ok(sum), Ok(done)) => sum.join(&done),
                    (whole @ Ok(_), Err(error)) => *whole = Err(error),
                    (Err(_), _) => return,
                }
                progress(length(window, self.size));
            }
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(worker))));
        whole.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves and loads the pages of a window.
    fn change(&self, number: u64) -> io::Result<Placed> {
        let window = Window::of(self, number)?;
        let before = window.pages.nodes()?;
        let mut placed = Placed::default();
        let (misplaced, absent) = (window.misplaced(&before), absent(&before));
        let bytes = |pages: &mut dyn Iterator<Item = usize>| pages.map(|p| window.page_bytes(p)).sum::<u64>();
        if self.dry_run {
            placed.moved = bytes(&mut misplaced.values().flatten().copied());
            placed.loaded = if self.load {
                bytes(&mut absent.iter().copied())
            } else {
                0
            };
            return Ok(placed);
        }
        let mut causes: BTreeMap<usize, Cause> = BTreeMap::new();
        for (node, pages) in &misplaced {
            self.send(&window, *node, pages, &mut causes);
        }
        if self.load {
            for run in runs(&absent, &window.wanted) {
                let node = window.wanted[run.start];
                Policy::Preferred([node].into_iter().collect()).apply()?;
                let start = (window.first + run.start as u64) * PAGE;
                page_cache::load(self.file, start, run.len() as u64 * PAGE)?;
            }
        }
        let after = window.pages.nodes()?;
        for (page, node) in misplaced
            .iter()
            .flat_map(|(node, pages)| pages.iter().map(move |p| (*p, *node)))
        {
            match (after[page], causes.get(&page)) {
                (PageStatus::On(on), _) if on == node => placed.moved += window.page_bytes(page),
                (_, cause) => placed.stay(cause.copied().unwrap_or(Cause::Refused), window.page_bytes(page)),
            }
        }
        for page in absent {
            if let Some(on) = after[page].node() {
                placed.loaded += window.page_bytes(page);
                if on != window.wanted[page] {
                    placed.stay(Cause::NoRoom, window.page_bytes(page));
                }
            }
        }
        Ok(placed)
    }

    /// Moves pages to a node, and enters why some stay. One page that cannot move ends the kernel's call, without a word
    /// on those after it: these are sent again one by one.
    fn send(&self, window: &Window, node: u32, pages: &[usize], causes: &mut BTreeMap<usize, Cause>) {
        let mut send = |pages: &[usize]| -> Vec<usize> {
            let (statuses, error) = window.pages.move_to(pages, node, self.scope);
            let mut unreported = Vec::new();
            for (page, status) in pages.iter().zip(statuses) {
                if status != PageStatus::On(node) {
                    causes.insert(*page, Cause::of(status, error));
                }
                if status == PageStatus::Unreported && error != Some(CallError::NoRoom) {
                    unreported.push(*page);
                }
            }
            unreported
        };
        for page in send(pages) {
            send(&[page]);
        }
    }

    /// Where the pages of a window are at the end.
    fn count(&self, number: u64) -> io::Result<Placed> {
        let window = Window::of(self, number)?;
        let mut placed = Placed::default();
        for (page, status) in window.pages.nodes()?.iter().enumerate() {
            let (bytes, wanted) = (window.page_bytes(page), window.wanted[page]);
            match status.node() {
                Some(on) => {
                    add(&mut placed.nodes, on, bytes);
                    placed.in_place += bytes * u64::from(on == wanted);
                }
                None => placed.absent += bytes,
            }
            if status.node().is_some() || self.load {
                add(&mut placed.wanted, wanted, bytes);
            }
        }
        Ok(placed)
    }
}

fn absent(statuses: &[PageStatus]) -> Vec<usize> {
    let is_absent = |page: &usize| statuses[*page] == PageStatus::Absent;
    (0..statuses.len()).filter(is_absent).collect()
}

/// Neighbouring pages among these that go to the same node.
fn runs(pages: &[usize], wanted: &[u32]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for page in pages {
        match found.last_mut() {
            Some(run) if run.end == *page && wanted[run.start] == wanted[*page] => run.end += 1,
            _ => found.push(*page..page + 1),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_node_are_a_run() {
        let wanted = [0, 0, 1, 1, 1, 0];
        assert_eq!(runs(&[0, 1, 2, 4, 5], &wanted), [0..2, 2..3, 4..5, 5..6]);
        assert!(runs(&[], &wanted).is_empty());
    }
}
