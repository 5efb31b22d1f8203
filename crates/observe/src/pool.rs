//! The heap's pool: allocations too small for pages of their own.

use crate::layout::{POOL_SLOTS, REPEATS, pool_entry};
use nodewise_linux::mapping::SharedFile;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

/// How far the main arena may have grown beyond the initial break.
const BREAK_SPACE: u64 = 1 << 40;

/// Where the pool lies and who fills it.
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

    /// Small allocations were seen at these addresses.
    pub fn add_arena(&mut self, start: u64, end: u64) {
        self.arenas.push((start, end));
    }

    /// What a forked child begins with.
    pub fn inherit(&mut self, parent: &Self) {
        self.arenas.extend_from_slice(&parent.arenas);
    }

    /// Whether an address nobody else claims is the pool's.
    pub fn contains(&self, brk: u64, address: u64) -> bool {
        (brk..brk.saturating_add(BREAK_SPACE)).contains(&address)
            || self
                .arenas
                .iter()
                .any(|&(start, end)| (start..end).contains(&address))
    }

    /// How often objects were allocated again, by the numbers that the log gave them.
    pub fn repeats(&self) -> Vec<u64> {
        let Ok(file) = SharedFile::open(&self.file) else {
            return Vec::new();
        };
        let counts = file.words().iter().skip(POOL_SLOTS * pool_entry::WORDS);
        counts.take(REPEATS).map(|n| n.load(Relaxed)).collect()
    }

    /// Return addresses of callers with the bytes they allocated in all, largest first.
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
