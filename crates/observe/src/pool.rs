//! The heap's pool: allocations too small to own pages.

use crate::layout::{POOL_SLOTS, REPEATS, pool_entry};
use nodewise_linux::mapping::SharedFile;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

/// Largest growth of the main arena beyond the initial break, bytes.
const BREAK_SPACE: u64 = 1 << 40;

/// Address ranges of the pool, and the callers that allocate from it.
#[derive(Clone, Debug)]
pub struct Pool {
    file: PathBuf,
    arenas: Vec<(u64, u64)>,
}

impl Pool {
    /// The pool of the image that writes to `folder`.
    pub fn new(folder: &Path) -> Self {
        Self {
            file: folder.join("pool"),
            arenas: Vec::new(),
        }
    }

    /// Adds an address range in which small allocations were seen.
    pub fn add_arena(&mut self, start: u64, end: u64) {
        self.arenas.push((start, end));
    }

    /// Copies the state of the parent of a forked child.
    pub fn inherit(&mut self, parent: &Self) {
        self.arenas.extend_from_slice(&parent.arenas);
    }

    /// Whether an address without another owner belongs to the pool.
    pub fn contains(&self, brk: u64, address: u64) -> bool {
        (brk..brk.saturating_add(BREAK_SPACE)).contains(&address)
            || self
                .arenas
                .iter()
                .any(|&(start, end)| (start..end).contains(&address))
    }

    /// How often objects were allocated repeatedly, by the index that the log gave them.
    pub fn repeats(&self) -> Vec<u64> {
        let Ok(file) = SharedFile::open(&self.file) else {
            return Vec::new();
        };
        let counts = file.words().iter().skip(POOL_SLOTS * pool_entry::WORDS);
        counts.take(REPEATS).map(|n| n.load(Relaxed)).collect()
    }

    /// Return addresses of callers with the total bytes they allocated, largest first.
    pub fn callers(&self) -> Vec<(u64, u64)> {
        let Ok(file) = SharedFile::open(&self.file) else {
            return Vec::new();
        };
        let entries = file.words().chunks_exact(pool_entry::WORDS).take(POOL_SLOTS);
        let mut callers: Vec<(u64, u64)> = entries
            .map(|e| {
                (
                    e[pool_entry::CALLER].load(Relaxed),
                    e[pool_entry::BYTES].load(Relaxed),
                )
            })
            .filter(|c| c.0 != 0 && c.1 != 0)
            .collect();
        callers.sort_unstable_by_key(|c| (std::cmp::Reverse(c.1), c.0));
        callers
    }
}
