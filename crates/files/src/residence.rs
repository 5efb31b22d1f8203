//! On which nodes the pages of an object lie.

use crate::windows::{self, DataWindows, WINDOW, length};
use nodewise_linux::file_pages::FilePages;
use nodewise_linux::frames::Frames;
use nodewise_linux::page_cache::tells_residence;
use nodewise_linux::pages::PageStatus;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;

const PAGE: u64 = 4096;

/// Memory of an object on a node, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OnNode {
    /// How much of it is in memory there.
    pub bytes: u64,
    /// Of that, mapped by a process; 0 if [`Residence::knows_use`] is not set.
    pub mapped: u64,
    /// Of that, cold: no process maps it, and it was read or written no more than once since it was loaded (it is not on
    /// the kernel's list of active pages); 0 if [`Residence::knows_cold`] is not set.
    pub cold: u64,
}

/// On which nodes an object lies.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Residence {
    /// Size of the object, bytes.
    pub size: u64,
    /// The share of it that was looked at, 0 to 1. Below 1 windows of 2 MiB were drawn, and the bytes on nodes are
    /// estimates for all of it.
    pub looked_at: f64,
    /// Bytes in memory by the kernel's node number.
    pub nodes: BTreeMap<u32, OnNode>,
    /// Bytes in memory of which the kernel did not say the node.
    pub unknown: u64,
    /// Whether it is known what of it is mapped; only root learns that.
    pub knows_use: bool,
    /// Whether it is known what of it is cold; root learns that of kernels without `lru_gen`.
    pub knows_cold: bool,
}

impl Residence {
    /// Looks at an object of `size` bytes through its file. If it is larger than `most` bytes, windows of that size in
    /// sum are drawn, one of each of equally large parts, by a fixed seed.
    ///
    /// # Errors
    /// The file cannot be mapped, this user does not learn which of its pages are in memory, or the kernel does not tell
    /// where they lie.
    pub fn of(file: &File, size: u64, most: u64) -> io::Result<Self> {
        if !tells_residence(file) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let frames = Frames::open().ok();
        let mut found = Self {
            size,
            knows_use: frames.is_some(),
            knows_cold: frames.as_ref().is_some_and(Frames::has_lists),
            looked_at: 1.0,
            ..Self::default()
        };
        if size <= most {
            for window in DataWindows::of(file, size) {
                found.add(file, window, frames.as_ref())?;
            }
            return Ok(found);
        }
        let drawn = windows::drawn(size, (most / WINDOW).max(1));
        let looked: u64 = drawn.iter().map(|window| length(*window, size)).sum();
        for window in drawn {
            found.add(file, window, frames.as_ref())?;
        }
        found.scale(looked as f64 / size as f64);
        Ok(found)
    }

    fn add(&mut self, file: &File, window: u64, frames: Option<&Frames>) -> io::Result<()> {
        let (start, length) = (window * WINDOW, length(window, self.size));
        let pages = FilePages::map(file, start, length)?;
        let statuses = pages.nodes()?;
        // The last page of a file counts as far as the file goes.
        let bytes = |page: usize| PAGE.min(length - page as u64 * PAGE);
        let mut there: Vec<(usize, u32)> = Vec::new();
        for (page, status) in statuses.iter().enumerate() {
            match status.node() {
                Some(node) => there.push((page, node)),
                None if *status != PageStatus::Absent => self.unknown += bytes(page),
                None => {}
            }
        }
        let wanted: Vec<usize> = there.iter().map(|(page, _)| *page).collect();
        let use_of = frames.map(|frames| pages.frames(frames, &wanted)).transpose()?;
        for (index, (page, node)) in there.iter().enumerate() {
            let on = self.nodes.entry(*node).or_default();
            on.bytes += bytes(*page);
            let Some(frame) = use_of.as_ref().and_then(|frames| frames[index]) else {
                continue;
            };
            // One mapping is ours.
            if frame.mappings > 1 {
                on.mapped += bytes(*page);
            } else if self.knows_cold && !frame.active() {
                on.cold += bytes(*page);
            }
        }
        Ok(())
    }

    /// From the part that was looked at to the whole.
    fn scale(&mut self, looked_at: f64) {
        self.looked_at = looked_at;
        let whole = |part: &mut u64| *part = (*part as f64 / looked_at) as u64;
        whole(&mut self.unknown);
        for on in self.nodes.values_mut() {
            whole(&mut on.bytes);
            whole(&mut on.mapped);
            whole(&mut on.cold);
        }
    }

    /// Bytes in memory on all nodes.
    #[must_use]
    pub fn in_memory(&self) -> u64 {
        self.nodes.values().map(|on| on.bytes).sum()
    }

    /// Cold bytes on all nodes; `None` if they are not known.
    #[must_use]
    pub fn cold(&self) -> Option<u64> {
        self.knows_cold
            .then(|| self.nodes.values().map(|on| on.cold).sum())
    }

    /// The share of the memory in use that is on each node.
    #[must_use]
    pub fn shares(&self) -> BTreeMap<u32, f64> {
        let all = self.in_memory().max(1) as f64;
        self.nodes
            .iter()
            .map(|(node, on)| (*node, on.bytes as f64 / all))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_file_in_memory_is_found_whole_and_a_sample_says_the_same() {
        let path = std::env::temp_dir().join(format!("nodewise-residence-{}", std::process::id()));
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        file.write_all_at(&vec![1; 16 << 20], 0).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.set_len(32 << 20).unwrap();
        let Ok(whole) = Residence::of(&file, 32 << 20, u64::MAX) else {
            return; // a kernel without nodes
        };
        assert_eq!((whole.in_memory(), whole.looked_at), (16 << 20, 1.0));
        let part = Residence::of(&file, 32 << 20, 8 << 20).unwrap();
        assert_eq!((part.in_memory(), part.looked_at), (16 << 20, 0.25));
    }
}
