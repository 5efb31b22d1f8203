//! Threads.

use crate::Frame;

/// A thread of the observed program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// The ordinal of its process.
    pub process: u16,
    /// The kernel's thread id at record time.
    pub tid: u32,
    /// `omp_get_thread_num()` inside the first parallel region it ran, if any.
    pub openmp: Option<u32>,
    /// The start routine; the main thread has `main`.
    pub start: Frame,
    /// CPU time, nanoseconds.
    pub cpu_ns: u64,
}
