//! Moves that the kernel counts without saying of which pages: how many pages found elsewhere may have been moved by it.

use std::collections::{HashMap, VecDeque};

/// Intervals after which a move of the kernel explains no page any more: a page is found only when it is sampled next,
/// or when a policy that ranks pages looks at all of them.
const LIFE: usize = 8;

/// What the kernel's count of moved pages can still explain, by process.
#[derive(Debug, Default)]
pub struct KernelMoves(HashMap<u32, Account>);

#[derive(Debug, Default)]
struct Account {
    /// The count up to which moves are accounted for: by pages that were found, or by age.
    explained: u64,
    /// The count at the beginning of the last intervals.
    counts: VecDeque<u64>,
}

impl KernelMoves {
    /// Begins an interval in which the kernel has moved `count` pages of the process so far.
    pub fn begin_interval(&mut self, pid: u32, count: u64) {
        let account = self.0.entry(pid).or_default();
        account.counts.push_back(count);
        if account.counts.len() > LIFE
            && let Some(old) = account.counts.pop_front()
        {
            account.explained = account.explained.max(old);
        }
    }

    pub fn forget(&mut self, pid: u32) {
        self.0.remove(&pid);
    }

    /// Whether the kernel may have moved `pages` that were found on another node, after `count` moves of pages of the
    /// process; accounts for them. What exceeds its count, somebody else moved. A huge page may have been moved in part,
    /// so one page suffices.
    pub fn explain(&mut self, pid: u32, count: u64, pages: u64) -> bool {
        let account = self.0.entry(pid).or_default();
        let left = count.saturating_sub(account.explained);
        account.explained += pages.min(left);
        left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_moved_no_more_pages_than_it_counts() {
        let mut moves = KernelMoves::default();
        let explained = [(); 4].map(|()| moves.explain(7, 2, 1));
        assert_eq!(explained, [true, true, false, false]);
        assert!(moves.explain(7, 3, 1), "one more since");
        assert!(!moves.explain(8, 0, 1), "another process");
    }

    #[test]
    fn moves_explain_what_is_found_some_intervals_later_and_not_for_ever() {
        let mut moves = KernelMoves::default();
        (0..LIFE).for_each(|_| moves.begin_interval(7, 5));
        assert!(moves.explain(7, 5, 1));
        moves.begin_interval(7, 5);
        assert!(!moves.explain(7, 5, 1), "too old");
        assert!(moves.explain(7, 6, 1));
    }

    #[test]
    fn a_huge_page_takes_all_its_pages_and_may_have_moved_in_part() {
        let mut moves = KernelMoves::default();
        let explained = [(); 3].map(|()| moves.explain(7, 515, 512));
        assert_eq!(explained, [true, true, false]);
    }
}
