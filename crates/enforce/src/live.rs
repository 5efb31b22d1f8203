//! Objects that a placed process has told of.

/// An object that was alive when the summary was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    pub page: u64,
    pub pages: u64,
    pub rule: u32,
    pub thread: u32,
    pub whole: Whole,
}

/// The object of which a mapping maps a part, where it has a name of its own; else `pages` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whole {
    pub pages: u64,
    /// Pages of the object before the mapping.
    pub before: u64,
    /// What the kernel adds to a page's number where it interleaves.
    pub phase: u64,
    /// Pages that are decided together.
    pub granule: u32,
}
