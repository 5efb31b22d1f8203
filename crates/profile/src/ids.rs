//! Identifiers: newtypes over table indices, and the page number.

/// Base-2 logarithm of [`BASE_PAGE_SIZE`].
pub const BASE_PAGE_SHIFT: u32 = 12;
/// Size in bytes of the pages that profiles count, whatever the kernel's page size was.
pub const BASE_PAGE_SIZE: u64 = 1 << BASE_PAGE_SHIFT;

macro_rules! table_index {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The identifier as a table index.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The identifier of the table entry at `index`.
            ///
            /// # Panics
            /// If the table has more than 2³² entries.
            #[must_use]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("tables hold fewer than 2^32 entries"))
            }
        }
    )*};
}

table_index! {
    /// A memory object: an allocation, a static variable, a stack, a mapped file.
    ObjectId,
    /// A code region: serial code (0) or one outlined parallel region.
    RegionId,
    /// A call site: a chain of frames, innermost first.
    SiteId,
    /// A time slice of the recording, by index into [`crate::Profile::slices`].
    SliceId,
    /// A thread, numbered process by process in order of creation.
    ThreadId,
}

/// A virtual page number in units of [`BASE_PAGE_SIZE`], with the process's ordinal above bit 48.
///
/// Two processes of one recording may use equal addresses; the ordinal keeps their pages apart.
/// The first process has ordinal 0, so for single-process profiles this *is* the page number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageNumber(pub u64);

impl PageNumber {
    const PROCESS_SHIFT: u32 = 48;

    /// The page holding `address` in the process with this ordinal.
    #[must_use]
    pub fn of_address(process: u16, address: u64) -> Self {
        Self((u64::from(process) << Self::PROCESS_SHIFT) | (address >> BASE_PAGE_SHIFT))
    }

    /// All pages of the process with this ordinal.
    #[must_use]
    pub fn all_of(process: u16) -> std::ops::Range<Self> {
        let first = |process: u64| Self(process << Self::PROCESS_SHIFT);
        first(process.into())..first(u64::from(process) + 1)
    }

    /// The page number inside the process, as used in equations 6 and 8 of Diener et al.
    #[must_use]
    pub fn virtual_number(self) -> u64 {
        self.0 & ((1 << Self::PROCESS_SHIFT) - 1)
    }

    /// The ordinal of the process.
    #[must_use]
    pub fn process(self) -> u16 {
        (self.0 >> Self::PROCESS_SHIFT) as u16
    }

    /// The page `n` pages further on.
    #[must_use]
    pub fn offset(self, n: u64) -> Self {
        Self(self.0 + n)
    }

    /// The first base page of the enclosing page of `1 << shift` base pages (9 for 2 MiB).
    #[must_use]
    pub fn align_down(self, shift: u32) -> Self {
        Self(self.0 >> shift << shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_two_processes_differ_but_share_the_virtual_number() {
        let (a, b) = (
            PageNumber::of_address(0, 0x7fff_1234_5678),
            PageNumber::of_address(3, 0x7fff_1234_5678),
        );
        assert_ne!(a, b);
        assert_eq!(a.virtual_number(), b.virtual_number());
        assert_eq!(b.process(), 3);
        assert_eq!(b.align_down(9).process(), 3);
    }
}
