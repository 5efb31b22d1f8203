//! What a recording leaves when it is cut short: logs and counters of its processes, read by `record --recover`.

use crate::folder::{own, parts};
use crate::understood;
use nodewise_profile::AccessSource;
use nodewise_store::Reader;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| own("recording"));
/// The files of a recording, in the order of an input's parts: a process, a child of it, the recorder's own.
const FILES: [&str; 7] = [
    "7-0/events",
    "7-0/thread-0",
    "7-0/thread-1",
    "7-0/pool",
    "8-0/events",
    "8-0/thread-0",
    "control",
];

/// Where parts of a thread's file lie, in bytes, and how large they are in an input; what is between is left out there:
/// the header with its first segments of counters, its first ones of touches, the first site of small allocations, the
/// window's first slots. The counters come behind.
const THREAD: [(usize, usize); 4] = [(0, 72), (440, 32), (840, 24), (4096, 64)];
const COUNTERS: usize = 4096 + 1024 * 32;
/// Of the pool's file, its first entries; the repetitions come behind.
const POOL: [(usize, usize); 1] = [(0, 48)];
const REPEATS: usize = 4096 * 24;

/// What a process left, and a child of it.
pub fn recording(data: &[u8]) {
    let folder = FOLDER.join("p");
    let _ = fs::remove_dir_all(&folder);
    for image in ["raw/7-0", "raw/8-0"] {
        fs::create_dir_all(folder.join(image)).unwrap();
    }
    for (name, bytes) in FILES.iter().zip(parts(data)) {
        let bytes = match name.split('/').next_back().unwrap_or_default() {
            "thread-0" | "thread-1" => spread(bytes, &THREAD, COUNTERS),
            "pool" => spread(bytes, &POOL, REPEATS),
            _ => bytes.to_vec(),
        };
        fs::write(folder.join("raw").join(name), bytes).unwrap();
    }
    let mut rows = 0;
    if nodewise_observe::recover(&folder).is_ok() {
        let reader = Reader::open(&folder).unwrap();
        reader.visit(&mut |batch| rows += batch.len()).unwrap();
    }
    understood(rows > 0);
}

/// Puts the parts of an input where they belong in a file, and the rest of it at `rest`.
fn spread(mut bytes: &[u8], parts: &[(usize, usize)], rest: usize) -> Vec<u8> {
    let mut file = Vec::new();
    for &(at, size) in parts {
        let (part, others) = bytes.split_at(bytes.len().min(size));
        file.resize(at, 0);
        file.extend_from_slice(part);
        bytes = others;
    }
    file.resize(rest, 0);
    file.extend_from_slice(bytes);
    file
}
