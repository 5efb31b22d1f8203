//! On which nodes the pages of an object lie.

use nodewise_analysis::random::SplitMix;
use nodewise_linux::file_pages::FilePages;
use nodewise_linux::frames::Frames;
use nodewise_linux::pages::PageStatus;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;

/// Bytes of a file that are looked at together.
pub(crate) const WINDOW: u64 = 2 << 20;
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
    /// sum are drawn, one of each of equally large parts, by a fixed seed. `progress` is called with the bytes looked
    /// at since the last call.
    ///
    /// # Errors
    /// The file cannot be mapped, or the kernel does not tell where its pages lie.
    pub fn of(file: &File, size: u64, most: u64, progress: &mut dyn FnMut(u64)) -> io::Result<Self> {
        let frames = Frames::open().ok();
        let mut found = Self {
            size,
            knows_use: frames.is_some(),
            knows_cold: frames.as_ref().is_some_and(Frames::has_lists),
            ..Self::default()
        };
        let windows = windows(size, most);
        let looked: u64 = windows.iter().map(|w| length(*w, size)).sum();
        for window in windows {
            let bytes = length(window, size);
            let pages = FilePages::map(file, window * WINDOW, bytes)?;
            found.add(&pages, frames.as_ref())?;
            progress(bytes);
        }
        found.scale(looked);
        Ok(found)
    }

    fn add(&mut self, pages: &FilePages, frames: Option<&Frames>) -> io::Result<()> {
        let statuses = pages.nodes()?;
        let there: Vec<(usize, u32)> = statuses
            .iter()
            .enumerate()
            .filter_map(|(page, status)| Some((page, status.node()?)))
            .collect();
        let known = |status: &&PageStatus| status.node().is_none() && **status != PageStatus::Absent;
        self.unknown += statuses.iter().filter(known).count() as u64 * PAGE;
        let wanted: Vec<usize> = there.iter().map(|(page, _)| *page).collect();
        let use_of = frames.map(|frames| pages.frames(frames, &wanted)).transpose()?;
        for (index, (_, node)) in there.iter().enumerate() {
            let on = self.nodes.entry(*node).or_default();
            on.bytes += PAGE;
            let Some(frame) = use_of.as_ref().and_then(|frames| frames[index]) else {
                continue;
            };
            // One mapping is ours.
            if frame.mappings > 1 {
                on.mapped += PAGE;
            } else if self.knows_cold && !frame.active() {
                on.cold += PAGE;
            }
        }
        Ok(())
    }

    /// From the part that was looked at to the whole.
    fn scale(&mut self, looked: u64) {
        if looked >= self.size {
            self.looked_at = 1.0;
            return;
        }
        self.looked_at = looked as f64 / self.size as f64;
        let whole = |part: &mut u64| *part = (*part as f64 / self.looked_at) as u64;
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

    /// Adds the memory of another object, for the sum over several.
    pub fn join(&mut self, other: &Self) {
        let looked = |r: &Self| r.looked_at * r.size as f64;
        let both = looked(self) + looked(other);
        self.knows_use = other.knows_use && (self.knows_use || self.size == 0);
        self.knows_cold = other.knows_cold && (self.knows_cold || self.size == 0);
        self.size += other.size;
        self.looked_at = if self.size == 0 {
            1.0
        } else {
            both / self.size as f64
        };
        self.unknown += other.unknown;
        for (node, on) in &other.nodes {
            let sum = self.nodes.entry(*node).or_default();
            sum.bytes += on.bytes;
            sum.mapped += on.mapped;
            sum.cold += on.cold;
        }
    }
}

fn length(window: u64, size: u64) -> u64 {
    WINDOW.min(size - window * WINDOW)
}

/// The windows to look at: all, or one at random of each of equally large parts, so that a pattern of nodes in the file
/// cannot fall into step with them.
fn windows(size: u64, most: u64) -> Vec<u64> {
    let all = size.div_ceil(WINDOW);
    let wanted = (most / WINDOW).max(1);
    if all <= wanted {
        return (0..all).collect();
    }
    let mut random = SplitMix(size);
    let start = |part: u64| (u128::from(part) * u128::from(all) / u128::from(wanted)) as u64;
    let drawn = |part: u64| {
        let width = (start(part + 1) - start(part)) as usize;
        start(part) + random.below(width) as u64
    };
    (0..wanted).map(drawn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn every_part_of_a_large_file_has_a_window() {
        assert_eq!(windows(0, 64 << 20), []);
        assert_eq!(windows(5 << 20, 64 << 20), [0, 1, 2]);
        let drawn = windows(1000 * WINDOW, 100 * WINDOW);
        assert_eq!(drawn.len(), 100);
        assert!(drawn.iter().enumerate().all(|(i, w)| *w / 10 == i as u64));
        // Not in step with nodes that take turns.
        let odd = drawn.iter().filter(|w| *w % 2 == 1).count();
        assert!((30..=70).contains(&odd), "{odd}");
    }

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
        let mut seen = 0;
        let Ok(whole) = Residence::of(&file, 32 << 20, u64::MAX, &mut |bytes| seen += bytes) else {
            return; // a kernel without nodes
        };
        assert_eq!(
            (whole.in_memory(), whole.looked_at, seen),
            (16 << 20, 1.0, 32 << 20)
        );
        let part = Residence::of(&file, 32 << 20, 8 << 20, &mut |_| ()).unwrap();
        assert_eq!((part.in_memory(), part.looked_at), (16 << 20, 0.25));
        let mut both = Residence::default();
        both.join(&whole);
        both.join(&part);
        assert_eq!(
            (both.in_memory(), both.looked_at, both.size),
            (32 << 20, 0.625, 64 << 20)
        );
    }
}
