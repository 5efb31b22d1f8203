//! Reads a counter file while threads write it: one thread at a time, each continuing where the one before it ended.

use crate::layout::{
    self, COUNTERS_OFFSET, FIRST_ENTRIES, HEADER_BYTES, KEY_NONE, SEGMENTS, WINDOW_SLOTS, counter, header,
    segment, slot, touch,
};
use nodewise_linux::mapping::SharedFile;
use nodewise_profile::ObjectId;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Accesses of a thread to a page in a region since the last look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta {
    /// Address of the page.
    pub address: u64,
    /// The process image's number of the region.
    pub region: u32,
    pub reads: u64,
    pub writes: u64,
    pub lines: u64,
    /// Index of the counter, for [`ThreadFile::object`].
    pub counter: usize,
}

/// A first touch by a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    pub address: u64,
    pub region: u32,
    /// A code address shortly after the access, in the same statement.
    pub code: u64,
    /// Index of the entry in the file.
    pub entry: usize,
}

/// Smallest size of a file, bytes.
const BASE_BYTES: usize = COUNTERS_OFFSET + FIRST_ENTRIES * (counter::WORDS + touch::WORDS) * 8;

/// A counter's values at the last look.
#[derive(Clone, Copy, Default)]
struct Seen {
    reads: u64,
    writes: u64,
    lines: u64,
    object: Option<ObjectId>,
}

/// A thread, and its first entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    ordinal: u32,
    counter: usize,
    touch: usize,
}

/// A counter file, and the threads that write to it in turn.
pub struct ThreadFile {
    path: PathBuf,
    /// The mapped file; `None` until a look succeeds.
    map: Option<SharedFile>,
    owners: Vec<Owner>,
    /// Values of the counters from `settled` on; earlier ones are final and were read.
    seen: Vec<Seen>,
    settled: usize,
    /// Counters below this are final since the last look.
    final_to: usize,
    touches_seen: usize,
}

impl ThreadFile {
    /// File `number` of an image; it is opened at the first look.
    pub fn new(folder: &Path, number: u32) -> Self {
        Self {
            path: folder.join(format!("thread-{number}")),
            map: None,
            owners: Vec::new(),
            seen: Vec::new(),
            settled: 0,
            final_to: 0,
            touches_seen: 0,
        }
    }

    /// Records that the file belongs to this thread from these entries on.
    pub fn hand_to(&mut self, ordinal: u32, counter: u64, touch: u64) {
        let last = self.owners.last().map_or((0, 0), |o| (o.counter, o.touch));
        let entry = |n: u64, before: usize| usize::try_from(n).unwrap_or(usize::MAX).max(before);
        self.owners.push(Owner {
            ordinal,
            counter: entry(counter, last.0),
            touch: entry(touch, last.1),
        });
    }

    /// The thread that a counter belongs to.
    pub fn counted_by(&self, counter: usize) -> u32 {
        let after = self.owners.partition_point(|o| o.counter <= counter);
        self.owners[after.saturating_sub(1)].ordinal
    }

    /// The thread that a first touch belongs to.
    pub fn touched_by(&self, touch: usize) -> u32 {
        let after = self.owners.partition_point(|o| o.touch <= touch);
        self.owners[after.saturating_sub(1)].ordinal
    }

    /// Number of threads that have written to the file.
    pub fn threads(&self) -> usize {
        self.owners.len()
    }

    /// Accesses that could not be counted.
    pub fn dropped(&self) -> u64 {
        let map = self.map.as_ref();
        map.map_or(0, |m| m.words()[header::DROPPED].load(Relaxed))
    }

    /// Reads counts and first touches since the last call.
    ///
    /// # Errors
    /// The file cannot be opened or mapped, or has another version.
    pub fn look(&mut self) -> io::Result<(Vec<Delta>, Vec<Touch>)> {
        self.settle();
        // The current owner found the entries before its own final.
        let final_to = self.owners.last().map_or(0, |o| o.counter);
        let map = match &mut self.map {
            Some(map) => map,
            fresh => fresh.insert(open(&self.path)?),
        };
        let touches = Table::of(map, header::TOUCH_SEGMENT, header::TOUCHES, touch::WORDS)?;
        let touches = fresh_touches(map.words(), &touches, &mut self.touches_seen);
        let table = Table::of(map, header::COUNTER_SEGMENT, header::COUNTERS, counter::WORDS)?;
        self.seen.resize(
            table.used.saturating_sub(self.settled).max(self.seen.len()),
            Seen::default(),
        );
        let words = map.words();
        let in_window = window_lines(words, &table);
        let mut window = in_window.iter().skip_while(|w| w.0 < self.settled).peekable();
        let mut deltas = Vec::new();
        for (i, entry) in table.entries(words, self.settled) {
            let pending = window.next_if(|w| w.0 == i).map_or(0, |w| w.1);
            let delta = self.seen[i - self.settled].advance(entry, pending, i);
            if (delta.reads, delta.writes) != (0, 0) {
                deltas.push(delta);
            }
        }
        self.final_to = final_to.min(table.used);
        Ok((deltas, touches))
    }

    /// The object of a page counted since the last look, once found.
    pub fn object(&mut self, counter: usize) -> Option<&mut Option<ObjectId>> {
        let seen = self.seen.get_mut(counter.checked_sub(self.settled)?);
        seen.map(|s| &mut s.object)
    }

    /// Forgets counters that are final.
    fn settle(&mut self) {
        let count = self.final_to.saturating_sub(self.settled).min(self.seen.len());
        self.seen.drain(..count);
        self.settled += count;
    }
}

