//! Mirror of `runtime/layout.h`, as word offsets: raw files are read as atomic words.

/// Version of the raw files: `NW_LAYOUT_VERSION`.
pub const VERSION: u32 = 4;
/// First word of each raw file: `NW_MAGIC`.
pub const MAGIC: u64 = 0x3165_7369_7764_6f6e;
/// Bits of a counter's key below the region: `NW_REGION_SHIFT`.
pub const REGION_SHIFT: u32 = 45;
/// Slots in a thread's window of recent pages: `NW_WINDOW_SLOTS`.
pub const WINDOW_SLOTS: usize = 1024;
/// Key of an empty slot: `NW_KEY_NONE`.
pub const KEY_NONE: u64 = u64::MAX;
/// Bytes of a counter file's header: `NW_HEADER_BYTES`.
pub const HEADER_BYTES: usize = 4096;
/// Entries in the first segment: `NW_FIRST_ENTRIES`.
pub const FIRST_ENTRIES: usize = 256;
/// Largest number of segments: `NW_SEGMENTS`.
pub const SEGMENTS: usize = 25;
/// Entries in a thread's table of callers: `NW_POOLED`.
pub const POOLED: usize = 64;
/// Entries in the pool's table of callers: `NW_POOL_SLOTS`.
pub const POOL_SLOTS: usize = 4096;
/// Counters of repeated allocations in the pool: `NW_REPEATS`.
pub const REPEATS: usize = 4096;
/// Byte offset of the first counters in the file: `NW_COUNTERS_OFFSET`.
pub const COUNTERS_OFFSET: usize = HEADER_BYTES + WINDOW_SLOTS * 32;

/// `nw_thread_header`, in 64-bit words.
pub mod header {
    pub const MAGIC: usize = 0;
    /// The version, with the number of slots above it.
    pub const VERSION: usize = 1;
    pub const COUNTERS: usize = 2;
    pub const TOUCHES: usize = 3;
    pub const DROPPED: usize = 4;
    /// Index of the first of [`super::SEGMENTS`] entries of type [`super::segment`].
    pub const COUNTER_SEGMENT: usize = 5;
    pub const TOUCH_SEGMENT: usize = 55;
    /// Index of the first of [`super::POOLED`] entries of type [`super::pool_entry`].
    pub const POOLED: usize = 105;
}

/// `nw_segment`, in 64-bit words.
pub mod segment {
    pub const WORDS: usize = 2;
    pub const OFFSET: usize = 0;
    pub const ADDRESS: usize = 1;
}

/// `nw_counter`, in 64-bit words.
pub mod counter {
    pub const WORDS: usize = 4;
    pub const KEY: usize = 0;
    pub const READS: usize = 1;
    pub const WRITES: usize = 2;
    pub const LINES: usize = 3;
}

/// `nw_slot`, in 64-bit words.
pub mod slot {
    pub const WORDS: usize = 4;
    pub const KEY: usize = 0;
    pub const COUNTER: usize = 1;
    pub const BITMAP: usize = 2;
    pub const KNOWN: usize = 3;
}

/// `nw_touch`, in 64-bit words.
pub mod touch {
    pub const WORDS: usize = 2;
    pub const KEY: usize = 0;
    pub const CODE: usize = 1;
}

/// `nw_pool_entry`, in 64-bit words.
pub mod pool_entry {
    pub const WORDS: usize = 3;
    pub const CALLER: usize = 0;
    pub const BYTES: usize = 1;
}

/// `nw_control`: `MAGIC`, `SLICE_ACCESSES` and `LOGGED` in 64-bit words, the rest in 32-bit words.
pub mod control {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 2;
    pub const SLICING: usize = 3;
    pub const SLICE_ACCESSES: usize = 2;
    pub const SLICES_REQUESTED: usize = 6;
    pub const SLICES_TAKEN: usize = 7;
    pub const RECORDER_ALIVE: usize = 8;
    pub const RECORDER_PID: usize = 9;
    pub const STOPPED: usize = 10;
    /// Offset of the text in bytes; the next constant is its size.
    pub const WHY: usize = 48;
    pub const WHY_BYTES: usize = 248;
    /// Index in 64-bit words.
    pub const LOGGED: usize = 37;
    pub const BYTES: u64 = 304;
}

/// Values of `enum nw_slicing`.
pub mod slicing {
    pub const TIME: u32 = 0;
    pub const ACCESSES: u32 = 1;
    pub const REGION: u32 = 2;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::path::Path;
    use std::process::Command;

