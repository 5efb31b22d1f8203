//! The shared page through which processes request slices.

use crate::layout::{self, control};
use crate::slicing::Slicing;
use nodewise_linux::futex;
use nodewise_linux::mapping::SharedFile;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

/// The recorder's view of `raw/control`.
pub struct Control(SharedFile);

impl Control {
    /// Creates the page; after this, processes may be started.
    ///
    /// # Errors
    /// The file exists or cannot be written.
    pub fn create(raw: &Path, slicing: Slicing) -> io::Result<Self> {
        let control = Self(SharedFile::create(&raw.join("control"), control::BYTES)?);
        let (kind, accesses) = match slicing {
            Slicing::Time(_) => (layout::slicing::TIME, 0),
            Slicing::Accesses(count) => (layout::slicing::ACCESSES, count),
            Slicing::Region => (layout::slicing::REGION, 0),
        };
        control.0.words()[control::SLICE_ACCESSES].store(accesses, Relaxed);
        control.half(control::VERSION).store(layout::VERSION, Relaxed);
        control.half(control::SLICING).store(kind, Relaxed);
        control
            .half(control::RECORDER_PID)
            .store(std::process::id(), Relaxed);
        control.half(control::RECORDER_ALIVE).store(1, Relaxed);
        control.0.words()[control::MAGIC].store(layout::MAGIC, Release);
        Ok(control)
    }

    /// Opens the page of an interrupted recording.
    ///
    /// # Errors
    /// There is no readable page.
    pub fn open(raw: &Path) -> io::Result<Self> {
        let control = Self(SharedFile::open(&raw.join("control"))?);
        let words = control.0.words();
        if words.len() < control::BYTES as usize / 8 || words[control::MAGIC].load(Acquire) != layout::MAGIC {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a control page"));
        }
        Ok(control)
    }

    /// Why a process stopped or never began to record, if so.
    pub fn truncated(&self) -> Option<String> {
        let stopped = self.half(control::STOPPED).load(Acquire);
        let words = self.0.words()[control::WHY / 8..]
            .iter()
            .take(control::WHY_BYTES / 8);
        let bytes: Vec<u8> = words.flat_map(|w| w.load(Relaxed).to_le_bytes()).collect();
        let why = String::from_utf8_lossy(bytes.split(|&b| b == 0).next().unwrap_or_default()).into_owned();
        match stopped {
            0 => None,
            1 => Some(why),
            many => Some(format!("{why} (the first of {many} processes that stopped)")),
        }
    }

    /// Bytes that all processes together have written to their logs.
    pub fn logged(&self) -> u64 {
        self.0.words()[control::LOGGED].load(Acquire)
    }

    /// Process identifier of the recorder that created the page.
    pub fn recorder(&self) -> u32 {
        self.half(control::RECORDER_PID).load(Relaxed)
    }

    /// Number of slices that were requested; waits at most `at_most` until it is more than `taken`.
    pub fn requested(&self, taken: u32, at_most: Duration) -> u32 {
        let word = self.half(control::SLICES_REQUESTED);
        if word.load(Acquire) == taken && !at_most.is_zero() {
            futex::wait(word, taken, at_most);
        }
        word.load(Acquire)
    }

    /// Announces that `count` slices have been taken, which resumes the processes that wait for them.
    pub fn set_taken(&self, count: u32) {
        self.half(control::SLICES_TAKEN).store(count, Release);
        futex::wake(self.half(control::SLICES_TAKEN));
    }

    /// Wakes the thread that waits in [`Control::requested`].
    pub fn wake(&self) {
        futex::wake(self.half(control::SLICES_REQUESTED));
    }

    /// Announces that no more requests will be answered.
    pub fn close(&self) {
        self.half(control::RECORDER_ALIVE).store(0, Release);
        futex::wake(self.half(control::SLICES_TAKEN));
    }

    fn half(&self, index: usize) -> &AtomicU32 {
        &self.0.half_words()[index]
    }
}
