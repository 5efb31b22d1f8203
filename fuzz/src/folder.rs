//! Folders for readers that are given one, made once a process, below `NODEWISE_FUZZ_FOLDER` where that is set.

use std::fs;
use std::path::PathBuf;

/// A folder of this process.
pub fn own(name: &str) -> PathBuf {
    let below = std::env::var_os("NODEWISE_FUZZ_FOLDER").map_or_else(std::env::temp_dir, PathBuf::from);
    let path = below.join(format!("nodewise-fuzz-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Parts of an input, each behind its length in three bytes; the last one is what is left.
pub fn parts(mut data: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = data.split_first_chunk::<3>() {
        let length = u32::from_le_bytes([length[0], length[1], length[2], 0]) as usize;
        let (part, rest) = rest.split_at(length.min(rest.len()));
        parts.push(part);
        data = rest;
    }
    parts
}
