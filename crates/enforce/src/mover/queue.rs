//! Queue of chunks for the workers, for each pair of nodes.

use super::chunk::Chunk;
use super::ledger::Ledger;
use super::plan::Pair;
use super::run::{BASE, Run};
use std::borrow::Borrow;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Pages of 4 KiB in a huge page; chunks end at multiples of it.
const HUGE: u64 = 512;

/// The waiting chunks of each pair, and the pages for which there was no room.
pub struct Queue {
    pairs: Vec<Pair>,
    state: Mutex<State>,
}

struct State {
    waiting: Vec<VecDeque<Chunk>>,
    refused: Vec<Vec<Run>>,
}

impl Queue {
    /// Splits the pages into chunks of about `chunk` pages each.
    pub fn of<P: Borrow<Pair>>(pairs: &[P], chunk: usize) -> Self {
        let all = || pairs.iter().map(Borrow::borrow);
        let empty = |p: &Pair| Pair {
            runs: Vec::new(),
            ..*p
        };
        Self {
            pairs: all().map(empty).collect(),
            state: Mutex::new(State {
                waiting: all().map(|p| cut(&p.runs, chunk as u64)).collect(),
                refused: vec![Vec::new(); pairs.len()],
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The nodes of a pair, without its pages: these are in the chunks.
    pub fn pair(&self, at: usize) -> &Pair {
        &self.pairs[at]
    }

    /// The next chunk of pair `at` (modulo the number of pairs), or, when it has none left, of the pair with most
    /// chunks.
    pub fn next(&self, at: usize) -> Option<(usize, Chunk)> {
        let mut state = self.state();
        let own = at.checked_rem(self.pairs.len())?;
        let most = (0..self.pairs.len()).max_by_key(|p| state.waiting[*p].len())?;
        let at = if state.waiting[own].is_empty() { most } else { own };
        state.waiting[at].pop_front().map(|chunk| (at, chunk))
    }

    /// Records pages of pair `at`, ascending, for which there was no room.
    pub fn refuse(&self, at: usize, runs: Vec<Run>) {
        self.state().refused[at].extend(runs);
    }

    /// Records that a node is full: all chunks that would go there are refused.
    pub fn give_up(&self, to: u32) {
        let mut state = self.state();
        let State { waiting, refused } = &mut *state;
        for (at, _) in self.pairs.iter().enumerate().filter(|(_, p)| p.to == to) {
            refused[at].extend(waiting[at].drain(..).flatten());
        }
    }

    /// Returns the pairs with their refused pages; chunks that still wait are recorded as not reached.
    pub fn finish(self, ledger: &Ledger<'_>) -> Vec<Pair> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        ledger.not_reached(state.waiting.iter().flatten().flatten().copied());
        let refused = self.pairs.into_iter().zip(state.refused);
        let refused = refused.filter(|(_, runs)| !runs.is_empty());
        refused
            .map(|(pair, mut runs)| {
                runs.sort_unstable_by_key(|r| r.address);
                Pair { runs, ..pair }
            })
            .collect()
    }
}

/// Splits runs into chunks of `size` pages. A split inside a run is moved down to a multiple of huge pages, or else up
/// to the next one.
fn cut(runs: &[Run], size: u64) -> VecDeque<Chunk> {
    let (mut chunks, mut chunk, mut room) = (VecDeque::new(), Vec::new(), size);
    for run in runs {
        let mut left = *run;
        while left.count > 0 {
            let part = first_part(&left, room);
            chunk.push(part);
            left.address += part.pages() << BASE;
            left.count -= part.count;
            room = room.saturating_sub(part.pages());
            if room == 0 || left.count > 0 {
                chunks.push_back(std::mem::take(&mut chunk));
                room = size;
            }
        }
    }
    chunks.extend((!chunk.is_empty()).then_some(chunk));
    chunks
}

/// The first part of a run, of at least one page, that does not split what may be a huge page.
pub fn first_part(run: &Run, room: u64) -> Run {
    if run.pages() <= room {
        return *run;
    }
    if run.shift > BASE {
        let count = (room >> (run.shift - BASE)).max(1) as u32;
        return Run { count, ..*run };
    }
    let first = run.address >> BASE;
    let (down, up) = ((first + room) / HUGE * HUGE, (first / HUGE + 1) * HUGE);
    // Pages before the first multiple, or too few after it, are no complete huge page and may be split anywhere.
    let end = match (down > first, first.is_multiple_of(HUGE) && run.pages() >= HUGE) {
        (true, _) => down,
        (false, true) => up,
        (false, false) => first + room,
    };
    let count = (end - first).min(run.pages()).max(1) as u32;
    Run { count, ..*run }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn runs() -> impl Strategy<Value = Vec<Run>> {
        let run = (1u64..700, 1u32..3000, prop::bool::weighted(0.1));
        prop::collection::vec(run, 0..12).prop_map(|parts| {
            let mut at = 1 << 30;
            let place = |(gap, count, hugetlb): (u64, u32, bool)| {
                let shift = if hugetlb { 21 } else { BASE };
                let count = if hugetlb { count % 5 + 1 } else { count };
                at = (at + (gap << BASE)).next_multiple_of(1 << shift);
                let run = Run {
                    address: at,
                    count,
                    shift,
                };
                at += run.pages() << BASE;
                run
            };
            parts.into_iter().map(place).collect()
        })
    }

    /// Blocks of 2 MiB that lie in one run, which a huge page may be.
    fn blocks(runs: &[Run]) -> Vec<u64> {
        let of_run = |r: &Run| {
            let (first, end) = (r.address >> BASE, (r.address >> BASE) + r.pages());
            (first.div_ceil(HUGE)..end / HUGE).collect::<Vec<_>>()
        };
        runs.iter().flat_map(of_run).collect()
    }

    proptest! {
        #[test]
        fn chunks_hold_every_page_once_and_divide_no_huge_page(runs in runs(), size in 1u64..5000) {
            let chunks = cut(&runs, size);
            let all = |runs: &mut dyn Iterator<Item = &Run>| -> Vec<u64> { runs.flat_map(|r| r.addresses()).collect() };
            prop_assert_eq!(all(&mut chunks.iter().flatten()), all(&mut runs.iter()));
            let whole: Vec<u64> = chunks.iter().flat_map(|c| blocks(c)).collect();
            prop_assert_eq!(whole, blocks(&runs));
            for chunk in &chunks {
                let pages: u64 = chunk.iter().map(Run::pages).sum();
                prop_assert!(pages > 0 && pages <= size.max(HUGE).max(1) + HUGE, "{} of {}", pages, size);
            }
        }
    }
}
