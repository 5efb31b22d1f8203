//! The result of a batch of page moves.

/// The result of moving one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PageResult {
    /// The page was moved to its target node.
    Moved,
    /// The page was on its target node already.
    There,
    /// No such page: unmapped, never touched, swapped out, or its process is gone.
    Gone,
    /// The target node has no free memory.
    Full,
    /// Temporarily pinned by the kernel (`EBUSY`).
    Busy,
    /// Mapped by several processes.
    Shared,
    /// The kernel refused for lack of permission.
    Denied,
    /// Not moved for another reason, or not tried.
    Left,
}

impl PageResult {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::Moved,
        Self::There,
        Self::Gone,
        Self::Full,
        Self::Busy,
        Self::Shared,
        Self::Denied,
        Self::Left,
    ];

    /// Whether the page is on its target node now.
    #[must_use]
    pub fn arrived(self) -> bool {
        matches!(self, Self::Moved | Self::There)
    }

    /// Name in reports and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Moved => "moved",
            Self::There => "there",
            Self::Gone => "gone",
            Self::Full => "full",
            Self::Busy => "busy",
            Self::Shared => "shared",
            Self::Denied => "denied",
            Self::Left => "left",
        }
    }
}

/// The results of a batch of moves, as an actuator returns them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchResult {
    /// The result of each move, in the order given; moves missing at the end were not tried ([`PageResult::Left`]).
    pub results: Vec<PageResult>,
    /// Wall time of the batch, nanoseconds.
    pub took_ns: u64,
}

impl BatchResult {
    /// The result of move `i`.
    #[must_use]
    pub fn result(&self, i: usize) -> PageResult {
        self.results.get(i).copied().unwrap_or(PageResult::Left)
    }

    /// Number of moves that were tried and had this result.
    #[must_use]
    pub fn count(&self, result: PageResult) -> u64 {
        self.results.iter().filter(|f| **f == result).count() as u64
    }
}
