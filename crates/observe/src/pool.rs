//! The heap's pool: allocations too small to own pages.

use crate::layout::{HEADER_BYTES, POOL_SLOTS, POOLED, REPEATS, header, pool_entry};
use crate::thread_file;
use nodewise_linux::mapping::SharedFile;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Largest growth of the main arena beyond the initial break, bytes.
const BREAK_SPACE: u64 = 1 << 40;

/// Address ranges of the pool, and the callers that allocate from it.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Where the image's files are.
    folder: PathBuf,
    arenas: Vec<(u64, u64)>,
}

impl Pool {
    /// The pool of the image that writes to `folder`.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
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
        let Ok(file) = SharedFile::open(&self.folder.join("pool")) else {
            return Vec::new();
        };
        let counts = file.words().iter().skip(POOL_SLOTS * pool_entry::WORDS);
        counts.take(REPEATS).map(|n| n.load(Relaxed)).collect()
    }

    /// Return addresses of callers with the total bytes they allocated, largest first: those that threads counted in their
    /// own files, and those for which they had no room there.
    pub fn callers(&self) -> Vec<(u64, u64)> {
        let mut bytes: BTreeMap<u64, u64> = BTreeMap::new();
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for entry in files {
            let own = entry.file_name().to_string_lossy().starts_with("thread-");
            if !own && entry.file_name() != "pool" {
                continue;
            }
            let file = match own {
                true => thread_file::open(&entry.path()),
                false => SharedFile::open(&entry.path()),
            };
            let Ok(file) = file else {
                continue;
            };
            let table = match own {
                true => file
                    .words()
                    .get(header::POOLED..HEADER_BYTES / 8)
                    .unwrap_or_default(),
                false => file.words(),
            };
            add(&mut bytes, table, if own { POOLED } else { POOL_SLOTS });
        }
        let mut callers: Vec<(u64, u64)> = bytes.into_iter().collect();
        callers.sort_unstable_by_key(|c| (std::cmp::Reverse(c.1), c.0));
        callers
    }
}

/// Adds the callers in a table of this many entries.
fn add(bytes: &mut BTreeMap<u64, u64>, table: &[AtomicU64], entries: usize) {
    for entry in table.chunks_exact(pool_entry::WORDS).take(entries) {
        let caller = entry[pool_entry::CALLER].load(Relaxed);
        let allocated = entry[pool_entry::BYTES].load(Relaxed);
        if caller != 0 && allocated != 0 {
            let sum = bytes.entry(caller).or_default();
            *sum = sum.saturating_add(allocated);
        }
    }
}
