//! What a placed process said about itself: the mirror of `runtime/preload/summary.h`.

use crate::table::NODES;
use std::path::Path;

const MAGIC: u64 = 0x3161_6d6d_7573_776e;
const OFF: usize = 56;
const OFF_BYTES: usize = 128;
const LIVE: usize = OFF + OFF_BYTES;
const LIVE_ENTRIES: usize = 65_536;
const LIVE_BYTES: usize = 32;
const TALLIES: usize = LIVE + LIVE_ENTRIES * LIVE_BYTES;
const TALLY_BYTES: usize = 32 + 2 * 8 * NODES as usize;

/// How far a process had come when it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Running,
    ReadBack,
    Off,
}

/// One process image.
#[derive(Debug)]
pub(crate) struct Summary {
    bytes: Vec<u8>,
}

/// An object that was alive when last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    pub page: u64,
    pub pages: u64,
    pub rule: u32,
    pub thread: u32,
}

/// Objects of one rule.
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
    /// Reads a summary file; `None` if it is not one, or not whole yet.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let summary = Self {
            bytes: std::fs::read(path).ok()?,
        };
        let whole = summary.bytes.len() >= TALLIES + TALLY_BYTES && summary.u64(0) == MAGIC;
        (whole && summary.bytes.len() >= TALLIES + (summary.rules() + 1) * TALLY_BYTES).then_some(summary)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.u32(8)
    }

    pub(crate) fn state(&self) -> State {
        match self.u32(12) {
            2 => State::ReadBack,
            3 => State::Off,
            _ => State::Running,
        }
    }

    pub(crate) fn rules(&self) -> usize {
        self.u32(16) as usize
    }

    pub(crate) fn threads(&self) -> u32 {
        self.u32(20)
    }

    /// Calls the kernel refused, and the last error.
    pub(crate) fn refused(&self) -> (u32, i32) {
        (self.u32(24), self.u32(28) as i32)
    }

    pub(crate) fn coarsened(&self) -> u32 {
        self.u32(32)
    }

    pub(crate) fn untracked(&self) -> u32 {
        self.u32(36)
    }

    pub(crate) fn populated(&self) -> u64 {
        self.u64(40)
    }

    pub(crate) fn by_name(&self) -> u64 {
        self.u64(48)
    }

    /// Why the preload switched itself off.
    pub(crate) fn off(&self) -> Option<String> {
        let text = &self.bytes[OFF..OFF + OFF_BYTES];
        let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
        (end > 0).then(|| String::from_utf8_lossy(&text[..end]).into_owned())
    }

    /// Of one rule; the one after the last is the fallback.
    pub(crate) fn tally(&self, rule: usize, nodes: usize) -> Tally {
        let at = TALLIES + rule * TALLY_BYTES;
        let row = |from: usize| (0..nodes).map(|n| self.u64(from + 8 * n)).collect();
        Tally {
            objects: self.u64(at),
            pages: self.u64(at + 8),
            touched: self.u64(at + 16),
            right: self.u64(at + 24),
            wanted: row(at + 32),
            got: row(at + 32 + 8 * NODES as usize),
        }
    }

    /// Objects alive.
    pub(crate) fn live(&self) -> impl Iterator<Item = Live> + '_ {
        let entry = |at: usize| Live {
            page: self.u64(at),
            pages: self.u64(at + 8),
            rule: self.u32(at + 16),
            thread: self.u32(at + 20),
        };
        (0..LIVE_ENTRIES)
            .map(move |i| entry(LIVE + i * LIVE_BYTES))
            .filter(|l| l.page > 2)
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("eight bytes"))
    }
}

/// A process image's file: in this state, one object alive, at `page` if not zero.
#[cfg(test)]
pub(crate) fn file(pid: u32, state: u32, page: u64) -> Vec<u8> {
    let mut bytes = vec![0; TALLIES + TALLY_BYTES];
    bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&pid.to_le_bytes());
    bytes[12..16].copy_from_slice(&state.to_le_bytes());
    bytes[LIVE..LIVE + 8].copy_from_slice(&page.to_le_bytes());
    bytes
}