/// Number of counters in a file.
///
/// # Errors
/// As [`ThreadFile::look`]; `UnexpectedEof` if the file is shorter than its header says.
pub fn counters(path: &Path) -> io::Result<usize> {
    let mut map = open(path)?;
    let counters = Table::of(
        &mut map,
        header::COUNTER_SEGMENT,
        header::COUNTERS,
        counter::WORDS,
    )?;
    let touches = Table::of(&mut map, header::TOUCH_SEGMENT, header::TOUCHES, touch::WORDS)?;
    match counters.cut || touches.cut || map.words().len() * 8 < BASE_BYTES {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(counters.used),
    }
}

pub(crate) fn open(path: &Path) -> io::Result<SharedFile> {
    let map = SharedFile::open(path)?;
    let words = map.words();
    if words.len() < COUNTERS_OFFSET / 8
        || words[header::MAGIC].load(Acquire) != layout::MAGIC
        || words[header::VERSION].load(Relaxed) as u32 != layout::VERSION
    {
        let message = "not a thread's counters";
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(map)
}

/// Where the entries of one kind are in a file, as far as the file has them.
struct Table {
    /// For each segment: first entry, number of entries, first word in the file, address in the process.
    parts: Vec<(usize, usize, usize, u64)>,
    /// Number of entries in use.
    used: usize,
    words: usize,
    /// Whether the header names more entries than the file has.
    cut: bool,
}

impl Table {
    /// Reads the positions of the segments from the header, and checks that they are inside the file.
    fn of(map: &mut SharedFile, at: usize, used: usize, entry_words: usize) -> io::Result<Self> {
        let used = map.words()[used].load(Acquire);
        let (mut parts, mut begin, mut cut) = (Vec::new(), 0, false);
        for i in 0..SEGMENTS {
            let entries = FIRST_ENTRIES << i.saturating_sub(1);
            let count = entries.min(usize::try_from(used).unwrap_or(usize::MAX).saturating_sub(begin));
            let place = &map.words()[at + i * segment::WORDS..];
            let (offset, address) = (
                place[segment::OFFSET].load(Relaxed),
                place[segment::ADDRESS].load(Relaxed),
            );
            let first = usize::try_from(offset / 8).unwrap_or(usize::MAX);
            let end = first.saturating_add(count * entry_words);
            // The first segment is always in the file; a later one without offset is in private memory.
            if count == 0 || (offset == 0 && i > 0) {
                break;
            }
            if end > map.words().len() {
                map.follow()?;
            }
            cut = end > map.words().len() || first < HEADER_BYTES / 8 || offset % 8 != 0;
            if cut {
                break;
            }
            parts.push((begin, count, first, address));
            begin += count;
        }
        Ok(Self {
            parts,
            used: begin,
            words: entry_words,
            cut,
        })
    }

    /// Entries from `from` on, with their indices.
    fn entries<'a>(
        &'a self,
        words: &'a [AtomicU64],
        from: usize,
    ) -> impl Iterator<Item = (usize, &'a [AtomicU64])> {
        self.parts.iter().flat_map(move |&(begin, count, first, _)| {
            let skipped = from.saturating_sub(begin).min(count);
            let part = &words[first + skipped * self.words..first + count * self.words];
            let numbers = begin + skipped..;
            numbers.zip(part.chunks_exact(self.words))
        })
    }

    /// The entry at this address in the process, with its index.
    fn at<'a>(&self, words: &'a [AtomicU64], address: u64) -> Option<(usize, &'a [AtomicU64])> {
        self.parts.iter().find_map(|&(begin, count, first, base)| {
            let offset = usize::try_from(address.checked_sub(base)?).ok()?;
            let entry = offset / (self.words * 8);
            let inside = entry < count && offset % (self.words * 8) == 0;
            inside.then(|| (begin + entry, &words[first + entry * self.words..][..self.words]))
        })
    }
}

impl Seen {
    fn advance(&mut self, entry: &[AtomicU64], pending_lines: u64, counter: usize) -> Delta {
        let key = entry[counter::KEY].load(Relaxed);
        let read = |word: usize| entry[word].load(Relaxed);
        // A page that is leaving the window may be read between the two places that hold its lines.
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
fn window_lines(words: &[AtomicU64], counters: &Table) -> Vec<(usize, u64)> {
    let slots = &words[HEADER_BYTES / 8..][..WINDOW_SLOTS * slot::WORDS];
    let mut lines: Vec<(usize, u64)> = slots
        .chunks_exact(slot::WORDS)
        .filter_map(|s| {
            let key = s[slot::KEY].load(Relaxed);
            if key == KEY_NONE {
                return None;
            }
            let due = s[slot::BITMAP].load(Relaxed) & !s[slot::KNOWN].load(Relaxed);
            let (number, entry) = counters.at(words, s[slot::COUNTER].load(Relaxed))?;
            let real = entry[counter::KEY].load(Relaxed) == key;
            real.then(|| (number, u64::from(due.count_ones())))
        })
        .collect();
    lines.sort_unstable();
    lines
}

fn fresh_touches(words: &[AtomicU64], table: &Table, seen: &mut usize) -> Vec<Touch> {
    let fresh = table.entries(words, *seen).map(|(i, entry)| read_touch(i, entry));
    let fresh = fresh.collect();
    *seen = table.used.max(*seen);
    fresh
}

fn read_touch(number: usize, entry: &[AtomicU64]) -> Touch {
    let key = entry[touch::KEY].load(Relaxed);
    Touch {
        address: page_address(key),
        region: region(key),
        code: entry[touch::CODE].load(Relaxed),
        entry: number,
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
