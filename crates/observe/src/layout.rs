//! The Rust mirror of `runtime/layout.h`, as word offsets: raw files are read as atomic words.

/// `NW_LAYOUT_VERSION`.
pub const VERSION: u32 = 1;
/// `NW_MAGIC`.
pub const MAGIC: u64 = 0x3165_7369_7764_6f6e;
/// `NW_REGION_SHIFT`.
pub const REGION_SHIFT: u32 = 45;
/// `NW_WINDOW_SLOTS`.
pub const WINDOW_SLOTS: usize = 1024;
/// `NW_KEY_NONE`.
pub const KEY_NONE: u64 = u64::MAX;
/// `NW_HEADER_BYTES`.
pub const HEADER_BYTES: usize = 4096;
/// `NW_POOL_SLOTS`.
pub const POOL_SLOTS: usize = 4096;
/// `NW_COUNTERS_OFFSET`.
pub const COUNTERS_OFFSET: usize = HEADER_BYTES + WINDOW_SLOTS * 32;

/// `nw_thread_header`, in 64-bit words.
pub mod header {
    pub const MAGIC: usize = 0;
    /// The version, with the ordinal above it.
    pub const VERSION: usize = 1;
    pub const COUNTERS: usize = 3;
    pub const TOUCHES: usize = 4;
    pub const DROPPED: usize = 5;
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

/// `nw_control`: `MAGIC` and `SLICE_ACCESSES` in 64-bit words, the rest in 32-bit words.
pub mod control {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 2;
    pub const SLICING: usize = 3;
    pub const SLICE_ACCESSES: usize = 2;
    pub const SLICES_REQUESTED: usize = 6;
    pub const SLICES_TAKEN: usize = 7;
    pub const RECORDER_ALIVE: usize = 8;
    pub const RECORDER_PID: usize = 9;
    pub const BYTES: u64 = 40;
}

/// `enum nw_slicing`.
pub mod slicing {
    pub const TIME: u32 = 0;
    pub const ACCESSES: u32 = 1;
    pub const REGION: u32 = 2;
}
