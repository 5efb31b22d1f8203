//! Moves that the kernel counts without saying of which pages: how many pages found elsewhere may have been moved by it.

use std::collections::HashMap;

/// For each process the kernel's count up to which moves are accounted for: by pages that were found, or by age.
#[derive(Debug, Default)]
pub struct KernelMoves(HashMap<u32, u64>);

impl KernelMoves {
    /// Begins an interval: what the kernel moved before, `total` pages of the process, explains no page that is found
    /// from now on.
    pub fn begin_interval(&mut self, pid: u32, total: u64) {
        self.0.insert(pid, total);
    }

    pub fn forget(&mut self, pid: u32) {
        self.0.remove(&pid);
    }

    /// Number of pages whose moves are not accounted for, if the kernel has moved `total` of the process.
    pub fn unexplained(&self, pid: u32, total: u64) -> u64 {
        total.saturating_sub(self.0.get(&pid).copied().unwrap_or(0))
    }

    /// Accounts for pages that were found on another node. Whether the kernel may have moved them: a stranger, or other
    /// code of the program, moved what exceeds its count. A huge page may have been moved in part, so one page suffices.
    pub fn explain(&mut self, pid: u32, total: u64, pages: u64) -> bool {
        let left = self.unexplained(pid, total);
        *self.0.entry(pid).or_insert(0) += pages.min(left);
        left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_moved_no_more_pages_than_it_counts() {
        let mut moves = KernelMoves::default();
        moves.begin_interval(7, 20);
        let explained = [(); 4].map(|()| moves.explain(7, 22, 1));
        assert_eq!(explained, [true, true, false, false]);
        assert!(moves.explain(7, 23, 1), "one more since");
        assert!(!moves.explain(8, 0, 1), "another process");
    }

    #[test]
    fn moves_of_an_earlier_interval_explain_nothing() {
        let mut moves = KernelMoves::default();
        moves.begin_interval(7, 20);
        moves.begin_interval(7, 25);
        assert!(!moves.explain(7, 25, 1));
    }

    #[test]
    fn a_huge_page_takes_all_its_pages_and_may_have_moved_in_part() {
        let mut moves = KernelMoves::default();
        let explained = [(); 3].map(|()| moves.explain(7, 515, 512));
        assert_eq!(explained, [true, true, false]);
    }
}
