//! Moves one chunk to its node: first huge pages as a whole, then small pages; records which pages stayed and why.

use super::kernel::Kernel;
use super::plan::Pair;
use super::run::{BASE, HUGE, Run};
use super::stayed::{Cause, Stayed};
use nodewise_linux::pages::{CallError, PageStatus};
use std::time::Duration;

/// Base pages of a transparent huge page.
const HUGE_PAGES: usize = 1 << (HUGE - BASE);

/// Pause before pages that were in use are tried again: a page fault or a read that holds a page takes less, where its
/// thread is not preempted meanwhile. The kernel's own ten attempts follow one another at once.
const BEFORE_RETRY: Duration = Duration::from_millis(2);

/// Runs of pages that are moved by one call.
pub type Chunk = Vec<Run>;

/// Result of moving a chunk, in pages of 4 KiB.
#[derive(Debug, Default)]
pub struct ChunkResult {
    pub pages: u64,
    pub moved: u64,
    /// Number of huge pages that moved as a whole.
    pub huge: u64,
    pub stayed: Stayed,
    /// Pages for which the node had no room.
    pub refused: Vec<Run>,
    /// Whether the node has no room even for a small page.
    pub full: bool,
    /// The error because of which no further move is tried.
    pub end: Option<CallError>,
}

/// Moves the pages of a chunk to a node.
pub fn carry_out(kernel: &dyn Kernel, chunk: &Chunk, to: u32) -> ChunkResult {
    let mut outcome = ChunkResult {
        pages: chunk.iter().map(Run::pages).sum(),
        ..ChunkResult::default()
    };
    let mut shifts: Vec<u32> = chunk.iter().map(|r| r.shift).collect();
    shifts.sort_unstable();
    shifts.dedup();
    for shift in shifts {
        let runs = chunk.iter().filter(|r| r.shift == shift);
        let addresses: Vec<u64> = runs.flat_map(|r| r.addresses()).collect();
        let mut work = Work {
            kernel,
            to,
            shift,
            outcome: &mut outcome,
            refused: Vec::new(),
        };
        if shift == BASE {
            work.small_or_huge(&addresses);
        } else {
            let moved = work.move_and_record(addresses).len() as u64;
            work.outcome.huge += moved;
        }
        work.finish();
    }
    outcome
}

/// The state of moving pages of one size.
struct Work<'a> {
    kernel: &'a dyn Kernel,
    to: u32,
    shift: u32,
    outcome: &'a mut ChunkResult,
    refused: Vec<u64>,
}

