//! The cause of a page fault, which tells whether it is a sample.

/// The cause of a page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A NUMA hint fault: a sample of the accesses.
    Hint,
    /// The page was not resident: its first touch, or it was swapped out.
    First,
    /// A shared page was copied at its first write (copy-on-write).
    Copy,
    /// Either a hint or a copy; the kernel does not tell which. `balance` counts it as a sample, a recording does not.
    Unknown,
}

impl Kind {
    /// Whether a fault of this kind may be a sample of the program's accesses.
    #[must_use]
    pub fn is_sample(self) -> bool {
        matches!(self, Self::Hint | Self::Unknown)
    }
}
