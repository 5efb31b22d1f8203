//! What was moved, counted as ARS counts.

/// What was moved (Tao, Schulz and Karl, Table 1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Pages moved, each time.
    pub migrations: u64,
    /// Moves back to where the page's last move came from: A→B→A.
    pub ping_pongs: u64,
    /// Further moves of a page that do not return: A→B→C.
    pub multiple: u64,
    /// Moves away from the node that accessed the page most; `None` before any was judged by exact counts.
    pub incorrect: Option<u64>,
    /// `pages[i]` pages moved i + 1 times, of those remembered.
    pub pages: Vec<u64>,
    /// Messages between nodes that the policy's moves cost.
    pub messages: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Time spent on moving, those tries included that failed.
    pub spent_ns: u64,
    /// Pages that were to move and did not, by [`crate::Fate`] (`Moved`'s entry is `migrations`).
    pub fates: [u64; 8],
    /// Pages that had moved and were forgotten: a later move counts as their first.
    pub forgotten: u64,
}