    /// Values of C expressions, as the C compiler computes them from `layout.h`.
    fn in_c(expressions: &[&str]) -> HashMap<String, u64> {
        let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../runtime/layout.h");
        let folder = std::env::temp_dir().join(format!("nodewise-layout-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let print = |e: &&str| format!("printf(\"%llu\\n\", (unsigned long long)({e}));");
        let body: String = expressions.iter().map(print).collect();
        let source = format!(
            "#include \"{}\"\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {{ {body} return 0; }}",
            header.display()
        );
        std::fs::write(folder.join("layout.c"), source).unwrap();
        let built = Command::new("cc")
            .current_dir(&folder)
            .args(["-o", "layout", "layout.c"])
            .status();
        assert!(built.unwrap().success());
        let output = Command::new(folder.join("layout")).output().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let numbers = text.lines().map(|l| l.parse().unwrap());
        expressions.iter().map(|e| (*e).to_owned()).zip(numbers).collect()
    }

    #[test]
    fn rust_and_c_agree_on_every_offset() {
        let expected = [
            ("NW_LAYOUT_VERSION", u64::from(VERSION)),
            ("NW_INTERFACE", u64::from(nodewise_loader::INTERFACE)),
            ("NW_MAGIC", MAGIC),
            ("NW_PAGE_SHIFT", u64::from(nodewise_profile::BASE_PAGE_SHIFT)),
            ("NW_REGION_SHIFT", u64::from(REGION_SHIFT)),
            ("NW_WINDOW_SLOTS", WINDOW_SLOTS as u64),
            ("NW_KEY_NONE", KEY_NONE),
            ("NW_HEADER_BYTES", HEADER_BYTES as u64),
            ("NW_POOL_SLOTS", POOL_SLOTS as u64),
            ("NW_REPEATS", REPEATS as u64),
            ("NW_COUNTERS_OFFSET", COUNTERS_OFFSET as u64),
            ("offsetof(nw_thread_header, magic) / 8", header::MAGIC as u64),
            ("offsetof(nw_thread_header, version) / 8", header::VERSION as u64),
            (
                "offsetof(nw_thread_header, counters) / 8",
                header::COUNTERS as u64,
            ),
            ("offsetof(nw_thread_header, touches) / 8", header::TOUCHES as u64),
            ("offsetof(nw_thread_header, dropped) / 8", header::DROPPED as u64),
            ("NW_FIRST_ENTRIES", FIRST_ENTRIES as u64),
            ("NW_SEGMENTS", SEGMENTS as u64),
            ("NW_POOLED", POOLED as u64),
            ("offsetof(nw_thread_header, pooled) / 8", header::POOLED as u64),
            (
                "offsetof(nw_thread_header, counter_segment) / 8",
                header::COUNTER_SEGMENT as u64,
            ),
            (
                "offsetof(nw_thread_header, touch_segment) / 8",
                header::TOUCH_SEGMENT as u64,
            ),
            ("sizeof(nw_segment) / 8", segment::WORDS as u64),
            ("offsetof(nw_segment, offset) / 8", segment::OFFSET as u64),
            ("offsetof(nw_segment, address) / 8", segment::ADDRESS as u64),
            ("sizeof(nw_counter) / 8", counter::WORDS as u64),
            ("offsetof(nw_counter, key) / 8", counter::KEY as u64),
            ("offsetof(nw_counter, reads) / 8", counter::READS as u64),
            ("offsetof(nw_counter, writes) / 8", counter::WRITES as u64),
            ("offsetof(nw_counter, lines) / 8", counter::LINES as u64),
            ("sizeof(nw_slot) / 8", slot::WORDS as u64),
            ("offsetof(nw_slot, key) / 8", slot::KEY as u64),
            ("offsetof(nw_slot, counter) / 8", slot::COUNTER as u64),
            ("offsetof(nw_slot, bitmap) / 8", slot::BITMAP as u64),
            ("offsetof(nw_slot, known) / 8", slot::KNOWN as u64),
            ("sizeof(nw_touch) / 8", touch::WORDS as u64),
            ("offsetof(nw_touch, key) / 8", touch::KEY as u64),
            ("offsetof(nw_touch, code) / 8", touch::CODE as u64),
            ("sizeof(nw_pool_entry) / 8", pool_entry::WORDS as u64),
            ("offsetof(nw_pool_entry, caller) / 8", pool_entry::CALLER as u64),
            ("offsetof(nw_pool_entry, bytes) / 8", pool_entry::BYTES as u64),
            ("sizeof(nw_control)", control::BYTES),
            ("offsetof(nw_control, magic) / 8", control::MAGIC as u64),
            ("offsetof(nw_control, version) / 4", control::VERSION as u64),
            ("offsetof(nw_control, slicing) / 4", control::SLICING as u64),
            (
                "offsetof(nw_control, slice_accesses) / 8",
                control::SLICE_ACCESSES as u64,
            ),
            (
                "offsetof(nw_control, slices_requested) / 4",
                control::SLICES_REQUESTED as u64,
            ),
            (
                "offsetof(nw_control, slices_taken) / 4",
                control::SLICES_TAKEN as u64,
            ),
            (
                "offsetof(nw_control, recorder_alive) / 4",
                control::RECORDER_ALIVE as u64,
            ),
            (
                "offsetof(nw_control, recorder_pid) / 4",
                control::RECORDER_PID as u64,
            ),
            ("offsetof(nw_control, stopped) / 4", control::STOPPED as u64),
            ("offsetof(nw_control, why)", control::WHY as u64),
            ("NW_WHY_BYTES", control::WHY_BYTES as u64),
            ("offsetof(nw_control, logged) / 8", control::LOGGED as u64),
            ("NW_SLICE_TIME", u64::from(slicing::TIME)),
            ("NW_SLICE_ACCESSES", u64::from(slicing::ACCESSES)),
            ("NW_SLICE_REGION", u64::from(slicing::REGION)),
        ];
        let found = in_c(&expected.map(|e| e.0));
        for (expression, number) in expected {
            assert_eq!(found[expression], number, "{expression}");
        }
    }
}
