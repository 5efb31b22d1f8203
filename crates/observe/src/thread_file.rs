//! A thread's raw files, read while the thread writes them.

use crate::layout::{
    self, COUNTERS_OFFSET, HEADER_BYTES, KEY_NONE, WINDOW_SLOTS, counter, header, slot, touch,
};
use nodewise_linux::mapping::SharedFile;
use nodewise_profile::ObjectId;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// What a thread did to a page in a region since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta {
    /// Address of the page.
    pub address: u64,
    /// The process image's number of the region.
    pub region: u32,
    pub reads: u64,
    pub writes: u64,
    pub lines: u64,
    /// Which counter: for [`ThreadFile::object`].
    pub counter: usize,
}

/// A first touch by this thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    pub address: u64,
    pub region: u32,
    /// An address after the access, in the same statement.
    pub code: u64,
}

/// Counters as last seen.
#[derive(Clone, Copy, Default)]
struct Seen {
    reads: u64,
    writes: u64,
    lines: u64,
    object: Option<ObjectId>,
}

/// The files of one thread.
pub struct ThreadFile {
    counters: SharedFile,
    touches: SharedFile,
    /// Where the process has its first counter.
    base: u64,
    seen: Vec<Seen>,
    touches_seen: usize,
}

impl ThreadFile {
    /// Opens the files of thread `ordinal`, whose counters the process has at address `base`.
    ///
    /// # Errors
    /// They are not there, or another version's.
    pub fn open(folder: &Path, ordinal: u32, base: u64) -> io::Result<Self> {
        let counters = SharedFile::open(&folder.join(format!("thread-{ordinal}")))?;
        let touches = SharedFile::open(&folder.join(format!("touches-{ordinal}")))?;
        let words = counters.words();
        if words.len() < COUNTERS_OFFSET / 8
            || words[header::MAGIC].load(Acquire) != layout::MAGIC
            || words[header::VERSION].load(Relaxed) as u32 != layout::VERSION
        {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "not a thread's counters",
            ));
        }
        Ok(Self {
            counters,
            touches,
            base,
            seen: Vec::new(),
            touches_seen: 0,
        })
    }

    /// The thread's accesses that could not be counted.
    pub fn dropped(&self) -> u64 {
        self.counters.words()[header::DROPPED].load(Relaxed)
    }

    /// Everything counted since the last call.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn deltas(&mut self) -> io::Result<Vec<Delta>> {
        self.counters.follow()?;
        let words = self.counters.words();
        let entries = &words[COUNTERS_OFFSET / 8..];
        let used = words[header::COUNTERS].load(Acquire) as usize;
        let used = used.min(entries.len() / counter::WORDS); // a thread that went on in private memory
        self.seen.resize(used, Seen::default());
        let in_window = window_lines(words, self.base, used);
        let mut window = in_window.iter().peekable();
        let mut deltas = Vec::new();
        for (i, (entry, seen)) in entries
            .chunks_exact(counter::WORDS)
            .zip(&mut self.seen)
            .enumerate()
        {
            let pending = window.next_if(|w| w.0 == i).map_or(0, |w| w.1);
            let delta = seen.advance(entry, pending, i);
            if delta.reads + delta.writes > 0 {
                deltas.push(delta);
            }
        }
        Ok(deltas)
    }

    /// First touches since the last call.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn touches(&mut self) -> io::Result<Vec<Touch>> {
        let used = self.counters.words()[header::TOUCHES].load(Acquire) as usize;
        self.touches.follow()?;
        let words = self.touches.words();
        let used = used.min(words.len() / touch::WORDS);
        let fresh = &words[self.touches_seen * touch::WORDS..used * touch::WORDS];
        self.touches_seen = used;
        Ok(fresh.chunks_exact(touch::WORDS).map(read_touch).collect())
    }

    /// The owner of a counter's page, once found.
    pub fn object(&mut self, counter: usize) -> &mut Option<ObjectId> {
        &mut self.seen[counter].object
    }
}

impl Seen {
    fn advance(&mut self, entry: &[AtomicU64], pending_lines: u64, counter: usize) -> Delta {
        let key = entry[counter::KEY].load(Relaxed);
        let read = |word: usize| entry[word].load(Relaxed);
        // A page on its way out of the window may be read between the two places its lines are in.
        let lines = (read(counter::LINES) + pending_lines).max(self.lines);
        let (reads, writes) = (read(counter::READS), read(counter::WRITES));
        let delta = Delta {
            address: page_address(key),
            region: region(key),
            reads: reads.saturating_sub(self.reads),
            writes: writes.saturating_sub(self.writes),
            lines: lines - self.lines,
            counter,
        };
        (self.reads, self.writes, self.lines) = (reads, writes, lines);
        delta
    }
}

/// Lines of the pages in the window by counter, ascending.
fn window_lines(words: &[AtomicU64], base: u64, used: usize) -> Vec<(usize, u64)> {
    let slots = &words[HEADER_BYTES / 8..][..WINDOW_SLOTS * slot::WORDS];
    let mut lines: Vec<(usize, u64)> = slots
        .chunks_exact(slot::WORDS)
        .filter_map(|s| {
            let key = s[slot::KEY].load(Relaxed);
            let due = s[slot::BITMAP].load(Relaxed) & !s[slot::KNOWN].load(Relaxed);
            let offset = s[slot::COUNTER].load(Relaxed).checked_sub(base)?;
            let counter = usize::try_from(offset).ok()? / (counter::WORDS * 8);
            let entry = words.get(COUNTERS_OFFSET / 8 + counter * counter::WORDS)?;
            let real = key != KEY_NONE && counter < used && entry.load(Relaxed) == key;
            real.then(|| (counter, u64::from(due.count_ones())))
        })
        .collect();
    lines.sort_unstable();
    lines
}

fn read_touch(entry: &[AtomicU64]) -> Touch {
    let key = entry[touch::KEY].load(Relaxed);
    Touch {
        address: page_address(key),
        region: region(key),
        code: entry[touch::CODE].load(Relaxed),
    }
}

fn page_address(key: u64) -> u64 {
    (key & ((1 << layout::REGION_SHIFT) - 1)) << nodewise_profile::BASE_PAGE_SHIFT
}

fn region(key: u64) -> u32 {
    (key >> layout::REGION_SHIFT) as u32
}

#[cfg(test)]
#[path = "thread_file_tests.rs"]
mod tests;
