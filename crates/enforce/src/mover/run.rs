//! Runs of consecutive pages.

/// log2 of the bytes of a base page.
pub const BASE: u32 = 12;
/// log2 of the bytes of a transparent huge page.
pub const HUGE: u32 = 21;

/// Consecutive pages on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Address of the first page.
    pub address: u64,
    /// Number of pages, each of `1 << shift` bytes.
    pub count: u32,
    /// log2 of the bytes of a page: 12, or more where the program uses huge pages of hugetlbfs.
    pub shift: u32,
}

impl Run {
    /// Number of pages of 4 KiB.
    #[must_use]
    pub fn pages(&self) -> u64 {
        u64::from(self.count) << (self.shift - BASE)
    }

    /// The address of each page.
    pub fn addresses(self) -> impl Iterator<Item = u64> {
        (0..u64::from(self.count)).map(move |i| self.address + (i << self.shift))
    }
}
