//! One chunk to its node: huge pages first and whole, then the others, then who stayed and why.

use super::kernel::Kernel;
use super::plan::{BASE, Pair, Run};
use super::queue::Chunk;
use super::stayed::{Cause, Stayed};
use nodewise_linux::pages::{CallError, PageStatus};

/// A transparent huge page, as shift, and its pages.
const HUGE: u32 = 21;
const HUGE_PAGES: usize = 1 << (HUGE - BASE);

/// What became of a chunk: pages of 4 KiB.
#[derive(Debug, Default)]
pub struct ChunkResult {
    pub pages: u64,
    pub moved: u64,
    /// Huge pages that moved whole.
    pub huge: u64,
    pub stayed: Stayed,
    /// Those that found no room.
    pub refused: Vec<Run>,
    /// Whether the node has no room for a small page either.
    pub full: bool,
    /// Why it is no use to go on.
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
            let moved = work.settle(addresses).len() as u64;
            work.outcome.huge += moved;
        }
        work.finish();
    }
    outcome
}

/// Pages of one size on their way.
struct Work<'a> {
    kernel: &'a dyn Kernel,
    to: u32,
    shift: u32,
    outcome: &'a mut ChunkResult,
    refused: Vec<u64>,
}

impl Work<'_> {
    /// Nobody tells which pages are huge, but the kernel takes a huge page along with its first: what
    /// has not come along is small.
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
        // The kernel would rather divide a huge page than leave it.
        for head in heads.drain(room.min(heads.len())..) {
            self.refused.extend(block(head));
        }
        let moved = self.settle(heads.clone());
        let whole = self.came_along(&moved);
        self.outcome.huge += whole.len() as u64;
        self.outcome.moved += (whole.len() * (HUGE_PAGES - 1)) as u64;
        let small = heads.iter().filter(|h| whole.binary_search(h).is_err());
        rest.extend(small.flat_map(|h| block(*h).skip(1)));
        rest.sort_unstable();
        if self.outcome.end.is_none() {
            let before = self.refused.len();
            self.settle(rest);
            self.outcome.full = self.refused.len() > before;
        } else {
            self.stay(&rest, Cause::Gone);
        }
    }

    /// Those of the moved first pages whose second and last page are on the node too.
    fn came_along(&self, moved: &[u64]) -> Vec<u64> {
        let last = (HUGE_PAGES as u64 - 1) << BASE;
        let asked: Vec<u64> = moved.iter().flat_map(|h| [h + (1 << BASE), h + last]).collect();
        let there = self.kernel.query(&asked).unwrap_or_default();
        let heads = moved.iter().zip(there.chunks(2));
        let whole = heads.filter(|(_, tails)| tails.iter().all(|t| t.node() == Some(self.to)));
        whole.map(|(head, _)| *head).collect()
    }

    /// Moves pages and writes down what became of each; gives the moved ones, ascending.
    fn settle(&mut self, addresses: Vec<u64>) -> Vec<u64> {
        let mut moved = Vec::new();
        let failed = self.pass(addresses, &mut moved);
        let failed = self.pass(failed, &mut moved);
        self.stay(&failed, Cause::Busy);
        self.outcome.moved += self.weigh(moved.len());
        moved.sort_unstable();
        moved
    }

    /// Tries each page once; gives those that somebody else was at.
    fn pass(&mut self, mut left: Vec<u64>, moved: &mut Vec<u64>) -> Vec<u64> {
        let mut failed = Vec::new();
        while !left.is_empty() && self.outcome.end.is_none() {
            let (statuses, error) = self.kernel.move_to(&left, self.to);
            let now = self.look_again(&left, &statuses);
            // The kernel gives up after a page that it could say something of, when one before it
            // failed without a word; pages behind were not tried.
            let said = statuses.iter().rposition(|s| *s != PageStatus::Unsaid);
            let mut untried = Vec::new();
            for (at, ((address, status), now)) in left.iter().zip(&statuses).zip(now).enumerate() {
                match (status, now) {
                    (_, PageStatus::On(node)) if node == self.to => moved.push(*address),
                    (_, PageStatus::Absent | PageStatus::Fault) => self.stay(&[*address], Cause::Gone),
                    (PageStatus::Shared, _) => self.stay(&[*address], Cause::Shared),
                    (PageStatus::NoRoom, _) => self.refused.push(*address),
                    (PageStatus::Fault | PageStatus::Other(_), _) => {
                        self.stay(&[*address], Cause::Unmovable);
                    }
                    (PageStatus::Unsaid, _) if error == Some(CallError::NoRoom) => {
                        self.refused.push(*address);
                    }
                    (PageStatus::Unsaid, _) if said.is_some_and(|s| at > s) => untried.push(*address),
                    _ => failed.push(*address),
                }
            }
            self.outcome.end = error.filter(|e| *e != CallError::NoRoom);
            left = untried;
        }
        self.stay(&left, Cause::Gone);
        failed
    }

    /// Where pages are of which the kernel said nothing final.
    fn look_again(&self, addresses: &[u64], statuses: &[PageStatus]) -> Vec<PageStatus> {
        use PageStatus::{Absent, Busy, Fault, Unsaid};
        let open = |s: &PageStatus| matches!(s, Unsaid | Busy | Fault | Absent);
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

    fn stay(&mut self, pages: &[u64], cause: Cause) {
        for address in pages {
            self.outcome.stayed.add_page(*address, self.shift, cause);
        }
    }

    fn weigh(&self, pages: usize) -> u64 {
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

/// Whether the list begins with all pages of what may be a huge page.
fn is_block(addresses: &[u64]) -> bool {
    addresses[0].trailing_zeros() >= HUGE
        && addresses
            .get(HUGE_PAGES - 1)
            .is_some_and(|last| *last == addresses[0] + ((HUGE_PAGES as u64 - 1) << BASE))
}
