//! Which threads use the same pages, from samples.

use nodewise_profile::PageNumber;
use std::collections::HashMap;

/// log2 of the blocks whose last user is remembered: a megabyte, whatever the programs' size.
const REMEMBERED: u32 = 16;
/// log2 of the base pages in a block, 64 KiB: where one fault of many is sampled, a page is hardly ever seen twice. Parts
/// of a program's data that threads work on are larger.
const BLOCK: u32 = 4;
/// Samples for which it counts that threads of a process share all their memory: so it is assumed until samples tell, as
/// keeping together what shares nothing costs less than parting what shares.
const ASSUMED: f64 = 16.0;
/// Pairs that were seen less often than this, after decay, are dropped.
const FORGOTTEN: f64 = 0.05;

/// How often visits to a block of pages came from one thread after another, with exponential decay. Samples of a thread
/// in one block without one elsewhere between them are one visit: where every fault is sampled, a thread that sweeps over a
/// block has one for each page of it, and would seem to share it with itself alone.
///
/// A block's last user is remembered in a direct-mapped table, so the memory is bounded and a large program is seen in
/// part: shares do not depend on it.
#[derive(Clone, Debug)]
pub struct Sharing {
    last: Vec<(PageNumber, u32)>,
    /// The block that each thread was seen in last.
    at: HashMap<u32, PageNumber>,
    /// By the thread of the sample and the one before.
    after: HashMap<(u32, u32), f64>,
    /// By the thread of the sample.
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

    /// The share of a thread's visits, 0 to 1, that found the block last used by `other`, which is one of as many
    /// threads of its process as `threads` says.
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

    /// Each pass of the kernel, every page's next access is sampled; threads sweep at one speed from where they were.
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
