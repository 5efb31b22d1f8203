//! Reads the summary that a placed process writes. Mirror of `runtime/preload/summary.h`.

use crate::live::{Live, Whole};
use crate::table::NODES;
use std::path::Path;

const MAGIC: u64 = 0x3361_6d6d_7573_776e;
const OFF: usize = 64;
const OFF_BYTES: usize = 120;
const UNREACHED: usize = OFF + OFF_BYTES;
const HEADER: usize = UNREACHED + 8;
const TALLY_BYTES: usize = 32;
const LIVE_BYTES: usize = 64;
/// Bytes of the largest summary that is read: 100,000 rules on 1,000 nodes.
pub(crate) const LARGEST: u64 = 2 << 30;
/// Pages of the largest object: no address space is larger. It bounds how many are asked for where a summary is false.
const MOST_PAGES: u64 = 1 << 36;

/// The state that a process had reached when it last wrote its summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    ReadBack,
    Off,
    /// The process executed another program.
    Executed,
}

/// The summary file of one process image.
#[derive(Debug)]
pub(crate) struct Summary {
    bytes: Vec<u8>,
}

/// Page counts of the objects of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub objects: u64,
    pub pages: u64,
    pub touched: u64,
    pub right: u64,
    pub wanted: Vec<u64>,
    pub got: Vec<u64>,
}

impl Summary {
    /// Reads a summary file of at most `largest` bytes; `None` if it is not one, or incomplete.
    pub(crate) fn read(path: &Path, largest: u64) -> Option<Self> {
        Self::of(nodewise_input::bytes(path, largest).ok()?)
    }

    fn of(bytes: Vec<u8>) -> Option<Self> {
        let summary = Self { bytes };
        let headed =
            summary.bytes.len() >= HEADER && summary.u64(0) == MAGIC && summary.nodes() <= NODES as usize;
        (headed && summary.bytes.len() >= summary.live_at(summary.slots())).then_some(summary)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.u32(8)
    }

    pub(crate) fn state(&self) -> State {
        match self.u32(12) {
            2 => State::ReadBack,
            3 => State::Off,
            4 => State::Executed,
            _ => State::Running,
        }
    }

    pub(crate) fn rules(&self) -> usize {
        self.u32(16) as usize
    }

    /// Number of nodes in a tally.
    fn nodes(&self) -> usize {
        self.u32(20) as usize
    }

    /// Number of live objects in the table; objects that the process adds while we read are seen next time.
    fn slots(&self) -> usize {
        self.u32(24) as usize
    }

    pub(crate) fn threads(&self) -> u32 {
        self.u32(28)
    }

    /// Number of calls that the kernel refused, and the last error number.
    pub(crate) fn refused(&self) -> (u32, i32) {
        (self.u32(32), self.u32(36) as i32)
    }

    pub(crate) fn coarsened(&self) -> u32 {
        self.u32(40)
    }

    pub(crate) fn untracked(&self) -> u32 {
        self.u32(44)
    }

    pub(crate) fn populated(&self) -> u64 {
        self.u64(48)
    }

    pub(crate) fn by_name(&self) -> u64 {
        self.u64(56)
    }

    /// Number of programs that the process started without a preload.
    pub(crate) fn unreached(&self) -> u32 {
        self.u32(UNREACHED)
    }

    /// Number of calls by which the program itself has bound threads.
    pub(crate) fn own_masks(&self) -> u32 {
        self.u32(UNREACHED + 4)
    }

    /// Why the preload turned itself off, if so.
    pub(crate) fn off(&self) -> Option<String> {
        let text = &self.bytes[OFF..OFF + OFF_BYTES];
        let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
        (end > 0).then(|| String::from_utf8_lossy(&text[..end]).into_owned())
    }

    /// Page counts of one rule; the index after the last rule means objects that no rule names.
    pub(crate) fn tally(&self, rule: usize, nodes: usize) -> Tally {
        let at = HEADER + rule * self.tally_bytes();
        let known = nodes.min(self.nodes());
        let row = |from: usize| (0..known).map(|n| self.u64(from + 8 * n)).collect();
        Tally {
            objects: self.u64(at),
            pages: self.u64(at + 8),
            touched: self.u64(at + 16),
            right: self.u64(at + 24),
            wanted: row(at + TALLY_BYTES),
            got: row(at + TALLY_BYTES + 8 * self.nodes()),
        }
    }

    /// Objects that are alive, with their rule and thread.
    pub(crate) fn live(&self) -> impl Iterator<Item = Live> + '_ {
        let entry = |at: usize| Live {
            page: self.u64(at),
            pages: self.u64(at + 8),
            rule: self.u32(at + 16),
            thread: self.u32(at + 20),
            whole: Whole {
                pages: self.u64(at + 32),
                before: self.u64(at + 40),
                phase: self.u64(at + 48),
                granule: self.u32(at + 56),
            },
        };
        (0..self.slots())
            .map(move |slot| entry(self.live_at(slot)))
            .filter(|l| l.page > 2 && l.pages <= MOST_PAGES)
    }

    fn tally_bytes(&self) -> usize {
        TALLY_BYTES + 16 * self.nodes()
    }

    fn live_at(&self, slot: usize) -> usize {
        HEADER + (self.rules() + 1) * self.tally_bytes() + slot * LIVE_BYTES
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }
}

/// Reads every field of a summary.
#[cfg(fuzzing)]
pub(crate) fn read_everything(bytes: &[u8]) {
    let Some(summary) = Summary::of(bytes.to_vec()) else {
        return;
    };
    let _ = (
        summary.pid(),
        summary.state(),
        summary.threads(),
        summary.refused(),
        summary.off(),
        summary.unreached(),
    );
    let _ = (
        summary.coarsened(),
        summary.untracked(),
        summary.populated(),
        summary.by_name(),
    );
    (0..=summary.rules()).for_each(|rule| drop(summary.tally(rule, NODES as usize)));
    summary.live().for_each(drop);
}

/// A summary file in this state, with one live object, at `page` unless that is 0.
#[cfg(test)]
pub(crate) fn file(pid: u32, state: u32, page: u64) -> Vec<u8> {
    let mut bytes = vec![0; HEADER + TALLY_BYTES + 16 + LIVE_BYTES];
    bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&pid.to_le_bytes());
    bytes[12..16].copy_from_slice(&state.to_le_bytes());
    bytes[20..24].copy_from_slice(&1u32.to_le_bytes());
    bytes[24..28].copy_from_slice(&1u32.to_le_bytes());
    let live = HEADER + TALLY_BYTES + 16;
    bytes[live..live + 8].copy_from_slice(&page.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_larger_than_any_address_space_is_none() {
        let live = HEADER + TALLY_BYTES + 16;
        let with = |pages: u64| {
            let mut bytes = file(1, 1, 5);
            bytes[live + 8..live + 16].copy_from_slice(&pages.to_le_bytes());
            Summary::of(bytes).unwrap().live().count()
        };
        assert_eq!(
            (with(MOST_PAGES), with(MOST_PAGES + 1), with(u64::MAX)),
            (1, 0, 0)
        );
    }
}
