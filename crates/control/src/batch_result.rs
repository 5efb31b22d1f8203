//! What became of moves.

/// What became of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PageResult {
    /// It is where it should be, and was moved there.
    Moved,
    /// It was there already.
    There,
    /// No such page: unmapped, never touched, swapped out, or its process is gone.
    Gone,
    /// No room on the node it should go to.
    Full,
    /// In use by the kernel just now.
    Busy,
    /// Mapped by several processes.
    Shared,
    /// The kernel does not let us.
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

    /// Whether the page is where it should be.
    #[must_use]
    pub fn arrived(self) -> bool {
        matches!(self, Self::Moved | Self::There)
    }

    /// As reports and JSON call it.
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

/// What an actuator did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchResult {
    /// Of each move, in the order given; what is missing at the end was left.
    pub results: Vec<PageResult>,
    /// How long it took.
    pub took_ns: u64,
}

impl BatchResult {
    /// The fate of move `i`.
    #[must_use]
    pub fn result(&self, i: usize) -> PageResult {
        self.results.get(i).copied().unwrap_or(PageResult::Left)
    }

    /// Pages with this fate, of those it speaks of.
    #[must_use]
    pub fn count(&self, result: PageResult) -> u64 {
        self.results.iter().filter(|f| **f == result).count() as u64
    }
}
