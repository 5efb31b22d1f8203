//! Properties of [`ThreadFile`] on files written here as the runtime writes them.

use super::*;
use crate::layout::MAGIC;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

const BASE: u64 = 0x7000_0000_0000;

/// A counter file under construction: counters, and for some of them a slot in the window of recent pages.
struct Written {
    folder: std::path::PathBuf,
    file: File,
    counters: Vec<[u64; 4]>,
}

impl Written {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nodewise-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = File::create(folder.join("thread-0")).unwrap();
        file.set_len((COUNTERS_OFFSET + (1 << 16)) as u64).unwrap();
        let written = Self {
            folder,
            file,
            counters: Vec::new(),
        };
        written.word(header::VERSION, u64::from(layout::VERSION));
        for i in 0..WINDOW_SLOTS {
            written.word(HEADER_BYTES / 8 + i * slot::WORDS, KEY_NONE);
        }
        written.segment(header::COUNTER_SEGMENT, COUNTERS_OFFSET as u64, BASE);
        written.segment(header::TOUCH_SEGMENT, COUNTERS_OFFSET as u64 + (1 << 15), 0);
        written.word(header::MAGIC, MAGIC);
        written
    }

    fn word(&self, index: usize, value: u64) {
        self.file
            .write_all_at(&value.to_ne_bytes(), index as u64 * 8)
            .unwrap();
    }

    fn segment(&self, index: usize, offset: u64, address: u64) {
        self.word(index + segment::OFFSET, offset);
        self.word(index + segment::ADDRESS, address);
    }

    /// A reader of the file, owned by one thread.
    fn read(&self) -> ThreadFile {
        let mut file = ThreadFile::new(&self.folder, 0);
        file.hand_to(0, 0, 0);
        file
    }

    /// Records accesses to a page that newly touch this many lines.
    fn access(&mut self, key: u64, reads: u64, writes: u64, lines: u64) {
        let i = self.counters.iter().position(|c| c[0] == key).unwrap_or_else(|| {
            self.counters.push([key, 0, 0, 0]);
            self.counters.len() - 1
        });
        let c = &mut self.counters[i];
        (c[1], c[2], c[3]) = (c[1] + reads, c[2] + writes, c[3] + lines);
        for (k, value) in self.counters[i].into_iter().enumerate() {
            self.word(COUNTERS_OFFSET / 8 + i * counter::WORDS + k, value);
        }
        self.word(header::COUNTERS, self.counters.len() as u64);
    }

    fn window(&self, slot_index: usize, counter: usize, bitmap: u64) {
        let at = HEADER_BYTES / 8 + slot_index * slot::WORDS;
        self.word(at + slot::COUNTER, BASE + counter as u64 * 32);
        self.word(at + slot::BITMAP, bitmap);
        self.word(at + slot::KEY, self.counters[counter][0]);
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn deltas_add_up_to_what_was_counted(
        slices in prop::collection::vec(
            prop::collection::vec((0u64..50, 0u64..3, 0u64..9, 0u64..9, 0u64..9), 0..20), 1..6)
    ) {
        let mut written = Written::new("deltas");
        let mut file = written.read();
        let (mut expected, mut found) = (BTreeMap::new(), BTreeMap::new());
        for slice in slices {
            for (page, region, reads, writes, lines) in slice {
                written.access(page | region << layout::REGION_SHIFT, reads, writes, lines);
                let total: &mut [u64; 3] = expected.entry((page << 12, region as u32)).or_default();
                (total[0], total[1]) = (total[0] + reads, total[1] + writes);
            }
            for delta in file.look().unwrap().0 {
                let total: &mut [u64; 3] = found.entry((delta.address, delta.region)).or_default();
                (total[0], total[1]) = (total[0] + delta.reads, total[1] + delta.writes);
            }
        }
        expected.retain(|_, t| *t != [0; 3]);
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn lines_of_pages_still_in_the_window_count_once() {
    let mut written = Written::new("lines");
    written.access(7, 10, 0, 0);
    written.window(3, 0, 0b111);
    let mut file = written.read();
    assert_eq!(file.look().unwrap().0[0].lines, 3);
    // The page leaves: its lines move to the counter, and it is accessed once more.
    written.access(7, 1, 0, 3);
    written.word(HEADER_BYTES / 8 + 3 * slot::WORDS + slot::BITMAP, 0b1);
    assert_eq!(file.look().unwrap().0[0].lines, 1);
    assert_eq!(file.look().unwrap().0, []);
}

#[test]
fn counters_beyond_the_file_and_stray_pointers_are_not_followed() {
    let mut written = Written::new("stray");
    written.access(7, 10, 0, 0);
    written.window(0, 0, 1);
    written.word(header::COUNTERS, u64::MAX / 64);
    written.word(header::TOUCHES, u64::MAX / 64);
    for (slot_index, pointer) in [(1, 0), (2, u64::MAX), (3, BASE + (1 << 40)), (4, BASE + 33)] {
        let at = HEADER_BYTES / 8 + slot_index * slot::WORDS;
        written.word(at + slot::COUNTER, pointer);
        written.word(at + slot::KEY, 7);
    }
    let mut file = written.read();
    let (deltas, touches) = file.look().unwrap();
    assert_eq!((deltas.len(), deltas[0].reads), (1, 10));
    assert!(touches.len() <= 256);
}

#[test]
fn another_versions_file_is_refused() {
    let written = Written::new("version");
    written.word(header::VERSION, u64::from(layout::VERSION) + 1);
    assert!(written.read().look().is_err());
}

#[test]
fn a_second_segment_is_followed_to_where_the_header_says() {
    let mut written = Written::new("segments");
    for page in 0..256 {
        written.access(page, 1, 0, 0);
    }
    let mut file = written.read();
    assert_eq!(file.look().unwrap().0.len(), 256);
    let offset = (COUNTERS_OFFSET + (1 << 16)) as u64;
    written.file.set_len(offset + (1 << 13)).unwrap();
    written.segment(header::COUNTER_SEGMENT + segment::WORDS, offset, BASE + (1 << 30));
    written.word(offset as usize / 8, 7000);
    written.word(offset as usize / 8 + counter::READS, 5);
    written.word(header::COUNTERS, 257);
    let deltas = file.look().unwrap().0;
    assert_eq!((deltas.len(), deltas[0].counter, deltas[0].reads), (1, 256, 5));
    written.segment(header::COUNTER_SEGMENT + segment::WORDS, 0, BASE + (1 << 30));
    assert!(written.read().look().unwrap().0.len() == 256); // the rest is in private memory
}

#[test]
fn a_file_that_is_handed_on_counts_for_each_thread_in_turn() {
    let mut written = Written::new("handed");
    written.access(7, 10, 0, 0);
    let mut file = written.read();
    assert_eq!(file.look().unwrap().0.len(), 1);
    written.access(8, 3, 0, 0);
    file.hand_to(4, 2, 0);
    written.access(9, 2, 0, 0);
    let deltas = file.look().unwrap().0;
    let by: Vec<_> = deltas
        .iter()
        .map(|d| (file.counted_by(d.counter), d.reads))
        .collect();
    assert_eq!(by, [(0, 3), (4, 2)]);
    assert!(file.object(1).is_some());
    assert_eq!(file.look().unwrap().0, []);
    assert!(file.object(1).is_none() && file.object(2).is_some()); // final counters are dropped
}
