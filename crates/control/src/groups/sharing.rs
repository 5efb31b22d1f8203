//! Estimates from samples which threads use the same pages.

use nodewise_profile::PageNumber;
use std::collections::HashMap;

/// Base-2 logarithm of the number of blocks whose last user is remembered: one megabyte, whatever the programs' size.
const REMEMBERED: u32 = 16;
/// Base-2 logarithm of the number of base pages in a block (64 KiB). A single page is hardly ever sampled twice when
/// only one fault of many is sampled; the parts of a program's data that threads work on are larger than a block.
const BLOCK: u32 = 4;
/// Weight, in samples, of the initial assumption that the threads of a process share all their memory: keeping threads
/// together that share nothing costs less than separating threads that share.
const ASSUMED: f64 = 16.0;
/// Pairs with a smaller count than this, after decay, are dropped.
const FORGOTTEN: f64 = 0.05;

/// Counts, with exponential decay, how often a visit to a block of pages by one thread followed a visit by another.
/// Consecutive samples of a thread in the same block are one visit: where every fault is sampled, a thread that sweeps
/// over a block has a sample for each page of it, and would seem to share the block with itself alone.
///
/// A direct-mapped table remembers the last user of a block, so that memory is bounded. Of a large program only a part
/// of the visits is seen, which does not change the shares.
#[derive(Clone, Debug)]
pub struct Sharing {
    last: Vec<(PageNumber, u32)>,
    /// The block of each thread's latest sample.
    at: HashMap<u32, PageNumber>,
    /// Visits by the thread of the sample and the thread of the visit before.
    after: HashMap<(u32, u32), f64>,
    /// Visits by the thread of the sample.
    all: HashMap<u32, f64>,
}

impl Default for Sharing {
    fn default() -> Self {
        Self {
            last: vec![(PageNumber(u64::MAX), 0); 1 << REMEMBERED],
            at: HashMap::new(),
            after: HashMap::new(),
            all: HashMap::new(),
        }
    }
}

impl Sharing {
    /// A sample of a page from a thread.
    pub fn add(&mut self, page: PageNumber, thread: u32) {
        let block = page.align_down(BLOCK);
        let slot = (block.0 >> BLOCK).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - REMEMBERED);
        let (known, before) = std::mem::replace(&mut self.last[slot as usize], (block, thread));
        let stayed = self.at.insert(thread, block) == Some(block);
        if known == block && !(stayed && before == thread) {
            *self.after.entry((thread, before)).or_default() += 1.0;
            *self.all.entry(thread).or_default() += 1.0;
        }
    }

    /// The share of a thread's visits, 0 to 1, that found `other` as the block's last user. `threads`: the number of
    /// threads of the process, for the initial assumption.
    #[must_use]
    pub fn share(&self, thread: u32, other: u32, threads: usize) -> f64 {
        let all = self.all.get(&thread).copied().unwrap_or(0.0);
        let of = self.after.get(&(thread, other)).copied().unwrap_or(0.0);
        (of + ASSUMED / threads.max(1) as f64) / (all + ASSUMED)
    }

    /// Applies the decay of an interval: `kept`, 0 to 1, is what is left of earlier samples.
    pub fn decay(&mut self, kept: f64) {
        let fades = |count: &mut f64| {
            *count *= kept;
            *count >= FORGOTTEN
        };
        self.after.retain(|_, count| fades(count));
        self.all.retain(|_, count| fades(count));
        self.at.retain(|thread, _| self.all.contains_key(thread));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In each pass of the kernel, the next access to every page is sampled; threads sweep at one speed from their
    /// positions.
    fn sweeps(of: &[(u32, u64, u64)], pages: u64) -> Sharing {
        let mut sharing = Sharing::default();
        let mut at: Vec<u64> = of.iter().map(|(_, from, _)| *from).collect();
        for _ in 0..40 {
            let mut marked: Vec<bool> = vec![true; (pages * of.len() as u64) as usize];
            for _ in 0..700 {
                for ((thread, _, base), at) in of.iter().zip(&mut at) {
                    let page = base + *at;
                    if std::mem::take(&mut marked[page as usize]) {
                        sharing.add(PageNumber(page), *thread);
                    }
                    *at = (*at + 1) % pages;
                }
            }
            sharing.decay(0.8);
        }
        sharing
    }

    #[test]
    fn threads_that_sweep_over_the_same_memory_share_it_however_densely_it_is_sampled() {
        for apart in [160, 400, 512] {
            let both = sweeps(&[(1, 0, 0), (2, apart, 0)], 1024);
            let shares = [both.share(1, 2, 2), both.share(2, 1, 2)];
            assert!(shares.iter().sum::<f64>() > 0.6, "{apart}: {shares:?}");
        }
        let apart = sweeps(&[(1, 0, 0), (2, 400, 1024)], 1024);
        let shares = [apart.share(1, 2, 2), apart.share(2, 1, 2)];
        assert!(shares.iter().all(|s| *s < 0.1), "{shares:?}");
    }
}