impl Work<'_> {
    /// Moves the first page of each possible huge page. The kernel does not tell which pages are huge, but moves a huge
    /// page as a whole: where the other pages did not move along, they are small.
    fn small_or_huge(&mut self, addresses: &[u64]) {
        let (mut heads, mut rest) = (Vec::new(), Vec::new());
        let mut left = addresses;
        while let Some((first, _)) = left.split_first() {
            let count = if is_block(left) { HUGE_PAGES } else { 1 };
            if count == 1 { &mut rest } else { &mut heads }.push(*first);
            left = &left[count..];
        }
        let block = |head: u64| (0..HUGE_PAGES as u64).map(move |i| head + (i << BASE));
        let room = self
            .kernel
            .room(self.to)
            .map_or(usize::MAX, |bytes| (bytes >> HUGE) as usize);
        // Without room for a huge page, the kernel would split it rather than leave it.
        for head in heads.drain(room.min(heads.len())..) {
            self.refused.extend(block(head));
        }
        let moved = self.move_and_record(heads.clone());
        let whole = self.moved_whole(&moved);
        self.outcome.huge += whole.len() as u64;
        self.outcome.moved += (whole.len() * (HUGE_PAGES - 1)) as u64;
        let small = heads.iter().filter(|h| whole.binary_search(h).is_err());
        rest.extend(small.flat_map(|h| block(*h).skip(1)));
        rest.sort_unstable();
        if self.outcome.end.is_none() {
            let before = self.refused.len();
            self.move_and_record(rest);
            self.outcome.full = self.refused.len() > before;
        } else {
            self.record_stayed(&rest, Cause::Gone);
        }
    }

    /// The moved first pages whose huge pages moved as a whole: their second and last base page are on the node too.
    fn moved_whole(&self, moved: &[u64]) -> Vec<u64> {
        let last = (HUGE_PAGES as u64 - 1) << BASE;
        let asked: Vec<u64> = moved.iter().flat_map(|h| [h + (1 << BASE), h + last]).collect();
        let there = self.kernel.query(&asked).unwrap_or_default();
        let heads = moved.iter().zip(there.chunks(2));
        let whole = heads.filter(|(_, tails)| tails.iter().all(|t| t.node() == Some(self.to)));
        whole.map(|(head, _)| *head).collect()
    }

    /// Moves pages and records the result of each; returns those that moved, ascending.
    fn move_and_record(&mut self, addresses: Vec<u64>) -> Vec<u64> {
        let mut moved = Vec::new();
        let mut failed = self.try_once(addresses, &mut moved);
        if !failed.is_empty() {
            std::thread::sleep(BEFORE_RETRY);
            failed = self.try_once(failed, &mut moved);
        }
        self.record_stayed(&failed, Cause::Busy);
        self.outcome.moved += self.base_pages(moved.len());
        moved.sort_unstable();
        moved
    }

    /// Tries each page once; returns those that failed because they were in use.
    fn try_once(&mut self, mut left: Vec<u64>, moved: &mut Vec<u64>) -> Vec<u64> {
        let mut failed = Vec::new();
        while !left.is_empty() && self.outcome.end.is_none() {
            let (statuses, error) = self.kernel.move_to(&left, self.to);
            let now = self.query_unsettled(&left, &statuses);
            // When a page fails without a status, the kernel stops after the next page that gets one; pages behind that
            // were not tried.
            let said = statuses.iter().rposition(|s| *s != PageStatus::Unreported);
            let mut untried = Vec::new();
            for (at, ((address, status), now)) in left.iter().zip(&statuses).zip(now).enumerate() {
                match (status, now) {
                    (_, PageStatus::On(node)) if node == self.to => moved.push(*address),
                    (_, PageStatus::Absent | PageStatus::Fault) => {
                        self.record_stayed(&[*address], Cause::Gone);
                    }
                    (PageStatus::Shared, _) => self.record_stayed(&[*address], Cause::Shared),
                    (PageStatus::NoRoom, _) => self.refused.push(*address),
                    (PageStatus::Fault | PageStatus::Other(_), _) => {
                        self.record_stayed(&[*address], Cause::Unmovable);
                    }
                    (PageStatus::Unreported, _) if error == Some(CallError::NoRoom) => {
                        self.refused.push(*address);
                    }
                    (PageStatus::Unreported, _) if said.is_some_and(|s| at > s) => untried.push(*address),
                    _ => failed.push(*address),
                }
            }
            self.outcome.end = error.filter(|e| *e != CallError::NoRoom);
            left = untried;
        }
        self.record_stayed(&left, Cause::Gone);
        failed
    }

    /// Current state of the pages for which the kernel reported no final status.
    fn query_unsettled(&self, addresses: &[u64], statuses: &[PageStatus]) -> Vec<PageStatus> {
        use PageStatus::{Absent, Busy, Fault, Unreported};
        let open = |s: &PageStatus| matches!(s, Unreported | Busy | Fault | Absent);
        let asked: Vec<usize> = (0..statuses.len()).filter(|i| open(&statuses[*i])).collect();
        let mut now = statuses.to_vec();
        let questions: Vec<u64> = asked.iter().map(|i| addresses[*i]).collect();
        if !questions.is_empty() {
            let answers = self.kernel.query(&questions);
            let answers = answers.unwrap_or_else(|_| vec![PageStatus::Absent; questions.len()]);
            asked
                .into_iter()
                .zip(answers)
                .for_each(|(i, answer)| now[i] = answer);
        }
        now
    }

    fn record_stayed(&mut self, pages: &[u64], cause: Cause) {
        for address in pages {
            self.outcome.stayed.add_page(*address, self.shift, cause);
        }
    }

    fn base_pages(&self, pages: usize) -> u64 {
        (pages as u64) << (self.shift - BASE)
    }

    fn finish(mut self) {
        self.refused.sort_unstable();
        let mut pair = Pair {
            from: self.to,
            to: self.to,
            runs: Vec::new(),
        };
        for address in self.refused {
            pair.push(address, self.shift);
        }
        self.outcome.refused.extend(pair.runs);
    }
}

/// Whether the list begins with all base pages of an aligned huge page.
fn is_block(addresses: &[u64]) -> bool {
    addresses[0].trailing_zeros() >= HUGE
        && addresses
            .get(HUGE_PAGES - 1)
            .is_some_and(|last| *last == addresses[0] + ((HUGE_PAGES as u64 - 1) << BASE))
}
